/* A moov of the simple kind, read at once. */
#ifndef FRAGDEX_NATIVE_SIMPLE_MOOV_H
#define FRAGDEX_NATIVE_SIMPLE_MOOV_H
#include "native.h"

#ifdef __GNUC__
#pragma GCC visibility push(hidden)
#endif

enum { MOST_SIMPLE_TRACKS = 32, SIMPLE_KEY = 4096 };

/* The body of a box; NULL: it is not there. */
typedef struct {
    const uint8_t *at;
    uint32_t size;
} part_t;

enum {
    MVHD, MVEX, MEHD, MOVIE_PARTS
};
enum {
    TKHD, EDTS, ELST, MDIA, MDHD, HDLR, MINF, MEDIA_HEADER, DINF, DREF, STBL, STSD, STTS, CTTS, STSS,
    STSC, STSZ, STCO, CO64, SGPD, SBGP, TREX, TRACK_PARTS
};

/* Numbers of a track that its headers say. */
typedef struct {
    part_t part[TRACK_PARTS];
    uint32_t id, timescale;
    uint64_t duration;
    int has_rates;
    uint32_t average_rate, peak_rate;
    uint8_t key[SIMPLE_KEY]; /* all that its headers say otherwise */
    uint32_t key_size;
    /* of its samples */
    int64_t count, rows, room, sync_rows, sync_room;
    int64_t *table;     /* 12 columns of `room`; owned */
    int64_t *sync;      /* 7 columns of `sync_room`; owned */
} simple_track_t;

typedef struct {
    part_t part[MOVIE_PARTS];
    uint32_t timescale;
    uint64_t duration;
    int count, trexs;
    simple_track_t *track[MOST_SIMPLE_TRACKS]; /* owned */
    part_t trex[MOST_SIMPLE_TRACKS];
} simple_movie_t;

enum { TABLE_COLUMNS = 12, SYNC_COLUMNS = 7 };
enum { T_OFFSET, T_SIZE, T_MOOF, T_DATA_START, T_DATA_STOP, T_DTS, T_DURATION, T_CTS_MIN, T_CTS_END,
       T_SAMPLE_START, T_SAMPLE_COUNT, T_SYNC };
enum { S_CTS, S_DTS, S_STEP, S_COUNT, S_SAMPLE, S_SAMPLE_STEP, S_FRAGMENT };

/* Reads a moov from its header on. 1: it is of the simple kind; 0: it is not, or there is no memory. */
int simple_moov(simple_movie_t *movie, const uint8_t *moov, int64_t size);
/* The table of a track whose samples lie in [start, stop). `most`: rows of all tracks that no bytes
 * stand for, which so many share. 1, or 0: as above. */
int simple_table(simple_track_t *track, int sharing, int64_t most, int64_t file, int64_t start,
                 int64_t stop);
void simple_forget(simple_movie_t *movie);

#ifdef __GNUC__
#pragma GCC visibility pop
#endif
#endif
