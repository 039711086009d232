/* Samples in chunks: which sample each chunk begins with, where each sample lies, and where
 * stretches of samples lie and when they are shown.
 *
 * Of the tables that say so, the caller names the columns; indexing/native_plain.py holds the same
 * in Python. Numbers wrap round at 64 bits in both.
 */
#include "native.h"

/* NULL, or why rows of big-endian words are refused. */
static const char *unreadable(Py_ssize_t held, int64_t stride, int64_t first, int64_t each)
{
    if (stride < 4 || stride > 1 << 16 || held < stride || held % stride)
        return "chunk_starts: impossible rows";
    if (first < 0 || first > stride - 4 || each < 0 || each > stride - 4)
        return "chunk_starts: a column lies outside of its row";
    return NULL;
}

/* Number from 0 of the chunk that a row begins with, `chunks` at most; numbers count from 1. */
static Py_ssize_t chunk_of(const uint8_t *row, Py_ssize_t chunks)
{
    int64_t number = word_at(row);
    return (Py_ssize_t)(number - 1 > chunks ? chunks : number ? number - 1 : 0);
}

PyObject *chunk_starts(PyObject *self, PyObject *args)
{
    Py_buffer rows;
    column_t into;
    long long stride, first, each;
    if (!PyArg_ParseTuple(args, "y*LLLO&", &rows, &stride, &first, &each, column_to_fill, &into))
        return NULL;
    PyObject *out = NULL;
    const char *why = unreadable(rows.len, stride, first, each);
    if (why) {
        PyErr_SetString(PyExc_ValueError, why);
        goto end;
    }
    uint64_t running = 0;
    int falls = 0;
    Py_BEGIN_ALLOW_THREADS
    const uint8_t *row = rows.buf, *stop = row + rows.len;
    Py_ssize_t chunks = into.count, at = 0;
    int64_t *to = into.buffer.buf;
    for (; row < stop; row += stride) {
        const uint8_t *next = row + stride;
        Py_ssize_t until = next < stop ? chunk_of(next + first, chunks) : chunks;
        uint64_t held = word_at(row + each);
        falls |= next < stop && word_at(next + first) < word_at(row + first);
        for (; at < until; at++) {
            to[at] = (int64_t)running;
            running += held;
        }
    }
    Py_END_ALLOW_THREADS
    out = falls ? Py_NewRef(Py_None) : PyLong_FromLongLong((int64_t)running);
end:
    PyBuffer_Release(&rows);
    PyBuffer_Release(&into.buffer);
    return out;
}

static const char NO_SIZE[] = "places: samples without a size";
static const char NO_CHUNK[] = "places: samples without a chunk";
static const char FALL_BACK[] = "places: chunks fall back";

/* Lays samples out from number `first` on. NULL, or why the chunks are refused: each sample must
 * lie in one, and have a size. */
static const char *lay_samples(const column_t *size, const column_t *start, const column_t *offset,
                           int64_t first, column_t *into)
{
    Py_ssize_t chunks = start->count;
    int each = size->count != 1;
    if (first < 0 || first > INT64_MAX - into->count)
        return NO_SIZE;
    int64_t at = first, stop = first + into->count, *to = into->buffer.buf;
    if (each && size->count < stop)
        return NO_SIZE;
    int64_t begin = chunks ? number_at(start, 0) : -1;
    if (begin < 0 || begin > first)
        return NO_CHUNK;
    for (Py_ssize_t k = 0; k < chunks; k++) {
        int64_t until = k + 1 < chunks ? number_at(start, k + 1) : stop;
        if (begin >= stop || until > stop)
            return NO_CHUNK;
        if (until < begin)
            return FALL_BACK;
        uint64_t place = (uint64_t)number_at(offset, k);
        if (until > at) {
            if (!each)
                place += (uint64_t)(at - begin) * (uint64_t)number_at(size, 0);
            else
                for (int64_t i = begin; i < at; i++)
                    place += (uint64_t)number_at(size, i);
            /* Inside of a chunk a sample begins where the one before ends. */
            for (; at < until; at++) {
                *to++ = (int64_t)place;
                place += (uint64_t)number_at(size, each ? at : 0);
            }
        }
        begin = until;
    }
    return NULL;
}

PyObject *places(PyObject *self, PyObject *args)
{
    column_t size, start, offset, into;
    long long first;
    if (!PyArg_ParseTuple(args, "O&O&O&LO&", column_to_read, &size, column_to_read, &start,
                          column_to_read, &offset, &first, column_to_fill, &into))
        return NULL;
    const char *why = "places: arguments differ in length";
    if (offset.count == start.count) {
        Py_BEGIN_ALLOW_THREADS
        why = lay_samples(&size, &start, &offset, first, &into);
        Py_END_ALLOW_THREADS
    }
    PyBuffer_Release(&size.buffer);
    PyBuffer_Release(&start.buffer);
    PyBuffer_Release(&offset.buffer);
    PyBuffer_Release(&into.buffer);
    if (!why)
        return Py_NewRef(Py_None);
    PyErr_SetString(PyExc_ValueError, why);
    return NULL;
}

/* A value for each sample, as runs; `now` holds for samples before `until`. */
typedef struct {
    const column_t *stop, *value;
    Py_ssize_t next;
    int64_t until, now;
} steps_t;

/* Goes on to the run that holds sample `at`. 0, or 1: there is none. */
static int go_on(steps_t *steps, int64_t at)
{
    while (steps->until <= at) {
        if (steps->next == steps->stop->count)
            return 1;
        steps->until = number_at(steps->stop, steps->next);
        steps->now = number_at(steps->value, steps->next++);
    }
    return 0;
}

typedef struct {
    Py_buffer sizes;
    long long each, count; /* bytes of each sample where there are no sizes; samples */
    column_t chunk_start, chunk_offset, duration_stop, duration, offset_stop, offset, starts, into;
} extents_t;

/* What is known of each stretch: a row of `into`. */
enum { DATA_START, DATA_STOP, CTS_MIN, CTS_END, DTS, DURATION, EXTENT };

static const char UNEVEN[] = "extents: stretches or chunks do not rise from 0";

/* Where the next stretch begins, behind `at`; -1: it does not. */
static int64_t behind(const extents_t *e, Py_ssize_t row, int64_t at)
{
    if (row + 1 >= e->starts.count)
        return e->count;
    int64_t next = number_at(&e->starts, row + 1);
    return next > at && next < e->count ? next : -1;
}

/* Places: in a chunk samples stand one behind the other. NULL, or why tables are refused. */
static const char *lay(const extents_t *e)
{
    Py_ssize_t rows = e->starts.count, chunks = e->chunk_start.count, chunk = -1;
    int64_t *to = e->into.buffer.buf, at = 0;
    int64_t next = chunks ? number_at(&e->chunk_start, 0) : e->count; /* chunk begins there */
    uint64_t place = 0;
    for (Py_ssize_t row = 0; row < rows; row++) {
        int64_t until = behind(e, row, at), least = INT64_MAX, most = INT64_MIN;
        if (until < 0)
            return UNEVEN;
        while (at < until) {
            while (next <= at) {
                if (next < at || ++chunk == chunks)
                    return UNEVEN;
                place = (uint64_t)number_at(&e->chunk_offset, chunk);
                next = chunk + 1 < chunks ? number_at(&e->chunk_start, chunk + 1) : INT64_MAX;
            }
            if (chunk < 0)
                return UNEVEN;
            int64_t stop = next < until ? next : until;
            uint64_t bytes = e->sizes.len
                                 ? sum_of_words((const uint8_t *)e->sizes.buf + 4 * at, stop - at)
                                 : (uint64_t)(stop - at) * (uint64_t)e->each;
            least = (int64_t)place < least ? (int64_t)place : least;
            place += bytes;
            most = (int64_t)place > most ? (int64_t)place : most;
            at = stop;
        }
        to[DATA_START * rows + row] = least;
        to[DATA_STOP * rows + row] = most;
    }
    return NULL;
}

/* Times: under one duration and offset they rise evenly, so that the first and the last sample
 * tell the least and the greatest. NULL, or why tables are refused. */
static const char *show(const extents_t *e)
{
    Py_ssize_t rows = e->starts.count;
    int64_t *to = e->into.buffer.buf, at = 0;
    steps_t step = {&e->duration_stop, &e->duration, 0, 0, 0};
    steps_t shift = {&e->offset_stop, &e->offset, 0, e->offset_stop.count ? 0 : INT64_MAX, 0};
    uint64_t dts = 0;
    for (Py_ssize_t row = 0; row < rows; row++) {
        int64_t until = behind(e, row, at), least = INT64_MAX, most = INT64_MIN;
        uint64_t begin = dts;
        if (until < 0)
            return UNEVEN;
        while (at < until) {
            if (go_on(&step, at) || go_on(&shift, at))
                return "extents: samples without a duration or offset";
            int64_t stop = step.until < until ? step.until : until;
            stop = shift.until < stop ? shift.until : stop;
            uint64_t cts = dts + (uint64_t)shift.now;
            dts += (uint64_t)(stop - at) * (uint64_t)step.now;
            int64_t low = (int64_t)cts, high = (int64_t)(dts + (uint64_t)shift.now);
            if (step.now < 0) { /* samples that go backwards: none ends before it begins */
                low = (int64_t)((uint64_t)high - (uint64_t)step.now);
                high = (int64_t)cts;
            }
            least = low < least ? low : least;
            most = high > most ? high : most;
            at = stop;
        }
        to[CTS_MIN * rows + row] = least;
        to[CTS_END * rows + row] = most;
        to[DTS * rows + row] = (int64_t)begin;
        to[DURATION * rows + row] = (int64_t)(dts - begin);
    }
    return NULL;
}

/* NULL, or why tables are refused. */
static const char *extend(const extents_t *e)
{
    Py_ssize_t rows = e->starts.count;
    if (rows ? number_at(&e->starts, 0) || !e->count : e->count)
        return UNEVEN;
    const char *why = lay(e);
    return why ? why : show(e);
}

PyObject *extents(PyObject *self, PyObject *args)
{
    extents_t e;
    if (!PyArg_ParseTuple(args, "y*LO&O&O&O&O&O&O&LO&", &e.sizes, &e.each, column_to_read,
                          &e.chunk_start, column_to_read, &e.chunk_offset, column_to_read,
                          &e.duration_stop, column_to_read, &e.duration, column_to_read,
                          &e.offset_stop, column_to_read, &e.offset, column_to_read, &e.starts,
                          &e.count, column_to_fill, &e.into))
        return NULL;
    const char *why = "extents: arguments differ in length";
    if (e.chunk_start.count == e.chunk_offset.count && e.duration_stop.count == e.duration.count &&
        e.offset_stop.count == e.offset.count && e.into.count % EXTENT == 0 &&
        e.starts.count == e.into.count / EXTENT)
        why = e.count < 0 || (e.sizes.len && e.sizes.len / 4 < e.count)
                  ? "extents: samples without a size"
                  : NULL;
    if (!why) {
        Py_BEGIN_ALLOW_THREADS
        why = extend(&e);
        Py_END_ALLOW_THREADS
    }
    PyBuffer_Release(&e.sizes);
    PyBuffer_Release(&e.chunk_start.buffer);
    PyBuffer_Release(&e.chunk_offset.buffer);
    PyBuffer_Release(&e.duration_stop.buffer);
    PyBuffer_Release(&e.duration.buffer);
    PyBuffer_Release(&e.offset_stop.buffer);
    PyBuffer_Release(&e.offset.buffer);
    PyBuffer_Release(&e.starts.buffer);
    PyBuffer_Release(&e.into.buffer);
    if (!why)
        return Py_NewRef(Py_None);
    PyErr_SetString(PyExc_ValueError, why);
    return NULL;
}
