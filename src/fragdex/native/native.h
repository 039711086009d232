/* What the parts of the C extension share.
 *
 * A part uses only parts before it: arguments.c, sample_runs.c, trafs.c, box_shapes.c,
 * fragment_samples.c, box_walk.c, file_walk.c, and fragment_tables.c behind trafs.c; box_fields.c,
 * chunks.c and moofs.c need the arguments alone, pixels.c nothing; simple_moov.c stands before
 * simple_fragments.c (with sample_runs.c), and both before simple_file.c. Of the walk over media data,
 * audio_frames.c, nal_units.c and av1.c stand before media_walk.c, and share lanes.h with it. What
 * a part lends to others stands in the header of its name. module.c names what Python may call; no
 * part uses it.
 *
 * Loops run without the interpreter's lock, so that what a caller lends may change meanwhile. Each
 * number that decides where memory is touched is therefore read once, by number_at, and checked
 * where it is used.
 */
#ifndef FRAGDEX_NATIVE_H
#define FRAGDEX_NATIVE_H
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* Seen inside the extension alone: other libraries have functions of such names. */
#ifdef __GNUC__
#pragma GCC visibility push(hidden)
#endif

/* A column of int64 that a caller lends. */
typedef struct {
    Py_buffer buffer;
    Py_ssize_t count;
} column_t;

/* Converters for PyArg_ParseTuple's O&: the one rule by which columns are accepted. Whoever has
 * parsed them releases `buffer`. */
int column_to_read(PyObject *given, void *column);
int column_to_fill(PyObject *given, void *column);

static inline int64_t number_at(const column_t *column, Py_ssize_t i)
{
    return ((const volatile int64_t *)column->buffer.buf)[i];
}

enum { SOON = 1 << 16 };

/* Room for one more item of `width` bytes; the buffer grows twofold, and fourfold while it is small,
 * as each time may copy it and what is not written to costs nothing. NULL: no memory, and the buffer
 * is as it was. */
static inline void *with_room(void *buffer, Py_ssize_t count, Py_ssize_t *room, size_t width)
{
    if (count < *room)
        return buffer;
    Py_ssize_t larger = *room ? *room * (*room < SOON ? 4 : 2) : 1024;
    if ((size_t)larger > PY_SSIZE_T_MAX / width)
        return NULL;
    void *grown = realloc(buffer, (size_t)larger * width);
    if (grown)
        *room = larger;
    return grown;
}

/* Rows of int64, `width` each, one behind the other; owned. */
typedef struct {
    int64_t *cells;
    Py_ssize_t count, room;
    int width;
} rows_t;

/* The next row, not written yet. NULL: no memory. */
static inline int64_t *next_row(rows_t *rows)
{
    int64_t *cells = with_room(rows->cells, rows->count, &rows->room, 8 * (size_t)rows->width);
    if (!cells)
        return NULL;
    rows->cells = cells;
    return cells + rows->width * rows->count++;
}

/* The rows as bytes, and forgets them. NULL: an error is raised. */
static inline PyObject *bytes_of(rows_t *rows)
{
    PyObject *out = PyBytes_FromStringAndSize((const char *)rows->cells,
                                              rows->count * rows->width * 8);
    free(rows->cells);
    rows->cells = NULL;
    return out;
}

static inline uint32_t be32(const uint8_t *p)
{
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

/* The same for long columns: one load where the compiler knows how. */
static inline uint32_t word_at(const uint8_t *p)
{
#if defined(__GNUC__) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    uint32_t word;
    memcpy(&word, p, 4);
    return __builtin_bswap32(word);
#else
    return be32(p);
#endif
}

static inline uint64_t be64(const uint8_t *p)
{
    return (uint64_t)word_at(p) << 32 | word_at(p + 4);
}

/* Whether [at, at + size) does not lie in a buffer of so many bytes. */
static inline int outside(int64_t at, int64_t size, int64_t held)
{
    return at < 0 || size < 0 || at > held || size > held - at;
}

/* Sum of words that stand one behind the other. */
static inline uint64_t sum_of_words(const uint8_t *p, int64_t count)
{
    uint64_t sum = 0;
#if defined(__GNUC__) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    /* Bytes of two words at once are added in four lanes of 16 bits each: 256 fit. */
    const uint64_t lanes = 0x00ff00ff00ff00ff;
    while (count >= 2) {
        int64_t pairs = count / 2 < 256 ? count / 2 : 256;
        uint64_t even = 0, odd = 0;
        for (int64_t i = 0; i < pairs; i++) {
            uint64_t two;
            memcpy(&two, p + 8 * i, 8);
            even += two & lanes;
            odd += two >> 8 & lanes;
        }
        for (int shift = 0; shift < 64; shift += 32) {
            sum += (even >> shift & 0xffff) << 24;
            sum += (even >> shift >> 16 & 0xffff) << 8;
            sum += ((odd >> shift & 0xffff) << 16) + (odd >> shift >> 16 & 0xffff);
        }
        p += 8 * pairs;
        count -= 2 * pairs;
    }
#endif
    for (int64_t i = 0; i < count; i++)
        sum += word_at(p + 4 * i);
    return sum;
}

typedef struct {
    int64_t offset; /* from the start of the buffer or file */
    int64_t size;   /* header included; 0: to the end of the file */
    uint32_t type;  /* four-letter code as a big-endian number */
    uint8_t header; /* 8, 16, 24 or 32 bytes */
    uint8_t depth;  /* 0: top level */
    uint8_t damaged; /* its inside breaks the rules; no rows of it follow */
    uint8_t whole;   /* one of the types that are only passed whole */
} row_t;

PyObject *walk(PyObject *self, PyObject *args);
PyObject *join(PyObject *self, PyObject *args);
PyObject *span(PyObject *self, PyObject *args);
PyObject *write_moofs(PyObject *self, PyObject *args);
PyObject *columns(PyObject *self, PyObject *args);
PyObject *fit(PyObject *self, PyObject *args);
PyObject *fragment_samples(PyObject *self, PyObject *args);
PyObject *sums(PyObject *self, PyObject *args);
PyObject *join_sync(PyObject *self, PyObject *args);
PyObject *lay_out(PyObject *self, PyObject *args);
PyObject *kept(PyObject *self, PyObject *args);
PyObject *settle(PyObject *self, PyObject *args);
PyObject *chunk_starts(PyObject *self, PyObject *args);
PyObject *places(PyObject *self, PyObject *args);
PyObject *extents(PyObject *self, PyObject *args);
PyObject *simple_file(PyObject *self, PyObject *args);
PyObject *simple_samples(PyObject *self, PyObject *args);
PyObject *aac_frame(PyObject *self, PyObject *args);
PyObject *find_bytes(PyObject *self, PyObject *args);
PyObject *bare_zeros(PyObject *self, PyObject *args);
PyObject *crc16_ends(PyObject *self, PyObject *args);
PyObject *walk_media(PyObject *self, PyObject *args);
PyObject *unfilter(PyObject *self, PyObject *args);
#if defined(__x86_64__) && defined(__GNUC__)
PyObject *to_yuv420(PyObject *self, PyObject *args);
#endif
#ifndef _WIN32
PyObject *walk_file(PyObject *self, PyObject *args);
#endif

#ifdef __GNUC__
#pragma GCC visibility pop
#endif
#endif
