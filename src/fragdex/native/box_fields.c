/* Integers that stand at the same places of many boxes, and runs of bytes that are joined.
 *
 * indexing/native_plain.py holds the same in Python.
 */
#include "native.h"

/* A place is three int64: offset in the box, width in bytes (1 to 8), and whether it is signed. */
static inline int64_t integer_at(const uint8_t *box, const int64_t *place)
{
    const uint8_t *p = box + place[0];
    int width = (int)place[1];
    uint64_t value = 0;
    if (width == 4)
        value = be32(p);
    else if (width == 8)
        value = (uint64_t)be32(p) << 32 | be32(p + 4);
    else
        for (int k = 0; k < width; k++)
            value = value << 8 | p[k];
    if (place[2] && width < 8)
        value = (uint64_t)((int64_t)(value << (64 - 8 * width)) >> (64 - 8 * width));
    return (int64_t)value;
}

/* How far the places reach into a box, or -1 where one is impossible. */
static int64_t reach_of(const int64_t *places, Py_ssize_t fields)
{
    int64_t reach = 0;
    for (Py_ssize_t f = 0; f < fields; f++) {
        int64_t at = places[3 * f], width = places[3 * f + 1];
        if (at < 0 || width < 1 || width > 8 || at > PY_SSIZE_T_MAX - 8)
            return -1;
        if (at + width > reach)
            reach = at + width;
    }
    return reach;
}

/* What was made, or NULL: the error that says why it is worth nothing is raised. */
static PyObject *kept_unless(const char *why, PyObject *out)
{
    if (why) {
        Py_CLEAR(out);
        PyErr_SetString(PyExc_ValueError, why);
    }
    return out;
}

/* What runs are of: bytes that begin at `base`, and those that were made. */
typedef struct {
    Py_buffer view, made;
    long long base;
} held_t;

/* Where a run is, below 0 in what was made; NULL: outside. */
static const char *run_in(const held_t *held, int64_t at, int64_t size)
{
    const Py_buffer *in = at < 0 ? &held->made : &held->view;
    at = at < 0 ? ~at : (int64_t)((uint64_t)at - (uint64_t)held->base);
    return outside(at, size, in->len) ? NULL : (const char *)in->buf + at;
}

/* The bytes of runs, one behind the other; `sizes` has one for all or one for each. NULL: an error
 * is raised. */
static PyObject *joined(const held_t *held, const column_t *offsets, const column_t *sizes)
{
    int single = sizes->count == 1;
    const char *why = NULL;
    int64_t total = 0, same = single ? number_at(sizes, 0) : 0;
    if (!single && sizes->count != offsets->count)
        why = "join: offsets and sizes differ in length";
    for (Py_ssize_t i = 0; !why && i < offsets->count; i++) {
        int64_t size = single ? same : number_at(sizes, i);
        if (!run_in(held, number_at(offsets, i), size) || size > PY_SSIZE_T_MAX - total)
            why = "join: a run lies outside the buffer";
        else
            total += size;
    }
    PyObject *out = why ? NULL : PyBytes_FromStringAndSize(NULL, (Py_ssize_t)total);
    if (out) {
        char *to = PyBytes_AsString(out);
        Py_BEGIN_ALLOW_THREADS
        for (Py_ssize_t i = 0; !why && i < offsets->count; i++) {
            int64_t size = single ? same : number_at(sizes, i);
            const char *from = run_in(held, number_at(offsets, i), size);
            if (!from || size > total) {
                why = "join: runs changed meanwhile";
                break;
            }
            memcpy(to, from, (size_t)size);
            to += size;
            total -= size;
        }
        Py_END_ALLOW_THREADS
    }
    return kept_unless(why, out);
}

PyObject *join(PyObject *self, PyObject *args)
{
    held_t held;
    column_t offsets, sizes;
    if (!PyArg_ParseTuple(args, "y*O&O&y*L", &held.view, column_to_read, &offsets, column_to_read,
                          &sizes, &held.made, &held.base))
        return NULL;
    PyObject *out = joined(&held, &offsets, &sizes);
    PyBuffer_Release(&held.view);
    PyBuffer_Release(&held.made);
    PyBuffer_Release(&offsets.buffer);
    PyBuffer_Release(&sizes.buffer);
    return out;
}

/* Where runs that were not made begin and end, and their bytes. */
PyObject *span(PyObject *self, PyObject *args)
{
    column_t offsets, sizes;
    if (!PyArg_ParseTuple(args, "O&O&", column_to_read, &offsets, column_to_read, &sizes))
        return NULL;
    int64_t low = INT64_MAX, high = 0;
    uint64_t bytes = 0;
    Py_ssize_t count = offsets.count < sizes.count ? offsets.count : sizes.count;
    for (Py_ssize_t i = 0; i < count; i++) {
        int64_t at = number_at(&offsets, i), size = number_at(&sizes, i);
        if (at < 0)
            continue;
        int64_t end = (int64_t)((uint64_t)at + (uint64_t)size);
        low = at < low ? at : low;
        high = end > high ? end : high;
        bytes += (uint64_t)size;
    }
    PyBuffer_Release(&offsets.buffer);
    PyBuffer_Release(&sizes.buffer);
    return Py_BuildValue("LLL", (long long)(low < INT64_MAX ? low : 0), (long long)high,
                         (long long)bytes);
}

/* One row of int64 for each of the places, which nobody changes. NULL: an error is raised. */
static PyObject *read_columns(const Py_buffer *view, const column_t *offsets,
                              const int64_t *places, Py_ssize_t fields)
{
    int64_t reach = reach_of(places, fields);
    Py_ssize_t count = offsets->count;
    const char *why = reach < 0 ? "columns: an impossible place" : NULL;
    PyObject *out = why ? NULL : PyBytes_FromStringAndSize(NULL, count * fields * 8);
    if (out) {
        int64_t *to = (int64_t *)PyBytes_AsString(out);
        Py_BEGIN_ALLOW_THREADS
        for (Py_ssize_t i = 0; !why && i < count; i++) {
            int64_t at = number_at(offsets, i);
            if (outside(at, reach, view->len)) {
                why = "columns: a field lies outside the buffer";
                break;
            }
            for (Py_ssize_t f = 0; f < fields; f++)
                to[f * count + i] =
                    integer_at((const uint8_t *)view->buf + at, places + 3 * f);
        }
        Py_END_ALLOW_THREADS
    }
    return kept_unless(why, out);
}

/* Integers at the same places of many boxes. */
PyObject *columns(PyObject *self, PyObject *args)
{
    Py_buffer view;
    column_t offsets, places;
    if (!PyArg_ParseTuple(args, "y*O&O&", &view, column_to_read, &offsets, column_to_read,
                          &places))
        return NULL;
    PyObject *out = NULL;
    Py_ssize_t fields = places.count / 3;
    int64_t *copy = NULL;
    if (places.count % 3)
        PyErr_SetString(PyExc_ValueError, "columns: a place is three numbers");
    else if (fields && offsets.count > PY_SSIZE_T_MAX / 8 / fields)
        PyErr_NoMemory();
    else if (!(copy = malloc((size_t)places.buffer.len + 1)))
        PyErr_NoMemory();
    else {
        memcpy(copy, places.buffer.buf, (size_t)places.buffer.len);
        out = read_columns(&view, &offsets, copy, fields);
    }
    free(copy);
    PyBuffer_Release(&view);
    PyBuffer_Release(&offsets.buffer);
    PyBuffer_Release(&places.buffer);
    return out;
}
