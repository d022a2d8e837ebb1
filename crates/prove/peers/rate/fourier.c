/* The peer of `rate.fourier`: Fourier transforms of eight fields in a box. `fourier fourier MIB ITERATIONS` prints the
   seconds of each iteration, and on the error stream a checksum that is the component's answer if compiled with
   -ffp-contract=off. */
#include "peer.h"

enum { LANES = 8, ROUNDS = 2 };
static const size_t SHIFT[3] = {3, 5, 7};
static const double PI = 3.14159265358979323846;
typedef struct { double re, im; } turn;
typedef struct {
    size_t points;
    int stages, radices[64];
    turn *turns;
} plan;
typedef struct { double *re, *im; } pencil; /* lines of eight */

static double series(double square, int first) {
    double sum = 1;
    for (int k = 11; k >= 0; k--)
        sum = 1 - square / ((2 * k + first + 1) * (2 * k + first + 2)) * sum;
    return sum;
}
static turn turned(size_t at, size_t side) {
    size_t quarters = (8 * at + side) / (2 * side);
    double rest = (double)(4 * at) - (double)(quarters * side), angle = PI / 2 * rest / (double)side;
    double cosine = series(angle * angle, 0), sine = angle * series(angle * angle, 1);
    switch (quarters % 4) {
    case 0: return (turn){cosine, -sine};
    case 1: return (turn){-sine, -cosine};
    case 2: return (turn){-cosine, sine};
    default: return (turn){sine, cosine};
    }
}
static turn times(turn a, turn b) { return (turn){a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re}; }

static plan make_plan(size_t points) {
    plan made = {.points = points, .turns = malloc(points * sizeof(turn))};
    for (size_t i = 0, left = points; i < 3; i++)
        for (size_t radix = i == 0 ? 4 : i == 1 ? 3 : 2; left % radix == 0; left /= radix)
            made.radices[made.stages++] = (int)radix;
    for (size_t i = 0; i < points; i++)
        made.turns[i] = turned(i, points);
    return made;
}

static void stage_2(const double *restrict re, const double *restrict im, double *restrict to_re,
                    double *restrict to_im, size_t points, size_t count, const turn *turns) {
    size_t part = points / 2, run = count * LANES;
    for (size_t p = 0; p < part; p++) {
        turn w = turns[p * count];
        const double *ar = re + p * run, *ai = im + p * run, *br = ar + part * run, *bi = ai + part * run;
        double *yr = to_re + 2 * p * run, *yi = to_im + 2 * p * run;
        for (size_t i = 0; i < run; i++) {
            double dr = ar[i] - br[i], di = ai[i] - bi[i];
            yr[i] = ar[i] + br[i];
            yi[i] = ai[i] + bi[i];
            yr[i + run] = dr * w.re - di * w.im;
            yi[i + run] = dr * w.im + di * w.re;
        }
    }
}
static void stage_3(const double *restrict re, const double *restrict im, double *restrict to_re,
                    double *restrict to_im, size_t points, size_t count, const turn *turns) {
    size_t part = points / 3, run = count * LANES;
    for (size_t p = 0; p < part; p++) {
        turn v = turns[p * count], w = turns[2 * p * count];
        const double *xr = re + p * run, *xi = im + p * run;
        double *yr = to_re + 3 * p * run, *yi = to_im + 3 * p * run;
        for (size_t i = 0; i < run; i++) {
            double ar = xr[i], br = xr[i + part * run], cr = xr[i + 2 * part * run];
            double ai = xi[i], bi = xi[i + part * run], ci = xi[i + 2 * part * run];
            double sr = br + cr, si = bi + ci;
            double dr = (br - cr) * 0.8660254037844386, di = (bi - ci) * 0.8660254037844386;
            double er = ar - sr * 0.5, ei = ai - si * 0.5;
            double fr = er + di, fi = ei - dr, gr = er - di, gi = ei + dr;
            yr[i] = ar + sr;
            yi[i] = ai + si;
            yr[i + run] = fr * v.re - fi * v.im;
            yi[i + run] = fr * v.im + fi * v.re;
            yr[i + 2 * run] = gr * w.re - gi * w.im;
            yi[i + 2 * run] = gr * w.im + gi * w.re;
        }
    }
}
static void stage_4(const double *restrict re, const double *restrict im, double *restrict to_re,
                    double *restrict to_im, size_t points, size_t count, const turn *turns) {
    size_t part = points / 4, run = count * LANES;
    for (size_t p = 0; p < part; p++) {
        turn u = turns[p * count], v = turns[2 * p * count], w = turns[3 * p * count];
        const double *xr = re + p * run, *xi = im + p * run;
        double *yr = to_re + 4 * p * run, *yi = to_im + 4 * p * run;
        for (size_t i = 0; i < run; i++) {
            double ar = xr[i], br = xr[i + part * run], cr = xr[i + 2 * part * run], dr = xr[i + 3 * part * run];
            double ai = xi[i], bi = xi[i + part * run], ci = xi[i + 2 * part * run], di = xi[i + 3 * part * run];
            double er = ar + cr, ei = ai + ci, fr = br + dr, fi = bi + di;
            double gr = ar - cr, gi = ai - ci, hr = br - dr, hi = bi - di;
            double kr = gr + hi, ki = gi - hr, lr = er - fr, li = ei - fi, mr = gr - hi, mi = gi + hr;
            yr[i] = er + fr;
            yi[i] = ei + fi;
            yr[i + run] = kr * u.re - ki * u.im;
            yi[i + run] = kr * u.im + ki * u.re;
            yr[i + 2 * run] = lr * v.re - li * v.im;
            yi[i + 2 * run] = lr * v.im + li * v.re;
            yr[i + 3 * run] = mr * w.re - mi * w.im;
            yi[i + 3 * run] = mr * w.im + mi * w.re;
        }
    }
}

/* The result is in `data`; `spare` is as long. */
static void transform(const plan *plan, pencil *data, pencil *spare) {
    size_t points = plan->points, count = 1;
    for (int i = 0; i < plan->stages; i++) {
        size_t radix = (size_t)plan->radices[i];
        (radix == 4 ? stage_4 : radix == 3 ? stage_3 : stage_2)(data->re, data->im, spare->re, spare->im, points,
                                                                count, plan->turns);
        points /= radix;
        count *= radix;
        pencil swap = *data;
        *data = *spare;
        *spare = swap;
    }
}

static size_t nx, ny, nz, row, plane;
static double *start_re, *start_im, *re, *im;
static plan plans[3];
static pencil data, spare;
static double energy[LANES];

static void load(const double *re, const double *im, size_t begin, size_t stride, size_t count) {
    for (size_t i = 0; i < count; i++) {
        memcpy(data.re + i * LANES, re + (begin + i * stride) * LANES, LANES * sizeof(double));
        memcpy(data.im + i * LANES, im + (begin + i * stride) * LANES, LANES * sizeof(double));
    }
}
static void store(size_t begin, size_t stride, size_t count) {
    for (size_t i = 0; i < count; i++) {
        memcpy(re + (begin + i * stride) * LANES, data.re + i * LANES, LANES * sizeof(double));
        memcpy(im + (begin + i * stride) * LANES, data.im + i * LANES, LANES * sizeof(double));
    }
}
static void swap(void) {
    double *swap = data.re;
    data.re = data.im;
    data.im = swap;
}

static void pass(int along, int back, int first) {
    size_t across = along ? nx : ny, step = along ? 1 : row, stride = along ? row : 1;
    for (size_t z = 0; z < nz; z++)
        for (size_t at = 0; at < across; at++) {
            size_t begin = z * plane + at * step;
            load(first ? start_re : re, first ? start_im : im, begin, stride, plans[along].points);
            if (back) swap();
            transform(&plans[along], &data, &spare);
            if (back) swap();
            store(begin, stride, plans[along].points);
        }
}
static void middle(void) {
    double scale = 1 / (double)(nx * ny * nz);
    memset(energy, 0, sizeof energy);
    for (size_t y = 0; y < ny; y++)
        for (size_t x = 0; x < nx; x++) {
            load(re, im, y * row + x, plane, nz);
            transform(&plans[2], &data, &spare);
            turn turned = times(plans[0].turns[x * SHIFT[0] % nx], plans[1].turns[y * SHIFT[1] % ny]);
            turned.re *= scale;
            turned.im *= scale;
            for (size_t z = 0; z < nz; z++) {
                turn w = times(turned, plans[2].turns[z * SHIFT[2] % nz]);
                double *restrict r = data.re + z * LANES, *restrict i = data.im + z * LANES;
                for (int lane = 0; lane < LANES; lane++) {
                    double a = r[lane], b = i[lane];
                    energy[lane] += a * a + b * b;
                    r[lane] = a * w.re - b * w.im;
                    i[lane] = a * w.im + b * w.re;
                }
            }
            swap();
            transform(&plans[2], &data, &spare);
            swap();
            store(y * row + x, plane, nz);
        }
}

int main(int argc, char **argv) {
    if (argc < 4) return 2;
    size_t lines = (((size_t)atol(argv[2]) << 20) - (1 << 18)) / (4 * 8 * LANES), sides[64], kinds = 0, best = 0;
    for (int k = 4; k < 12; k++) {
        size_t some[3] = {1ul << k, 3ul << (k - 1), 9ul << (k - 3)};
        for (int i = 0; i < 3; i++)
            if (some[i] >= 16) sides[kinds++] = some[i];
    }
    for (size_t i = 0; i < kinds; i++)
        for (size_t j = 0; j < kinds; j++)
            for (size_t k = 0; k < kinds; k++) {
                size_t x = sides[i], y = sides[j], z = sides[k];
                size_t low = x < y ? x : y, high = x > y ? x : y;
                low = low < z ? low : z;
                high = high > z ? high : z;
                size_t needs = (((x | 1) * y) | 1) * z, is = x * y * z;
                if (high > 4 * low || needs > lines) continue;
                if (is > best || (is == best && (x > nx || (x == nx && y >= ny)))) {
                    best = is;
                    nx = x, ny = y, nz = z;
                }
            }
    row = nx | 1;
    plane = (row * ny) | 1;
    size_t count = (plane * nz + 1) * LANES, longest = nx > ny ? nx : ny;
    longest = longest > nz ? longest : nz;
    start_re = room(count * 8), start_im = room(count * 8), re = room(count * 8), im = room(count * 8);
    uint64_t state = 0xf0;
    for (size_t i = 0; i < plane * nz * LANES; i++) start_re[i] = unit(&state) - 0.5;
    for (size_t i = 0; i < plane * nz * LANES; i++) start_im[i] = unit(&state) - 0.5;
    memset(re, 0, count * 8);
    memset(im, 0, count * 8);
    plans[0] = make_plan(nx), plans[1] = make_plan(ny), plans[2] = make_plan(nz);
    size_t bytes = longest * LANES * sizeof(double);
    data = (pencil){aligned_alloc(64, bytes), aligned_alloc(64, bytes)};
    spare = (pencil){aligned_alloc(64, bytes), aligned_alloc(64, bytes)};
    for (int iteration = 0; iteration < atoi(argv[3]); iteration++) {
        double begin = now();
        for (int round = 0; round < ROUNDS; round++) {
            pass(0, 0, round == 0);
            pass(1, 0, 0);
            middle();
            pass(1, 1, 0);
            pass(0, 1, 0);
        }
        printf("%.6f\n", now() - begin);
    }
    for (size_t z = 0; z < nz; z++)
        for (size_t y = 0; y < ny; y++)
            for (size_t x = 0; x < nx; x++) {
                add_to_sum(re + (z * plane + y * row + x) * LANES, LANES);
                add_to_sum(im + (z * plane + y * row + x) * LANES, LANES);
            }
    add_to_sum(energy, LANES);
    fprintf(stderr, "%016lx\n", sum ^ (sum >> 29));
    return 0;
}
