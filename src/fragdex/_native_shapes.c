/* Integers that stand at the same places of many boxes: shapes, columns, joined runs.
 *
 * A shape says what a box must look like and where its integers stand; it comes from the layouts
 * that fragdex/boxes declares. indexing/native_plain.py holds the same in Python.
 */
#include "_native.h"

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

/* Finds where the mask is set: rows of samples, most of a fragment, decide nothing. */
static int words_of(shape_t *shape)
{
    uint64_t m;
    if (!(shape->words = malloc((size_t)shape->size / 2 + 4)))
        return -1;
    for (int64_t k = 0; k + 8 <= shape->size; k += 8) {
        memcpy(&m, shape->mask + k, 8);
        if (m)
            shape->words[shape->n_words++] = (uint32_t)k;
    }
    return 0;
}

/* Takes (template, mask, places), each bytes, and keeps them. 0, or -1: an error is raised. */
int shapes_add(shapes_t *shapes, PyObject *given)
{
    PyObject *template, *mask, *places;
    if (shapes->count == MOST_SHAPES) {
        PyErr_SetString(PyExc_ValueError, "shapes: too many");
        return -1;
    }
    if (!PyTuple_Check(given)) {
        PyErr_SetString(PyExc_TypeError, "shapes: a shape is a tuple");
        return -1;
    }
    if (!PyArg_ParseTuple(given, "SSS", &template, &mask, &places))
        return -1;
    shape_t one = {0};
    one.given = given;
    one.template = (const uint8_t *)PyBytes_AsString(template);
    one.mask = (const uint8_t *)PyBytes_AsString(mask);
    one.size = PyBytes_Size(template);
    one.places = (const int64_t *)PyBytes_AsString(places);
    one.fields = PyBytes_Size(places) / 24;
    int64_t reach = reach_of(one.places, one.fields);
    if (one.size > LONGEST_SHAPE || PyBytes_Size(mask) != one.size || reach < 0 ||
        reach > one.size || PyBytes_Size(places) % 24) {
        PyErr_SetString(PyExc_ValueError, "shapes: an impossible place or mask, or too long");
        return -1;
    }
    if (words_of(&one)) {
        PyErr_NoMemory();
        return -1;
    }
    Py_INCREF(given);
    shapes->shape[shapes->count++] = one;
    return 0;
}

/* Takes a tuple of shapes. */
int shapes_from(PyObject *given, shapes_t *shapes)
{
    memset(shapes, 0, sizeof *shapes);
    Py_ssize_t count = PyTuple_Size(given);
    for (Py_ssize_t i = 0; i < count; i++)
        if (shapes_add(shapes, PyTuple_GetItem(given, i))) {
            shapes_forget(shapes);
            return -1;
        }
    return 0;
}

static int fits(const shape_t *shape, const uint8_t *box)
{
    uint64_t differ = 0, a, b, m;
    for (uint32_t i = 0; i < shape->n_words; i++) {
        uint32_t k = shape->words[i];
        memcpy(&a, box + k, 8);
        memcpy(&b, shape->template + k, 8);
        memcpy(&m, shape->mask + k, 8);
        differ |= (a ^ b) & m;
    }
    for (int64_t k = shape->size & ~7; k < shape->size; k++)
        differ |= (box[k] ^ shape->template[k]) & shape->mask[k];
    return !differ;
}

/* Notes which shape a box has, and its integers. 0, or -1: no memory. */
int shapes_show(shapes_t *shapes, const uint8_t *box, int64_t size)
{
    if (!shapes->count && !shapes->learning)
        return 0;
    uint8_t *which = with_room(shapes->which, shapes->shown, &shapes->room, 1);
    if (!which)
        return -1;
    shapes->which = which;
    int found = NO_SHAPE, at = shapes->last;
    for (int i = 0; i < shapes->count; i++) {
        if (shapes->shape[at].size == size && fits(&shapes->shape[at], box)) {
            found = at;
            break;
        }
        at = at + 1 < shapes->count ? at + 1 : 0;
    }
    which[shapes->shown++] = (uint8_t)found;
    if (found == NO_SHAPE)
        return 0;
    shapes->last = found;
    shape_t *one = &shapes->shape[found];
    size_t fields = (size_t)(one->fields ? one->fields : 1);
    int64_t *cells = with_room(one->cells, one->count, &one->room, 8 * fields);
    if (!cells)
        return -1;
    one->cells = cells;
    cells += one->count++ * one->fields;
    for (Py_ssize_t f = 0; f < one->fields; f++)
        cells[f] = integer_at(box, one->places + 3 * f);
    return 0;
}

void shapes_forget(shapes_t *shapes)
{
    for (int i = 0; i < shapes->count; i++) {
        free(shapes->shape[i].cells);
        shapes->shape[i].cells = NULL;
        free(shapes->shape[i].words);
        shapes->shape[i].words = NULL;
        Py_CLEAR(shapes->shape[i].given);
    }
    free(shapes->which);
    shapes->which = NULL;
}

/* (which, cells of each shape, field by field), and forgets them. */
PyObject *shapes_found(shapes_t *shapes)
{
    PyObject *cells = PyTuple_New(shapes->count);
    for (int i = 0; cells && i < shapes->count; i++) {
        shape_t *one = &shapes->shape[i];
        PyObject *turned = PyBytes_FromStringAndSize(NULL, one->count * one->fields * 8);
        if (!turned || PyTuple_SetItem(cells, i, turned)) {
            Py_CLEAR(cells);
            break;
        }
        int64_t *to = (int64_t *)PyBytes_AsString(turned);
        for (Py_ssize_t row = 0; row < one->count; row++)
            for (Py_ssize_t f = 0; f < one->fields; f++)
                to[f * one->count + row] = one->cells[row * one->fields + f];
    }
    PyObject *which = PyBytes_FromStringAndSize((const char *)shapes->which, shapes->shown);
    shapes_forget(shapes);
    if (which && cells)
        return Py_BuildValue("NN", which, cells);
    Py_XDECREF(which);
    Py_XDECREF(cells);
    return NULL;
}

/* Whether [at, at + size) does not lie in a buffer of so many bytes. */
static inline int outside(int64_t at, int64_t size, int64_t held)
{
    return at < 0 || size < 0 || at > held || size > held - at;
}

/* Which of many boxes have which of some shapes, and their integers. */
PyObject *fit(PyObject *self, PyObject *args)
{
    Py_buffer view;
    column_t offsets, sizes;
    PyObject *given, *out = NULL;
    if (!PyArg_ParseTuple(args, "y*O&O&O!", &view, column_to_read, &offsets, column_to_read,
                          &sizes, &PyTuple_Type, &given))
        return NULL;
    shapes_t shapes = {0};
    const char *why = NULL;
    int failed = 0;
    if (offsets.count != sizes.count)
        why = "fit: offsets and sizes differ in length";
    else if (shapes_from(given, &shapes))
        goto end;
    Py_BEGIN_ALLOW_THREADS
    for (Py_ssize_t i = 0; !failed && !why && i < offsets.count; i++) {
        int64_t at = number_at(&offsets, i), size = number_at(&sizes, i);
        if (outside(at, size, view.len))
            why = "fit: a box lies outside the buffer";
        else
            failed = shapes_show(&shapes, (const uint8_t *)view.buf + at, size);
    }
    Py_END_ALLOW_THREADS
    if (failed)
        PyErr_NoMemory();
    else if (why)
        PyErr_SetString(PyExc_ValueError, why);
    else
        out = shapes_found(&shapes);
    shapes_forget(&shapes);
end:
    PyBuffer_Release(&view);
    PyBuffer_Release(&offsets.buffer);
    PyBuffer_Release(&sizes.buffer);
    return out;
}

/* The bytes of runs, one behind the other; `sizes` has one for all or one for each. NULL: an error
 * is raised. */
static PyObject *joined(const Py_buffer *view, const column_t *offsets, const column_t *sizes)
{
    int single = sizes->count == 1;
    const char *why = NULL;
    int64_t total = 0, same = single ? number_at(sizes, 0) : 0;
    if (!single && sizes->count != offsets->count)
        why = "join: offsets and sizes differ in length";
    for (Py_ssize_t i = 0; !why && i < offsets->count; i++) {
        int64_t size = single ? same : number_at(sizes, i);
        if (outside(number_at(offsets, i), size, view->len) || size > PY_SSIZE_T_MAX - total)
            why = "join: a run lies outside the buffer";
        else
            total += size;
    }
    PyObject *out = why ? NULL : PyBytes_FromStringAndSize(NULL, (Py_ssize_t)total);
    if (out) {
        char *to = PyBytes_AsString(out);
        Py_BEGIN_ALLOW_THREADS
        for (Py_ssize_t i = 0; !why && i < offsets->count; i++) {
            int64_t at = number_at(offsets, i), size = single ? same : number_at(sizes, i);
            if (outside(at, size, view->len) || size > total) {
                why = "join: runs changed meanwhile";
                break;
            }
            memcpy(to, (const char *)view->buf + at, (size_t)size);
            to += size;
            total -= size;
        }
        Py_END_ALLOW_THREADS
    }
    if (why) {
        Py_CLEAR(out);
        PyErr_SetString(PyExc_ValueError, why);
    }
    return out;
}

PyObject *join(PyObject *self, PyObject *args)
{
    Py_buffer view;
    column_t offsets, sizes;
    if (!PyArg_ParseTuple(args, "y*O&O&", &view, column_to_read, &offsets, column_to_read, &sizes))
        return NULL;
    PyObject *out = joined(&view, &offsets, &sizes);
    PyBuffer_Release(&view);
    PyBuffer_Release(&offsets.buffer);
    PyBuffer_Release(&sizes.buffer);
    return out;
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
    if (why) {
        Py_CLEAR(out);
        PyErr_SetString(PyExc_ValueError, why);
    }
    return out;
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
