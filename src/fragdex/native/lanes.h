/* What the walk over media data (media_walk.c) and the codecs in it (nal_units.c, av1.c,
 * audio_frames.c) share. Python holds the same in repairing/.
 */
#ifndef FRAGDEX_NATIVE_LANES_H
#define FRAGDEX_NATIVE_LANES_H
#include "native.h"

#ifdef __GNUC__
#pragma GCC visibility push(hidden)
#endif

/* What is held of the media data. */
typedef struct {
    const uint8_t *data;
    int64_t base, held;       /* places of the first byte, and after the last one */
    int64_t stop;             /* after the last byte that may be looked at */
    int cut;                  /* whether media data may continue there */
    int64_t low, high;        /* here nothing breaks emulation prevention */
    int leaves;               /* MORE or OTHER: nothing that was found since may be used */
} window_t;

/* More bytes are needed; Python has to look, for what was met changes what it knows. */
enum { MORE = 1, OTHER = 2 };

enum { AVC, HEVC, AV1, AAC, EVEN, OPUS, KINDS };
enum { MOST_HEAD = 6, MOST_TABLES = 6 };

/* A sample, as `Found` of repairing/syntax.py. */
typedef struct {
    int64_t stop, order, head[MOST_HEAD];
    int sync, fresh, whole;   /* whole: it cannot be the end of a sample, or no end looks like one */
} found_t;

/* A track: what Python lends of its syntax, and the state that changes with each sample. */
typedef struct {
    int kind, holes;
    column_t numbers;
    Py_buffer tables[MOST_TABLES];
    int lent;                 /* tables that are held */
    int64_t state[2], count, spent, most;
    rows_t rows;              /* offset, size, order, sync, fresh, proved */
    const int64_t *set[256];  /* parameter sets of pictures by number, or NULL */
    int edges[2][64], bands[2]; /* of AAC: where bands of long and of short windows begin */
    uint16_t *quick;          /* and its tables by fewer bits; owned */
    int64_t *copied;          /* what Python lends as numbers, which may change meanwhile */
} lane_t;

/* Up to `want` bytes from a place on. NULL: they are not held. */
static inline const uint8_t *bytes_at(window_t *w, int64_t at, int64_t want, int64_t *count)
{
    int64_t stop = at > w->stop || want < w->stop - at ? at + want : w->stop;
    if (stop > w->stop)
        stop = w->stop;
    *count = 0;
    if (stop <= at)
        return w->data;
    if (at < w->base || stop > w->held) {
        w->leaves = MORE;
        return NULL;
    }
    *count = stop - at;
    return w->data + (at - w->base);
}

/* Bits of some bytes, from `at` to `stop`; `missing` is set where there are too few. */
typedef struct {
    const uint8_t *data;
    int64_t at, stop;
    int missing;
} bits_t;

/* The next `count` bits, at most 63; 0 where there are too few. */
static inline int64_t take(bits_t *b, int64_t count)
{
    int64_t value = 0;
    if (count > b->stop - b->at) {
        b->missing = 1;
        return 0;
    }
    for (; count > 0; count--, b->at++)
        value = value << 1 | (b->data[b->at >> 3] >> (7 - (b->at & 7)) & 1);
    return value;
}

/* Whether a lent table of units, each after a length of 32 bits, has these bytes as one of them. */
int is_lent(const Py_buffer *units, const uint8_t *unit, int64_t size);
/* Where two zeros begin that 0, 1 or 2 follows, or -1. */
int64_t find_bare(const uint8_t *data, int64_t size);

/* Whether a sample begins at a place: what it is. */
int find_units(window_t *w, lane_t *lane, int64_t at, found_t *found);
int find_obus(window_t *w, lane_t *lane, int64_t at, found_t *found);
int find_aac(window_t *w, lane_t *lane, int64_t at, found_t *found);
/* Whether it may come after the last one that was kept; keeps it, with its place in the order. */
int follows_obus(const lane_t *lane, const found_t *found);
void keep_units(lane_t *lane, found_t *found);
void keep_obus(lane_t *lane, const found_t *found);
/* Whether what Python lends is as it has to be: 0, or an error is raised. */
int check_units(lane_t *lane);
int check_obus(lane_t *lane);
int check_aac(lane_t *lane);

#ifdef __GNUC__
#pragma GCC visibility pop
#endif
#endif
