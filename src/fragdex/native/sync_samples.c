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

/* Whether a row goes on where a run ends; then `run` says what both step by. A single sample has any
 * step, and so has a run of one. */
static int goes_on(int64_t *run, const table_t *t, Py_ssize_t row)
{
    uint64_t count = (uint64_t)run[SYNC_COUNT], step = (uint64_t)run[SYNC_STEP];
    uint64_t sample_step = (uint64_t)run[SYNC_SAMPLE_STEP];
    uint64_t ahead = (uint64_t)*cell(t, SYNC_CTS, row) - (uint64_t)run[SYNC_CTS];
    uint64_t samples = (uint64_t)*cell(t, SYNC_SAMPLE, row) - (uint64_t)run[SYNC_SAMPLE];
    if (count == 1) {
        step = ahead;
        sample_step = samples;
    }
    if ((int64_t)step <= 0 || (int64_t)sample_step <= 0 || ahead != count * step ||
        samples != count * sample_step ||
        (uint64_t)*cell(t, SYNC_DTS, row) - (uint64_t)run[SYNC_DTS] != ahead)
        return 0;
    if (*cell(t, SYNC_COUNT, row) != 1 && ((uint64_t)*cell(t, SYNC_STEP, row) != step ||
                                           (uint64_t)*cell(t, SYNC_SAMPLE_STEP, row) != sample_step))
        return 0;
    run[SYNC_STEP] = (int64_t)step;
    run[SYNC_SAMPLE_STEP] = (int64_t)sample_step;
    run[SYNC_COUNT] = (int64_t)(count + (uint64_t)*cell(t, SYNC_COUNT, row));
    return 1;
}

/* Makes runs as long as they can be, from the first sample on: of samples one by one there are no
 * fewer. Returns the rows left. */
static Py_ssize_t join_rows(const table_t *t, Py_ssize_t rows)
{
    Py_ssize_t left = 0, row = 0;
    while (row < rows) {
        int64_t run[SYNC_COLUMNS];
        for (int f = 0; f < SYNC_COLUMNS; f++)
            run[f] = *cell(t, f, row);
        do
            row++;
        while (row < rows && goes_on(run, t, row));
        for (int f = 0; f < SYNC_COLUMNS; f++)
            *cell(t, f, left) = run[f];
        left++;
    }
    return left;
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
        if (ordered)
            rows = join_rows(&t, rows);
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
