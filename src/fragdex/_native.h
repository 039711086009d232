/* What the parts of the C extension share.
 *
 * A part uses only parts before it: _native_arguments.c, _native_shapes.c, _native_walk.c,
 * _native_file.c; _native_runs.c and _native_chunks.c need the arguments alone. _native_module.c
 * names what Python may call; no part uses it.
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

/* Room for one more item of `width` bytes; the buffer grows twofold. NULL: no memory, and the
 * buffer is as it was. */
static inline void *with_room(void *buffer, Py_ssize_t count, Py_ssize_t *room, size_t width)
{
    if (count < *room)
        return buffer;
    Py_ssize_t larger = *room ? *room * 2 : 1024;
    if ((size_t)larger > PY_SSIZE_T_MAX / width)
        return NULL;
    void *grown = realloc(buffer, (size_t)larger * width);
    if (grown)
        *room = larger;
    return grown;
}

enum { MOST_CODES = 16, MOST_SHAPES = 32, NO_SHAPE = 255, LONGEST_SHAPE = 1 << 16 };

/* Boxes whose integers stand at the same places. */
typedef struct {
    PyObject *given; /* template, mask and places: a tuple of bytes, owned */
    const uint8_t *template, *mask; /* `size` bytes each: a box fits where it has the template's
                                       bits wherever the mask is set */
    int64_t size;
    uint32_t *words, n_words; /* offsets of the 8 bytes where the mask is not 0; owned */
    const int64_t *places; /* three for each integer: offset in the box, width (1 to 8 bytes),
                              whether it is signed */
    Py_ssize_t fields;
    int64_t *cells; /* the integers of the boxes that fitted, box by box */
    Py_ssize_t count, room;
} shape_t;

typedef struct {
    shape_t shape[MOST_SHAPES];
    int count, last; /* last: the one that fitted last, tried first */
    int learning;    /* more may come: boxes are noted that fit none */
    uint8_t *which;  /* of each box that was shown: the number of its shape, or NO_SHAPE */
    Py_ssize_t shown, room;
} shapes_t;

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

enum { DONE = 0, PARTIAL = 1, MALFORMED = 2, FULL = 3, TO_END = 4, DENSE = 5 };

typedef struct {
    row_t *rows;
    Py_ssize_t count, room;
} list_t;

typedef struct {
    list_t top, inner;
    uint32_t containers[MOST_CODES], whole[MOST_CODES], passed[MOST_CODES];
    int n_containers, n_whole, n_passed;
    shapes_t shapes; /* of the boxes that are passed whole */
} walk_t;

int shapes_from(PyObject *given, shapes_t *shapes);
int shapes_add(shapes_t *shapes, PyObject *given);
int shapes_show(shapes_t *shapes, const uint8_t *box, int64_t size);
PyObject *shapes_found(shapes_t *shapes);
void shapes_forget(shapes_t *shapes);

int among(uint32_t type, const uint32_t *list, int count);
/* Box types of four letters each; -1 with an exception where they are too many or cut off. */
int codes(const char *text, Py_ssize_t length, uint32_t *list);
int pass_box(const uint8_t *p, int64_t left, int64_t at, int64_t stop, walk_t *w, int64_t *size,
             int *is_whole);
PyObject *result(walk_t *w, int64_t at, int status);
void forget(walk_t *w);

PyObject *walk(PyObject *self, PyObject *args);
PyObject *join(PyObject *self, PyObject *args);
PyObject *columns(PyObject *self, PyObject *args);
PyObject *fit(PyObject *self, PyObject *args);
PyObject *sums(PyObject *self, PyObject *args);
PyObject *join_sync(PyObject *self, PyObject *args);
PyObject *chunk_starts(PyObject *self, PyObject *args);
PyObject *places(PyObject *self, PyObject *args);
PyObject *extents(PyObject *self, PyObject *args);
#ifndef _WIN32
PyObject *walk_file(PyObject *self, PyObject *args);
#endif

#ifdef __GNUC__
#pragma GCC visibility pop
#endif
#endif
