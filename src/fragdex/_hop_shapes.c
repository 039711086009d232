/* Integers that stand at the same places of many boxes: shapes, columns, joined runs.
 *
 * A shape says what a box must look like and where its integers stand; it comes from the layouts
 * that fragdex/boxes declares. fragments/hop_plain.py holds the same in Python.
 */
#include "_hop.h"
#include <stdlib.h>
#include <string.h>

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
    if (shape->size > UINT32_MAX || !(shape->words = malloc((size_t)shape->size / 2 + 4)))
        return -1;
    for (int64_t k = 0; k + 8 <= shape->size; k += 8) {
        memcpy(&m, shape->mask + k, 8);
        if (m)
            shape->words[shape->n_words++] = (uint32_t)k;
    }
    return 0;
}

/* Takes (template, mask, places), each bytes, which must outlive the shapes. */
int shapes_add(shapes_t *shapes, PyObject *item)
{
    const char *template, *mask, *places;
    Py_ssize_t size, mask_size, places_size;
    if (shapes->count == MOST_SHAPES) {
        PyErr_SetString(PyExc_ValueError, "shapes: too many");
        return -1;
    }
    if (!PyTuple_Check(item)) {
        PyErr_SetString(PyExc_TypeError, "shapes: a shape is a tuple");
        return -1;
    }
    if (!PyArg_ParseTuple(item, "y#y#y#", &template, &size, &mask, &mask_size, &places,
                          &places_size))
        return -1;
    shape_t one = {0};
    one.template = (const uint8_t *)template;
    one.mask = (const uint8_t *)mask;
    one.size = size;
    one.places = (const int64_t *)places;
    one.fields = places_size / 24;
    int64_t reach = reach_of(one.places, one.fields);
    if (mask_size != size || reach < 0 || reach > size) {
        PyErr_SetString(PyExc_ValueError, "shapes: an impossible place or mask");
        return -1;
    }
    if (words_of(&one)) {
        PyErr_NoMemory();
        return -1;
    }
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

/* Room for one more of `width` bytes each; the buffer grows twofold. */
static void *with_room(void *buffer, Py_ssize_t count, Py_ssize_t *room, size_t width)
{
    if (count < *room)
        return buffer;
    Py_ssize_t larger = *room ? *room * 2 : 1024;
    void *grown = realloc(buffer, (size_t)larger * width);
    if (grown)
        *room = larger;
    return grown;
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

/* Which of many boxes have which of some shapes, and their integers. */
PyObject *fit(PyObject *self, PyObject *args)
{
    Py_buffer view, offsets, sizes;
    PyObject *given, *out = NULL;
    if (!PyArg_ParseTuple(args, "y*y*y*O!", &view, &offsets, &sizes, &PyTuple_Type, &given))
        return NULL;
    shapes_t shapes;
    Py_ssize_t count = offsets.len / 8;
    const int64_t *offset = offsets.buf, *size = sizes.buf;
    int failed = 0;
    if (shapes_from(given, &shapes))
        goto end;
    if (sizes.len != offsets.len) {
        PyErr_SetString(PyExc_ValueError, "fit: offsets and sizes differ in length");
        goto end;
    }
    for (Py_ssize_t i = 0; i < count; i++)
        if (offset[i] < 0 || size[i] < 0 || offset[i] > view.len ||
            size[i] > view.len - offset[i]) {
            PyErr_SetString(PyExc_ValueError, "fit: a box lies outside the buffer");
            goto end;
        }
    Py_BEGIN_ALLOW_THREADS
    for (Py_ssize_t i = 0; !failed && i < count; i++)
        failed = shapes_show(&shapes, (const uint8_t *)view.buf + offset[i], size[i]);
    Py_END_ALLOW_THREADS
    if (failed)
        PyErr_NoMemory();
    else
        out = shapes_found(&shapes);
    shapes_forget(&shapes);
end:
    PyBuffer_Release(&view);
    PyBuffer_Release(&offsets);
    PyBuffer_Release(&sizes);
    return out;
}

PyObject *join(PyObject *self, PyObject *args)
{
    Py_buffer view, offsets, sizes;
    if (!PyArg_ParseTuple(args, "y*y*y*", &view, &offsets, &sizes))
        return NULL;
    PyObject *out = NULL;
    Py_ssize_t count = offsets.len / 8, total = 0;
    const int64_t *offset = offsets.buf, *size = sizes.buf;
    int single = sizes.len == 8; /* one size for all */
    if (!single && sizes.len != offsets.len) {
        PyErr_SetString(PyExc_ValueError, "join: offsets and sizes differ in length");
        goto end;
    }
    for (Py_ssize_t i = 0; i < count; i++) {
        int64_t n = single ? size[0] : size[i];
        if (n < 0 || offset[i] < 0 || offset[i] > view.len || n > view.len - offset[i] ||
            n > PY_SSIZE_T_MAX - total) {
            PyErr_SetString(PyExc_ValueError, "join: a run lies outside the buffer");
            goto end;
        }
        total += n;
    }
    out = PyBytes_FromStringAndSize(NULL, total);
    if (!out)
        goto end;
    char *to = PyBytes_AsString(out);
    Py_BEGIN_ALLOW_THREADS
    for (Py_ssize_t i = 0; i < count; i++) {
        size_t n = (size_t)(single ? size[0] : size[i]);
        memcpy(to, (const char *)view.buf + offset[i], n);
        to += n;
    }
    Py_END_ALLOW_THREADS
end:
    PyBuffer_Release(&view);
    PyBuffer_Release(&offsets);
    PyBuffer_Release(&sizes);
    return out;
}

/* Integers at the same places of many boxes: one row of int64 for each place. */
PyObject *columns(PyObject *self, PyObject *args)
{
    Py_buffer view, offsets, places;
    if (!PyArg_ParseTuple(args, "y*y*y*", &view, &offsets, &places))
        return NULL;
    PyObject *out = NULL;
    Py_ssize_t count = offsets.len / 8, fields = places.len / 24;
    const int64_t *offset = offsets.buf, *place = places.buf;
    int64_t reach = reach_of(place, fields);
    if (reach < 0) {
        PyErr_SetString(PyExc_ValueError, "columns: an impossible place");
        goto end;
    }
    for (Py_ssize_t i = 0; i < count; i++)
        if (offset[i] < 0 || offset[i] > view.len - reach) {
            PyErr_SetString(PyExc_ValueError, "columns: a field lies outside the buffer");
            goto end;
        }
    out = PyBytes_FromStringAndSize(NULL, count * fields * 8);
    if (!out)
        goto end;
    int64_t *to = (int64_t *)PyBytes_AsString(out);
    Py_BEGIN_ALLOW_THREADS
    for (Py_ssize_t i = 0; i < count; i++) {
        const uint8_t *p = (const uint8_t *)view.buf + offset[i];
        for (Py_ssize_t f = 0; f < fields; f++) {
            to[f * count + i] = integer_at(p, place + 3 * f);
        }
    }
    Py_END_ALLOW_THREADS
end:
    PyBuffer_Release(&view);
    PyBuffer_Release(&offsets);
    PyBuffer_Release(&places);
    return out;
}
