/* Fragments of a simple file: one run of each track in a moof, and their samples in the mdat after it. */
#ifndef FRAGDEX_NATIVE_SIMPLE_FRAGMENTS_H
#define FRAGDEX_NATIVE_SIMPLE_FRAGMENTS_H
#include "simple_moov.h"

#ifdef __GNUC__
#pragma GCC visibility push(hidden)
#endif

/* Columns of int64 in memory of Python's, which need not be copied when they are handed on. */
typedef struct {
    PyObject *memory; /* a bytearray, or NULL; owned */
    int64_t *cells, count, room;
    int columns;
} columns_t;

/* The fragments of a track. */
typedef struct {
    uint32_t id, duration, size, flags; /* of its trex */
    columns_t table, sync;
    int64_t samples, last, began; /* decode times of the last row, and of the last that lasts */
    int64_t last_sync, sync_samples, moof;
    int has_sync, is_reordered; /* sync samples, and some are shown by another offset than the first */
    int64_t sync_offset;
    double ticks;
} fragments_t;

typedef struct {
    fragments_t track[MOST_SIMPLE_TRACKS];
    int count;
    int64_t moofs;
    double share;          /* of the file that was passed: tables grow by it */
    PyThreadState **state; /* of who has let go of the interpreter's lock */
} fragmented_t;

/* Room for so many rows. 1, or 0: no memory. Takes the interpreter's lock for a while. */
int grow_columns(columns_t *columns, int64_t needed, double share, PyThreadState **state);
void fragments_begin(fragmented_t *fragmented, const simple_movie_t *movie);
/* Adds the rows of a moof, that begins at `at`; `lead`: where what introduces it begins. 1: it is
 * simple. */
int fragments_add(fragmented_t *fragmented, const uint8_t *moof, int64_t size, int64_t at, int64_t lead);
/* Says where the media data of the last moof lies. 1: all its samples do, too. */
int fragments_data(fragmented_t *fragmented, int64_t start, int64_t stop);
/* Whether nothing is to be noted of all of them. */
int fragments_end(const fragmented_t *fragmented);
void fragments_forget(fragmented_t *fragmented);

#ifdef __GNUC__
#pragma GCC visibility pop
#endif
#endif
