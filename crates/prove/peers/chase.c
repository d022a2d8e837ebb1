/*
 * A pointer chase as the README and the help of google/multichase describe it, written anew: dependent loads through a
 * block, one every STRIDE bytes, in a random order that stays within LOCALITY bytes until all of them were visited, and
 * in one over the whole block, by turns through the same memory: a guest's translations are as dear as the host's pages
 * behind it, which is another price in another block. Nothing of Assay is in it, and no code of multichase.
 *
 *   chase BYTES STRIDE LOCALITY PAGES SAMPLES
 *
 * PAGES is "huge" (madvise) or "base". Prints ns per load of each sample, then the medians
 * "page-local X whole-block Y translation Z" (of the differences), and how much of the block huge pages back.
 */
#define _GNU_SOURCE
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#define HUGE ((size_t)2 << 20)
#define LINE 64

static uint64_t state = 0x243f6a8885a308d3u;

/* splitmix64 (Steele, Lea and Flood 2014) */
static uint64_t random_number(void)
{
    uint64_t z = (state += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

static void shuffle(uint32_t *items, size_t count)
{
    for (size_t left = count; left > 1; left--) {
        size_t other = (size_t)(((unsigned __int128)random_number() * left) >> 64);
        uint32_t item = items[left - 1];
        items[left - 1] = items[other];
        items[other] = item;
    }
}

static double now_ns(void)
{
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC_RAW, &at);
    return at.tv_sec * 1e9 + at.tv_nsec;
}

static int rising(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void die(const char *what)
{
    perror(what);
    exit(1);
}

/* Zeroed and resident, from a boundary of huge pages on. */
static char *block_of(size_t bytes, int huge)
{
    char *raw = mmap(NULL, bytes + HUGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (raw == MAP_FAILED)
        die("mmap");
    char *block = (char *)(((uintptr_t)raw + HUGE - 1) & ~(HUGE - 1));
    madvise(block, bytes, huge ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
    memset(block, 1, bytes);
    return block;
}

/* Of all mappings of this process, bytes. */
static double in_huge_pages(void)
{
    FILE *file = fopen("/proc/self/smaps_rollup", "r");
    char line[256];
    double kib = 0;
    while (file && fgets(line, sizeof line, file))
        if (sscanf(line, "AnonHugePages: %lf", &kib) == 1)
            break;
    if (file)
        fclose(file);
    return kib * 1024;
}

/* Where element `item` has its pointer: in a line of its stride that is drawn, so that all sets of a cache are used. */
static size_t place_of(uint32_t item, size_t stride, const unsigned char *line)
{
    return item * stride + (size_t)line[item] * LINE;
}

/* A chain through the even (`which` 0) or odd (1) lines of the strides. */
static void **linked(char *block, size_t bytes, size_t stride, size_t locality, int which)
{
    size_t count = bytes / stride, each = locality / stride;
    size_t groups = count / each;
    uint32_t *order = malloc(count * sizeof *order), *group = malloc(groups * sizeof *group);
    unsigned char *line = malloc(count);
    if (!order || !group || !line)
        die("malloc");
    for (size_t i = 0; i < groups; i++)
        group[i] = (uint32_t)i;
    shuffle(group, groups);
    for (size_t i = 0; i < groups; i++) {
        for (size_t j = 0; j < each; j++)
            order[i * each + j] = (uint32_t)(group[i] * each + j);
        shuffle(order + i * each, each);
    }
    size_t pairs = stride / LINE / 2;
    for (size_t i = 0; i < count; i++)
        line[i] = (unsigned char)(random_number() % (pairs < 128 ? pairs : 128) * 2 + which);
    size_t last = groups * each;
    for (size_t i = 0; i < last; i++) {
        void **from = (void **)(block + place_of(order[i], stride, line));
        *from = block + place_of(order[(i + 1) % last], stride, line);
    }
    void **first = (void **)(block + place_of(order[0], stride, line));
    free(order);
    free(group);
    free(line);
    return first;
}

static void **walk(void **at, size_t loads)
{
    for (size_t i = 0; i < loads / 16; i++) {
#define HOP at = *at;
        HOP HOP HOP HOP HOP HOP HOP HOP HOP HOP HOP HOP HOP HOP HOP HOP
    }
    return at;
}

static double median(double *values, size_t count)
{
    qsort(values, count, sizeof *values, rising);
    return count % 2 ? values[count / 2] : (values[count / 2 - 1] + values[count / 2]) / 2;
}

int main(int argc, char **argv)
{
    if (argc != 6) {
        fprintf(stderr, "chase BYTES STRIDE LOCALITY huge|base SAMPLES\n");
        return 2;
    }
    size_t bytes = strtoull(argv[1], NULL, 10), stride = strtoull(argv[2], NULL, 10);
    size_t locality = strtoull(argv[3], NULL, 10), samples = strtoull(argv[5], NULL, 10);
    if (stride < 2 * LINE || locality < stride || bytes < locality || samples == 0)
        return 2;
    state ^= (uint64_t)now_ns();
    char *block = block_of(bytes, !strcmp(argv[4], "huge"));
    void **at[2] = { linked(block, bytes, stride, locality, 0), linked(block, bytes, stride, bytes, 1) };
    size_t loads = bytes / stride / 16 * 16;
    double *ns[3];
    for (int i = 0; i < 3; i++)
        ns[i] = malloc(samples * sizeof *ns[i]);
    if (!ns[0] || !ns[1] || !ns[2])
        die("malloc");
    /* The first round of each is not counted. */
    for (size_t i = 0; i <= samples; i++) {
        for (int order = 0; order < 2; order++) {
            double begin = now_ns();
            at[order] = walk(at[order], loads);
            if (i > 0)
                ns[order][i - 1] = (now_ns() - begin) / loads;
        }
        if (i > 0) {
            ns[2][i - 1] = ns[1][i - 1] - ns[0][i - 1];
            printf("%.3f %.3f\n", ns[0][i - 1], ns[1][i - 1]);
        }
    }
    printf("page-local %.3f whole-block %.3f ", median(ns[0], samples), median(ns[1], samples));
    printf("translation %.3f huge %.2f at %p\n", median(ns[2], samples), in_huge_pages() / bytes, (void *)at[0]);
    return 0;
}
