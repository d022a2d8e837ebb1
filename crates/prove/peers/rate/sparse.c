/* The peer of `rate.sparse`: conjugate gradients on a matrix in compressed sparse rows. `sparse sparse MIB ITERATIONS` prints the
   seconds of each iteration, and on the error stream a checksum that is the component's answer if compiled with
   -ffp-contract=off. */
#include "peer.h"

enum { ITERATIONS = 15 };
static const uint64_t FACTORS[3] = {0xd1290d3f9a3a5c4d, 0x9e6c63d0876a68d5, 0xa0761d6478bd642f};
static uint64_t rows, mask, inverses[3];
static int half;

static uint64_t forth(uint64_t at) {
    do
        for (int i = 0; i < 3; i++)
            at = ((at ^ (at >> half)) * FACTORS[i]) & mask;
    while (at >= rows);
    return at;
}
static uint64_t back(uint64_t at) {
    do
        for (int i = 2; i >= 0; i--) {
            at = (at * inverses[i]) & mask;
            at ^= at >> half;
        }
    while (at >= rows);
    return at;
}
static double weight(uint64_t a, uint64_t b) {
    uint64_t state = a < b ? (a << 32) ^ b : (b << 32) ^ a;
    return unit(&state) + 0.5;
}
static size_t root(size_t square) {
    size_t side = 0;
    while ((side + 1) * (side + 1) <= square) side++;
    return side;
}

static void multiply(size_t n, const uint64_t *restrict ends, const uint32_t *restrict columns,
                     const double *restrict values, const double *restrict x, double *restrict y) {
    size_t begin = 0;
    for (size_t i = 0; i < n; i++) {
        double sum = 0;
        for (size_t k = begin; k < ends[i]; k++)
            sum += values[k] * x[columns[k]];
        begin = ends[i];
        y[i] = sum;
    }
}
static double dot(size_t n, const double *restrict a, const double *restrict b) {
    double sums[8] = {0};
    size_t i = 0;
    for (; i + 8 <= n; i += 8)
        for (int lane = 0; lane < 8; lane++)
            sums[lane] += a[i + lane] * b[i + lane];
    for (int lane = 0; i < n; i++, lane++)
        sums[lane] += a[i] * b[i];
    return ((sums[0] + sums[4]) + (sums[2] + sums[6])) + ((sums[1] + sums[5]) + (sums[3] + sums[7]));
}

int main(int argc, char **argv) {
    if (argc < 4) return 2;
    size_t most = ((size_t)atol(argv[2]) << 20) / (28 * 12 + 8 + 5 * 8), nx = 0;
    while ((nx + 1) * (nx + 1) * (nx + 1) <= most) nx++;
    nx = nx / 2 * 2;
    size_t ny = root(most / nx), nz = most / nx / ny, n = nx * ny * nz;
    size_t entries = (3 * nx - 2) * (3 * ny - 2) * (3 * nz - 2) + n;
    rows = n;
    int bits = 0;
    while ((1ull << bits) < n) bits++;
    mask = (1ull << bits) - 1;
    half = (bits + 1) / 2;
    for (int i = 0; i < 3; i++) {
        inverses[i] = FACTORS[i];
        for (int k = 0; k < 5; k++)
            inverses[i] *= 2 - FACTORS[i] * inverses[i];
    }
    uint64_t *ends = room(n * 8);
    uint32_t *columns = room(entries * 4);
    double *values = room(entries * 8), *b = room(n * 8), *x = room(n * 8), *r = room(n * 8), *p = room(n * 8),
           *q = room(n * 8);
    size_t filled = 0;
    for (size_t at = 0; at < n; at++) {
        size_t cx = at % nx, cy = at / nx % ny, cz = at / nx / ny, own = 0;
        double diagonal = 1;
        for (size_t z = cz ? cz - 1 : 0; z < nz && z < cz + 2; z++)
            for (size_t y = cy ? cy - 1 : 0; y < ny && y < cy + 2; y++)
                for (size_t u = cx ? cx - 1 : 0; u < nx && u < cx + 2; u++) {
                    size_t column = (z * ny + y) * nx + u;
                    columns[filled] = (uint32_t)column;
                    if (column == at) {
                        own = filled++;
                        continue;
                    }
                    double value = weight(at, column);
                    diagonal += value;
                    values[filled++] = -value;
                }
        uint64_t far = back(forth(at) ^ 1);
        double value = weight(at, far);
        diagonal += value;
        columns[filled] = (uint32_t)far;
        values[filled++] = -value;
        values[own] = diagonal;
        ends[at] = filled;
    }
    for (size_t i = 0; i < n; i++) {
        uint64_t state = ~(uint64_t)i;
        p[i] = unit(&state) - 0.5;
    }
    multiply(n, ends, columns, values, p, b);
    for (int iteration = 0; iteration < atoi(argv[3]); iteration++) {
        double begin = now();
        for (size_t i = 0; i < n; i++) {
            x[i] = 0;
            r[i] = p[i] = b[i];
        }
        double square = dot(n, r, r);
        for (int k = 0; k < ITERATIONS; k++) {
            multiply(n, ends, columns, values, p, q);
            double step = square / dot(n, p, q);
            for (size_t i = 0; i < n; i++)
                x[i] += step * p[i];
            for (size_t i = 0; i < n; i++)
                r[i] -= step * q[i];
            double was = square;
            square = dot(n, r, r);
            double share = square / was;
            for (size_t i = 0; i < n; i++)
                p[i] = r[i] + share * p[i];
        }
        printf("%.6f\n", now() - begin);
    }
    add_to_sum(x, n);
    add_to_sum(r, n);
    fprintf(stderr, "%016lx\n", sum ^ (sum >> 29));
    return 0;
}
