/* The peer of `rate.triad`: a = b + s c through three arrays, each in turn. `triad triad MIB ITERATIONS` prints the
   seconds of each iteration, and on the error stream a checksum that is the component's answer if compiled with
   -ffp-contract=off. */
#include "peer.h"

enum { PATTERN = 1024, ROUNDS = 10 };
static const double FACTOR = 0.25;

static void triad(double *restrict a, const double *restrict b, const double *restrict c, size_t count) {
    for (size_t i = 0; i < count; i++)
        a[i] = b[i] + FACTOR * c[i];
}

int main(int argc, char **argv) {
    if (argc < 4) return 2;
    size_t bytes = (size_t)atol(argv[2]) << 20, count = (bytes - 3 * 8 * PATTERN) / 24;
    static double pattern[3][PATTERN];
    uint64_t state = 0x7;
    for (int k = 0; k < 3; k++)
        for (int i = 0; i < PATTERN; i++)
            pattern[k][i] = unit(&state);
    double *arrays[3];
    for (int k = 0; k < 3; k++) {
        arrays[k] = room(count * 8);
        memset(arrays[k], 0, count * 8);
    }
    double *a = arrays[0], *b = arrays[1], *c = arrays[2];
    for (int iteration = 0; iteration < atoi(argv[3]); iteration++) {
        double begin = now();
        for (int k = 0; k < 3; k++)
            for (size_t i = 0; i < count; i += PATTERN)
                memcpy(arrays[k] + i, pattern[k], 8 * (count - i < PATTERN ? count - i : PATTERN));
        for (int round = 0; round < ROUNDS; round++) {
            triad(a, b, c, count);
            triad(b, c, a, count);
            triad(c, a, b, count);
        }
        printf("%.6f\n", now() - begin);
    }
    for (int k = 0; k < 3; k++)
        add_to_sum(arrays[k], count);
    fprintf(stderr, "%016lx\n", sum ^ (sum >> 29));
    return 0;
}
