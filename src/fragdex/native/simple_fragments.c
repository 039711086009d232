/* Fragments of a simple file, settled while the walk stands at them: a row of each track for each
 * moof, and runs of sync samples as long as they can be (sync_samples.c).
 *
 * What makes a fragment odd is left to indexing/shapes.py, indexing/resolve.py and what they use.
 */
#include "simple_fragments.h"
#include "sample_runs.h"
#ifdef __linux__
#include <sys/mman.h>
#endif

#define CODE(a, b, c, d) ((uint32_t)(a) << 24 | (uint32_t)(b) << 16 | (uint32_t)(c) << 8 | (d))

enum { FEW_ROWS = 64, MOST_GROWTH = 16, MOST_EVEN = 1 << 16 };
enum { BASE_IS_MOOF = 0x20000, DESCRIPTION = 2, HAS_DURATION = 8, HAS_SIZE = 16, HAS_FLAGS = 32 };
enum { RUN_OFFSET = 1, RUN_FIRST = 4, RUN_ROWS = 0xf00 };
enum { IS_NON_SYNC = 0x10000, DEPENDS = 0x1000000, DEPENDS_AND_SYNC = 0x3010000 };
static const int64_t FARTHEST = INT64_C(1) << 61, LONGEST = INT64_C(1) << 31;

/* Fresh memory costs a page fault for each page, half of the time that dense fragments take. */
static void ask_for_large_pages(void *memory, uintptr_t size)
{
#ifdef MADV_HUGEPAGE
    enum { LARGE = 1 << 21 };
    uintptr_t start = ((uintptr_t)memory + LARGE - 1) / LARGE * LARGE;
    uintptr_t stop = ((uintptr_t)memory + size) / LARGE * LARGE;
    if (start < stop)
        madvise((void *)start, stop - start, MADV_HUGEPAGE); /* a wish: nothing depends on it */
#else
    (void)memory, (void)size;
#endif
}

int grow_columns(columns_t *c, int64_t needed, double share, PyThreadState **state)
{
    if (needed <= c->room)
        return 1;
    double wanted = (double)needed * 1.05 / (share > 0.001 ? share : 0.001);
    double most = (double)needed * MOST_GROWTH;
    int64_t room = FEW_ROWS + (int64_t)(wanted < most ? wanted : most);
    if (room < 2 * c->count && share < 0.9)
        room = 2 * c->count;
    PyEval_RestoreThread(*state);
    PyObject *memory = PyByteArray_FromStringAndSize(NULL, (Py_ssize_t)(room * 8 * c->columns));
    int64_t *cells = memory ? (int64_t *)PyByteArray_AsString(memory) : NULL;
    if (cells)
        ask_for_large_pages(cells, (uintptr_t)room * 8 * (uintptr_t)c->columns);
    for (int i = 0; cells && c->count && i < c->columns; i++)
        memcpy(cells + room * i, c->cells + c->room * i, 8 * (size_t)c->count);
    if (cells) {
        Py_XDECREF(c->memory);
        c->memory = memory;
        c->cells = cells;
        c->room = room;
    } else
        PyErr_Clear();
    *state = PyEval_SaveThread();
    return cells != NULL;
}

static inline int64_t *at_column(const columns_t *c, int column, int64_t row)
{
    return c->cells + c->room * column + row;
}

void fragments_begin(fragmented_t *f, const simple_movie_t *movie)
{
    f->count = movie->count;
    for (int i = 0; i < movie->count; i++) {
        const uint8_t *trex = movie->track[i]->part[TREX].at;
        f->track[i] = (fragments_t){
            .id = movie->track[i]->id,
            .duration = be32(trex + 12),
            .size = be32(trex + 16),
            .flags = be32(trex + 20),
            .table = {.columns = TABLE_COLUMNS},
            .sync = {.columns = SYNC_COLUMNS},
            .began = -1,
            .last_sync = INT64_MIN,
            .moof = -1,
        };
    }
}

static int next_part(const uint8_t **at, const uint8_t *stop, uint32_t type, part_t *part)
{
    if (stop - *at < 12)
        return 0;
    uint32_t size = be32(*at);
    if (size < 12 || size > stop - *at || be32(*at + 4) != type)
        return 0;
    *part = (part_t){*at + 8, size - 8};
    *at += size;
    return 1;
}

/* What a traf says, defaults included. */
typedef struct {
    uint32_t duration, size, flags, first;
    int has_first;
    int64_t time, data_offset;
    run_t run;
} said_t;

static int read_header(fragmented_t *f, part_t tfhd, int is_first, fragments_t **track, said_t *said)
{
    uint32_t flags = be32(tfhd.at), at = 8; /* of version 0 */
    if (flags & ~(uint32_t)(BASE_IS_MOOF | DESCRIPTION | HAS_DURATION | HAS_SIZE | HAS_FLAGS) ||
        !(is_first || flags & BASE_IS_MOOF) || tfhd.size < 8)
        return 0;
    int i = 0;
    uint32_t id = be32(tfhd.at + 4), wanted = 8;
    for (uint32_t bit = DESCRIPTION; bit <= HAS_FLAGS; bit <<= 1)
        wanted += flags & bit & (DESCRIPTION | HAS_DURATION | HAS_SIZE | HAS_FLAGS) ? 4 : 0;
    while (i < f->count && f->track[i].id != id)
        i++;
    if (i == f->count || tfhd.size != wanted || f->track[i].moof == f->moofs)
        return 0;
    *track = f->track + i;
    *said = (said_t){.duration = f->track[i].duration, .size = f->track[i].size, .flags = f->track[i].flags};
    if (flags & DESCRIPTION) {
        if (be32(tfhd.at + at) != 1)
            return 0;
        at += 4;
    }
    if (flags & HAS_DURATION) {
        said->duration = be32(tfhd.at + at);
        at += 4;
    }
    if (flags & HAS_SIZE) {
        said->size = be32(tfhd.at + at);
        at += 4;
    }
    if (flags & HAS_FLAGS)
        said->flags = be32(tfhd.at + at);
    return 1;
}

static int read_time(part_t tfdt, said_t *said)
{
    uint32_t word = be32(tfdt.at);
    if (word == 0 && tfdt.size == 8)
        said->time = be32(tfdt.at + 4);
    else if (word == 1 << 24 && tfdt.size == 12 && be32(tfdt.at + 4) < 1 << 29)
        said->time = (int64_t)be64(tfdt.at + 4);
    else
        return 0;
    return 1;
}

static int read_run(part_t trun, said_t *said)
{
    uint32_t flags = be32(trun.at) & 0xffffff, at = 12;
    if (trun.at[0] > 1 || flags & ~(uint32_t)(RUN_OFFSET | RUN_FIRST | RUN_ROWS) ||
        !(flags & RUN_OFFSET) || trun.size < 12)
        return 0;
    int64_t columns[COLUMNS] = {0, -1, -1, -1, -1, IS_NON_SYNC}, count = be32(trun.at + 4);
    for (int column = DURATION; column <= OFFSET; column++)
        if (flags & 0x80u << column) {
            columns[column] = columns[STRIDE];
            columns[STRIDE] += 4;
        }
    said->data_offset = (int32_t)be32(trun.at + 8);
    if (flags & RUN_FIRST) {
        if (trun.size < 16)
            return 0;
        said->has_first = 1;
        said->first = be32(trun.at + 12);
        at = 16;
    }
    if (!count || trun.size - at != (uint64_t)count * (uint64_t)columns[STRIDE] ||
        (!columns[STRIDE] && count > MOST_EVEN))
        return 0;
    said->run = run_at(trun.at + at, count, columns, said->duration);
    return 1;
}

static int is_doubted(uint32_t flags)
{
    return (flags & DEPENDS_AND_SYNC) == DEPENDS;
}

/* Adds sync samples, evenly spaced; they go on where the run before ends, or begin another. 1, or 0:
 * they are out of order, or there is no memory. */
static int add_sync(fragmented_t *f, fragments_t *t, int64_t index, int64_t dts, int64_t cts,
                    int64_t step, int64_t count)
{
    columns_t *c = &t->sync;
    int64_t row = t->table.count, sample = t->samples + index;
    if (cts < t->last_sync)
        return 0;
    t->last_sync = cts + (count - 1) * step;
    t->sync_samples += count;
    if (!t->has_sync)
        t->sync_offset = cts - dts;
    t->has_sync = 1;
    t->is_reordered |= cts - dts != t->sync_offset;
    if (*at_column(&t->table, T_SYNC, row) < 0)
        *at_column(&t->table, T_SYNC, row) = index;
    if (c->count) {
        int64_t last = c->count - 1, by = *at_column(c, S_STEP, last), held = *at_column(c, S_COUNT, last);
        int64_t by_samples = *at_column(c, S_SAMPLE_STEP, last);
        int64_t ahead = cts - *at_column(c, S_CTS, last), samples = sample - *at_column(c, S_SAMPLE, last);
        if (held == 1) {
            by = ahead;
            by_samples = samples;
        }
        if (by > 0 && ahead == held * by && dts - *at_column(c, S_DTS, last) == ahead &&
            samples == held * by_samples && (count == 1 || (step == by && by_samples == 1))) {
            *at_column(c, S_STEP, last) = by;
            *at_column(c, S_SAMPLE_STEP, last) = by_samples;
            *at_column(c, S_COUNT, last) = held + count;
            return 1;
        }
    }
    if (!grow_columns(c, c->count + 1, f->share, f->state))
        return 0;
    int64_t cells[SYNC_COLUMNS] = {cts, dts, step, count, sample, 1, row};
    for (int i = 0; i < SYNC_COLUMNS; i++)
        *at_column(c, i, c->count) = cells[i];
    c->count++;
    return 1;
}

/* Evenly spaced samples of which none, the first, the others or all are sync. */
static int add_even(fragmented_t *f, fragments_t *t, const said_t *said, int first, int rest)
{
    int64_t start = first ? 0 : 1, count = rest ? said->run.count - start : first;
    int64_t time = said->time + start * (int64_t)said->duration;
    return !count || add_sync(f, t, start, time, time, count > 1 ? (int64_t)said->duration : 0, count);
}

static int add_syncs(fragmented_t *f, fragments_t *t, const said_t *said)
{
    const run_t *run = &said->run;
    int rest = run->flags ? AS_ITS_FLAGS_SAY : !(said->flags & IS_NON_SYNC);
    int first = said->has_first ? !(said->first & IS_NON_SYNC) : rest, doubted = 0;
    int all = is_sync(run, 0, first);
    if (said->has_first)
        doubted = is_doubted(said->first);
    if (!run->flags && (run->count > 1 || !said->has_first))
        doubted |= is_doubted(said->flags);
    for (int64_t i = said->has_first ? 1 : 0; run->flags && i < run->count; i++)
        doubted |= is_doubted(word_at(run->flags + run->stride * i));
    if (doubted)
        return 0;
    if (run->count == 1)
        first = all;
    if (!run->duration && !run->offset) {
        for (int64_t i = 1; all && run->flags && i < run->count; i++)
            all = is_sync(run, i, rest);
        if (!run->flags)
            return add_even(f, t, said, first, rest);
        if (all)
            return add_even(f, t, said, 1, 1);
    }
    int64_t dts = said->time;
    for (int64_t i = 0; i < run->count && (first || rest); i++) {
        if (is_sync(run, i, i ? rest : first)) {
            int64_t cts = dts + (run->offset ? (int32_t)word_at(run->offset + run->stride * i) : 0);
            if (!add_sync(f, t, i, dts, cts, 0, 1))
                return 0;
        }
        if (!rest)
            break;
        dts += run->duration ? word_at(run->duration + run->stride * i) : run->even;
    }
    return 1;
}

static int add_traf(fragmented_t *f, const uint8_t *at, const uint8_t *stop, int64_t moof, int64_t lead,
                    int is_first)
{
    part_t tfhd, tfdt, trun;
    fragments_t *t;
    said_t said;
    if (!next_part(&at, stop, CODE('t', 'f', 'h', 'd'), &tfhd) ||
        !next_part(&at, stop, CODE('t', 'f', 'd', 't'), &tfdt) ||
        !next_part(&at, stop, CODE('t', 'r', 'u', 'n'), &trun) || at != stop ||
        !read_header(f, tfhd, is_first, &t, &said) || !read_time(tfdt, &said) || !read_run(trun, &said))
        return 0;
    sums_t sum = {0};
    sum_run(&said.run, &sum);
    if (!said.run.size)
        sum.size = (int64_t)said.size * said.run.count;
    if (said.duration >= LONGEST || (said.run.duration && sum.duration >= LONGEST) || sum.duration < 0 ||
        sum.size <= 0 || (!trun.at[0] && sum.negative) || said.time < t->last ||
        (sum.duration && said.time <= t->began) || said.time > FARTHEST)
        return 0;
    t->ticks += (double)sum.duration;
    t->last = said.time;
    if (sum.duration)
        t->began = said.time;
    t->moof = f->moofs;
    if (!grow_columns(&t->table, t->table.count + 1, f->share, f->state))
        return 0;
    int64_t row = t->table.count, start = moof + said.data_offset;
    int64_t cells[TABLE_COLUMNS] = {
        lead, 0, moof, start, start + sum.size, said.time, sum.duration, said.time + sum.cts_min,
        said.time + sum.cts_end, t->samples, said.run.count, -1,
    };
    for (int i = 0; i < TABLE_COLUMNS; i++)
        *at_column(&t->table, i, row) = cells[i];
    if (!add_syncs(f, t, &said))
        return 0;
    t->samples += said.run.count;
    t->table.count++;
    return 1;
}

int fragments_add(fragmented_t *f, const uint8_t *moof, int64_t size, int64_t at, int64_t lead)
{
    const uint8_t *from = moof + 8, *stop = moof + size;
    part_t part;
    int trafs = 0;
    if (!next_part(&from, stop, CODE('m', 'f', 'h', 'd'), &part) || part.size != 8)
        return 0;
    for (; from < stop; trafs++) {
        if (!next_part(&from, stop, CODE('t', 'r', 'a', 'f'), &part) ||
            !add_traf(f, part.at, part.at + part.size, at, lead, !trafs))
            return 0;
    }
    return trafs > 0;
}

int fragments_data(fragmented_t *f, int64_t start, int64_t stop)
{
    for (int i = 0; i < f->count; i++) {
        fragments_t *t = f->track + i;
        if (t->moof != f->moofs)
            continue;
        int64_t row = t->table.count - 1;
        if (*at_column(&t->table, T_DATA_START, row) < start ||
            *at_column(&t->table, T_DATA_STOP, row) > stop)
            return 0;
        *at_column(&t->table, T_SIZE, row) = stop - *at_column(&t->table, T_OFFSET, row);
    }
    f->moofs++;
    return 1;
}

int fragments_end(const fragmented_t *f)
{
    for (int i = 0; i < f->count; i++) {
        const fragments_t *t = f->track + i;
        if (t->ticks >= (double)(FARTHEST / 2) ||
            (t->is_reordered && t->samples > 1 && t->sync_samples == t->samples))
            return 0;
    }
    return f->moofs > 0;
}

void fragments_forget(fragmented_t *f)
{
    for (int i = 0; i < f->count; i++) {
        Py_XDECREF(f->track[i].table.memory);
        Py_XDECREF(f->track[i].sync.memory);
    }
}
