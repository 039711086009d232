/* A walk over box headers. */
#ifndef FRAGDEX_NATIVE_BOX_WALK_H
#define FRAGDEX_NATIVE_BOX_WALK_H
#include "box_shapes.h"

#ifdef __GNUC__
#pragma GCC visibility push(hidden)
#endif

enum { DONE = 0, PARTIAL = 1, MALFORMED = 2, FULL = 3, TO_END = 4, DENSE = 5 };
enum { MOST_CODES = 16 };

typedef struct {
    row_t *rows;
    Py_ssize_t count, room;
} list_t;

/* What is done with boxes of one type at the top level. */
typedef struct {
    uint32_t type;
    uint8_t known, whole, shaped, container;
} kind_t;

enum { KINDS = 8 };

typedef struct {
    list_t top, inner;
    uint32_t containers[MOST_CODES], whole[MOST_CODES], passed[MOST_CODES], shaped[MOST_CODES];
    int n_containers, n_whole, n_passed, n_shaped;
    kind_t kinds[KINDS]; /* of the types met last, by the last bits of each */
    shapes_t shapes; /* of the `shaped` boxes */
} walk_t;

int among(uint32_t type, const uint32_t *list, int count);
/* Box types of four letters each; -1 with an exception where they are too many or cut off. */
int codes(const char *text, Py_ssize_t length, uint32_t *list);
int pass_box(const uint8_t *p, int64_t left, int64_t at, int64_t stop, walk_t *w, int64_t *size,
             int *is_whole);
PyObject *result(walk_t *w, int64_t at, int status);
void forget(walk_t *w);

#ifdef __GNUC__
#pragma GCC visibility pop
#endif
#endif
