/* What the peers of the rate suite share: memory, a clock, the data's random numbers, the checksum of the answer. */
#ifndef PEER_H
#define PEER_H
#define _GNU_SOURCE
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

__attribute__((unused)) static void *room(size_t bytes) {
    void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED) { perror("mmap"); exit(1); }
#ifdef HUGE_PAGES
    madvise(at, bytes, MADV_HUGEPAGE);
#endif
    return at;
}

__attribute__((unused)) static double now(void) {
    struct timespec time;
#ifdef CPU_TIME
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
#else
    clock_gettime(CLOCK_MONOTONIC, &time);
#endif
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

__attribute__((unused)) static uint64_t mix(uint64_t *state) {
    uint64_t z = *state += 0x9e3779b97f4a7c15;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
}
__attribute__((unused)) static double unit(uint64_t *state) { return (double)(mix(state) >> 11) / 9007199254740992.0; }

static uint64_t sum = 0x243f6a8885a308d3;
__attribute__((unused)) static void add_to_sum(const double *values, size_t count) {
    for (size_t i = 0; i < count; i++) {
        uint64_t word;
        memcpy(&word, &values[i], 8);
        sum = (((sum << 5) | (sum >> 59)) ^ word) * 0x9e3779b97f4a7c15;
    }
}
#endif
