/* The samples of fragments that look alike, written out by the programs of their shapes.
 *
 * indexing/samples.py writes out any fragments, and holds the same as this.
 */
#include "box_shapes.h"

enum { PLACE, SIZE_OF, DECODED, SHOWN, LASTING, SAMPLE_COLUMNS };

/* One traf of the track, with a run whose samples have rows. */
typedef struct {
    const traf_t *traf;
    const uint8_t *box;
    int64_t moof, dts; /* where the fragment stands in the file; of its first sample */
} part_t;

typedef struct {
    Py_buffer view;
    column_t sizes, moofs, dts;
    long long slot;
    PyObject *shapes;
} asked_t;

static const traf_t *traf_of(const shape_t *shape, int64_t slot)
{
    for (Py_ssize_t i = 0; i < shape->n_trafs; i++)
        if (shape->trafs[i].slot == slot)
            return shape->trafs[i].columns[STRIDE] ? shape->trafs + i : NULL;
    return NULL;
}

/* How many samples there are; -1: a fragment is read otherwise; -2: one lies outside. */
static int64_t count_samples(const asked_t *asked, shapes_t *shapes, part_t *parts)
{
    int64_t at = 0, total = 0;
    for (Py_ssize_t i = 0; i < asked->sizes.count; i++) {
        int64_t size = number_at(&asked->sizes, i);
        if (outside(at, size, asked->view.len))
            return -2;
        const uint8_t *box = (const uint8_t *)asked->view.buf + at;
        const shape_t *shape = shapes_find(shapes, box, size);
        const traf_t *traf = shape ? traf_of(shape, asked->slot) : NULL;
        if (!traf)
            return -1;
        parts[i] = (part_t){traf, box, number_at(&asked->moofs, i), number_at(&asked->dts, i)};
        total += traf->count;
        at += size;
    }
    return total;
}

static void write_part(const part_t *part, int64_t *to, int64_t total, uint8_t *sync)
{
    const traf_t *t = part->traf;
    const uint8_t *box = part->box;
    uint32_t lasting = said(box, t->duration, t->duration_default);
    uint32_t bytes = said(box, t->size, t->size_default);
    uint32_t flags = said(box, t->sample_flags, t->sample_flags_default);
    run_t run = run_at(box + t->rows, t->count, t->columns, lasting);
    uint64_t place = (uint64_t)part->moof + (uint64_t)(int64_t)(int32_t)word_at(box + t->data_offset);
    uint64_t dts = (uint64_t)part->dts;
    for (int64_t i = 0; i < t->count; i++) {
        int64_t row = run.stride * i;
        uint32_t size = run.size ? word_at(run.size + row) : bytes;
        /* Durations of 2^31 and more go backwards, composition offsets of any version too. */
        int64_t duration = (int32_t)(run.duration ? word_at(run.duration + row) : lasting);
        int64_t shift = run.offset ? (int32_t)word_at(run.offset + row) : 0;
        uint32_t flag = run.flags ? word_at(run.flags + row) : flags;
        if (!i && t->first_flags >= 0) /* stand for the first sample's (8.8.8.1) */
            flag = word_at(box + t->first_flags);
        to[PLACE * total + i] = (int64_t)place;
        to[SIZE_OF * total + i] = size;
        to[DECODED * total + i] = (int64_t)dts;
        to[SHOWN * total + i] = (int64_t)(dts + (uint64_t)shift);
        to[LASTING * total + i] = duration;
        sync[i] = !(flag & run.non_sync);
        place += size;
        dts += (uint64_t)duration;
    }
}

static PyObject *write_all(const part_t *parts, Py_ssize_t count, int64_t total)
{
    PyObject *out = PyByteArray_FromStringAndSize(NULL, total * (8 * SAMPLE_COLUMNS + 1));
    if (!out)
        return NULL;
    int64_t *to = (int64_t *)PyByteArray_AsString(out);
    uint8_t *sync = (uint8_t *)(to + SAMPLE_COLUMNS * total);
    Py_BEGIN_ALLOW_THREADS
    for (Py_ssize_t i = 0; i < count; i++) {
        write_part(parts + i, to, total, sync);
        to += parts[i].traf->count;
        sync += parts[i].traf->count;
    }
    Py_END_ALLOW_THREADS
    return out;
}

static PyObject *write_asked(const asked_t *asked)
{
    Py_ssize_t count = asked->sizes.count;
    if (asked->moofs.count != count || asked->dts.count != count) {
        PyErr_SetString(PyExc_ValueError, "samples: arguments differ in length");
        return NULL;
    }
    shapes_t shapes;
    if (shapes_from(asked->shapes, Py_None, &shapes))
        return NULL;
    PyObject *out = NULL;
    part_t *parts = calloc(count ? (size_t)count : 1, sizeof *parts);
    int64_t total = parts ? count_samples(asked, &shapes, parts) : 0;
    if (!parts)
        PyErr_NoMemory();
    else if (total == -2)
        PyErr_SetString(PyExc_ValueError, "samples: a box lies outside the buffer");
    else if (total == -1)
        out = Py_NewRef(Py_None);
    else
        out = write_all(parts, count, total);
    free(parts);
    shapes_forget(&shapes);
    return out;
}

PyObject *fragment_samples(PyObject *self, PyObject *args)
{
    asked_t asked;
    if (!PyArg_ParseTuple(args, "y*O&O!LO&O&", &asked.view, column_to_read, &asked.sizes,
                          &PyTuple_Type, &asked.shapes, &asked.slot, column_to_read, &asked.moofs,
                          column_to_read, &asked.dts))
        return NULL;
    PyObject *out = write_asked(&asked);
    PyBuffer_Release(&asked.view);
    PyBuffer_Release(&asked.sizes.buffer);
    PyBuffer_Release(&asked.moofs.buffer);
    PyBuffer_Release(&asked.dts.buffer);
    return out;
}
