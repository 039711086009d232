/* The walk over box headers.
 *
 * It knows box headers (ISO/IEC 14496-12, 4.2.2) and nothing else of the format; the layouts of
 * boxes are declared in fragdex/boxes alone.
 */
#include "box_walk.h"

int among(uint32_t type, const uint32_t *list, int count)
{
    for (int i = 0; i < count; i++)
        if (list[i] == type)
            return 1;
    return 0;
}

/* Reads a header at p with `left` bytes behind it. Returns its length, 0: more bytes are needed,
 * -1: malformed. A size of 0 is passed on. */
static int header_at(const uint8_t *p, int64_t left, int64_t *size, uint32_t *type)
{
    int length = 8;
    if (left < 8)
        return 0;
    *size = be32(p);
    *type = be32(p + 4);
    if (*size == 1) {
        if (left < 16)
            return 0;
        uint64_t large = (uint64_t)be32(p + 8) << 32 | be32(p + 12);
        if (large > INT64_MAX)
            return -1;
        *size = (int64_t)large;
        length = 16;
        if (*size < 16)
            return -1;
    }
    if (*type == 0x75756964) /* uuid: 16 bytes of user type belong to the header */
        length += 16;
    if (*size != 0 && *size < length)
        return -1;
    return length;
}

static int push(list_t *list, row_t row)
{
    if (list->count == list->room) {
        row_t *rows = with_room(list->rows, list->count, &list->room, sizeof row);
        if (!rows)
            return -1;
        list->rows = rows;
    }
    list->rows[list->count++] = row;
    return 0;
}

/* Lists are looked through once for each type: most files have two. */
static const kind_t *kind_of(walk_t *w, uint32_t type)
{
    kind_t *kind = w->kinds + type % KINDS;
    if (kind->type != type || !kind->known)
        *kind = (kind_t){type, 1, (uint8_t)among(type, w->whole, w->n_whole),
                         (uint8_t)among(type, w->shaped, w->n_shaped),
                         (uint8_t)among(type, w->containers, w->n_containers)};
    return kind;
}

/* Rows of the children of [start, stop). Returns 0, 1: a child breaks its parent, -1: memory. */
static int inside(const uint8_t *data, int64_t start, int64_t stop, int depth, walk_t *w)
{
    int64_t at = start;
    while (stop - at >= 8) {
        int64_t size;
        uint32_t type;
        int length = header_at(data + at, stop - at, &size, &type);
        if (length > 0 && size == 0 && type == 0)
            return 0; /* padding of zero bytes, as QuickTime's terminator */
        if (length <= 0 || size == 0 || size > stop - at)
            return 1;
        if (!among(type, w->passed, w->n_passed)) {
            row_t row = {at, size, type, (uint8_t)length, (uint8_t)depth, 0, 0};
            if (push(&w->inner, row))
                return -1;
            if (depth < 8 && among(type, w->containers, w->n_containers)) {
                int bad = inside(data, at + length, at + size, depth + 1, w);
                if (bad)
                    return bad;
            }
        }
        at += size;
    }
    return 0;
}

int codes(const char *text, Py_ssize_t length, uint32_t *list)
{
    if (length % 4 || length > 4 * MOST_CODES) {
        PyErr_Format(PyExc_ValueError, "at most %d box types of four letters each, not %zd bytes",
                     MOST_CODES, length);
        return -1;
    }
    int count = (int)(length / 4);
    for (int i = 0; i < count; i++)
        list[i] = be32((const uint8_t *)text + 4 * i);
    return count;
}

/* One top-level box at `at`, of which `left` bytes lie at p. Appends its rows and returns DONE, or
 * says why not; *size is set where the header could be read. -1: no memory. */
int pass_box(const uint8_t *p, int64_t left, int64_t at, int64_t stop, walk_t *w,
             int64_t *size, int *is_whole)
{
    uint32_t type;
    int length = header_at(p, left, size, &type);
    if (length <= 0)
        return length ? MALFORMED : PARTIAL;
    if (*size == 0)
        return TO_END;
    if (*size > INT64_MAX - at)
        return MALFORMED;
    const kind_t *kind = kind_of(w, type);
    *is_whole = kind->whole;
    if (*is_whole && (*size > stop - at || *size > left))
        return PARTIAL;
    row_t row = {at, *size, type, (uint8_t)length, 0, 0, (uint8_t)*is_whole};
    w->shapes.lost = 0;
    if (push(&w->top, row) ||
        (*is_whole && kind->shaped && shapes_show(&w->shapes, p, *size)))
        return -1;
    if (*is_whole && kind->container) {
        Py_ssize_t mine = w->inner.count;
        int bad = inside(p, length, *size, 1, w);
        if (bad < 0)
            return -1;
        if (bad) {
            w->inner.count = mine;
            w->top.rows[w->top.count - 1].damaged = 1;
        }
        for (Py_ssize_t i = mine; i < w->inner.count; i++)
            w->inner.rows[i].offset += at;
    }
    return DONE;
}

static PyObject *rows_of(list_t *list)
{
    PyObject *rows = PyBytes_FromStringAndSize((const char *)list->rows,
                                               list->count * (Py_ssize_t)sizeof(row_t));
    free(list->rows);
    list->rows = NULL;
    return rows;
}

PyObject *result(walk_t *w, int64_t at, int status)
{
    PyObject *top = rows_of(&w->top), *inner = rows_of(&w->inner);
    PyObject *found = shapes_found(&w->shapes);
    if (top && inner && found)
        return Py_BuildValue("NNLiN", top, inner, (long long)at, status, found);
    Py_XDECREF(top);
    Py_XDECREF(inner);
    Py_XDECREF(found);
    return NULL;
}

void forget(walk_t *w)
{
    free(w->top.rows);
    free(w->inner.rows);
    shapes_forget(&w->shapes);
}

/* Asks for the lines of memory before they are needed: each header says where the next one stands,
 * so that a walk would wait for every single one. Only where boxes are as small as a few lines: of
 * larger ones most of what was asked for would be media data. */
typedef struct {
    int64_t asked, pace; /* place up to which lines were asked for; bytes of a box, about */
} ahead_t;

enum { LINE = 64, AHEAD = 4096, LARGEST_PACE = 1024 };

static void ask_ahead(ahead_t *a, const uint8_t *data, int64_t at, int64_t size, int64_t stop)
{
#ifdef __GNUC__
    a->pace += ((size < AHEAD ? size : AHEAD) - a->pace) / 8;
    if (a->pace > LARGEST_PACE)
        return;
    int64_t until = stop - at > AHEAD ? at + AHEAD : stop;
    if (a->asked < at)
        a->asked = at;
    for (; a->asked < until; a->asked += LINE)
        __builtin_prefetch(data + a->asked);
#endif
}

PyObject *walk(PyObject *self, PyObject *args)
{
    Py_buffer view;
    long long start, max_rows;
    const char *descend, *whole, *passed, *shaped;
    Py_ssize_t n_descend, n_whole, n_passed, n_shaped;
    PyObject *shapes, *asked;
    if (!PyArg_ParseTuple(args, "y*Ly#y#y#Ly#O!O", &view, &start, &descend, &n_descend, &whole,
                          &n_whole, &passed, &n_passed, &max_rows, &shaped, &n_shaped,
                          &PyTuple_Type, &shapes, &asked))
        return NULL;
    if (start < 0 || start > view.len) {
        PyBuffer_Release(&view);
        PyErr_SetString(PyExc_ValueError, "walk: start lies outside the buffer");
        return NULL;
    }
    walk_t w = {0};
    if ((w.n_containers = codes(descend, n_descend, w.containers)) < 0 ||
        (w.n_whole = codes(whole, n_whole, w.whole)) < 0 ||
        (w.n_passed = codes(passed, n_passed, w.passed)) < 0 ||
        (w.n_shaped = codes(shaped, n_shaped, w.shaped)) < 0 ||
        shapes_from(shapes, asked, &w.shapes)) {
        PyBuffer_Release(&view);
        return NULL;
    }
    int64_t at = start, stop = view.len;
    int status = DONE, behind_container = 0, raised = 0;
    ahead_t ahead = {0, AHEAD};

    Py_BEGIN_ALLOW_THREADS
    while (at < stop) {
        int64_t size;
        int is_whole;
        /* Not behind a fragment's moof: what belongs to it is better met in one stretch. */
        if (w.top.count + w.inner.count >= max_rows && !behind_container) {
            status = FULL;
            break;
        }
        status = pass_box((const uint8_t *)view.buf + at, stop - at, at, stop, &w, &size,
                          &is_whole);
        if (status != DONE)
            break;
        if (shapes_asks(&w.shapes)) {
            Py_BLOCK_THREADS
            raised = shapes_learn(&w.shapes, asked, (const uint8_t *)view.buf + at, size);
            Py_UNBLOCK_THREADS
            if (raised)
                break;
        }
        behind_container = is_whole;
        at += size;
        ask_ahead(&ahead, view.buf, at, size, stop);
    }
    Py_END_ALLOW_THREADS

    PyBuffer_Release(&view);
    if (raised) {
        forget(&w);
        return NULL;
    }
    if (status < 0) {
        forget(&w);
        return PyErr_NoMemory();
    }
    return result(&w, at, status);
}
