/* The peer of `rate.triad`: a = b + s c through three arrays, each in turn. `triad triad MIB ITERATIONS` prints the
   seconds of each iteration, and on the error stream a checksum that is the component's answer if compiled with
   -ffp-contract=off. */
#define _GNU_SOURCE
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

static void *room(size_t bytes) {
    void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED) { perror("mmap"); exit(1); }
#ifdef HUGE_PAGES
    madvise(at, bytes, MADV_HUGEPAGE);
#endif
    return at;
}

static double now(void) {
    struct timespec time;
#ifdef CPU_TIME
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
#else
    clock_gettime(CLOCK_MONOTONIC, &time);
#endif
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static uint64_t mix(uint64_t *state) {
    uint64_t z = *state += 0x9e3779b97f4a7c15;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
}
static double unit(uint64_t *state) { return (double)(mix(state) >> 11) / 9007199254740992.0; }

static uint64_t sum = 0x243f6a8885a308d3;
static void add_to_sum(const double *values, size_t count) {
    for (size_t i = 0; i < count; i++) {
        uint64_t word;
        memcpy(&word, &values[i], 8);
        sum = (((sum << 5) | (sum >> 59)) ^ word) * 0x9e3779b97f4a7c15;
    }
}
/* Up to here the same in all peers. */

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
