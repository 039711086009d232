/* Sums of runs of samples: rows of big-endian 32-bit words, whose columns the caller names.
 *
 * Which columns there are and what they mean is said in Python (indexing/runs.py), where
 * indexing/native_plain.py holds the same as this. Sums wrap round at 64 bits in both.
 */
#include "sample_runs.h"

static uint64_t sum_of(const uint8_t *p, int64_t count, int64_t stride)
{
    if (stride == 4) /* most runs of sound have sizes alone */
        return sum_of_words(p, count);
    uint64_t sum = 0;
    for (int64_t i = 0; i < count; i++, p += stride)
        sum += word_at(p);
    return sum;
}

int is_sync(const run_t *run, int64_t sample, int said)
{
    if (said != AS_ITS_FLAGS_SAY)
        return said;
    return run->flags && !(word_at(run->flags + run->stride * sample) & run->non_sync);
}

/* Times where no sample but the first is asked for. */
static void sum_times(const run_t *run, sums_t *out)
{
    const uint8_t *shift = run->offset, *length = run->duration;
    uint64_t dts = 0, negative = 0, step = run->even;
    int64_t least = INT64_MAX, most = INT64_MIN;
    if (length)
        for (int64_t i = 0; i < run->count; i++, shift += run->stride, length += run->stride) {
            uint64_t cts = dts + (uint64_t)(int64_t)(int32_t)word_at(shift);
            negative += word_at(shift) >> 31;
            step = word_at(length);
            dts += step;
            least = (int64_t)cts < least ? (int64_t)cts : least;
            most = (int64_t)(cts + step) > most ? (int64_t)(cts + step) : most;
        }
    else
        for (int64_t i = 0; i < run->count; i++, shift += run->stride, dts += step) {
            uint64_t cts = dts + (uint64_t)(int64_t)(int32_t)word_at(shift);
            negative += word_at(shift) >> 31;
            least = (int64_t)cts < least ? (int64_t)cts : least;
            most = (int64_t)(cts + step) > most ? (int64_t)(cts + step) : most;
        }
    out->duration = (int64_t)dts;
    out->negative = (int64_t)negative;
    out->cts_min = least;
    out->cts_end = most;
}

void sum_run(const run_t *run, sums_t *sum)
{
    if (run->size)
        sum->size = (int64_t)sum_of(run->size, run->count, run->stride);
    if (run->offset)
        sum_times(run, sum);
    else
        sum->cts_end = sum->duration =
            (int64_t)(run->duration ? sum_of(run->duration, run->count, run->stride)
                                    : run->even * (uint64_t)run->count);
}

int note_points(const run_t *run, int64_t number, int first, int rest, rows_t *points)
{
    uint64_t dts = 0;
    for (int64_t i = 0; i < run->count; i++) {
        if (is_sync(run, i, i ? rest : first)) {
            int64_t *point = next_row(points);
            if (!point)
                return -1;
            uint64_t cts = dts;
            if (run->offset)
                cts += (uint64_t)(int64_t)(int32_t)word_at(run->offset + run->stride * i);
            point[RUN] = number;
            point[INDEX] = i;
            point[DTS] = (int64_t)dts;
            point[CTS] = (int64_t)cts;
            point[STEP] = 0;
            point[COUNT] = 1;
        }
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

const char *impossible(const int64_t *column)
{
    int64_t stride = column[STRIDE];
    if (stride < 0 || stride > 1 << 16)
        return "sums: an impossible row";
    for (int f = DURATION; f <= OFFSET; f++)
        if (column[f] != -1 && (column[f] < 0 || column[f] > stride - 4))
            return "sums: a column lies outside of its row";
    return NULL;
}

typedef struct {
    Py_buffer rows, first, rest;
    column_t at, count, columns, durations;
} given_t;

/* One run. NULL, or why it is refused. */
static const char *sum_given(const given_t *given, const int64_t *column, Py_ssize_t i,
                             sums_t *sum, rows_t *points, int *failed)
{
    int64_t at = number_at(&given->at, i), count = number_at(&given->count, i);
    int64_t stride = column[STRIDE], held = given->rows.len;
    int first = ((const volatile uint8_t *)given->first.buf)[i];
    int rest = ((const volatile uint8_t *)given->rest.buf)[i];
    if (count < 1 || at < 0 || at > held || (stride && count > (held - at) / stride))
        return "sums: a run lies outside the buffer";
    /* Samples without bytes are as many as a file claims. */
    if (!stride && (first || rest))
        return "sums: samples without rows are not told apart";
    run_t run = run_at((const uint8_t *)given->rows.buf + at, count, column,
                       (uint64_t)number_at(&given->durations, i));
    sum_run(&run, sum);
    *failed = (first || rest) && note_points(&run, i, first, rest, points);
    return NULL;
}

/* Of all runs. NULL: an error is raised. */
static PyObject *sum_all(const given_t *given)
{
    Py_ssize_t runs = given->at.count;
    const char *why = "sums: arguments differ in length";
    int64_t column[COLUMNS];
    if (given->count.count == runs && given->durations.count == runs && given->first.len == runs &&
        given->rest.len == runs && given->columns.count == COLUMNS) {
        for (int f = 0; f < COLUMNS; f++)
            column[f] = number_at(&given->columns, f);
        why = impossible(column);
    }
    if (why) {
        PyErr_SetString(PyExc_ValueError, why);
        return NULL;
    }
    rows_t points = {NULL, 0, 0, POINT};
    sums_t *sum = calloc(runs ? (size_t)runs : 1, sizeof *sum);
    int failed = !sum;
    Py_BEGIN_ALLOW_THREADS
    for (Py_ssize_t i = 0; !failed && !why && i < runs; i++)
        why = sum_given(given, column, i, &sum[i], &points, &failed);
    Py_END_ALLOW_THREADS
    PyObject *out = NULL;
    if (failed)
        PyErr_NoMemory();
    else if (why)
        PyErr_SetString(PyExc_ValueError, why);
    else {
        PyObject *summed = turned((const int64_t *)sum, runs, sizeof *sum / 8);
        PyObject *found = turned(points.cells, points.count, POINT);
        if (summed && found)
            out = PyTuple_Pack(2, summed, found);
        Py_XDECREF(summed);
        Py_XDECREF(found);
    }
    free(sum);
    free(points.cells);
    return out;
}

PyObject *sums(PyObject *self, PyObject *args)
{
    given_t given;
    if (!PyArg_ParseTuple(args, "y*O&O&O&O&y*y*", &given.rows, column_to_read, &given.at,
                          column_to_read, &given.count, column_to_read, &given.columns,
                          column_to_read, &given.durations, &given.first, &given.rest))
        return NULL;
    PyObject *out = sum_all(&given);
    PyBuffer_Release(&given.rows);
    PyBuffer_Release(&given.at.buffer);
    PyBuffer_Release(&given.count.buffer);
    PyBuffer_Release(&given.columns.buffer);
    PyBuffer_Release(&given.durations.buffer);
    PyBuffer_Release(&given.first);
    PyBuffer_Release(&given.rest);
    return out;
}
