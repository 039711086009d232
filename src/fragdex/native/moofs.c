/* Fragments of one track, as they are written: moofs with the headers of their mdats.
 *
 * muxing/fragments.py writes any fragments, and holds the same as this.
 */
#include "native.h"

enum { DURATION, SIZE_OF, SYNC, OFFSET, LANES }; /* of a row of a trun, in its order */

/* 8.8.7.1, 8.8.8.1 */
static const uint32_t TFHD_FLAG[LANES] = {0x08, 0x10, 0x20, 0};
static const uint32_t TRUN_FLAG[LANES] = {0x100, 0x200, 0x400, 0x800};
enum { DEFAULT_BASE_IS_MOOF = 0x20000, DATA_OFFSET = 0x1, FIRST_SAMPLE_FLAGS = 0x4 };
static const uint32_t IS_SYNC = 0x02000000, IS_OTHER = 0x01010000;

typedef struct {
    Py_buffer lead, sync;
    column_t edges, dts, duration, size, offset, place;
    unsigned int number, track;
    PyObject *behind; /* of each, what stands behind its trun */
} given_t;

typedef struct {
    uint8_t *bytes;
    size_t count, room;
    rows_t pieces; /* where each piece is: in the source, or ~place in `bytes`; and its size */
} made_t;

/* A fragment: what its samples share, what is in rows, and bytes of its boxes. */
typedef struct {
    int64_t low, high;
    uint64_t payload;
    uint32_t shared[LANES];
    int rows[LANES], is_first_sync;
    size_t tfhd, trun, traf, moof, header;
} shape_t;

static inline int64_t value_at(const given_t *g, int lane, int64_t i)
{
    if (lane == SYNC)
        return ((const volatile uint8_t *)g->sync.buf)[i] ? IS_SYNC : IS_OTHER;
    return number_at(lane == DURATION ? &g->duration : lane == SIZE_OF ? &g->size : &g->offset, i);
}

static shape_t shape_between(const given_t *g, int64_t low, int64_t high)
{
    shape_t s = {.low = low, .high = high};
    int64_t first[LANES] = {0};
    int is_later_sync = 0;
    for (int lane = 0; lane < OFFSET && low < high; lane++)
        first[lane] = value_at(g, lane, low);
    for (int64_t i = low; i < high; i++) {
        s.payload += (uint64_t)number_at(&g->size, i);
        for (int lane = 0; lane < LANES; lane++)
            s.rows[lane] |= value_at(g, lane, i) != first[lane];
        is_later_sync |= i > low && value_at(g, SYNC, i) == IS_SYNC;
    }
    if (s.rows[SYNC] && first[SYNC] == IS_SYNC && !is_later_sync) {
        s.is_first_sync = 1;
        s.rows[SYNC] = 0;
        first[SYNC] = IS_OTHER;
    }
    size_t width = 0;
    s.tfhd = 16;
    for (int lane = 0; lane < LANES; lane++) {
        s.shared[lane] = (uint32_t)first[lane];
        width += s.rows[lane] ? 4 : 0;
        s.tfhd += s.rows[lane] || lane == OFFSET ? 0 : 4;
    }
    s.trun = 20 + 4 * (size_t)s.is_first_sync + width * (size_t)(high - low);
    s.header = s.payload + 8 > UINT32_MAX ? 16 : 8;
    return s;
}

static uint8_t *put(uint8_t *to, uint32_t value)
{
    to[0] = (uint8_t)(value >> 24), to[1] = (uint8_t)(value >> 16);
    to[2] = (uint8_t)(value >> 8), to[3] = (uint8_t)value;
    return to + 4;
}

static uint8_t *put_type(uint8_t *to, size_t size, const char *type)
{
    memcpy(put(to, (uint32_t)size), type, 4);
    return to + 8;
}

static uint8_t *put_long(uint8_t *to, uint64_t value)
{
    return put(put(to, (uint32_t)(value >> 32)), (uint32_t)value);
}

/* The next `size` bytes; NULL: no memory. */
static uint8_t *next_bytes(made_t *made, size_t size)
{
    if (size > made->room - made->count) {
        size_t room = 2 * made->room + size;
        uint8_t *grown = room > PY_SSIZE_T_MAX ? NULL : realloc(made->bytes, room);
        if (!grown)
            return NULL;
        made->bytes = grown;
        made->room = room;
    }
    made->count += size;
    return made->bytes + made->count - size;
}

static int add_piece(made_t *made, int64_t start, int64_t size)
{
    int64_t *row = next_row(&made->pieces);
    if (!row)
        return 0;
    row[0] = start;
    row[1] = size;
    return 1;
}

/* Where the samples are; those that touch are one piece. */
static int add_places(const given_t *g, made_t *made, const shape_t *s)
{
    int64_t start = 0, size = 0;
    for (int64_t i = s->low; i < s->high; i++) {
        int64_t at = number_at(&g->place, i), more = number_at(&g->size, i);
        if (more <= 0)
            continue;
        if (size && (uint64_t)start + (uint64_t)size == (uint64_t)at) {
            size = (int64_t)((uint64_t)size + (uint64_t)more);
            continue;
        }
        if (size && !add_piece(made, start, size))
            return 0;
        start = at;
        size = more;
    }
    return !size || add_piece(made, start, size);
}

static uint8_t *put_traf(uint8_t *to, const given_t *g, const shape_t *s)
{
    uint32_t flags = DEFAULT_BASE_IS_MOOF, rows = DATA_OFFSET | 1U << 24;
    for (int lane = 0; lane < LANES; lane++) {
        flags |= s->rows[lane] ? 0 : TFHD_FLAG[lane];
        rows |= s->rows[lane] ? TRUN_FLAG[lane] : 0;
    }
    to = put_type(put_type(to, s->traf, "traf"), s->tfhd, "tfhd");
    to = put(put(to, flags), g->track);
    for (int lane = 0; lane < OFFSET; lane++)
        to = s->rows[lane] ? to : put(to, s->shared[lane]);
    to = put_long(put(put_type(to, 20, "tfdt"), 1U << 24), (uint64_t)number_at(&g->dts, s->low));
    to = put(put_type(to, s->trun, "trun"), rows | (s->is_first_sync ? FIRST_SAMPLE_FLAGS : 0));
    to = put(put(to, (uint32_t)(s->high - s->low)), (uint32_t)(s->moof + s->header));
    to = s->is_first_sync ? put(to, IS_SYNC) : to;
    for (int64_t i = s->low; i < s->high; i++)
        for (int lane = 0; lane < LANES; lane++)
            to = s->rows[lane] ? put(to, (uint32_t)value_at(g, lane, i)) : to;
    return to;
}

/* Refused: 1; no memory: -1. */
static int add_fragment(const given_t *g, made_t *made, Py_ssize_t turn, const Py_buffer *behind)
{
    int64_t low = number_at(&g->edges, turn), high = number_at(&g->edges, turn + 1);
    if (low < 0 || high < low || high > g->dts.count)
        return 1;
    shape_t s = shape_between(g, low, high);
    size_t lead = turn ? 0 : (size_t)g->lead.len, start = made->count;
    s.traf = low < high ? 8 + s.tfhd + 20 + s.trun + (size_t)behind->len : 0;
    s.moof = 24 + s.traf;
    if (s.moof > INT32_MAX - 16 || s.payload > INT64_MAX - 16)
        return 1;
    size_t size = lead + s.moof + s.header;
    uint8_t *to = next_bytes(made, size);
    if (!to || !add_piece(made, ~(int64_t)start, (int64_t)size))
        return -1;
    memcpy(to, g->lead.buf, lead);
    to = put_type(put_type(to + lead, s.moof, "moof"), 16, "mfhd");
    to = put(put(to, 0), g->number + (uint32_t)turn);
    if (s.traf) {
        to = put_traf(to, g, &s);
        memcpy(to, behind->buf, (size_t)behind->len);
        to += behind->len;
    }
    uint64_t mdat = s.payload + s.header;
    to = put_type(to, s.header == 16 ? 1 : mdat, "mdat");
    if (s.header == 16)
        put_long(to, mdat);
    return add_places(g, made, &s) ? 0 : -1;
}

/* 0; refused: 1; an error is raised, or there is no memory: -1. */
static int add_next(const given_t *g, made_t *made, Py_ssize_t turn)
{
    static const Py_buffer nothing = {.buf = ""};
    if (!PyTuple_Size(g->behind))
        return add_fragment(g, made, turn, &nothing);
    Py_buffer behind;
    if (PyObject_GetBuffer(PyTuple_GetItem(g->behind, turn), &behind, PyBUF_SIMPLE))
        return -1;
    int failed = add_fragment(g, made, turn, &behind);
    PyBuffer_Release(&behind);
    return failed;
}

/* The bytes, and the pieces as two columns. NULL: an error is raised. */
static PyObject *written(made_t *made)
{
    Py_ssize_t count = made->pieces.count;
    PyObject *columns = PyBytes_FromStringAndSize(NULL, 16 * count);
    if (!columns)
        return NULL;
    int64_t *to = (int64_t *)PyBytes_AsString(columns);
    for (Py_ssize_t i = 0; i < count; i++) {
        to[i] = made->pieces.cells[2 * i];
        to[count + i] = made->pieces.cells[2 * i + 1];
    }
    return Py_BuildValue("y#N", made->bytes ? (const char *)made->bytes : "", (Py_ssize_t)made->count,
                         columns);
}

static PyObject *write_fragments(const given_t *g)
{
    Py_ssize_t count = g->edges.count - 1, samples = g->dts.count;
    if (count < 0 || g->duration.count != samples || g->size.count != samples ||
        g->offset.count != samples || g->place.count != samples || g->sync.len != samples ||
        (PyTuple_Size(g->behind) && PyTuple_Size(g->behind) != count)) {
        PyErr_SetString(PyExc_ValueError, "moofs: arguments differ in length");
        return NULL;
    }
    made_t made = {.pieces = {.width = 2}};
    int failed = 0;
    for (Py_ssize_t turn = 0; turn < count && !failed; turn++)
        failed = add_next(g, &made, turn);
    PyObject *out = failed ? NULL : written(&made);
    free(made.bytes);
    free(made.pieces.cells);
    if (failed == 1)
        PyErr_SetString(PyExc_ValueError, "moofs: a fragment is impossible");
    else if (failed && !PyErr_Occurred())
        PyErr_NoMemory();
    return out;
}

PyObject *write_moofs(PyObject *self, PyObject *args)
{
    given_t g;
    if (!PyArg_ParseTuple(args, "y*IIO&O&O&O&O&O&y*O!", &g.lead, &g.number, &g.track,
                          column_to_read, &g.edges, column_to_read, &g.dts, column_to_read,
                          &g.duration, column_to_read, &g.size, column_to_read, &g.offset,
                          column_to_read, &g.place, &g.sync, &PyTuple_Type, &g.behind))
        return NULL;
    PyObject *out = write_fragments(&g);
    PyBuffer_Release(&g.lead);
    PyBuffer_Release(&g.sync);
    PyBuffer_Release(&g.edges.buffer);
    PyBuffer_Release(&g.dts.buffer);
    PyBuffer_Release(&g.duration.buffer);
    PyBuffer_Release(&g.size.buffer);
    PyBuffer_Release(&g.offset.buffer);
    PyBuffer_Release(&g.place.buffer);
    return out;
}
