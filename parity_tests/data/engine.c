/* A layer norm and a feed-forward layer in plain C, which dumps what it does.
 *
 *     engine WEIGHTS FOLDER
 *
 * WEIGHTS holds doubles: x [T D], gain [D], shift [D], the first layer's
 * weight [F D] and bias [F], the second's [D F] and [D]. FOLDER is there. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { T = 5, D = 6, F = 8 };

#ifndef EPSILON
#define EPSILON 1e-5
#endif

static const char *folder;
static FILE *names;

/* One array of a dump, as .npy in version 1.0, on a little-endian machine. */
static void dump(const char *name, const double *data, int rows, int columns)
{
    char path[512], head[128];
    if (rows)
        snprintf(path, sizeof path, "(%d, %d)", rows, columns);
    else
        snprintf(path, sizeof path, "(%d,)", columns);
    snprintf(head, sizeof head,
             "{'descr': '<f8', 'fortran_order': False, 'shape': %s, }", path);
    snprintf(path, sizeof path, "%s/%s.npy", folder, name);
    FILE *file = fopen(path, "wb");
    if (!file) {
        perror(path);
        exit(1);
    }
    fwrite("\x93NUMPY\x01\x00\x76\x00", 1, 10, file);
    fprintf(file, "%-117s\n", head);
    fwrite(data, sizeof *data, (size_t)(rows ? rows : 1) * columns, file);
    fclose(file);
    fprintf(names, "%s\n", name);
}

/* y [T out] = x [T in] W^T + b, with W [out in]. */
static void linear(const double *x, const double *w, const double *b,
                   double *y, int in, int out)
{
    for (int t = 0; t < T; t++)
        for (int o = 0; o < out; o++) {
            double sum = b[o];
            for (int i = 0; i < in; i++)
                sum += x[t * in + i] * w[o * in + i];
            y[t * out + o] = sum;
        }
}

int main(int count, char **given)
{
    static double all[T * D + 2 * D + 2 * F * D + F + D];
    static double normed[T * D], hidden[T * F], active[T * F], out[T * D];
    if (count != 3)
        return 2;
    FILE *file = fopen(given[1], "rb");
    if (!file || fread(all, sizeof all, 1, file) != 1)
        return 1;
    const double *x = all, *gain = x + T * D, *shift = gain + D;
    const double *w1 = shift + D, *b1 = w1 + F * D;
    const double *w2 = b1 + F, *b2 = w2 + D * F;
    char path[512];
    folder = given[2];
    snprintf(path, sizeof path, "%s/names.txt", folder);
    names = fopen(path, "w");
    fprintf(names, "parity dump 1\n");
    dump("inputs/x", x, T, D);
    dump("ln/input", x, T, D);
    for (int t = 0; t < T; t++) {
        double mean = 0, square = 0;
        for (int i = 0; i < D; i++)
            mean += x[t * D + i] / D;
        for (int i = 0; i < D; i++)
            square += pow(x[t * D + i] - mean, 2) / D;
        for (int i = 0; i < D; i++)
            normed[t * D + i] = gain[i] * (x[t * D + i] - mean) /
                sqrt(square + EPSILON) + shift[i];
    }
    linear(normed, w1, b1, hidden, D, F);
    for (int i = 0; i < T * F; i++)
        active[i] = hidden[i] / 2 * (1 + erf(hidden[i] / sqrt(2)));
    linear(active, w2, b2, out, F, D);
    dump("parameters/ln.weight", gain, 0, D);
    dump("parameters/ln.bias", shift, 0, D);
    dump("parameters/up.w", w1, F, D);
    dump("parameters/up.b", b1, 0, F);
    dump("parameters/down.w", w2, D, F);
    dump("parameters/down.b", b2, 0, D);
    dump("ln", normed, T, D);
    dump("up", hidden, T, F);
    dump("gelu", active, T, F);
    dump("down", out, T, D);
    dump("outputs/y", out, T, D);
    return fclose(names);
}
