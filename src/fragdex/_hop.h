/* What the two halves of the compiled hop share; see _hop.c. */
#ifndef FRAGDEX_HOP_H
#define FRAGDEX_HOP_H
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>

enum { MOST_SHAPES = 32, NO_SHAPE = 255 };

/* Boxes whose integers stand at the same places. The caller's bytes; only cells are owned. */
typedef struct {
    const uint8_t *template, *mask; /* `size` bytes each: a box fits where it has the template's
                                       bits wherever the mask is set */
    int64_t size;
    const int64_t *places; /* three for each integer: offset in the box, width (1 to 8 bytes),
                              whether it is signed */
    Py_ssize_t fields;
    int64_t *cells; /* the integers of the boxes that fitted, box by box */
    Py_ssize_t count, room;
} shape_t;

typedef struct {
    shape_t shape[MOST_SHAPES];
    int count, last; /* last: the one that fitted last, tried first */
    uint8_t *which;  /* of each box that was shown: the number of its shape, or NO_SHAPE */
    Py_ssize_t shown, room;
} shapes_t;

static inline uint32_t be32(const uint8_t *p)
{
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

int shapes_from(PyObject *given, shapes_t *shapes);
int shapes_show(shapes_t *shapes, const uint8_t *box, int64_t size);
PyObject *shapes_found(shapes_t *shapes);
void shapes_forget(shapes_t *shapes);

PyObject *join(PyObject *self, PyObject *args);
PyObject *columns(PyObject *self, PyObject *args);
PyObject *fit(PyObject *self, PyObject *args);

#endif
