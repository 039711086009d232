/* Boxes that look alike: found by a template and a mask, and read by the program of their shape.
 *
 * A shape says what a box must look like and how it is read; it comes from the layouts that
 * fragdex/boxes declares.
 */
#include "box_shapes.h"

enum { WORD = 8 };

/* Finds where the mask is set: rows of samples, most of a fragment, decide nothing. The last word
 * reaches back over the one before it; in boxes of less than a word, the first bytes are enough. */
static int words_of(shape_t *shape, const uint8_t *template, const uint8_t *mask)
{
    if (!(shape->words = malloc(((size_t)shape->size / WORD + 1) * sizeof *shape->words)))
        return -1;
    for (int64_t k = 0; k < shape->size; k += WORD) {
        word_t word = {0, 0, shape->size - k < WORD && shape->size >= WORD ? shape->size - WORD : k};
        size_t held = shape->size < WORD ? (size_t)shape->size : WORD;
        memcpy(&word.mask, mask + word.at, held);
        memcpy(&word.bits, template + word.at, held);
        word.bits &= word.mask;
        if (word.mask)
            shape->words[shape->n_words++] = word;
    }
    return 0;
}

/* Takes (template, mask, program), each bytes, and keeps them. 0, or -1: an error is raised. */
static int add(shapes_t *shapes, PyObject *given)
{
    PyObject *template, *mask, *program;
    if (shapes->count == MOST_SHAPES) {
        PyErr_SetString(PyExc_ValueError, "shapes: too many");
        return -1;
    }
    if (!PyTuple_Check(given)) {
        PyErr_SetString(PyExc_TypeError, "shapes: a shape is a tuple");
        return -1;
    }
    if (!PyArg_ParseTuple(given, "SSS", &template, &mask, &program))
        return -1;
    shape_t one = {0};
    one.given = given;
    one.size = PyBytes_Size(template);
    one.trafs = (const traf_t *)PyBytes_AsString(program);
    one.n_trafs = PyBytes_Size(program) / (Py_ssize_t)sizeof(traf_t);
    const char *why = NULL;
    if (one.size > LONGEST_SHAPE || PyBytes_Size(mask) != one.size ||
        PyBytes_Size(program) % (Py_ssize_t)sizeof(traf_t))
        why = "shapes: an impossible mask or program, or too long";
    else
        why = program_refusal(one.trafs, one.n_trafs, one.size);
    if (why) {
        PyErr_SetString(PyExc_ValueError, why);
        return -1;
    }
    if (words_of(&one, (const uint8_t *)PyBytes_AsString(template),
                 (const uint8_t *)PyBytes_AsString(mask)) || slots_for(&shapes->tracks, one.trafs, one.n_trafs)) {
        free(one.words);
        PyErr_NoMemory();
        return -1;
    }
    Py_INCREF(given);
    shapes->shape[shapes->count++] = one;
    return 0;
}

int shapes_from(PyObject *given, PyObject *asked, shapes_t *shapes)
{
    memset(shapes, 0, sizeof *shapes);
    shapes->learning = asked != Py_None;
    Py_ssize_t count = PyTuple_Size(given);
    for (Py_ssize_t i = 0; i < count; i++)
        if (add(shapes, PyTuple_GetItem(given, i))) {
            shapes_forget(shapes);
            return -1;
        }
    return 0;
}

static int fits(const shape_t *shape, const uint8_t *box)
{
    uint64_t differ = 0, bits = 0;
    const word_t *word = shape->words, *stop = word + shape->n_words;
    if (shape->size < WORD) {
        memcpy(&bits, box, (size_t)shape->size);
        return word == stop || (bits & word->mask) == word->bits;
    }
    for (; word < stop; word++) {
        memcpy(&bits, box + word->at, WORD);
        differ |= (bits & word->mask) ^ word->bits;
    }
    return !differ;
}

shape_t *shapes_find(shapes_t *shapes, const uint8_t *box, int64_t size)
{
    int at = shapes->last;
    for (int i = 0; i < shapes->count; i++) {
        shape_t *one = &shapes->shape[at];
        if (one->size == size && fits(one, box)) {
            shapes->last = at;
            return one;
        }
        at = at + 1 < shapes->count ? at + 1 : 0;
    }
    return NULL;
}

int shapes_show(shapes_t *shapes, const uint8_t *box, int64_t size)
{
    if (!shapes->count && !shapes->learning && !shapes->shown)
        return 0;
    int64_t number = shapes->shown++;
    shape_t *one = shapes_find(shapes, box, size);
    shapes->lost = !one;
    if (!one) {
        shapes->missed++;
        return 0;
    }
    one->met++;
    return run_program(&shapes->tracks, one->trafs, one->n_trafs, box, number);
}

int shapes_learn(shapes_t *shapes, PyObject *asked, const uint8_t *box, int64_t size)
{
    if (size > LONGEST_SHAPE) {
        shapes->learning = 0;
        return 0;
    }
    /* A copy: who is asked may keep it for longer than the box stays where it is. */
    PyObject *copy = PyBytes_FromStringAndSize((const char *)box, (Py_ssize_t)size);
    PyObject *given = copy ? PyObject_CallFunctionObjArgs(asked, copy, NULL) : NULL;
    int failed = !given;
    Py_XDECREF(copy);
    if (given == Py_None)
        shapes->learning = 0;
    else if (given && !(failed = add(shapes, given))) {
        shapes->shown--;
        shapes->missed--;
        shapes->last = shapes->count - 1;
        if ((failed = shapes_show(shapes, box, size)))
            PyErr_NoMemory();
    }
    Py_XDECREF(given);
    return failed != 0;
}

void shapes_forget(shapes_t *shapes)
{
    for (int i = 0; i < shapes->count; i++) {
        free(shapes->shape[i].words);
        shapes->shape[i].words = NULL;
        Py_CLEAR(shapes->shape[i].given);
    }
    shapes->count = 0;
    tracks_forget(&shapes->tracks);
}

/* (shown, missed, odd, wide, how often each shape was met, (trafs, points) of each slot). */
PyObject *shapes_found(shapes_t *shapes)
{
    if (!shapes->count && !shapes->shown) {
        shapes_forget(shapes);
        return Py_NewRef(Py_None);
    }
    PyObject *met = PyTuple_New(shapes->count);
    for (int i = 0; met && i < shapes->count; i++) {
        PyObject *times = PyLong_FromLongLong(shapes->shape[i].met);
        if (!times || PyTuple_SetItem(met, i, times))
            Py_CLEAR(met);
    }
    PyObject *tracks = tracks_found(&shapes->tracks), *out = NULL;
    if (met && tracks)
        out = Py_BuildValue("LLiLNN", (long long)shapes->shown, (long long)shapes->missed,
                            shapes->tracks.odd, (long long)shapes->tracks.wide, met, tracks);
    else {
        Py_XDECREF(met);
        Py_XDECREF(tracks);
    }
    shapes_forget(shapes);
    return out;
}

/* Shows many boxes. NULL, or why they are refused; *failed: an error is raised, or -1: no memory. */
static const char *show_all(shapes_t *shapes, PyObject *asked, const Py_buffer *view,
                            const column_t *offsets, const column_t *sizes, int *failed)
{
    const char *why = NULL;
    Py_BEGIN_ALLOW_THREADS
    for (Py_ssize_t i = 0; !*failed && !why && i < offsets->count; i++) {
        int64_t at = number_at(offsets, i), size = number_at(sizes, i);
        if (outside(at, size, view->len)) {
            why = "fit: a box lies outside the buffer";
            break;
        }
        const uint8_t *box = (const uint8_t *)view->buf + at;
        *failed = shapes_show(shapes, box, size);
        if (!*failed && shapes_asks(shapes)) {
            Py_BLOCK_THREADS
            *failed = shapes_learn(shapes, asked, box, size);
            Py_UNBLOCK_THREADS
        }
    }
    Py_END_ALLOW_THREADS
    return why;
}

/* What the shapes of many boxes find in them. */
PyObject *fit(PyObject *self, PyObject *args)
{
    Py_buffer view;
    column_t offsets, sizes;
    PyObject *given, *asked, *out = NULL;
    if (!PyArg_ParseTuple(args, "y*O&O&O!O", &view, column_to_read, &offsets, column_to_read,
                          &sizes, &PyTuple_Type, &given, &asked))
        return NULL;
    shapes_t shapes = {0};
    const char *why = NULL;
    int failed = 0;
    if (offsets.count != sizes.count)
        why = "fit: offsets and sizes differ in length";
    else if (shapes_from(given, asked, &shapes))
        goto end;
    else
        why = show_all(&shapes, asked, &view, &offsets, &sizes, &failed);
    if (failed < 0)
        PyErr_NoMemory();
    else if (why && !failed)
        PyErr_SetString(PyExc_ValueError, why);
    else if (!failed)
        out = shapes_found(&shapes);
    shapes_forget(&shapes);
end:
    PyBuffer_Release(&view);
    PyBuffer_Release(&offsets.buffer);
    PyBuffer_Release(&sizes.buffer);
    return out;
}
