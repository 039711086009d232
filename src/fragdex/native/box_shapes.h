/* Boxes that look alike, and the programs that read them. */
#ifndef FRAGDEX_NATIVE_BOX_SHAPES_H
#define FRAGDEX_NATIVE_BOX_SHAPES_H
#include "trafs.h"

#ifdef __GNUC__
#pragma GCC visibility push(hidden)
#endif

enum { MOST_SHAPES = 32, LONGEST_SHAPE = 1 << 16 };

/* What a box must look like at one place. */
typedef struct {
    uint64_t bits, mask; /* these bits, wherever the mask is set */
    int64_t at;          /* of 8 bytes of the box */
} word_t;

typedef struct {
    PyObject *given; /* template, mask and program: a tuple of bytes, owned */
    int64_t size;    /* of the template, the mask, and each box that fits */
    word_t *words;   /* of the places where the mask is set; owned */
    int64_t n_words;
    const traf_t *trafs;
    Py_ssize_t n_trafs;
    int64_t met; /* boxes that fitted */
} shape_t;

typedef struct {
    shape_t shape[MOST_SHAPES];
    int count, last; /* last: the one that fitted last, tried first */
    int learning;    /* more may come: boxes are counted that fit none */
    int lost;        /* the box that was shown last fits none */
    int64_t shown, missed; /* boxes, and those of them that fit none */
    tracks_t tracks;
} shapes_t;

/* Takes a tuple of shapes; more are learned where `asked` is not None. 0, or -1: an error is
 * raised. */
int shapes_from(PyObject *given, PyObject *asked, shapes_t *shapes);
/* The shape that a box has, or NULL. */
shape_t *shapes_find(shapes_t *shapes, const uint8_t *box, int64_t size);
/* Runs the program of the shape that a box has. 0, or -1: no memory. */
int shapes_show(shapes_t *shapes, const uint8_t *box, int64_t size);
/* Whether the shape of the box that was shown last is to be asked for. */
static inline int shapes_asks(const shapes_t *shapes)
{
    return shapes->learning && shapes->lost;
}
/* Asks for it. Needs the GIL. 0, or 1: an error is raised. */
int shapes_learn(shapes_t *shapes, PyObject *asked, const uint8_t *box, int64_t size);
/* What was found, and forgets it: None where no shape was looked for. NULL: an error is raised. */
PyObject *shapes_found(shapes_t *shapes);
void shapes_forget(shapes_t *shapes);

#ifdef __GNUC__
#pragma GCC visibility pop
#endif
#endif
