/* How the trafs of boxes that look alike are read, and the rows that come of it. */
#ifndef FRAGDEX_NATIVE_TRAFS_H
#define FRAGDEX_NATIVE_TRAFS_H
#include "sample_runs.h"

#ifdef __GNUC__
#pragma GCC visibility push(hidden)
#endif

enum { MOST_SLOTS = 1 << 12 };

/* One traf, as indexing/shapes.py writes it: int64 each. Places count in bytes from the start of
 * the box; -1: there is no such field, and the value beside it holds. */
typedef struct {
    int64_t slot;             /* of the track among those whose rows are made */
    int64_t flags;            /* of the tfhd */
    int64_t time, time_width; /* 4 bytes, unsigned, or 8, signed */
    int64_t data_offset;      /* 4 bytes, signed */
    int64_t count, rows;      /* samples, and where their rows begin */
    int64_t columns[COLUMNS];
    int64_t duration, duration_default;
    int64_t size, size_default;
    int64_t sample_flags, sample_flags_default;
    int64_t first_flags; /* of the first sample */
    int64_t version;     /* of the trun: composition offsets of version 0 are unsigned */
    int64_t doubt_bits, doubt; /* flags of which samples are doubted: which bits, and how these are */
} traf_t;

/* A row of a traf with one run: the columns of `PlainTrack` in indexing/batch.py. */
enum { MOOF, TRAF_FLAGS, TIME, TIME_KIND, SAMPLES, DATA_OFFSET, BYTES, LASTS, CTS_MIN, CTS_END,
       TRAF_COLUMNS };

typedef struct {
    rows_t trafs, points;
    int doubted; /* some flags are such as are doubted */
} track_t;

typedef struct {
    track_t *track; /* slot by slot; owned */
    int64_t slots;
    int64_t wide;   /* unsigned composition offsets of 2^31 or more, read as signed */
    int odd;        /* a number was such as programs leave to others */
} tracks_t;

/* A number of a box, or what holds where it is missing. */
static inline uint32_t said(const uint8_t *box, int64_t at, int64_t otherwise)
{
    return at < 0 ? (uint32_t)otherwise : word_at(box + at);
}

/* NULL, or why a program is refused for boxes of so many bytes. */
const char *program_refusal(const traf_t *trafs, Py_ssize_t count, int64_t size);
/* Room for the rows of its tracks. 0, or -1: no memory. */
int slots_for(tracks_t *tracks, const traf_t *trafs, Py_ssize_t count);
/* Adds the rows of box `number`. 0, or -1: no memory. */
int run_program(tracks_t *tracks, const traf_t *trafs, Py_ssize_t count, const uint8_t *box,
                int64_t number);
/* (trafs, points, doubted) of each slot, and forgets them. NULL: an error is raised. */
PyObject *tracks_found(tracks_t *tracks);
void tracks_forget(tracks_t *tracks);

#ifdef __GNUC__
#pragma GCC visibility pop
#endif
#endif
