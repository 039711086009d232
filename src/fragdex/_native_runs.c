/* Sums of runs of samples: rows of big-endian 32-bit words, whose columns the caller names.
 *
 * Which columns there are and what they mean is said in Python (indexing/runs.py), where
 * indexing/native_plain.py holds the same as this. Sums wrap round at 64 bits in both. And runs of
 * sync samples, which become one where they continue each other.
 */
#include "_native.h"

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
    int64_t *cells = with_room(points->cells, points->count, &points->room, POINT * 8);
    if (!cells)
        return -1;
    points->cells = cells;
    int64_t *cell = points->cells + POINT * points->count++;
    cell[RUN] = run;
    cell[INDEX] = index;
    cell[DTS] = (int64_t)dts;
    cell[CTS] = (int64_t)cts;
    return 0;
}

static uint64_t sum_of(const uint8_t *p, int64_t count, int64_t stride)
{
    if (stride == 4) /* most runs of sound have sizes alone */
        return sum_of_words(p, count);
    uint64_t sum = 0;
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

/* NULL, or why such rows are refused. */
static const char *impossible(const int64_t *column)
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
static const char *sum_run(const given_t *given, const int64_t *column, Py_ssize_t i, sums_t *sum,
                           points_t *points, int *failed)
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
    const uint8_t *rows = (const uint8_t *)given->rows.buf + at;
    run_t run = {
        column[DURATION] < 0 ? NULL : rows + column[DURATION],
        column[FLAGS] < 0 ? NULL : rows + column[FLAGS],
        column[OFFSET] < 0 ? NULL : rows + column[OFFSET],
        stride,
        count,
        (uint64_t)number_at(&given->durations, i),
        (uint32_t)column[NON_SYNC],
    };
    if (column[SIZE] >= 0)
        sum->size = (int64_t)sum_of(rows + column[SIZE], count, stride);
    if (run.offset)
        sum_times(&run, sum);
    else
        sum->cts_end = sum->duration =
            (int64_t)(run.duration ? sum_of(run.duration, count, stride)
                                   : run.even * (uint64_t)count);
    *failed = (first || rest) && note_times(&run, i, first, rest, points);
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
    points_t points = {0};
    sums_t *sum = calloc(runs ? (size_t)runs : 1, sizeof *sum);
    int failed = !sum;
    Py_BEGIN_ALLOW_THREADS
    for (Py_ssize_t i = 0; !failed && !why && i < runs; i++)
        why = sum_run(given, column, i, &sum[i], &points, &failed);
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

/* Columns of runs of sync samples, one behind the other, `room` rows each. */
enum { SYNC_CTS, SYNC_DTS, SYNC_STEP, SYNC_COUNT, SYNC_SAMPLE, SYNC_SAMPLE_STEP, SYNC_FRAGMENT,
       SYNC_COLUMNS };

typedef struct {
    int64_t *cells;
    Py_ssize_t room;
} table_t;

static inline int64_t *cell(const table_t *t, int column, Py_ssize_t row)
{
    return t->cells + column * t->room + row;
}

/* From a row to the one behind it. */
static inline int64_t ahead(const table_t *t, int column, Py_ssize_t row)
{
    return (int64_t)((uint64_t)*cell(t, column, row + 1) - (uint64_t)*cell(t, column, row));
}

/* Whether a single sample and the one behind it may be of one run. */
static int is_even(const table_t *t, Py_ssize_t row)
{
    int64_t step = ahead(t, SYNC_CTS, row);
    return *cell(t, SYNC_COUNT, row) == 1 && *cell(t, SYNC_COUNT, row + 1) == 1 && step > 0 &&
           step == ahead(t, SYNC_DTS, row) && ahead(t, SYNC_SAMPLE, row) > 0;
}

/* Rows behind `row`, which is not the last, that follow it as evenly as the one behind it does. */
static Py_ssize_t even_from(const table_t *t, Py_ssize_t rows, Py_ssize_t row)
{
    if (!is_even(t, row))
        return 1;
    Py_ssize_t at = row + 1;
    while (at + 1 < rows && is_even(t, at) &&
           ahead(t, SYNC_CTS, at) == ahead(t, SYNC_CTS, row) &&
           ahead(t, SYNC_SAMPLE, at) == ahead(t, SYNC_SAMPLE, row))
        at++;
    return at - row;
}

/* Makes runs of single samples that are evenly spaced in time and number; the first of each but
 * the very first is as far from the one before it. Returns the rows left. */
static Py_ssize_t join_singles(const table_t *t, Py_ssize_t rows)
{
    Py_ssize_t left = 0, covered;
    for (Py_ssize_t head = 0; head < rows; head += covered) {
        covered = 1;
        if (head)
            covered = even_from(t, rows, head - 1);
        else if (rows > 1 && is_even(t, 0))
            covered = even_from(t, rows, 0) + 1;
        int64_t step = covered > 1 ? ahead(t, SYNC_CTS, head) : 0;
        int64_t sample_step = covered > 1 ? ahead(t, SYNC_SAMPLE, head) : 0;
        for (int f = 0; f < SYNC_COLUMNS; f++)
            *cell(t, f, left) = *cell(t, f, head);
        if (covered > 1) {
            *cell(t, SYNC_COUNT, left) = covered;
            *cell(t, SYNC_STEP, left) = step;
            *cell(t, SYNC_SAMPLE_STEP, left) = sample_step;
        }
        left++;
    }
    return left;
}

/* Whether a run begins where the one before it ends; a run of one sample has any step. */
static int follows(const table_t *t, Py_ssize_t row)
{
    Py_ssize_t before = row - 1;
    uint64_t count = (uint64_t)*cell(t, SYNC_COUNT, before);
    int64_t step = *cell(t, SYNC_STEP, before), span = (int64_t)(count * (uint64_t)step);
    int64_t sample_step = *cell(t, SYNC_SAMPLE_STEP, before);
    return step > 0 && ahead(t, SYNC_CTS, before) == span && ahead(t, SYNC_DTS, before) == span &&
           ahead(t, SYNC_SAMPLE, before) == (int64_t)(count * (uint64_t)sample_step) &&
           (*cell(t, SYNC_STEP, row) == step || *cell(t, SYNC_COUNT, row) == 1) &&
           *cell(t, SYNC_SAMPLE_STEP, row) == sample_step;
}

/* Joins runs that follow each other. Returns the rows left. */
static Py_ssize_t join_runs(const table_t *t, Py_ssize_t rows)
{
    Py_ssize_t left = 0;
    for (Py_ssize_t head = 0, behind; head < rows; head = behind) {
        /* Rows are compared as they came, so that the sum is written when its last one is known. */
        uint64_t count = (uint64_t)*cell(t, SYNC_COUNT, head);
        for (behind = head + 1; behind < rows && follows(t, behind); behind++)
            count += (uint64_t)*cell(t, SYNC_COUNT, behind);
        for (int f = 0; f < SYNC_COLUMNS; f++)
            *cell(t, f, left) = *cell(t, f, head);
        *cell(t, SYNC_COUNT, left++) = (int64_t)count;
    }
    return left;
}

static int any_run(const table_t *t, Py_ssize_t rows)
{
    for (Py_ssize_t row = 0; row < rows; row++)
        if (*cell(t, SYNC_COUNT, row) > 1)
            return 1;
    return 0;
}

PyObject *join_sync(PyObject *self, PyObject *args)
{
    column_t given;
    if (!PyArg_ParseTuple(args, "O&", column_to_fill, &given))
        return NULL;
    Py_ssize_t rows = given.count / SYNC_COLUMNS;
    int even = given.count % SYNC_COLUMNS == 0;
    if (even) {
        Py_BEGIN_ALLOW_THREADS
        table_t t = {given.buffer.buf, rows};
        rows = join_singles(&t, rows);
        if (any_run(&t, rows))
            rows = join_runs(&t, rows);
        Py_END_ALLOW_THREADS
    }
    PyBuffer_Release(&given.buffer);
    if (even)
        return PyLong_FromSsize_t(rows);
    PyErr_SetString(PyExc_ValueError, "join_sync: columns differ in length");
    return NULL;
}
