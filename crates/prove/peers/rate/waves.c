/* The peer of `rate.waves`: standing electromagnetic waves by Yee's finite differences. `waves waves MIB ITERATIONS` prints the
   seconds of each iteration, and on the error stream a checksum that is the component's answer if compiled with
   -ffp-contract=off. */
#include "peer.h"

enum { LANES = 8, STEPS = 12 };
static const double SPEED = 0.5, PI = 3.14159265358979323846;
static const int HALVES[2][3] = {{1, 2, 3}, {4, 1, 2}};
static const double NORMAL[2][3] = {{0.75, 0.5, -0.25}, {0.25, -1.0, 0.5}};
static size_t sides[3], row, plane, stride;
static double *grid, *waves[2][3][2], factors[2][3];

static size_t row_at(size_t y, size_t z) { return z * plane + y * row + LANES; }

static double sine(double halves, double side) {
    double part = halves / side;
    while (part >= 2) part -= 2;
    double angle = PI * (part > 1 ? part - 2 : part), square = angle * angle, sum = 1;
    for (int k = 17; k > 0; k--)
        sum = 1 - square / (2 * k * (2 * k + 1)) * sum;
    return sum * angle;
}
static void mode(int m) {
    double steep[3], size = 0;
    for (int axis = 0; axis < 3; axis++) {
        double halves = HALVES[m][axis], side = (double)sides[axis];
        for (int k = 0; k < 2; k++) {
            waves[m][axis][k] = malloc(sides[axis] * 8);
            for (size_t i = 0; i < sides[axis]; i++)
                waves[m][axis][k][i] = sine((double)i * halves + (k ? (halves + side) / 2 : 0), side);
        }
        steep[axis] = 2 * sine(halves / 2, side);
        size += steep[axis] * steep[axis];
    }
    for (int i = 0; i < 3; i++) {
        int j = (i + 1) % 3, k = (i + 2) % 3;
        factors[m][i] = (NORMAL[m][j] * steep[k] - NORMAL[m][k] * steep[j]) / __builtin_sqrt(size);
    }
}

/* field += factor ((a - less_a) - (b - less_b)) */
static void curl(double *restrict field, double factor, const double *restrict a, const double *restrict less_a,
                 const double *restrict b, const double *restrict less_b) {
    for (size_t i = 0; i < sides[0]; i++)
        field[i] += factor * ((a[i] - less_a[i]) - (b[i] - less_b[i]));
}

static void magnetic(double speed) {
    for (size_t z = 0; z < sides[2]; z++)
        for (size_t y = 0; y < sides[1]; y++) {
            double *ex = grid + row_at(y, z), *ey = ex + stride, *ez = ey + stride;
            double *hx = ez + stride, *hy = hx + stride, *hz = hy + stride;
            curl(hx, -speed, ez + row, ez, ey + plane, ey);
            curl(hy, -speed, ex + plane, ex, ez + 1, ez);
            curl(hz, -speed, ey + 1, ey, ex + row, ex);
        }
}
static void electric(double speed) {
    for (size_t z = 0; z < sides[2]; z++)
        for (size_t y = 0; y < sides[1]; y++) {
            double *ex = grid + row_at(y, z), *ey = ex + stride, *ez = ey + stride;
            double *hx = ez + stride, *hy = hx + stride, *hz = hy + stride;
            if (y > 0 && z > 0) curl(ex, speed, hz, hz - row, hy, hy - plane);
            if (z > 0) {
                curl(ey, speed, hx, hx - plane, hz, hz - 1);
                *ey = 0;
            }
            if (y > 0) {
                curl(ez, speed, hy, hy - 1, hx, hx - row);
                *ez = 0;
            }
        }
}

static void reset(void) {
    memset(grid, 0, 6 * stride * 8);
    for (int field = 0; field < 3; field++)
        for (size_t z = 0; z < sides[2]; z++)
            for (size_t y = 0; y < sides[1]; y++) {
                double *values = grid + (size_t)field * stride + row_at(y, z);
                double part[2];
                for (int m = 0; m < 2; m++)
                    part[m] = factors[m][field] * (waves[m][1][field == 1][y] * waves[m][2][field == 2][z]);
                for (size_t x = 0; x < sides[0]; x++)
                    values[x] = part[0] * waves[0][0][field == 0][x] + part[1] * waves[1][0][field == 0][x];
            }
}

int main(int argc, char **argv) {
    if (argc < 4) return 2;
    size_t cells = ((size_t)atol(argv[2]) << 20) / 48 - (512 + 512), x = 0, y = 0;
    while ((x + 1) * (x + 1) * (x + 1) <= cells) x++;
    x = x / LANES * LANES;
    size_t rows = cells / (x + LANES);
    while ((y + 1) * (y + 1) <= rows) y++;
    sides[0] = x, sides[1] = y - 1, sides[2] = rows / y - 1;
    row = x + LANES;
    plane = row * y;
    stride = (plane * (sides[2] + 1) + LANES + 511) / 512 * 512 + 72;
    grid = room(6 * stride * 8);
    mode(0);
    mode(1);
    reset();
    for (int iteration = 0; iteration < atoi(argv[3]); iteration++) {
        double begin = now();
        reset();
        magnetic(SPEED / 2);
        for (int step = 0; step < STEPS; step++) {
            electric(SPEED);
            magnetic(SPEED);
        }
        printf("%.6f\n", now() - begin);
    }
    for (size_t field = 0; field < 6; field++)
        for (size_t z = 0; z < sides[2]; z++)
            for (size_t y = 0; y < sides[1]; y++)
                add_to_sum(grid + field * stride + row_at(y, z), sides[0]);
    fprintf(stderr, "%016lx\n", sum ^ (sum >> 29));
    return 0;
}
