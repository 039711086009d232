/* Fragments in one pass: what the trafs of a box say, added up while the walk stands at it.
 *
 * Where each number stands and what holds where it is missing is said by a program, which
 * indexing/shapes.py writes from the declared layouts. What programs do is held equal to
 * indexing/shapes.py, which does it in Python.
 */
#include "trafs.h"

static const int64_t FARTHEST = INT64_C(1) << 61; /* decode times further from 0 are odd */
static const int64_t LONGEST = INT64_C(1) << 31;  /* durations from here on may be negative ones */

/* Whether a field is there and lies outside of a box. */
static int misplaced(int64_t at, int64_t width, int64_t size)
{
    return at != -1 && outside(at, width, size);
}

static const char *traf_refusal(const traf_t *t, int64_t size)
{
    if (t->slot < 0 || t->slot >= MOST_SLOTS)
        return "shapes: an impossible slot";
    if ((t->time_width != 4 && t->time_width != 8) || outside(t->time, t->time_width, size) ||
        outside(t->data_offset, 4, size) || misplaced(t->duration, 4, size) ||
        misplaced(t->size, 4, size) || misplaced(t->sample_flags, 4, size) ||
        misplaced(t->first_flags, 4, size))
        return "shapes: a field lies outside of its box";
    const char *why = impossible(t->columns);
    if (why)
        return why;
    int64_t stride = t->columns[STRIDE];
    if (t->count < 1 || outside(t->rows, 0, size) || t->count > MOST_WITHOUT_ROWS ||
        (stride && t->count > (size - t->rows) / stride))
        return "shapes: samples lie outside of their box";
    return NULL;
}

const char *program_refusal(const traf_t *trafs, Py_ssize_t count, int64_t size)
{
    const char *why = NULL;
    for (Py_ssize_t i = 0; !why && i < count; i++)
        why = traf_refusal(trafs + i, size);
    return why;
}

int slots_for(tracks_t *tracks, const traf_t *trafs, Py_ssize_t count)
{
    int64_t slots = tracks->slots;
    for (Py_ssize_t i = 0; i < count; i++)
        if (trafs[i].slot >= slots)
            slots = trafs[i].slot + 1;
    if (slots == tracks->slots)
        return 0;
    track_t *track = realloc(tracks->track, (size_t)slots * sizeof *track);
    if (!track)
        return -1;
    for (int64_t i = tracks->slots; i < slots; i++)
        track[i] = (track_t){{NULL, 0, 0, TRAF_COLUMNS}, {NULL, 0, 0, POINT}, 0};
    tracks->track = track;
    tracks->slots = slots;
    return 0;
}

/* Evenly spaced samples of which none, the first, the others or all are sync: one row at most. */
static int note_even(const run_t *run, int64_t number, int first, int rest, rows_t *points)
{
    int64_t start = first ? 0 : 1;
    int64_t count = rest ? run->count - start : first;
    if (!count)
        return 0;
    int64_t *point = next_row(points);
    if (!point)
        return -1;
    point[RUN] = number;
    point[INDEX] = start;
    point[DTS] = point[CTS] = (int64_t)((uint64_t)start * run->even);
    point[STEP] = count > 1 ? (int64_t)run->even : 0;
    point[COUNT] = count;
    return 0;
}

static int all_sync(const run_t *run, int first)
{
    if (!is_sync(run, 0, first))
        return 0;
    for (int64_t i = 1; i < run->count; i++)
        if (word_at(run->flags + run->stride * i) & run->non_sync)
            return 0;
    return 1;
}

static int note_sync(const traf_t *t, const run_t *run, const uint8_t *box, int64_t number,
                     rows_t *points)
{
    uint32_t flags = said(box, t->sample_flags, t->sample_flags_default);
    int rest = run->flags ? AS_ITS_FLAGS_SAY : flags & run->non_sync ? NEVER : ALWAYS;
    /* first_sample_flags stand for the first sample's (8.8.8.1). */
    int first = t->first_flags < 0                                ? rest
                : word_at(box + t->first_flags) & run->non_sync ? NEVER
                                                                  : ALWAYS;
    if (!run->duration && !run->offset) {
        if (!run->flags)
            return note_even(run, number, first, rest, points);
        if (all_sync(run, first))
            return note_even(run, number, ALWAYS, ALWAYS, points);
    }
    if (!first && !rest)
        return 0;
    return note_points(run, number, first, rest, points);
}

static int is_doubted(const traf_t *t, uint32_t flags)
{
    return (flags & (uint32_t)t->doubt_bits) == (uint32_t)t->doubt;
}

/* Whether any flags that the samples of a traf have are doubted. */
static int any_doubted(const traf_t *t, const run_t *run, const uint8_t *box)
{
    int has_first = t->first_flags >= 0;
    if (has_first && is_doubted(t, word_at(box + t->first_flags)))
        return 1;
    if (!run->flags)
        return run->count > has_first &&
               is_doubted(t, said(box, t->sample_flags, t->sample_flags_default));
    for (int64_t i = has_first; i < run->count; i++)
        if (is_doubted(t, word_at(run->flags + run->stride * i)))
            return 1;
    return 0;
}

/* A run of one sample: what it adds up to is what the sample says. */
static int sum_single(track_t *track, const traf_t *t, const uint8_t *box, int64_t even,
                      int64_t number, sums_t *sum)
{
    const uint8_t *row = box + t->rows;
    const int64_t *column = t->columns;
    uint32_t flags = t->first_flags >= 0   ? word_at(box + t->first_flags)
                     : column[FLAGS] >= 0 ? word_at(row + column[FLAGS])
                                          : said(box, t->sample_flags, t->sample_flags_default);
    sum->size = column[SIZE] < 0 ? said(box, t->size, t->size_default) : word_at(row + column[SIZE]);
    sum->duration = column[DURATION] < 0 ? even : word_at(row + column[DURATION]);
    sum->cts_min = column[OFFSET] < 0 ? 0 : (int32_t)word_at(row + column[OFFSET]);
    sum->cts_end = sum->cts_min + sum->duration;
    sum->negative = sum->cts_min < 0;
    track->doubted |= is_doubted(t, flags);
    if (flags & (uint32_t)column[NON_SYNC])
        return 0;
    int64_t *point = next_row(&track->points);
    if (!point)
        return -1;
    point[RUN] = number;
    point[INDEX] = point[DTS] = point[STEP] = 0;
    point[CTS] = sum->cts_min;
    point[COUNT] = 1;
    return 0;
}

/* A run of several samples. */
static int sum_several(track_t *track, const traf_t *t, const uint8_t *box, int64_t even,
                       int64_t number, sums_t *sum)
{
    run_t run = run_at(box + t->rows, t->count, t->columns, (uint64_t)even);
    sum_run(&run, sum);
    if (!run.size)
        sum->size = (int64_t)said(box, t->size, t->size_default) * t->count;
    if (!track->doubted)
        track->doubted = any_doubted(t, &run, box);
    return note_sync(t, &run, box, number, &track->points);
}

static int run_traf(tracks_t *tracks, const traf_t *t, const uint8_t *box, int64_t number)
{
    track_t *track = tracks->track + t->slot;
    int64_t row = track->trafs.count;
    int64_t *cell = next_row(&track->trafs);
    if (!cell)
        return -1;
    int64_t even = said(box, t->duration, t->duration_default);
    int64_t time = t->time_width == 8 ? (int64_t)be64(box + t->time)
                                      : (int64_t)word_at(box + t->time);
    sums_t sum = {0};
    int failed = t->count == 1 ? sum_single(track, t, box, even, row, &sum)
                               : sum_several(track, t, box, even, row, &sum);
    if (!t->version)
        tracks->wide += sum.negative;
    /* The sum is below where each is: few runs last longer, and those are looked at elsewhere. */
    if (even >= LONGEST || (t->columns[DURATION] >= 0 && sum.duration >= LONGEST) || time > FARTHEST ||
        time < -FARTHEST)
        tracks->odd = 1;
    cell[MOOF] = number;
    cell[TRAF_FLAGS] = t->flags;
    cell[TIME] = time;
    cell[TIME_KIND] = t->time_width == 8 ? 2 : 1;
    cell[SAMPLES] = t->count;
    cell[DATA_OFFSET] = (int32_t)word_at(box + t->data_offset);
    cell[BYTES] = sum.size;
    cell[LASTS] = sum.duration;
    cell[CTS_MIN] = sum.cts_min;
    cell[CTS_END] = sum.cts_end;
    return failed;
}

int run_program(tracks_t *tracks, const traf_t *trafs, Py_ssize_t count, const uint8_t *box,
                int64_t number)
{
    for (Py_ssize_t i = 0; i < count; i++)
        if (run_traf(tracks, trafs + i, box, number))
            return -1;
    return 0;
}

PyObject *tracks_found(tracks_t *tracks)
{
    PyObject *out = PyTuple_New((Py_ssize_t)tracks->slots);
    for (int64_t i = 0; out && i < tracks->slots; i++) {
        PyObject *trafs = bytes_of(&tracks->track[i].trafs);
        PyObject *points = bytes_of(&tracks->track[i].points);
        PyObject *doubted = PyBool_FromLong(tracks->track[i].doubted);
        PyObject *one = trafs && points ? PyTuple_Pack(3, trafs, points, doubted) : NULL;
        Py_XDECREF(trafs);
        Py_XDECREF(points);
        Py_XDECREF(doubted);
        if (!one || PyTuple_SetItem(out, (Py_ssize_t)i, one))
            Py_CLEAR(out);
    }
    tracks_forget(tracks);
    return out;
}

void tracks_forget(tracks_t *tracks)
{
    for (int64_t i = 0; i < tracks->slots; i++) {
        free(tracks->track[i].trafs.cells);
        free(tracks->track[i].points.cells);
    }
    free(tracks->track);
    tracks->track = NULL;
    tracks->slots = 0;
}
