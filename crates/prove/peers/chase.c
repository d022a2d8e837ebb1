/*
 * A pointer chase as the README and the help of google/multichase describe it, written anew: dependent loads through a
 * block, one every STRIDE bytes, in a random order that stays within LOCALITY bytes until all of them were visited.
 * Nothing of Assay is in it, and no code of multichase.
 *
 *   chase BYTES STRIDE LOCALITY PAGES SAMPLES
 *
 * LOCALITY 0 is the whole block, PAGES "huge" (madvise) or "base". Prints ns per load of each sample, then
 * "min X median Y", and how much of the block huge pages back.
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
/* A sample's loads take at least so long, ns. */
#define SAMPLE_NS 200e6

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

static void **linked(char *block, size_t bytes, size_t stride, size_t locality)
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
    size_t lines = stride > LINE ? stride / LINE : 1;
    for (size_t i = 0; i < count; i++)
        line[i] = (unsigned char)(random_number() % (lines < 256 ? lines : 256));
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

int main(int argc, char **argv)
{
    if (argc != 6) {
        fprintf(stderr, "chase BYTES STRIDE LOCALITY huge|base SAMPLES\n");
        return 2;
    }
    size_t bytes = strtoull(argv[1], NULL, 10), stride = strtoull(argv[2], NULL, 10);
    size_t locality = strtoull(argv[3], NULL, 10), samples = strtoull(argv[5], NULL, 10);
    if (locality == 0)
        locality = bytes;
    if (stride < sizeof(void *) || locality < stride || bytes < locality || samples == 0)
        return 2;
    state ^= (uint64_t)now_ns();
    char *block = block_of(bytes, !strcmp(argv[4], "huge"));
    void **at = linked(block, bytes, stride, locality);
    size_t round = bytes / stride / 16 * 16, loads = round;
    double *ns = malloc(samples * sizeof *ns);
    double begin = now_ns();
    at = walk(at, round);
    double took = now_ns() - begin;
    if (took < SAMPLE_NS)
        loads = (size_t)(loads * (SAMPLE_NS / took)) / 16 * 16;
    for (size_t i = 0; i < samples; i++) {
        begin = now_ns();
        at = walk(at, loads);
        ns[i] = (now_ns() - begin) / loads;
        printf("%.3f\n", ns[i]);
    }
    qsort(ns, samples, sizeof *ns, rising);
    printf("min %.3f median %.3f huge %.2f at %p\n", ns[0], ns[samples / 2], in_huge_pages() / bytes, (void *)at);
    return 0;
}
