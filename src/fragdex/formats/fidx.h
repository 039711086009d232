/* Reads .fidx files, the indexes of MP4s (docs/index-format.md): one header, no dependency.
 *
 *     fidx_index index;
 *     fidx_track track;
 *     fidx_hit hit;
 *     // data: the bytes of the file, or its mapping
 *     if (fidx_open(data, size, &index) == FIDX_OK
 *         && fidx_track_at(&index, 0, &track) == FIDX_OK
 *         && fidx_seek(&track, 12.5, &hit) == FIDX_OK)
 *         read_media(hit.offset, hit.size);                  // decode from sample hit.sample on
 *
 * Nothing is allocated, nothing is written but what the caller hands in, and nothing is kept in
 * static memory: any number of threads may read one index. The bytes must stay where they are for
 * as long as the index and its tracks are used. Every number of the file is looked at before it
 * leads anywhere, where it is used, so that a file that changes below a mapping gives wrong answers
 * and no access outside of it (a file that becomes shorter ends the process, as any mapping does).
 *
 * C99 and later, C++11 and later. Times are seconds of the presentation, taken as the exact number
 * that a double is; offsets are bytes of the MP4; `stop` is exclusive everywhere.
 *
 * Limits: 1,024 tracks, JSON nested 64 deep.
 */
#ifndef FIDX_H
#define FIDX_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define FIDX_UNKNOWN INT64_MIN /* what stands where the index cannot tell */
#define FIDX_MOST_TRACKS 1024

typedef enum fidx_status {
    FIDX_OK = 0,
    FIDX_NOT_FIDX,   /* the bytes are no .fidx */
    FIDX_NEWER,      /* of a later major version */
    FIDX_CUT,        /* cut off, or longer than it says */
    FIDX_DAMAGED,    /* a checksum is wrong, or parts contradict each other */
    FIDX_TOO_LARGE,  /* beyond the limits above, or of this machine's size_t */
    FIDX_ABSENT,     /* there is no such track, period or sample */
    FIDX_NO_SAMPLES, /* the index has no table of samples */
    FIDX_NO_SYNC,    /* the track has no sync sample to seek to */
    FIDX_NO_TIME,    /* the time is not a number, or the track has no timescale */
    FIDX_NO_ROOM     /* the caller's array is too small */
} fidx_status;

/* A JSON value where it stands in the file; a string with its quotes. `size` 0: there is none. */
typedef struct fidx_text {
    const char *at;
    size_t size;
} fidx_text;

typedef struct fidx_range {
    int64_t start, stop;
} fidx_range;

typedef struct fidx_table {
    size_t rows;
    const unsigned char *column[13]; /* in the order of docs/index-format.md */
    uint32_t checksum[13];
} fidx_table;

typedef struct fidx_index {
    size_t tracks, periods;
    int complete;                      /* 0: the MP4 was cut off, or still growing */
    int64_t media_size;                /* bytes of the MP4, or FIDX_UNKNOWN */
    fidx_text media_name, media_etag;  /* fidx_copy_text gives them as UTF-8 */
    fidx_text json;                    /* the JSON part */
    const unsigned char *columns, *end; /* the columns, and where the file ends */
} fidx_index;

typedef struct fidx_track {
    int64_t id;
    uint32_t timescale; /* ticks a second; 0: unknown */
    size_t number, period;
    fidx_text kind, codec;   /* "video", "audio", ...; an RFC 6381 string, or null */
    int exact;               /* whether every sample was known when the index was made */
    int64_t shift;           /* presentation time = composition time + shift + over / under */
    uint32_t shift_over, shift_under;
    int64_t media_start, media_end; /* ticks of composition time, or FIDX_UNKNOWN */
    int64_t sample_count;           /* of the track, or FIDX_UNKNOWN */
    int starts_rise;                /* whether cts_min of the fragments only rises */
    fidx_table fragments, sync, samples, groups; /* samples.rows is 0 without a table of samples */
    int has_samples;
} fidx_track;

/* Where decoding starts for a time. */
typedef struct fidx_hit {
    size_t fragment;      /* row of the fragments that holds the sync sample */
    int64_t sample;       /* its number in the track, from 0 in decode order, or FIDX_UNKNOWN */
    int64_t offset, size; /* bytes of that fragment */
    int64_t cts, dts;     /* ticks; dts may be FIDX_UNKNOWN */
    int clamped;          /* the time is before the first sync sample, or at or after the end */
} fidx_hit;

typedef struct fidx_sample {
    int64_t offset, size, dts, cts, duration;
    int sync;
} fidx_sample;

static inline const char *fidx_message(fidx_status status)
{
    static const char *const messages[] = {
        "no error", "this is no .fidx file", "the .fidx file is of a later version",
        "the .fidx file is cut off or has grown", "the .fidx file is damaged",
        "the .fidx file is larger than this reader takes",
        "there is no such track, period or sample", "the .fidx file has no samples",
        "the track has no sync sample to seek to", "this is no time of this track",
        "the array is too small",
    };
    return (unsigned)status < sizeof messages / sizeof *messages ? messages[status] : "unknown";
}

/* ---- numbers of the file: little-endian, at any address */

static inline uint32_t fidx__u32(const unsigned char *p)
{
    return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

static inline uint64_t fidx__u64(const unsigned char *p)
{
    return (uint64_t)fidx__u32(p) | (uint64_t)fidx__u32(p + 4) << 32;
}

static inline int64_t fidx__i64(const unsigned char *column, size_t row)
{
    uint64_t value = fidx__u64(column + 8 * row);
    return value <= INT64_MAX ? (int64_t)value : -(int64_t)(UINT64_MAX - value) - 1;
}

/* CRC-32 of ISO/IEC 3309, as gzip has it. */
static inline uint32_t fidx__crc(uint32_t before, const unsigned char *p, size_t size)
{
    static const uint32_t of_nibble[16] = {
        0x00000000, 0x1db71064, 0x3b6e20c8, 0x26d930ac, 0x76dc4190, 0x6b6b51f4,
        0x4db26158, 0x5005713c, 0xedb88320, 0xf00f9344, 0xd6d6a3e8, 0xcb61b38c,
        0x9b64c2b0, 0x86d3d2d4, 0xa00ae278, 0xbdbdf21c,
    };
    uint32_t sum = ~before;
    for (const unsigned char *end = p + size; p < end; p++) {
        sum = of_nibble[(sum ^ *p) & 15] ^ sum >> 4;
        sum = of_nibble[(sum ^ (uint32_t)*p >> 4) & 15] ^ sum >> 4;
    }
    return ~sum;
}

/* ---- JSON: a value is walked over, and never made into anything else */

static inline const char *fidx__space(const char *p, const char *end)
{
    while (p < end && (*p == ' ' || *p == '\t' || *p == '\n' || *p == '\r'))
        p++;
    return p;
}

static inline int fidx__digit(const char *p, const char *end)
{
    return p < end && *p >= '0' && *p <= '9';
}

static inline int fidx__hex(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : (c | 32) >= 'a' && (c | 32) <= 'f' ? (c | 32) - 'a' + 10
                                                                              : -1;
}

/* The end of a string that begins at p; NULL: it is not a string. */
static inline const char *fidx__string(const char *p, const char *end)
{
    if (p == end || *p++ != '"')
        return NULL;
    while (p < end && *p != '"') {
        if ((unsigned char)*p < 32)
            return NULL;
        if (*p++ != '\\')
            continue;
        if (p == end || !*p || !strchr("\"\\/bfnrtu", *p))
            return NULL;
        if (*p++ != 'u')
            continue;
        for (int digits = 0; digits < 4; digits++, p++)
            if (p == end || fidx__hex(*p) < 0)
                return NULL;
    }
    return p < end ? p + 1 : NULL;
}

static inline const char *fidx__number(const char *p, const char *end)
{
    if (p < end && *p == '-')
        p++;
    if (!fidx__digit(p, end))
        return NULL;
    if (*p == '0')
        p++;
    else
        while (fidx__digit(p, end))
            p++;
    if (p < end && *p == '.') {
        if (!fidx__digit(++p, end))
            return NULL;
        while (fidx__digit(p, end))
            p++;
    }
    if (p < end && (*p == 'e' || *p == 'E')) {
        if (++p < end && (*p == '+' || *p == '-'))
            p++;
        if (!fidx__digit(p, end))
            return NULL;
        while (fidx__digit(p, end))
            p++;
    }
    return p;
}

static inline const char *fidx__scalar(const char *p, const char *end)
{
    static const char *const words[] = {"true", "false", "null"};
    if (p < end && *p == '"')
        return fidx__string(p, end);
    for (size_t i = 0; i < 3; i++) {
        size_t size = strlen(words[i]);
        if ((size_t)(end - p) >= size && !memcmp(p, words[i], size))
            return p + size;
    }
    return fidx__number(p, end);
}

/* The end of a name and its colon. */
static inline const char *fidx__name(const char *p, const char *end)
{
    p = fidx__string(p, end);
    if (!p)
        return NULL;
    p = fidx__space(p, end);
    return p < end && *p == ':' ? p + 1 : NULL;
}

/* The end of the value that begins at or after p, whatever is in it; NULL: this is no JSON. */
static inline const char *fidx__value(const char *p, const char *end)
{
    uint64_t objects = 0; /* a bit for each level: whether it is an object */
    int depth = 0;
    for (;;) {
        p = fidx__space(p, end);
        if (p < end && (*p == '{' || *p == '[')) {
            int object = *p == '{';
            p = fidx__space(p + 1, end);
            if (p == end || depth == 64)
                return NULL;
            if (*p != (object ? '}' : ']')) {
                objects = objects << 1 | (uint64_t)object;
                depth++;
                if (object && !(p = fidx__name(p, end)))
                    return NULL;
                continue;
            }
            p++;
        } else if (!(p = fidx__scalar(p, end))) {
            return NULL;
        }
        for (;;) { /* a value has ended here */
            int object = (int)(objects & 1);
            if (!depth)
                return p;
            p = fidx__space(p, end);
            if (p == end)
                return NULL;
            if (*p == (object ? '}' : ']')) {
                p++;
                objects >>= 1;
                depth--;
                continue;
            }
            if (*p++ != ',')
                return NULL;
            if (object && !(p = fidx__name(fidx__space(p, end), end)))
                return NULL;
            break;
        }
    }
}

/* The next UTF-16 unit of a string, or byte of UTF-8; moves p on. */
static inline uint32_t fidx__unit(const char **p)
{
    static const char escapes[] = "b\bf\fn\nr\rt\t";
    char c = *(*p)++;
    if (c != '\\')
        return (unsigned char)c;
    c = *(*p)++;
    if (c == 'u') {
        uint32_t unit = 0;
        for (int digits = 0; digits < 4; digits++)
            unit = unit << 4 | (uint32_t)fidx__hex(*(*p)++);
        return unit;
    }
    for (size_t i = 0; i + 1 < sizeof escapes; i += 2)
        if (escapes[i] == c)
            return (unsigned char)escapes[i + 1];
    return (unsigned char)c;
}

/* Whether a JSON value is this string of ASCII. */
static inline int fidx_is(fidx_text text, const char *ascii)
{
    if (text.size < 2 || *text.at != '"')
        return 0;
    const char *p = text.at + 1, *end = text.at + text.size - 1;
    while (p < end && *ascii)
        if (fidx__unit(&p) != (unsigned char)*ascii++)
            return 0;
    return p == end && !*ascii;
}

/* A JSON string as UTF-8 with a zero byte after it, cut to the room; gives the bytes without it
 * that the whole takes. Lone surrogates U+DC80 to U+DCFF become the bytes that they stand for. */
static inline size_t fidx_copy_text(fidx_text text, char *out, size_t room)
{
    size_t size = 0, ends = 0;
    if (room)
        *out = 0;
    if (text.size < 2 || *text.at != '"')
        return 0;
    const char *p = text.at + 1, *end = text.at + text.size - 1;
    while (p < end) {
        int escaped = *p == '\\';
        uint32_t code = fidx__unit(&p), low;
        unsigned char bytes[4];
        size_t count = 0;
        if (code >= 0xd800 && code < 0xdc00 && p < end && *p == '\\') {
            const char *next = p;
            low = fidx__unit(&next);
            if (low >= 0xdc00 && low < 0xe000) {
                code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
                p = next;
            }
        }
        if (code < 0x80 || !escaped) {
            bytes[count++] = (unsigned char)code;
        } else if (code >= 0xdc80 && code <= 0xdcff) {
            bytes[count++] = (unsigned char)(code - 0xdc00);
        } else {
            if (code >= 0x10000) {
                bytes[count++] = (unsigned char)(0xf0 | code >> 18);
                bytes[count++] = (unsigned char)(0x80 | (code >> 12 & 63));
            } else if (code >= 0x800) {
                bytes[count++] = (unsigned char)(0xe0 | code >> 12);
            }
            bytes[count] = (unsigned char)((count ? 0x80 : 0xc0) | (code >> 6 & 63));
            count++;
            bytes[count++] = (unsigned char)(0x80 | (code & 63));
        }
        if (size + count < room) {
            memcpy(out + size, bytes, count);
            ends = size + count;
        }
        size += count;
    }
    if (room)
        out[ends] = 0;
    return size;
}

/* The value of the last member of this name in an object, with no space around it. */
static inline fidx_text fidx__get(fidx_text object, const char *name)
{
    fidx_text found = {NULL, 0};
    if (!object.size || *object.at != '{')
        return found;
    const char *p = object.at, *end = object.at + object.size;
    while ((p = fidx__space(p + 1, end)) < end && *p == '"') {
        fidx_text key = {p, 0};
        if (!(p = fidx__string(p, end)))
            break;
        key.size = (size_t)(p - key.at);
        p = fidx__space(fidx__space(p, end) + 1, end);
        const char *start = p;
        if (!(p = fidx__value(p, end)))
            break;
        if (fidx_is(key, name)) {
            found.at = start;
            found.size = (size_t)(p - start);
        }
        p = fidx__space(p, end);
    }
    return found;
}

/* The element of a list after another one, or the first one; size 0: there is none. */
static inline fidx_text fidx__element(fidx_text list, fidx_text before)
{
    fidx_text found = {NULL, 0};
    if (!list.size || *list.at != '[')
        return found;
    const char *end = list.at + list.size;
    const char *p = fidx__space(before.size ? before.at + before.size : list.at, end) + 1;
    p = p < end ? fidx__space(p, end) : end;
    if (p >= end || *p == ']' || (before.size && p[-1] == ']'))
        return found;
    const char *stop = fidx__value(p, end);
    if (stop) {
        found.at = p;
        found.size = (size_t)(stop - p);
    }
    return found;
}

/* Digits without sign, fraction and exponent: sum = high * 2^64 + low. */
static inline int fidx__digits(const char *p, const char *end, uint64_t *high, uint64_t *low)
{
    *high = *low = 0;
    if (p == end || end - p > 29)
        return 0;
    for (; p < end; p++) {
        if (!fidx__digit(p, end))
            return 0;
        uint64_t first = (*low & 0xffffffff) * 10 + (uint64_t)(*p - '0');
        uint64_t second = (*low >> 32) * 10 + (first >> 32);
        *low = (first & 0xffffffff) | second << 32;
        *high = *high * 10 + (second >> 32);
    }
    return 1;
}

/* Whether a value is an integer within bounds. */
static inline int fidx__integer(fidx_text text, int64_t least, int64_t most, int64_t *out)
{
    uint64_t high, low;
    if (!text.size)
        return 0;
    int negative = *text.at == '-';
    if (!fidx__digits(text.at + negative, text.at + text.size, &high, &low) || high
        || low > (uint64_t)INT64_MAX)
        return 0;
    *out = negative ? -(int64_t)low : (int64_t)low;
    return *out >= least && *out <= most;
}

static inline int fidx__truth(fidx_text text, int *out)
{
    *out = text.size == 4 && !memcmp(text.at, "true", 4);
    return *out || (text.size == 5 && !memcmp(text.at, "false", 5));
}

/* ---- opening */

enum { FIDX__I64, FIDX__U32, FIDX__BOOL };

/* What the numbers of a column may be. */
enum { FIDX__COUNT, FIDX__TICKS, FIDX__NUMBER = 2, FIDX__NULLABLE = 4, FIDX__ANY = 8 };

typedef struct fidx__form {
    const char *name;
    int columns;
    struct {
        const char *name;
        int type, numbers;
    } column[13];
} fidx__form;

enum { FIDX__FRAGMENTS, FIDX__SYNC, FIDX__SAMPLES, FIDX__GROUPS };

static inline const fidx__form *fidx__forms(void)
{
    static const fidx__form forms[] = {
        {"fragments", 13,
         {{"offset", FIDX__I64, FIDX__COUNT},
          {"size", FIDX__I64, FIDX__COUNT},
          {"moof_offset", FIDX__I64, FIDX__COUNT | FIDX__NULLABLE},
          {"data_start", FIDX__I64, FIDX__COUNT | FIDX__NULLABLE},
          {"data_stop", FIDX__I64, FIDX__COUNT | FIDX__NULLABLE},
          {"dts", FIDX__I64, FIDX__TICKS | FIDX__NULLABLE},
          {"duration", FIDX__I64, FIDX__TICKS | FIDX__NULLABLE},
          {"cts_min", FIDX__I64, FIDX__TICKS | FIDX__NULLABLE},
          {"cts_end", FIDX__I64, FIDX__TICKS | FIDX__NULLABLE},
          {"sample_start", FIDX__I64, FIDX__COUNT | FIDX__NULLABLE},
          {"sample_count", FIDX__I64, FIDX__COUNT | FIDX__NULLABLE},
          {"sync", FIDX__I64, FIDX__NUMBER | FIDX__NULLABLE},
          {"flags", FIDX__U32, FIDX__ANY}}},
        {"sync", 7,
         {{"cts", FIDX__I64, FIDX__TICKS},
          {"dts", FIDX__I64, FIDX__TICKS | FIDX__NULLABLE},
          {"step", FIDX__I64, FIDX__COUNT},
          {"count", FIDX__I64, FIDX__COUNT},
          {"sample", FIDX__I64, FIDX__COUNT | FIDX__NULLABLE},
          {"sample_step", FIDX__I64, FIDX__COUNT},
          {"fragment", FIDX__I64, FIDX__COUNT}}},
        {"samples", 6,
         {{"offset", FIDX__I64, FIDX__COUNT},
          {"size", FIDX__I64, FIDX__COUNT},
          {"dts", FIDX__I64, FIDX__TICKS},
          {"cts", FIDX__I64, FIDX__TICKS},
          {"duration", FIDX__I64, FIDX__TICKS},
          {"sync", FIDX__BOOL, FIDX__ANY}}},
        {"groups", 4,
         {{"grouping_type", FIDX__U32, FIDX__ANY},
          {"sample_start", FIDX__I64, FIDX__COUNT},
          {"sample_count", FIDX__I64, FIDX__COUNT},
          {"value", FIDX__I64, FIDX__ANY}}},
    };
    return forms;
}

static inline uint64_t fidx__width(int type)
{
    return type == FIDX__I64 ? 8 : type == FIDX__U32 ? 4 : 1;
}

/* Where a table is; `left` counts down the bytes that no column has yet. */
static inline fidx_status fidx__locate(const fidx_index *index, fidx_text tables, int which,
                                       fidx_table *table, uint64_t *left)
{
    static const char *const types[] = {"<i8", "<u4", "|b1"};
    const fidx__form *form = fidx__forms() + which;
    fidx_text plain = fidx__get(tables, form->name), entry = {NULL, 0};
    fidx_text entries = fidx__get(plain, "columns");
    uint64_t space = (uint64_t)(index->end - index->columns);
    int64_t rows, offset, sum;
    memset(table, 0, sizeof *table);
    if (!plain.size && which >= FIDX__SAMPLES)
        return FIDX_OK;
    if (!fidx__integer(fidx__get(plain, "rows"), 0, INT64_MAX, &rows) || !entries.size
        || *entries.at != '[')
        return FIDX_DAMAGED;
    while ((entry = fidx__element(entries, entry)).size) {
        fidx_text none = {NULL, 0}, name = fidx__element(entry, none);
        fidx_text type = fidx__element(entry, name.size ? name : none);
        if (!name.size || *name.at != '"' || !type.size)
            return FIDX_DAMAGED;
        fidx_text place = fidx__element(entry, type);
        fidx_text checksum = place.size ? fidx__element(entry, place) : none;
        if (!checksum.size || fidx__element(entry, checksum).size)
            return FIDX_DAMAGED;
        int n = 0;
        while (n < form->columns && !fidx_is(name, form->column[n].name))
            n++;
        if (n == form->columns)
            continue; /* of a later minor version */
        uint64_t width = fidx__width(form->column[n].type);
        if (table->column[n] || !fidx_is(type, types[form->column[n].type])
            || (uint64_t)rows > space / width
            || !fidx__integer(place, 0, (int64_t)(space - (uint64_t)rows * width), &offset)
            || offset % 64 || !fidx__integer(checksum, 0, UINT32_MAX, &sum))
            return FIDX_DAMAGED;
        table->column[n] = index->columns + offset;
        table->checksum[n] = (uint32_t)sum;
    }
    for (int n = 0; n < form->columns; n++) {
        uint64_t bytes = (uint64_t)rows * fidx__width(form->column[n].type);
        if (!table->column[n] || bytes > *left)
            return FIDX_DAMAGED;
        *left -= bytes;
    }
    table->rows = (size_t)rows;
    return FIDX_OK;
}

/* A track in the JSON part. */
typedef struct fidx__entry {
    fidx_text period, track;
    size_t period_number;
} fidx__entry;

/* Moves on to the next track, over the end of its period where need be; 0: there is none. */
static inline int fidx__next(const fidx_index *index, fidx__entry *entry)
{
    fidx_text periods = fidx__get(index->json, "periods");
    if (!entry->period.size)
        entry->period = fidx__element(periods, entry->period);
    while (entry->period.size) {
        entry->track = fidx__element(fidx__get(entry->period, "tracks"), entry->track);
        if (entry->track.size)
            return 1;
        entry->period = fidx__element(periods, entry->period);
        entry->period_number++;
    }
    return 0;
}

static inline fidx_status fidx__record(fidx__entry entry, fidx_text *record)
{
    fidx_text info = fidx__get(entry.track, "info"), none = {NULL, 0};
    int64_t number;
    *record = info;
    if (info.size && *info.at == '{')
        return FIDX_OK;
    if (!fidx__integer(info, 0, INT64_MAX, &number))
        return FIDX_DAMAGED;
    fidx_text records = fidx__get(fidx__get(entry.period, "movie"), "tracks");
    for (*record = fidx__element(records, none); record->size && number; number--)
        *record = fidx__element(records, *record);
    return record->size ? FIDX_OK : FIDX_DAMAGED;
}

static inline fidx_status fidx__tables(const fidx_index *index, fidx_text track, fidx_track *out,
                                       uint64_t *left)
{
    fidx_text tables = fidx__get(track, "tables");
    fidx_table *every[] = {&out->fragments, &out->sync, &out->samples, &out->groups};
    for (int which = 0; which < 4; which++) {
        fidx_status status = fidx__locate(index, tables, which, every[which], left);
        if (status)
            return status;
    }
    out->has_samples = fidx__get(tables, "samples").size != 0;
    return FIDX_OK;
}

/* What the JSON part says of a track. */
static inline fidx_status fidx__describe(fidx__entry entry, fidx_track *out)
{
    fidx_text record, none = {NULL, 0}, shift = fidx__get(entry.track, "shift");
    fidx_text over = fidx__element(shift, none);
    fidx_text under = over.size ? fidx__element(shift, over) : none;
    int64_t timescale, denominator;
    uint64_t high, low, rest;
    fidx_status status = fidx__record(entry, &record);
    if (status)
        return status;
    out->kind = fidx__get(record, "kind");
    out->codec = fidx__get(record, "codec");
    out->period = entry.period_number;
    if (!fidx__integer(fidx__get(record, "id"), -1, UINT32_MAX, &out->id)
        || !fidx__integer(fidx__get(record, "timescale"), 0, UINT32_MAX, &timescale)
        || !out->kind.size || *out->kind.at != '"' || !out->codec.size
        || (*out->codec.at != '"' && *out->codec.at != 'n')
        || !fidx__truth(fidx__get(entry.track, "exact"), &out->exact) || !under.size
        || fidx__element(shift, under).size || !fidx__integer(under, 1, UINT32_MAX, &denominator))
        return FIDX_DAMAGED;
    out->timescale = (uint32_t)timescale;
    int negative = *over.at == '-';
    if (!fidx__digits(over.at + negative, over.at + over.size, &high, &low)
        || high >= (uint64_t)denominator)
        return FIDX_DAMAGED;
    /* high * 2^64 + low, divided in two steps, since high is less than the denominator */
    uint64_t divisor = (uint64_t)denominator;
    uint64_t upper = high << 32 | low >> 32;
    uint64_t lower = (upper % divisor) << 32 | (low & 0xffffffff);
    if (upper / divisor >> 32)
        return FIDX_DAMAGED;
    uint64_t whole = (upper / divisor) << 32 | lower / divisor;
    rest = lower % divisor;
    if (whole >= (uint64_t)1 << 62)
        return FIDX_DAMAGED;
    out->shift = negative ? -(int64_t)whole - (rest != 0) : (int64_t)whole;
    out->shift_over = (uint32_t)(negative && rest ? divisor - rest : rest);
    out->shift_under = (uint32_t)divisor;
    return FIDX_OK;
}

/* Reads `[start, stop]`; 0: it is no range of bytes. */
static inline int fidx__range(fidx_text part, fidx_range *out)
{
    fidx_text none = {NULL, 0}, start = fidx__element(part, none);
    fidx_text stop = start.size ? fidx__element(part, start) : none;
    return fidx__integer(start, 0, INT64_MAX, &out->start) && stop.size
        && fidx__integer(stop, out->start, INT64_MAX, &out->stop)
        && !fidx__element(part, stop).size;
}

/* The n-th byte range of the initialization segment (ftyp and moov) of a period, from 0. */
static inline fidx_status fidx_init(const fidx_index *index, size_t period, size_t n,
                                    fidx_range *out)
{
    fidx_text none = {NULL, 0}, at = none, part = none;
    fidx_text periods = fidx__get(index->json, "periods");
    do
        at = fidx__element(periods, at);
    while (at.size && period--);
    fidx_text parts = fidx__get(at, "init");
    do
        part = fidx__element(parts, part);
    while (part.size && n--);
    if (!part.size)
        return FIDX_ABSENT;
    return fidx__range(part, out) ? FIDX_OK : FIDX_DAMAGED;
}

/* Opens the bytes of a .fidx, and looks at its header, its JSON part and the places of its columns.
 *
 * The columns themselves are looked at by fidx_track_at, and their checksums by fidx_verify. */
static inline fidx_status fidx_open(const void *data, size_t size, fidx_index *out)
{
    static const unsigned char magic[] = {0x89, 0x46, 0x44, 0x58, 0x0d, 0x0a, 0x1a, 0x0a};
    const unsigned char *head = (const unsigned char *)data;
    memset(out, 0, sizeof *out);
    if (size < sizeof magic || memcmp(head, magic, sizeof magic))
        return FIDX_NOT_FIDX;
    if (size < 64)
        return FIDX_CUT;
    if ((head[8] | head[9] << 8) > 1)
        return FIDX_NEWER;
    if (fidx__u32(head + 12) != 0x0a0b0c0d)
        return FIDX_DAMAGED;
    uint64_t text = fidx__u64(head + 24), start = fidx__u64(head + 32);
    if (fidx__u64(head + 16) != size)
        return FIDX_CUT;
    if (start > size || text > size - 64 || start != (64 + text + 63) / 64 * 64)
        return FIDX_DAMAGED;
    if (fidx__crc(fidx__crc(0, head, 60), head + 64, (size_t)text) != fidx__u32(head + 60)
        || head[8] != 1)
        return FIDX_DAMAGED;
    out->columns = head + start;
    out->end = head + size;
    const char *json = (const char *)head + 64, *stop = json + text;
    const char *first = fidx__space(json, stop), *last = fidx__value(first, stop);
    if (!last || fidx__space(last, stop) != stop || *first != '{')
        return FIDX_DAMAGED;
    out->json.at = first;
    out->json.size = (size_t)(last - first);
    fidx_text source = fidx__get(out->json, "source"), bytes = fidx__get(source, "size");
    fidx_text none = {NULL, 0}, period = none, periods = fidx__get(out->json, "periods");
    out->media_name = fidx__get(source, "name");
    out->media_etag = fidx__get(source, "etag");
    out->media_size = FIDX_UNKNOWN;
    if (!source.size || *source.at != '{' || !periods.size || *periods.at != '['
        || !fidx__truth(fidx__get(out->json, "complete"), &out->complete)
        || (bytes.size && *bytes.at != 'n'
            && !fidx__integer(bytes, 0, INT64_MAX, &out->media_size)))
        return FIDX_DAMAGED;
    while ((period = fidx__element(periods, period)).size) {
        fidx_text movie = fidx__get(period, "movie"), tracks = fidx__get(period, "tracks");
        fidx_text parts = fidx__get(period, "init");
        int64_t number;
        if (!movie.size || *movie.at != '{' || !tracks.size || *tracks.at != '[' || !parts.size
            || *parts.at != '['
            || !fidx__integer(fidx__get(period, "number"), (int64_t)out->periods,
                              (int64_t)out->periods, &number))
            return FIDX_DAMAGED;
        fidx_text part = none;
        fidx_range range;
        while ((part = fidx__element(parts, part)).size)
            if (!fidx__range(part, &range))
                return FIDX_DAMAGED;
        out->periods++;
    }
    fidx__entry entry;
    fidx_track track;
    uint64_t left = size - start;
    memset(&entry, 0, sizeof entry);
    while (fidx__next(out, &entry)) {
        if (out->tracks++ == FIDX_MOST_TRACKS)
            return FIDX_TOO_LARGE;
        fidx_status status = fidx__describe(entry, &track);
        if (!status)
            status = fidx__tables(out, entry.track, &track, &left);
        if (status)
            return status;
    }
    return FIDX_OK;
}

/* ---- the tables of a track */

#define FIDX__FAR ((int64_t)1 << 62)

/* Whether a number of the file is within the bounds of its column. */
static inline int fidx__within(int64_t value, int numbers)
{
    if (numbers & FIDX__ANY || (value == FIDX_UNKNOWN && numbers & FIDX__NULLABLE))
        return 1;
    int64_t least = numbers & FIDX__TICKS ? 1 - FIDX__FAR : numbers & FIDX__NUMBER ? -1 : 0;
    return value >= least && value < FIDX__FAR;
}

/* Whether the last of an evenly spaced run is before the end. */
static inline int fidx__reach(int64_t first, int64_t step, int64_t count, int64_t end)
{
    return first < end && (count < 2 || step <= (end - 1 - first) / (count - 1));
}

/* Reads the row of a table; 0: a number is out of bounds. */
static inline int fidx__row(const fidx_table *table, int which, size_t row, int64_t *values)
{
    const fidx__form *form = fidx__forms() + which;
    for (int n = 0; n < form->columns; n++) {
        const unsigned char *column = table->column[n];
        int type = form->column[n].type;
        values[n] = type == FIDX__I64   ? fidx__i64(column, row)
                    : type == FIDX__U32 ? (int64_t)fidx__u32(column + 4 * row)
                                        : (int64_t)column[row];
        if (!fidx__within(values[n], form->column[n].numbers)
            || (type == FIDX__BOOL && values[n] > 1))
            return 0;
    }
    return 1;
}

enum { FIDX__OFFSET, FIDX__SIZE, FIDX__MOOF, FIDX__DATA_START, FIDX__DATA_STOP, FIDX__CTS_MIN = 7,
       FIDX__CTS_END, FIDX__SAMPLE_START, FIDX__SAMPLE_COUNT, FIDX__FIRST_SYNC };
enum { FIDX__CTS, FIDX__DTS, FIDX__STEP, FIDX__TIMES, FIDX__SAMPLE, FIDX__SAMPLE_STEP, FIDX__ROW };

static inline int fidx__check_fragments(fidx_track *track)
{
    int64_t row[13], total = 0, before = INT64_MIN;
    int numbered = 1, counted = 1;
    track->media_start = track->media_end = FIDX_UNKNOWN;
    track->starts_rise = 1;
    for (size_t n = 0; n < track->fragments.rows; n++) {
        if (!fidx__row(&track->fragments, FIDX__FRAGMENTS, n, row))
            return 0;
        int64_t start = row[FIDX__SAMPLE_START], count = row[FIDX__SAMPLE_COUNT];
        int64_t least = row[FIDX__CTS_MIN], end = row[FIDX__CTS_END], sync = row[FIDX__FIRST_SYNC];
        if (row[FIDX__DATA_STOP] < row[FIDX__DATA_START]
            || (row[FIDX__DATA_START] == FIDX_UNKNOWN) != (row[FIDX__DATA_STOP] == FIDX_UNKNOWN)
            || (count != FIDX_UNKNOWN && sync >= count && sync >= 0))
            return 0;
        if (start == FIDX_UNKNOWN || count == FIDX_UNKNOWN)
            numbered = 0;
        else if (start != total || count >= FIDX__FAR - total)
            counted = 0;
        else
            total += count;
        if (least == FIDX_UNKNOWN || least < before)
            track->starts_rise = 0;
        before = least;
        if (!count)
            continue;
        if (least != FIDX_UNKNOWN
            && (track->media_start == FIDX_UNKNOWN || least < track->media_start))
            track->media_start = least;
        if (end > track->media_end) /* FIDX_UNKNOWN is the least number */
            track->media_end = end;
    }
    track->sample_count = numbered ? total : FIDX_UNKNOWN;
    if (numbered && !counted)
        return 0;
    return !track->has_samples || (numbered && (uint64_t)total == track->samples.rows);
}

static inline int fidx__check_sync(const fidx_track *track)
{
    int64_t row[13], before = INT64_MIN, left = track->sample_count;
    int numbered = track->sample_count != FIDX_UNKNOWN;
    for (size_t n = 0; n < track->sync.rows; n++) {
        if (!fidx__row(&track->sync, FIDX__SYNC, n, row))
            return 0;
        int64_t count = row[FIDX__TIMES], sample = row[FIDX__SAMPLE];
        uint64_t fragment = (uint64_t)row[FIDX__ROW];
        if (fragment >= track->fragments.rows || count < 1 || row[FIDX__CTS] < before
            || !fidx__reach(row[FIDX__CTS], row[FIDX__STEP], count, FIDX__FAR)
            || (row[FIDX__DTS] != FIDX_UNKNOWN
                && !fidx__reach(row[FIDX__DTS], row[FIDX__STEP], count, FIDX__FAR))
            || (count > 1 && (!numbered || sample == FIDX_UNKNOWN || row[FIDX__SAMPLE_STEP] < 1)))
            return 0;
        before = row[FIDX__CTS];
        int64_t first = fidx__i64(track->fragments.column[FIDX__SAMPLE_START], (size_t)fragment);
        int64_t many = fidx__i64(track->fragments.column[FIDX__SAMPLE_COUNT], (size_t)fragment);
        if (sample != FIDX_UNKNOWN && first != FIDX_UNKNOWN && many != FIDX_UNKNOWN
            && (sample < first || sample - first >= many))
            return 0;
        if (numbered) {
            if (count > left
                || (sample != FIDX_UNKNOWN
                    && !fidx__reach(sample, row[FIDX__SAMPLE_STEP], count, track->sample_count)))
                return 0;
            left -= count;
        }
    }
    return 1;
}

/* The n-th track of the file, from 0; one pass over its fragments and sync samples checks them. */
static inline fidx_status fidx_track_at(const fidx_index *index, size_t n, fidx_track *out)
{
    uint64_t left = UINT64_MAX;
    int64_t row[13];
    fidx__entry entry;
    memset(&entry, 0, sizeof entry);
    memset(out, 0, sizeof *out);
    for (size_t skipped = 0; skipped <= n; skipped++)
        if (!fidx__next(index, &entry))
            return FIDX_ABSENT;
    out->number = n;
    fidx_status status = fidx__describe(entry, out);
    if (!status)
        status = fidx__tables(index, entry.track, out, &left);
    if (status)
        return status;
    if (!fidx__check_fragments(out) || !fidx__check_sync(out))
        return FIDX_DAMAGED;
    for (size_t group = 0; group < out->groups.rows; group++)
        if (!fidx__row(&out->groups, FIDX__GROUPS, group, row))
            return FIDX_DAMAGED;
    return FIDX_OK;
}

/* One sample, numbered from 0 in decode order. */
static inline fidx_status fidx_sample_at(const fidx_track *track, int64_t sample, fidx_sample *out)
{
    int64_t row[13];
    if (!track->has_samples)
        return FIDX_NO_SAMPLES;
    if (sample < 0 || (uint64_t)sample >= track->samples.rows)
        return FIDX_ABSENT;
    if (!fidx__row(&track->samples, FIDX__SAMPLES, (size_t)sample, row))
        return FIDX_DAMAGED;
    out->offset = row[0];
    out->size = row[1];
    out->dts = row[2];
    out->cts = row[3];
    out->duration = row[4];
    out->sync = (int)row[5];
    return FIDX_OK;
}

/* Looks at all that fidx_open and fidx_track_at leave unread: checksums, padding, samples. */
static inline fidx_status fidx_verify(const fidx_index *index)
{
    const unsigned char *p = (const unsigned char *)index->json.at + index->json.size;
    for (p = p < index->columns ? p : index->columns; p < index->columns; p++)
        if (*p && *p != ' ' && *p != '\t' && *p != '\n' && *p != '\r')
            return FIDX_DAMAGED;
    for (size_t n = 0; n < index->tracks; n++) {
        fidx_track track;
        fidx_sample sample;
        fidx_status status = fidx_track_at(index, n, &track);
        if (status)
            return status;
        const fidx_table *tables[] = {&track.fragments, &track.sync, &track.samples, &track.groups};
        for (int which = 0; which < 4; which++)
            for (int c = 0; tables[which]->column[0] && c < fidx__forms()[which].columns; c++) {
                size_t size = tables[which]->rows
                              * (size_t)fidx__width(fidx__forms()[which].column[c].type);
                p = tables[which]->column[c];
                if (fidx__crc(0, p, size) != tables[which]->checksum[c])
                    return FIDX_DAMAGED;
                for (p += size; p < index->end && (p - index->columns) % 64; p++)
                    if (*p)
                        return FIDX_DAMAGED;
            }
        for (size_t row = 0; row < track.samples.rows; row++)
            if ((status = fidx_sample_at(&track, (int64_t)row, &sample)) != FIDX_OK)
                return status;
    }
    return FIDX_OK;
}

/* ---- times */

/* floor(seconds * timescale - shift - over / under), exactly; cut to what 64 bits hold. */
static inline int64_t fidx__floor(double seconds, uint32_t timescale, int64_t shift, uint32_t over,
                                  uint32_t under)
{
    uint64_t bits, scale = (uint64_t)timescale * under;
    memcpy(&bits, &seconds, sizeof bits);
    int negative = bits >> 63 != 0, power = (int)(bits >> 52 & 2047);
    uint64_t digits = (bits & (((uint64_t)1 << 52) - 1)) | (power ? (uint64_t)1 << 52 : 0);
    power = (power ? power : 1) - 1075; /* seconds = digits * 2^power */
    int64_t ticks = negative ? INT64_MIN : INT64_MAX;
    if (digits && power > 10)
        return ticks; /* 2^63 and more */
    if (power > 0) { /* whole seconds, below 2^63 */
        digits <<= power;
        power = 0;
    }
    /* digits * scale = high * 2^64 + low */
    uint64_t few = digits & 0xffffffff, many = digits >> 32, less = scale & 0xffffffff;
    uint64_t a = few * less, b = many * less, c = few * (scale >> 32), d = many * (scale >> 32);
    uint64_t middle = (a >> 32) + (b & 0xffffffff) + (c & 0xffffffff);
    uint64_t low = (a & 0xffffffff) | middle << 32;
    uint64_t high = d + (b >> 32) + (c >> 32) + (middle >> 32);
    /* ... * 2^power, rounded down where it is positive, up in size where it is negative */
    int rest = 0;
    power = -power;
    if (power >= 64) {
        rest = low != 0;
        low = high;
        high = 0;
        power -= 64;
    }
    if (power >= 64) {
        rest |= low != 0;
        low = 0;
    } else if (power) {
        rest |= low << (64 - power) != 0;
        low = low >> power | high << (64 - power);
        high >>= power;
    }
    /* less over, divided by under and rounded down */
    uint64_t take = negative ? (uint64_t)rest + over + under - 1 : over;
    if (negative) {
        low += take;
        high += low < take;
    } else if (!high && low < take) {
        return -1 - shift;
    } else {
        high -= low < take;
        low -= take;
    }
    uint64_t parts[] = {high >> 32, high & 0xffffffff, low >> 32, low & 0xffffffff};
    uint64_t whole = 0, left = 0;
    for (int n = high ? 0 : 2; n < 4; n++) {
        if (whole >> 31)
            return ticks;
        left = left << 32 | parts[n];
        whole = whole << 32 | left / under;
        left %= under;
    }
    ticks = negative ? -(int64_t)whole : (int64_t)whole;
    if (shift > 0)
        return ticks < INT64_MIN + shift ? INT64_MIN : ticks - shift;
    return ticks > INT64_MAX + shift ? INT64_MAX : ticks - shift;
}

/* The last tick of composition time at or before a time of the presentation. */
static inline fidx_status fidx_ticks(const fidx_track *track, double seconds, int64_t *out)
{
    if (seconds != seconds || !track->timescale)
        return FIDX_NO_TIME;
    *out = fidx__floor(seconds, track->timescale, track->shift, track->shift_over,
                       track->shift_under);
    return FIDX_OK;
}

/* The presentation time of a composition time; the nearest double, where all numbers that it is
 * made of have 53 bits at most. */
static inline double fidx_seconds(const fidx_track *track, int64_t ticks)
{
    double under = (double)track->shift_under;
    double over = ((double)ticks + (double)track->shift) * under + (double)track->shift_over;
    return over / (under * (double)track->timescale);
}

/* How many elements at the start of a column that rises are at or below a number. */
static inline size_t fidx__after(const unsigned char *column, size_t rows, int64_t most)
{
    size_t low = 0;
    while (low < rows) {
        size_t middle = low + (rows - low) / 2;
        if (fidx__i64(column, middle) <= most)
            low = middle + 1;
        else
            rows = middle;
    }
    return low;
}

/* The last sync sample with a composition time at or before a number of ticks; else the first. */
static inline fidx_status fidx_seek_ticks(const fidx_track *track, int64_t ticks, fidx_hit *out)
{
    int64_t row[13], turn = 0, first, count, end;
    if (!track->sync.rows)
        return FIDX_NO_SYNC;
    /* no time of a file is out here, and differences fit in 64 bits */
    ticks = ticks > FIDX__FAR ? FIDX__FAR : ticks < -FIDX__FAR ? -FIDX__FAR : ticks;
    size_t run = fidx__after(track->sync.column[FIDX__CTS], track->sync.rows, ticks);
    out->clamped = !run;
    if (!fidx__row(&track->sync, FIDX__SYNC, run ? run - 1 : 0, row))
        return FIDX_DAMAGED;
    if (ticks >= row[FIDX__CTS])
        turn = row[FIDX__STEP] ? (ticks - row[FIDX__CTS]) / row[FIDX__STEP] : INT64_MAX;
    if (turn >= row[FIDX__TIMES])
        turn = row[FIDX__TIMES] - 1;
    out->cts = row[FIDX__CTS];
    out->dts = row[FIDX__DTS];
    out->sample = row[FIDX__SAMPLE];
    out->fragment = (size_t)row[FIDX__ROW];
    if (turn > 0) {
        if (!fidx__reach(row[FIDX__CTS], row[FIDX__STEP], turn + 1, FIDX__FAR)
            || !fidx__reach(out->sample, row[FIDX__SAMPLE_STEP], turn + 1, FIDX__FAR)
            || (out->dts != FIDX_UNKNOWN
                && !fidx__reach(out->dts, row[FIDX__STEP], turn + 1, FIDX__FAR))
            || out->sample < 0)
            return FIDX_DAMAGED;
        out->cts += turn * row[FIDX__STEP];
        out->dts += out->dts == FIDX_UNKNOWN ? 0 : turn * row[FIDX__STEP];
        out->sample += turn * row[FIDX__SAMPLE_STEP];
        out->fragment = fidx__after(track->fragments.column[FIDX__SAMPLE_START],
                                    track->fragments.rows, out->sample) - 1;
    }
    if (out->fragment >= track->fragments.rows) /* a row before the first is a large number */
        return FIDX_DAMAGED;
    out->offset = fidx__i64(track->fragments.column[FIDX__OFFSET], out->fragment);
    out->size = fidx__i64(track->fragments.column[FIDX__SIZE], out->fragment);
    first = fidx__i64(track->fragments.column[FIDX__SAMPLE_START], out->fragment);
    count = fidx__i64(track->fragments.column[FIDX__SAMPLE_COUNT], out->fragment);
    end = fidx__i64(track->fragments.column[FIDX__CTS_END], out->fragment);
    if (!fidx__within(out->offset, FIDX__COUNT) || !fidx__within(out->size, FIDX__COUNT)
        || (out->sample != FIDX_UNKNOWN && first != FIDX_UNKNOWN
            && (out->sample < first || out->sample - first >= count)))
        return FIDX_DAMAGED;
    if (!out->clamped && (end <= ticks || !count))
        out->clamped = track->media_end != FIDX_UNKNOWN && ticks >= track->media_end;
    return FIDX_OK;
}

/* Where decoding must start to show a moment: the last sync sample that is presented at or before
 * it; before the first one that, at or after the end the last, both marked as clamped. */
static inline fidx_status fidx_seek(const fidx_track *track, double seconds, fidx_hit *out)
{
    int64_t ticks;
    fidx_status status = fidx_ticks(track, seconds, &ticks);
    return status ? status : fidx_seek_ticks(track, ticks, out);
}

/* ---- byte ranges */

static inline void fidx__sift(fidx_range *ranges, size_t at, size_t count)
{
    fidx_range moved = ranges[at];
    for (size_t below; (below = 2 * at + 1) < count; at = below) {
        below += below + 1 < count && ranges[below].start < ranges[below + 1].start;
        if (moved.start >= ranges[below].start)
            break;
        ranges[at] = ranges[below];
    }
    ranges[at] = moved;
}

/* Sorts ranges and makes one of those that overlap or touch, or, with `apart`, that overlap. */
static inline size_t fidx__merge(fidx_range *ranges, size_t count, int apart)
{
    size_t kept = 0, sorted = 1;
    while (sorted < count && ranges[sorted - 1].start <= ranges[sorted].start)
        sorted++;
    if (sorted < count) {
        for (size_t at = count / 2; at--;)
            fidx__sift(ranges, at, count);
        for (size_t last = count; --last;) {
            fidx_range least = ranges[last];
            ranges[last] = ranges[0];
            ranges[0] = least;
            fidx__sift(ranges, 0, last);
        }
    }
    for (size_t n = 0; n < count; n++) {
        if (kept && ranges[n].start < ranges[kept - 1].stop + !apart) {
            if (ranges[n].stop > ranges[kept - 1].stop)
                ranges[kept - 1].stop = ranges[n].stop;
        } else if (ranges[n].start < ranges[n].stop) {
            ranges[kept++] = ranges[n];
        }
    }
    return kept;
}

/* The bytes of a fragment; 0: they are none of a file. */
static inline int fidx__bytes(const fidx_track *track, size_t row, fidx_range *out)
{
    out->start = fidx__i64(track->fragments.column[FIDX__OFFSET], row);
    int64_t size = fidx__i64(track->fragments.column[FIDX__SIZE], row);
    if (!fidx__within(out->start, FIDX__COUNT) || !fidx__within(size, FIDX__COUNT))
        return 0;
    out->stop = out->start + size;
    return 1;
}

/* Adds a range after those that were there at `first`. */
static inline fidx_status fidx__add(fidx_range bytes, fidx_range *out, size_t room, size_t first,
                                    size_t *count)
{
    if (*count > first && out[*count - 1].stop == bytes.start) { /* as nearly always */
        out[*count - 1].stop = bytes.stop;
        return FIDX_OK;
    }
    if (*count == room)
        return FIDX_NO_ROOM;
    out[(*count)++] = bytes;
    return FIDX_OK;
}

/* Row after the last fragment with a sample at or before a time; after `row` in any case. A span
 * without end has the fragments of unknown times as well. */
static inline size_t fidx__behind(const fidx_track *track, size_t row, int64_t ticks)
{
    const unsigned char *starts = track->fragments.column[FIDX__CTS_MIN];
    size_t rows = track->fragments.rows;
    if (track->starts_rise) {
        rows = fidx__after(starts, rows, ticks);
    } else {
        for (; rows; rows--) {
            int64_t start = fidx__i64(starts, rows - 1);
            if ((start == FIDX_UNKNOWN ? INT64_MAX : start) <= ticks)
                break;
        }
    }
    return rows > row ? rows : row + 1;
}

static inline int fidx__wanted(const fidx_track *track, const unsigned char *wanted)
{
    return wanted ? wanted[track->number] : track->timescale && track->sync.rows;
}

/* Whether a track that is wanted has the moov of this one. */
static inline int fidx__beside(const fidx_track *tracks, size_t count, const unsigned char *wanted,
                               size_t period)
{
    for (size_t n = 0; n < count; n++)
        if (tracks[n].period == period && fidx__wanted(tracks + n, wanted))
            return 1;
    return 0;
}

/* Adds what the moofs in the ranges need and does not lie there; the ranges are then merged. */
static inline fidx_status fidx__widen(const fidx_track *tracks, size_t count,
                                      const unsigned char *wanted, fidx_range *out, size_t room,
                                      size_t *found)
{
    size_t known = *found;
    for (size_t n = 0; n < count; n++) {
        const fidx_table *table = &tracks[n].fragments;
        if (!fidx__beside(tracks, count, wanted, tracks[n].period))
            continue;
        for (size_t part = 0; part < known; part++) {
            size_t row = fidx__after(table->column[FIDX__MOOF], table->rows, out[part].start - 1);
            size_t stop = fidx__after(table->column[FIDX__MOOF], table->rows, out[part].stop - 1);
            for (; row < stop; row++) {
                fidx_range bytes;
                fidx_status status = FIDX_OK;
                if (!fidx__bytes(tracks + n, row, &bytes))
                    return FIDX_DAMAGED;
                if ((bytes.start < out[part].start || bytes.stop > out[part].stop)
                    && fidx__i64(table->column[FIDX__SAMPLE_COUNT], row))
                    status = fidx__add(bytes, out, room, known, found);
                if (status)
                    return status;
            }
        }
    }
    *found = fidx__merge(out, *found, 0);
    return FIDX_OK;
}

/* As fidx__widen until nothing is added, for files whose fragments reach into one another. */
static inline fidx_status fidx__widen_all(const fidx_track *tracks, size_t count,
                                          const unsigned char *wanted, fidx_range *out, size_t room,
                                          size_t *found)
{
    size_t known = *found, every = known, kept;
    for (size_t n = 0; n < count; n++) {
        int beside = fidx__beside(tracks, count, wanted, tracks[n].period);
        for (size_t row = 0; beside && row < tracks[n].fragments.rows; row++) {
            if (every == room)
                return FIDX_NO_ROOM;
            if (!fidx__bytes(tracks + n, row, out + every++))
                return FIDX_DAMAGED;
        }
    }
    every = known + fidx__merge(out + known, every - known, 1);
    kept = known;
    for (size_t n = known, part = 0; n < every && part < known;) {
        if (out[part].stop <= out[n].start)
            part++;
        else if (out[part].start < out[n++].stop)
            out[kept++] = out[n - 1];
    }
    *found = fidx__merge(out, kept, 0);
    return FIDX_OK;
}

/* The bytes that play a span of time: for each track the fragments from that of the sync sample
 * at or before `start` to the last one with a sample before `stop`, and what their moofs need.
 *
 * tracks: all of the index, in order. wanted: a byte for each, 0 where it is left out; NULL: all
 * that can be seeked in. out: sorted ranges that neither overlap nor touch; it needs room for twice
 * as many as the tracks have fragments at most, and for two or three in nearly every file. The
 * initialization segment (fidx_init) is not among them. An infinite `stop` is the end. */
static inline fidx_status fidx_span(const fidx_track *tracks, size_t count,
                                    const unsigned char *wanted, double start, double stop,
                                    fidx_range *out, size_t room, size_t *found)
{
    fidx_status status;
    fidx_hit hit;
    *found = 0;
    if (!(stop >= start))
        return FIDX_NO_TIME;
    for (size_t n = 0; n < count; n++) {
        const fidx_track *track = tracks + n;
        if (!fidx__wanted(track, wanted))
            continue;
        if ((status = fidx_seek(track, start, &hit)) != FIDX_OK)
            return status;
        /* a sample that starts exactly at `stop` is not played any more */
        uint32_t over = track->shift_over ? track->shift_under - track->shift_over : 0;
        int64_t last = -1 - fidx__floor(-stop, track->timescale, -track->shift - (over != 0), over,
                                        track->shift_under);
        size_t behind = fidx__behind(track, hit.fragment, last > hit.cts ? last : hit.cts);
        for (size_t row = hit.fragment; row < behind; row++) {
            fidx_range bytes;
            if (!fidx__i64(track->fragments.column[FIDX__SAMPLE_COUNT], row))
                continue;
            if (!fidx__bytes(track, row, &bytes))
                return FIDX_DAMAGED;
            if ((status = fidx__add(bytes, out, room, 0, found)) != FIDX_OK)
                return status;
        }
    }
    *found = fidx__merge(out, *found, 0);
    for (int turn = 0; turn < 8; turn++) {
        int64_t before = 0, after = 0;
        for (size_t n = 0; n < *found; n++)
            before += out[n].stop - out[n].start;
        if ((status = fidx__widen(tracks, count, wanted, out, room, found)) != FIDX_OK)
            return status;
        for (size_t n = 0; n < *found; n++)
            after += out[n].stop - out[n].start;
        if (after == before)
            return FIDX_OK;
    }
    return fidx__widen_all(tracks, count, wanted, out, room, found);
}

#endif
