/* The peer of `rate.lbm`: a lattice Boltzmann flow by the AA pattern. `lbm lbm MIB ITERATIONS` prints the
   seconds of each iteration, and on the error stream a checksum that is the component's answer if compiled with
   -ffp-contract=off. */
#include "peer.h"

enum { Q = 19, LANES = 8, STEPS = 20 };
static const int BY[9][3] = {{1, 0, 0}, {0, 1, 0}, {0, 0, 1},  {1, 1, 0}, {1, -1, 0},
                             {1, 0, 1}, {1, 0, -1}, {0, 1, 1}, {0, 1, -1}};
static const double REST = 1.0 / 3.0, AXIS = 1.0 / 18.0, DIAGONAL = 1.0 / 36.0, OMEGA = 1.25, SPEED = 0.001;
static const double PI = 3.14159265358979323846;
static size_t nx, ny, nz, stride;
static double *grid, *waves[3][2];

static size_t row_at(size_t y, size_t z) { return (z * ny + y) * (nx + LANES) + LANES; }

static double sine(double angle) {
    double square = angle * angle, sum = 1;
    for (int k = 17; k > 0; k--)
        sum = 1 - square / (2 * k * (2 * k + 1)) * sum;
    return sum * angle;
}
static double sine_of(size_t quarters, size_t side) {
    double at = (double)(quarters % (4 * side)) / (double)(4 * side);
    return sine(2 * PI * (at > 0.5 ? at - 1 : at));
}

#define RELAX(there, back, kind, along)                                                                              \
    do {                                                                                                             \
        double c = (along), even = kind##_base + kind##_square * c * c, odd = kind##_simple * c;                     \
        double first = there[i], second = back[i];                                                                   \
        back[i] = keep * first + (even + odd);                                                                       \
        there[i] = keep * second + (even - odd);                                                                     \
    } while (0)

/* Collides a row; what belongs to each direction is left in the place of its opposite. */
static void collide(double *const rows[Q]) {
    double *restrict f0 = rows[0], *restrict a0 = rows[1], *restrict a1 = rows[2], *restrict b0 = rows[3],
           *restrict b1 = rows[4], *restrict c0 = rows[5], *restrict c1 = rows[6], *restrict d0 = rows[7],
           *restrict d1 = rows[8], *restrict e0 = rows[9], *restrict e1 = rows[10], *restrict g0 = rows[11],
           *restrict g1 = rows[12], *restrict h0 = rows[13], *restrict h1 = rows[14], *restrict i0 = rows[15],
           *restrict i1 = rows[16], *restrict j0 = rows[17], *restrict j1 = rows[18];
    const double keep = 1 - OMEGA;
#pragma GCC ivdep
    for (size_t i = 0; i < nx; i++) {
        double a = a0[i] + a1[i], b = b0[i] + b1[i], c = c0[i] + c1[i], d = d0[i] + d1[i], e = e0[i] + e1[i];
        double g = g0[i] + g1[i], h = h0[i] + h1[i], k = i0[i] + i1[i], l = j0[i] + j1[i];
        double density = ((f0[i] + a) + (b + c)) + ((d + e) + (g + h)) + (k + l), inverse = 1 / density;
        double p = a0[i] - a1[i], q = b0[i] - b1[i], r = c0[i] - c1[i], s = d0[i] - d1[i], t = e0[i] - e1[i];
        double u = g0[i] - g1[i], v = h0[i] - h1[i], w = i0[i] - i1[i], o = j0[i] - j1[i];
        double x = (((p + s) + (t + u)) + v) * inverse;
        double y = (((q + s) - (t - w)) + o) * inverse;
        double z = (((r + u) - (v - w)) - o) * inverse;
        double base = 1 - 1.5 * (x * x + y * y + z * z);
        double axis = density * (OMEGA * AXIS), diagonal = density * (OMEGA * DIAGONAL);
        double axis_base = axis * base, axis_square = axis * 4.5, axis_simple = axis * 3.0;
        double diagonal_base = diagonal * base, diagonal_square = diagonal * 4.5, diagonal_simple = diagonal * 3.0;
        f0[i] = keep * f0[i] + density * (OMEGA * REST) * base;
        RELAX(a0, a1, axis, x);
        RELAX(b0, b1, axis, y);
        RELAX(c0, c1, axis, z);
        RELAX(d0, d1, diagonal, x + y);
        RELAX(e0, e1, diagonal, x - y);
        RELAX(g0, g1, diagonal, x + z);
        RELAX(h0, h1, diagonal, x - z);
        RELAX(i0, i1, diagonal, y + z);
        RELAX(j0, j1, diagonal, y - z);
    }
}

static void even_step(void) {
    for (size_t z = 0; z < nz; z++)
        for (size_t y = 0; y < ny; y++) {
            double *rows[Q];
            for (size_t k = 0; k < Q; k++)
                rows[k] = grid + k * stride + row_at(y, z);
            collide(rows);
        }
}

static size_t moved(size_t at, int by, size_t side) {
    return by > 0 ? (at + 1 == side ? 0 : at + 1) : by == 0 ? at : at == 0 ? side - 1 : at - 1;
}
static void odd_step(void) {
    for (size_t z = 0; z < nz; z++)
        for (size_t y = 0; y < ny; y++) {
            double *rows[Q] = {grid + row_at(y, z)};
            for (size_t pair = 0; pair < 9; pair++) {
                const int *by = BY[pair];
                double *up = grid + (1 + 2 * pair) * stride + row_at(moved(y, by[1], ny), moved(z, by[2], nz));
                double *down = grid + (2 + 2 * pair) * stride + row_at(moved(y, -by[1], ny), moved(z, -by[2], nz));
                if (by[0]) {
                    up[nx] = up[0];
                    down[-1] = down[nx - 1];
                }
                rows[2 + 2 * pair] = up + by[0];
                rows[1 + 2 * pair] = down - by[0];
            }
            collide(rows);
            for (size_t pair = 0; pair < 9; pair++)
                if (BY[pair][0]) {
                    double *up = rows[2 + 2 * pair] - 1, *down = rows[1 + 2 * pair] + 1;
                    up[0] = up[nx];
                    down[nx - 1] = down[-1];
                }
        }
}

static void reset(void) {
    for (size_t cz = 0; cz < nz; cz++)
        for (size_t cy = 0; cy < ny; cy++) {
            double *row = grid + row_at(cy, cz), x = SPEED * (waves[2][1][cz] + waves[1][0][cy]);
            double row_y = SPEED * waves[2][0][cz], row_z = SPEED * waves[1][1][cy];
#pragma GCC ivdep
            for (size_t i = 0; i < nx; i++) {
                double y = row_y + SPEED * waves[0][1][i], z = row_z + SPEED * waves[0][0][i];
                double base = 1 - 1.5 * (x * x + y * y + z * z);
                double along[9] = {x, y, z, x + y, x - y, x + z, x - z, y + z, y - z};
                row[i] = REST * base;
                for (size_t pair = 0; pair < 9; pair++) {
                    double weight = pair < 3 ? AXIS : DIAGONAL, c = along[pair];
                    double even = weight * base + weight * 4.5 * c * c, odd = weight * 3.0 * c;
                    row[(1 + 2 * pair) * stride + i] = even + odd;
                    row[(2 + 2 * pair) * stride + i] = even - odd;
                }
            }
        }
}

int main(int argc, char **argv) {
    if (argc < 4) return 2;
    size_t cells = ((size_t)atol(argv[2]) << 20) / (8 * Q) - (512 + 64);
    while ((nx + 1) * (nx + 1) * (nx + 1) <= cells) nx++;
    nx = nx / LANES * LANES;
    size_t all = cells / (nx + LANES);
    while ((ny + 1) * (ny + 1) <= all) ny++;
    nz = all / ny;
    stride = ((nx + LANES) * ny * nz + LANES + 511) / 512 * 512 + 24;
    grid = room(Q * stride * 8);
    size_t sides[3] = {nx, ny, nz};
    for (int axis = 0; axis < 3; axis++)
        for (size_t k = 0; k < 2; k++) {
            waves[axis][k] = malloc(sides[axis] * 8);
            for (size_t i = 0; i < sides[axis]; i++)
                waves[axis][k][i] = sine_of(4 * i + (k ? 0 : sides[axis]), sides[axis]);
        }
    reset();
    for (int iteration = 0; iteration < atoi(argv[3]); iteration++) {
        double begin = now();
        reset();
        for (int step = 0; step < STEPS; step += 2) {
            even_step();
            odd_step();
        }
        printf("%.6f\n", now() - begin);
    }
    for (size_t k = 0; k < Q; k++)
        for (size_t z = 0; z < nz; z++)
            for (size_t y = 0; y < ny; y++)
                add_to_sum(grid + k * stride + row_at(y, z), nx);
    fprintf(stderr, "%016lx\n", sum ^ (sum >> 29));
    return 0;
}
