/* Runs of samples: rows of big-endian 32-bit words, whose columns the caller names. */
#ifndef FRAGDEX_NATIVE_SAMPLE_RUNS_H
#define FRAGDEX_NATIVE_SAMPLE_RUNS_H
#include "native.h"

#ifdef __GNUC__
#pragma GCC visibility push(hidden)
#endif

enum { MOST_WITHOUT_ROWS = 1 << 24 }; /* samples of a run that has no bytes for them */

/* Columns of a row of samples, in bytes from its start; -1: it has none. */
enum { STRIDE, DURATION, SIZE, FLAGS, OFFSET, NON_SYNC, COLUMNS };
/* Whether a sample is a sync sample. */
enum { NEVER = 0, ALWAYS = 1, AS_ITS_FLAGS_SAY = 2 };
/* Sync samples that are evenly spaced: number of their run, of the first one in it, its times from
 * the run's start, ticks from one to the next, how many. */
enum { RUN, INDEX, DTS, CTS, STEP, COUNT, POINT };

typedef struct {
    int64_t size, duration, cts_min, cts_end;
    int64_t negative; /* composition offsets that are below 0, read as signed */
} sums_t;

/* The columns of one run, NULL where it has none. */
typedef struct {
    const uint8_t *duration, *size, *flags, *offset;
    int64_t stride, count;
    uint64_t even; /* duration of a sample without one of its own */
    uint32_t non_sync;
} run_t;

/* NULL, or why rows of such columns are refused. */
const char *impossible(const int64_t *columns);
/* The run whose rows begin at `rows`, all of them in memory that may be read. */
static inline run_t run_at(const uint8_t *rows, int64_t count, const int64_t *columns, uint64_t even)
{
    run_t run = {
        columns[DURATION] < 0 ? NULL : rows + columns[DURATION],
        columns[SIZE] < 0 ? NULL : rows + columns[SIZE],
        columns[FLAGS] < 0 ? NULL : rows + columns[FLAGS],
        columns[OFFSET] < 0 ? NULL : rows + columns[OFFSET],
        columns[STRIDE],
        count,
        even,
        (uint32_t)columns[NON_SYNC],
    };
    return run;
}

void sum_run(const run_t *run, sums_t *sum);
int is_sync(const run_t *run, int64_t sample, int said);
/* One row of `points` for each sync sample. 0, or -1: no memory. */
int note_points(const run_t *run, int64_t number, int first, int rest, rows_t *points);

#ifdef __GNUC__
#pragma GCC visibility pop
#endif
#endif
