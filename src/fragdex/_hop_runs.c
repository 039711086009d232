/* Sums of runs of samples: rows of big-endian 32-bit words, whose columns the caller names.
 *
 * Which columns there are and what they mean is said in Python (fragments/runs.py), where
 * fragments/spans.py holds the same as this. Sums wrap round at 64 bits in both.
 */
#include "_hop.h"
#include <stdlib.h>
#include <string.h>

/* Columns of a row, in bytes from its start; -1: it has none. */
enum { STRIDE, DURATION, SIZE, FLAGS, OFFSET, NON_SYNC, COLUMNS };
/* Whether a sample is a sync sample. */
enum { NEVER = 0, ALWAYS = 1, AS_ITS_FLAGS_SAY = 2 };
enum { RUN, INDEX, DTS, CTS, POINT };

typedef struct {
    int64_t *cells; /* POINT of each sync sample */
    Py_ssize_t count, room;
} points_t;

static int note(points_t *points, int64_t run, int64_t index, uint64_t dts, uint64_t cts)
{
    if (points->count == points->room) {
        Py_ssize_t room = points->room ? points->room * 2 : 1024;
        int64_t *cells = realloc(points->cells, (size_t)room * POINT * 8);
        if (!cells)
            return -1;
        points->cells = cells;
        points->room = room;
    }
    int64_t *cell = points->cells + POINT * points->count++;
    cell[RUN] = run;
    cell[INDEX] = index;
    cell[DTS] = (int64_t)dts;
    cell[CTS] = (int64_t)cts;
    return 0;
}

static uint64_t sum_of(const uint8_t *p, int64_t count, int64_t stride)
{
    uint64_t sum = 0;
    if (stride == 4) /* told apart for the compiler: most runs of sound have sizes alone */
        for (int64_t i = 0; i < count; i++)
            sum += word_at(p + 4 * i);
    else
        for (int64_t i = 0; i < count; i++, p += stride)
            sum += word_at(p);
    return sum;
}

typedef struct {
    int64_t size, duration, cts_min, cts_end;
    int64_t negative; /* composition offsets that are below 0, read as signed */
} sums_t;

/* The columns of one run, NULL where it has none. */
typedef struct {
    const uint8_t *duration, *flags, *offset;
    int64_t stride, count;
    uint64_t even; /* duration of a sample without one of its own */
    uint32_t non_sync;
} run_t;

static int is_sync(const run_t *run, int64_t sample, int said)
{
    if (said != AS_ITS_FLAGS_SAY)
        return said;
    return run->flags && !(word_at(run->flags + run->stride * sample) & run->non_sync);
}

/* Times where no sample but the first is asked for. */
static void sum_times(const run_t *run, sums_t *out)
{
    uint64_t dts = 0, step = run->even;
    int64_t least = INT64_MAX, end = INT64_MIN;
    for (int64_t i = 0; i < run->count; i++) {
        int32_t offset = (int32_t)word_at(run->offset + run->stride * i);
        if (run->duration)
            step = word_at(run->duration + run->stride * i);
        int64_t cts = (int64_t)(dts + (uint64_t)(int64_t)offset);
        dts += step;
        int64_t behind = (int64_t)((uint64_t)cts + step);
        out->negative += offset < 0;
        least = cts < least ? cts : least;
        end = behind > end ? behind : end;
    }
    out->duration = (int64_t)dts;
    out->cts_min = least;
    out->cts_end = end;
}

/* Times and sync samples. 0, or -1: no memory. */
static int note_times(const run_t *run, int64_t number, int first, int rest, points_t *points)
{
    uint64_t dts = 0;
    for (int64_t i = 0; i < run->count; i++) {
        uint64_t cts = dts;
        if (run->offset)
            cts += (uint64_t)(int64_t)(int32_t)word_at(run->offset + run->stride * i);
        if (is_sync(run, i, i ? rest : first) && note(points, number, i, dts, cts))
            return -1;
        if (!rest)
            break;
        dts += run->duration ? word_at(run->duration + run->stride * i) : run->even;
    }
    return 0;
}

/* Rows of one array of int64 as columns behind each other. */
static PyObject *turned(const int64_t *cells, Py_ssize_t count, Py_ssize_t width)
{
    PyObject *out = PyBytes_FromStringAndSize(NULL, count * width * 8);
    if (!out)
        return NULL;
    int64_t *to = (int64_t *)PyBytes_AsString(out);
    for (Py_ssize_t i = 0; i < count; i++)
        for (Py_ssize_t f = 0; f < width; f++)
            to[f * count + i] = cells[width * i + f];
    return out;
}

/* NULL, or why the arguments are refused. */
static const char *refusal(Py_ssize_t held, const int64_t *at, const int64_t *count,
                           const uint8_t *first, const uint8_t *rest, Py_ssize_t runs,
                           const int64_t *column)
{
    int64_t stride = column[STRIDE];
    if (stride < 0 || stride > 1 << 16)
        return "sums: an impossible row";
    for (int f = DURATION; f <= OFFSET; f++)
        if (column[f] != -1 && (column[f] < 0 || column[f] > stride - 4))
            return "sums: a column lies outside of its row";
    for (Py_ssize_t i = 0; i < runs; i++) {
        if (count[i] < 1 || at[i] < 0 || at[i] > held ||
            (stride && count[i] > (held - at[i]) / stride))
            return "sums: a run lies outside the buffer";
        /* Samples without bytes are as many as a file claims. */
        if (!stride && (first[i] || rest[i]))
            return "sums: samples without rows are not told apart";
    }
    return NULL;
}

PyObject *sums(PyObject *self, PyObject *args)
{
    Py_buffer view, at, count, columns, durations, first, rest;
    if (!PyArg_ParseTuple(args, "y*y*y*y*y*y*y*", &view, &at, &count, &columns, &durations,
                          &first, &rest))
        return NULL;
    PyObject *out = NULL, *summed = NULL, *found = NULL;
    sums_t *sum = NULL;
    points_t points = {0};
    Py_ssize_t runs = at.len / 8;
    const char *why = "sums: arguments differ in length";
    if (count.len == at.len && durations.len == at.len && first.len == runs &&
        rest.len == runs && columns.len == COLUMNS * 8)
        why = refusal(view.len, at.buf, count.buf, first.buf, rest.buf, runs, columns.buf);
    if (why) {
        PyErr_SetString(PyExc_ValueError, why);
        goto end;
    }
    int failed = !(sum = calloc((size_t)(runs ? runs : 1), sizeof *sum));
    const int64_t *column = columns.buf;
    Py_BEGIN_ALLOW_THREADS
    for (Py_ssize_t i = 0; !failed && i < runs; i++) {
        const uint8_t *rows = (const uint8_t *)view.buf + ((const int64_t *)at.buf)[i];
        int asked = ((const uint8_t *)first.buf)[i], others = ((const uint8_t *)rest.buf)[i];
        run_t run = {
            column[DURATION] < 0 ? NULL : rows + column[DURATION],
            column[FLAGS] < 0 ? NULL : rows + column[FLAGS],
            column[OFFSET] < 0 ? NULL : rows + column[OFFSET],
            column[STRIDE],
            ((const int64_t *)count.buf)[i],
            (uint64_t)((const int64_t *)durations.buf)[i],
            (uint32_t)column[NON_SYNC],
        };
        if (column[SIZE] >= 0)
            sum[i].size = (int64_t)sum_of(rows + column[SIZE], run.count, run.stride);
        if (run.offset)
            sum_times(&run, &sum[i]);
        else
            sum[i].cts_end = sum[i].duration =
                (int64_t)(run.duration ? sum_of(run.duration, run.count, run.stride)
                                       : run.even * (uint64_t)run.count);
        if (asked || others)
            failed = note_times(&run, i, asked, others, &points);
    }
    Py_END_ALLOW_THREADS
    if (failed) {
        PyErr_NoMemory();
        goto end;
    }
    summed = turned((const int64_t *)sum, runs, sizeof *sum / 8);
    found = turned(points.cells, points.count, POINT);
    if (summed && found)
        out = Py_BuildValue("OO", summed, found);
end:
    Py_XDECREF(summed);
    Py_XDECREF(found);
    free(sum);
    free(points.cells);
    PyBuffer_Release(&view);
    PyBuffer_Release(&at);
    PyBuffer_Release(&count);
    PyBuffer_Release(&columns);
    PyBuffer_Release(&durations);
    PyBuffer_Release(&first);
    PyBuffer_Release(&rest);
    return out;
}
