/* Runs of sync samples, which become one where they continue each other.
 *
 * indexing/native_plain.py holds the same in Python.
 */
#include "native.h"

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
    const int64_t *count = cell(t, SYNC_COUNT, 0);
    int64_t step = ahead(t, SYNC_CTS, row), sample_step = ahead(t, SYNC_SAMPLE, row);
    Py_ssize_t at = row + 1;
    while (at + 1 < rows && count[at + 1] == 1 && ahead(t, SYNC_CTS, at) == step &&
           ahead(t, SYNC_DTS, at) == step && ahead(t, SYNC_SAMPLE, at) == sample_step)
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

/* Whether no run falls in time, and none begins before the one before it ends. */
static int in_order(const table_t *t, Py_ssize_t rows)
{
    int64_t last = INT64_MIN;
    for (Py_ssize_t row = 0; row < rows; row++) {
        int64_t cts = *cell(t, SYNC_CTS, row), step = *cell(t, SYNC_STEP, row);
        if (step < 0 || cts < last)
            return 0;
        uint64_t count = (uint64_t)*cell(t, SYNC_COUNT, row);
        last = (int64_t)((uint64_t)cts + (count - 1) * (uint64_t)step);
    }
    return 1;
}

PyObject *join_sync(PyObject *self, PyObject *args)
{
    column_t given;
    int checked, ordered = 1;
    if (!PyArg_ParseTuple(args, "O&p", column_to_fill, &given, &checked))
        return NULL;
    Py_ssize_t rows = given.count / SYNC_COLUMNS;
    int even = given.count % SYNC_COLUMNS == 0;
    if (even) {
        Py_BEGIN_ALLOW_THREADS
        table_t t = {given.buffer.buf, rows};
        ordered = !checked || in_order(&t, rows);
        if (ordered) {
            rows = join_singles(&t, rows);
            if (any_run(&t, rows))
                rows = join_runs(&t, rows);
        }
        Py_END_ALLOW_THREADS
    }
    PyBuffer_Release(&given.buffer);
    if (even && !ordered)
        return Py_NewRef(Py_None);
    if (even)
        return PyLong_FromSsize_t(rows);
    PyErr_SetString(PyExc_ValueError, "join_sync: columns differ in length");
    return NULL;
}
