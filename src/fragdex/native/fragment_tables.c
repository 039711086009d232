/* The tables of fragments that are as muxers write them: each traf of a track with one run, whose
 * samples lie in the fragment's own mdat, and with times that rise.
 *
 * Anything else is left to indexing/positions.py and indexing/resolve.py, which hold the rules; a
 * property test holds what is settled here equal to them.
 */
#include "trafs.h"
#include <stddef.h>

/* Columns of a layout, one behind the other: of each moof, and of each mdat. */
enum { AT, START, STOP, MOOF_STOP, OWN_FIRST, OWN_LAST, LAST_START, LAST_STOP, LAYOUT };
enum { MDAT_HEADER = 8 };

typedef struct {
    const row_t *rows;
    Py_ssize_t count;
    uint32_t moof, mdat;
    const uint8_t *lead;
    Py_ssize_t n_lead;
} tops_t;

/* The rows of several buffers one behind the other: a copy, as what is counted must stay what is
 * written. Owned. NULL: an error is raised. */
static row_t *copied_rows(PyObject *given, Py_ssize_t *count)
{
    Py_ssize_t n = PyTuple_Size(given), held = 0, bytes = 0;
    Py_buffer *parts = malloc((size_t)n * sizeof *parts + 1);
    uint8_t *copy = NULL;
    if (!parts) {
        PyErr_NoMemory();
        return NULL;
    }
    for (; held < n; held++) {
        Py_buffer *part = parts + held;
        if (PyObject_GetBuffer(PyTuple_GetItem(given, held), part, PyBUF_SIMPLE))
            goto end;
        if (part->len % (Py_ssize_t)sizeof(row_t) || part->len > PY_SSIZE_T_MAX - 1 - bytes) {
            PyBuffer_Release(part);
            PyErr_SetString(PyExc_ValueError, "lay_out: rows are cut off");
            goto end;
        }
        bytes += part->len;
    }
    if (!(copy = malloc((size_t)bytes + 1)))
        PyErr_NoMemory();
    for (Py_ssize_t i = 0, at = 0; copy && i < n; at += parts[i++].len)
        memcpy(copy + at, parts[i].buf, (size_t)parts[i].len);
    *count = bytes / (Py_ssize_t)sizeof(row_t);
end:
    for (Py_ssize_t i = 0; i < held; i++)
        PyBuffer_Release(parts + i);
    free(parts);
    return (row_t *)copy;
}

static int is_lead(const tops_t *tops, uint32_t type)
{
    for (Py_ssize_t i = 0; i < tops->n_lead; i++)
        if (be32(tops->lead + 4 * i) == type)
            return 1;
    return 0;
}

static int64_t end_of(const row_t *row)
{
    return (int64_t)((uint64_t)row->offset + (uint64_t)row->size);
}

/* Says of the fragment that began last where it ends. `fragment`: its number; `mdats`: met so
 * far. */
static void close_fragment(int64_t *to, Py_ssize_t moofs, Py_ssize_t fragment, const int64_t *mdat,
                           Py_ssize_t n_mdats, Py_ssize_t mdats)
{
    int64_t last = mdats - 1, *cell = to + fragment;
    cell[OWN_LAST * moofs] = last;
    cell[LAST_START * moofs] = INT64_MAX;
    cell[LAST_STOP * moofs] = -INT64_MAX;
    if (cell[OWN_FIRST * moofs] <= last) {
        cell[LAST_START * moofs] = mdat[last];
        cell[LAST_STOP * moofs] = mdat[n_mdats + last];
    }
}

static void lay(const tops_t *tops, int64_t *to, Py_ssize_t moofs, int64_t *mdat,
                Py_ssize_t n_mdats)
{
    Py_ssize_t fragment = -1, mdats = 0, head = 0;
    for (Py_ssize_t i = 0; i < tops->count; i++) {
        const row_t *row = tops->rows + i;
        if (row->type == tops->mdat) {
            mdat[mdats] = (int64_t)((uint64_t)row->offset + MDAT_HEADER);
            mdat[n_mdats + mdats++] = end_of(row);
            if (fragment >= 0)
                to[STOP * moofs + fragment] = end_of(row);
        } else if (row->type == tops->moof) {
            if (fragment >= 0)
                close_fragment(to, moofs, fragment, mdat, n_mdats, mdats);
            int direct = head > 0 && tops->rows[head - 1].type == tops->mdat;
            int64_t *cell = to + ++fragment;
            cell[AT * moofs] = row->offset;
            cell[START * moofs] = tops->rows[head].offset;
            cell[STOP * moofs] = cell[MOOF_STOP * moofs] = end_of(row);
            cell[OWN_FIRST * moofs] = mdats - direct;
        } else if (is_lead(tops, row->type))
            continue;
        head = i + 1;
    }
    if (fragment >= 0)
        close_fragment(to, moofs, fragment, mdat, n_mdats, mdats);
}

/* Where fragments and media data lie, by the rows of top-level boxes in file order; neither moof nor
 * mdat is among those that lead. */
PyObject *lay_out(PyObject *self, PyObject *args)
{
    PyObject *rows;
    tops_t tops;
    unsigned int moof, mdat;
    const char *lead;
    if (!PyArg_ParseTuple(args, "O!IIy#", &PyTuple_Type, &rows, &moof, &mdat, &lead, &tops.n_lead))
        return NULL;
    PyObject *fragments = NULL, *media = NULL, *out = NULL;
    Py_ssize_t moofs = 0, mdats = 0;
    row_t *copy = copied_rows(rows, &tops.count);
    if (!copy)
        return NULL;
    tops.moof = moof;
    tops.mdat = mdat;
    tops.lead = (const uint8_t *)lead;
    tops.n_lead /= 4;
    tops.rows = copy;
    for (Py_ssize_t i = 0; i < tops.count; i++) {
        mdats += copy[i].type == mdat;
        moofs += copy[i].type == moof && moof != mdat;
    }
    fragments = PyByteArray_FromStringAndSize(NULL, LAYOUT * 8 * moofs);
    media = PyByteArray_FromStringAndSize(NULL, 2 * 8 * mdats);
    if (fragments && media) {
        lay(&tops, (int64_t *)PyByteArray_AsString(fragments), moofs,
            (int64_t *)PyByteArray_AsString(media), mdats);
        out = PyTuple_Pack(2, fragments, media);
    }
    free(copy);
    Py_XDECREF(fragments);
    Py_XDECREF(media);
    return out;
}

/* Of rows of top-level boxes those that are kept whole: their places and sizes as two columns,
 * (number among them, type) of those that are of another type than the one named, bytes of them
 * all, and bytes of the headers of the others. */
PyObject *kept(PyObject *self, PyObject *args)
{
    Py_buffer given;
    unsigned int type;
    if (!PyArg_ParseTuple(args, "y*I", &given, &type))
        return NULL;
    const uint8_t *rows = given.buf; /* at any address */
    Py_ssize_t count = given.len / (Py_ssize_t)sizeof(row_t), whole = 0, at = 0;
    PyObject *places = NULL, *noted = NULL, *out = NULL;
    rows_t others = {NULL, 0, 0, 2};
    int64_t whole_bytes = 0, header_bytes = 0;
    if (given.len % (Py_ssize_t)sizeof(row_t)) {
        PyErr_SetString(PyExc_ValueError, "kept: rows are cut off");
        goto end;
    }
    for (Py_ssize_t i = 0; i < count; i++)
        whole += rows[i * (Py_ssize_t)sizeof(row_t) + (Py_ssize_t)offsetof(row_t, whole)] != 0;
    if (!(places = PyByteArray_FromStringAndSize(NULL, 16 * whole)))
        goto end;
    int64_t *to = (int64_t *)PyByteArray_AsString(places);
    for (Py_ssize_t i = 0; i < count; i++) {
        row_t row;
        memcpy(&row, rows + i * (Py_ssize_t)sizeof row, sizeof row);
        if (!row.whole) {
            header_bytes += row.header;
            continue;
        }
        if (at == whole) /* rows changed meanwhile */
            break;
        if (row.type != type) {
            int64_t *other = next_row(&others);
            if (!other) {
                PyErr_NoMemory();
                goto end;
            }
            other[0] = at;
            other[1] = row.type;
        }
        whole_bytes = (int64_t)((uint64_t)whole_bytes + (uint64_t)row.size);
        to[whole + at] = row.size;
        to[at++] = row.offset;
    }
    if ((noted = bytes_of(&others)))
        out = Py_BuildValue("OOLL", places, noted, (long long)whole_bytes, (long long)header_bytes);
end:
    free(others.cells);
    Py_XDECREF(noted);
    Py_XDECREF(places);
    PyBuffer_Release(&given);
    return out;
}

/* Columns of a fragment table but for its flags, and of a sync table. */
enum { T_OFFSET, T_SIZE, T_MOOF, T_DATA_START, T_DATA_STOP, T_DTS, T_DURATION, T_CTS_MIN, T_CTS_END,
       T_SAMPLE_START, T_SAMPLE_COUNT, T_SYNC, TABLE };
enum { S_CTS, S_DTS, S_STEP, S_COUNT, S_SAMPLE, S_SAMPLE_STEP, S_FRAGMENT, SYNC };

/* Where a track goes on. INT64_MIN: it has no such time. */
typedef struct {
    long long samples, rows, short_time, began, next_dts;
} state_t;

/* Columns that rows are written to from a row on, one column behind the other. */
typedef struct {
    column_t columns;
    long long start;
    int64_t room; /* rows of each column */
} into_t;

typedef struct {
    column_t trafs, points, layout;
    into_t table, sync;
    Py_ssize_t rows, n_points, moofs;
    state_t state;
} settled_t;

static const int64_t FARTHEST = INT64_C(1) << 61;

static inline int64_t plus(int64_t a, int64_t b)
{
    return (int64_t)((uint64_t)a + (uint64_t)b);
}

static inline int64_t laid(const settled_t *s, int column, int64_t moof)
{
    return number_at(&s->layout, column * s->moofs + moof);
}

/* Whether a time falls back as no time of a fragment does. */
static int falls(state_t *state, int64_t time, int64_t kind, int64_t lasts)
{
    int is_short = kind == 1;
    int wrapped = is_short && state->short_time != INT64_MIN &&
                  time - state->short_time < -(INT64_C(1) << 31);
    state->short_time = is_short ? time : INT64_MIN;
    if (wrapped || time > FARTHEST || time < -FARTHEST || (!is_short && time < 0))
        return 1;
    if (lasts > 0) {
        if (state->began != INT64_MIN && time <= state->began)
            return 1;
        state->began = time;
    }
    return 0;
}

/* The rows of the fragment table; 0, or 1 where one is not regular. */
static int settle_rows(settled_t *s)
{
    int64_t *to = (int64_t *)s->table.columns.buffer.buf + s->table.start;
    int64_t n = s->table.room, before = -1;
    double total = 0;
    for (Py_ssize_t i = 0; i < s->rows; i++) {
        int64_t row[TRAF_COLUMNS];
        for (int f = 0; f < TRAF_COLUMNS; f++)
            row[f] = number_at(&s->trafs, i * TRAF_COLUMNS + f);
        int64_t moof = row[MOOF], size = row[BYTES], lasts = row[LASTS], time = row[TIME];
        if (moof <= before || moof >= s->moofs || size < 0 || lasts < 0 || row[SAMPLES] < 1 ||
            (row[TIME_KIND] != 1 && row[TIME_KIND] != 2))
            return 1;
        before = moof;
        if (falls(&s->state, time, row[TIME_KIND], lasts))
            return 1;
        total += (double)lasts;
        int64_t start = plus(laid(s, AT, moof), row[DATA_OFFSET]), stop = plus(start, size);
        int64_t offset = laid(s, START, moof), end = laid(s, STOP, moof);
        if (size && (start < laid(s, LAST_START, moof) || stop > laid(s, LAST_STOP, moof) ||
                     stop < start || start < offset || stop > end))
            return 1;
        int64_t *cell = to + i;
        cell[T_OFFSET * n] = offset;
        cell[T_SIZE * n] = plus(end, -offset);
        cell[T_MOOF * n] = laid(s, AT, moof);
        cell[T_DATA_START * n] = size ? start : INT64_MIN;
        cell[T_DATA_STOP * n] = size ? stop : INT64_MIN;
        cell[T_DTS * n] = time;
        cell[T_DURATION * n] = lasts;
        cell[T_CTS_MIN * n] = plus(time, row[CTS_MIN]);
        cell[T_CTS_END * n] = plus(time, row[CTS_END]);
        cell[T_SAMPLE_START * n] = s->state.samples;
        cell[T_SAMPLE_COUNT * n] = row[SAMPLES];
        cell[T_SYNC * n] = -1;
        s->state.samples = plus(s->state.samples, row[SAMPLES]);
        s->state.next_dts = plus(time, lasts);
    }
    return total >= (double)FARTHEST / 2;
}

/* The rows of the sync table; 0, or 1 where a point is not of these rows. */
static int settle_points(const settled_t *s)
{
    int64_t *to = (int64_t *)s->table.columns.buffer.buf + s->table.start;
    int64_t *sync = (int64_t *)s->sync.columns.buffer.buf + s->sync.start;
    int64_t n = s->table.room, p = s->sync.room, before = 0;
    for (Py_ssize_t i = 0; i < s->n_points; i++) {
        int64_t point[POINT];
        for (int f = 0; f < POINT; f++)
            point[f] = number_at(&s->points, i * POINT + f);
        int64_t run = point[RUN];
        if (run < before || run >= s->rows || point[INDEX] < 0 || point[STEP] < 0)
            return 1;
        before = run;
        int64_t *cell = sync + i, time = to[T_DTS * n + run];
        cell[S_CTS * p] = plus(time, point[CTS]);
        cell[S_DTS * p] = plus(time, point[DTS]);
        cell[S_STEP * p] = point[STEP];
        cell[S_COUNT * p] = point[COUNT];
        cell[S_SAMPLE * p] = plus(to[T_SAMPLE_START * n + run], point[INDEX]);
        cell[S_SAMPLE_STEP * p] = 1;
        cell[S_FRAGMENT * p] = plus(s->state.rows, run);
        if (to[T_SYNC * n + run] < 0)
            to[T_SYNC * n + run] = point[INDEX];
    }
    return 0;
}

static PyObject *settled(settled_t *s)
{
    int odd;
    Py_BEGIN_ALLOW_THREADS
    odd = settle_rows(s) || settle_points(s);
    Py_END_ALLOW_THREADS
    return odd ? Py_NewRef(Py_None)
               : Py_BuildValue("LLLL", s->state.next_dts, s->state.samples, s->state.short_time,
                               s->state.began);
}

/* Whether so many rows of so many columns find room. */
static int fits_in(into_t *into, int64_t columns, int64_t rows)
{
    into->room = into->columns.count / columns;
    return into->columns.count % columns == 0 && !outside(into->start, rows, into->room);
}

/* Writes the tables of one track; None where something is not regular. */
PyObject *settle(PyObject *self, PyObject *args)
{
    settled_t s;
    if (!PyArg_ParseTuple(args, "O&O&O&LLLLO&LO&L", column_to_read, &s.trafs, column_to_read,
                          &s.points, column_to_read, &s.layout, &s.state.samples, &s.state.rows,
                          &s.state.short_time, &s.state.began, column_to_fill, &s.table.columns,
                          &s.table.start, column_to_fill, &s.sync.columns, &s.sync.start))
        return NULL;
    s.state.next_dts = 0;
    s.rows = s.trafs.count / TRAF_COLUMNS;
    s.n_points = s.points.count / POINT;
    s.moofs = s.layout.count / LAYOUT;
    PyObject *out = NULL;
    if (s.trafs.count % TRAF_COLUMNS || s.points.count % POINT || s.layout.count % LAYOUT)
        PyErr_SetString(PyExc_ValueError, "settle: rows are cut off");
    else if (!fits_in(&s.table, TABLE, s.rows) || !fits_in(&s.sync, SYNC, s.n_points))
        PyErr_SetString(PyExc_ValueError, "settle: no room for the rows");
    else
        out = settled(&s);
    PyBuffer_Release(&s.trafs.buffer);
    PyBuffer_Release(&s.points.buffer);
    PyBuffer_Release(&s.layout.buffer);
    PyBuffer_Release(&s.table.columns.buffer);
    PyBuffer_Release(&s.sync.columns.buffer);
    return out;
}
