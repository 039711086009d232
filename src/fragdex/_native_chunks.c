/* Samples in chunks: which sample each chunk begins with, and where each sample lies.
 *
 * Of the tables that say so, the caller names the columns; indexing/native_plain.py holds the same
 * in Python. Numbers wrap round at 64 bits in both.
 */
#include "_native.h"

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
static const char *lay_out(const column_t *size, const column_t *start, const column_t *offset,
                           int64_t first, column_t *into, int *falls)
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
    int64_t behind = INT64_MIN; /* end of the sample before */
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
            *falls |= (int64_t)place < behind;
            /* Inside of a chunk a sample begins where the one before ends. */
            for (; at < until; at++) {
                *to++ = (int64_t)place;
                place += (uint64_t)number_at(size, each ? at : 0);
            }
            behind = (int64_t)place;
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
    int falls = 0;
    const char *why = "places: arguments differ in length";
    if (offset.count == start.count) {
        Py_BEGIN_ALLOW_THREADS
        why = lay_out(&size, &start, &offset, first, &into, &falls);
        Py_END_ALLOW_THREADS
    }
    PyBuffer_Release(&size.buffer);
    PyBuffer_Release(&start.buffer);
    PyBuffer_Release(&offset.buffer);
    PyBuffer_Release(&into.buffer);
    if (!why)
        return PyBool_FromLong(!falls);
    PyErr_SetString(PyExc_ValueError, why);
    return NULL;
}
