/* Samples in chunks: which sample each chunk begins with, and where each sample lies.
 *
 * Of the tables that say so, the caller names the columns; fragments/chunks.py holds the same in
 * Python. Numbers wrap round at 64 bits in both.
 */
#include "_hop.h"

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
    Py_buffer rows, into;
    long long stride, first, each;
    if (!PyArg_ParseTuple(args, "y*LLLw*", &rows, &stride, &first, &each, &into))
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
    Py_ssize_t chunks = into.len / 8, at = 0;
    int64_t *to = into.buf;
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
    PyBuffer_Release(&into);
    return out;
}

/* NULL, or why the chunks are refused: each sample must lie in one, and have a size. */
static const char *misplaced(const int64_t *start, Py_ssize_t chunks, Py_ssize_t sizes,
                             int64_t first, Py_ssize_t count)
{
    if (first < 0 || first > INT64_MAX - count || (sizes != 1 && sizes < first + count))
        return "places: samples without a size";
    if (!chunks || start[0] < 0 || start[0] > first || start[chunks - 1] >= first + count)
        return "places: samples without a chunk";
    for (Py_ssize_t k = 1; k < chunks; k++)
        if (start[k] < start[k - 1])
            return "places: chunks fall back";
    return NULL;
}

PyObject *places(PyObject *self, PyObject *args)
{
    Py_buffer size, start, offset, into;
    long long first;
    if (!PyArg_ParseTuple(args, "y*y*y*Lw*", &size, &start, &offset, &first, &into))
        return NULL;
    PyObject *out = NULL;
    Py_ssize_t chunks = start.len / 8, count = into.len / 8;
    const char *why = "places: arguments differ in length";
    if (offset.len == start.len)
        why = misplaced(start.buf, chunks, size.len / 8, first, count);
    if (why) {
        PyErr_SetString(PyExc_ValueError, why);
        goto end;
    }
    int falls = 0;
    Py_BEGIN_ALLOW_THREADS
    const int64_t *bytes = size.buf, *starts = start.buf;
    int64_t *to = into.buf, stop = first + count, at = first;
    int64_t behind = INT64_MIN; /* end of the sample before */
    int each = size.len != 8;
    for (Py_ssize_t k = 0; k < chunks; k++) {
        int64_t until = k + 1 < chunks ? starts[k + 1] : stop;
        uint64_t place = (uint64_t)((const int64_t *)offset.buf)[k];
        if (until <= at)
            continue;
        if (!each)
            place += (uint64_t)(at - starts[k]) * (uint64_t)bytes[0];
        else
            for (int64_t i = starts[k]; i < at; i++)
                place += (uint64_t)bytes[i];
        falls |= (int64_t)place < behind;
        /* Inside of a chunk a sample begins where the one before ends. */
        for (; at < until; at++) {
            *to++ = (int64_t)place;
            place += (uint64_t)bytes[each ? at : 0];
        }
        behind = (int64_t)place;
    }
    Py_END_ALLOW_THREADS
    out = PyBool_FromLong(!falls);
end:
    PyBuffer_Release(&size);
    PyBuffer_Release(&start);
    PyBuffer_Release(&offset);
    PyBuffer_Release(&into);
    return out;
}
