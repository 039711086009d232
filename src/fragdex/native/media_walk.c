/* The walk over media data, sample by sample: repairing/walk.py and between.py hold the same, and
 * say why. It gives back what it found where what it meets changes what Python knows, where no
 * sample begins, and from time to time, so that progress is told.
 */
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("O2") /* as fast here as -O3, in half of the room */
#endif
#include "lanes.h"

enum { DEPTH = 4, MOST_STEPS = 512, FEW = 4, MOST_GAPS = 32, MOST_COUNTED = 64, HOLE = 16 };
enum { MOST_HEADS = 16, MOST_PACKETS = 8, MOST_PACKET = 1275, LIKENESS = 5, CHUNKS = 4 };
enum { MOST_LANES = 8, SLOT_BITS = 10, SLOTS = 1 << SLOT_BITS, ROW = 6, LOST_ROW = 4 };
enum { TRIES = 3, SPAN = 1 << 26 };
enum { NOTHING = 3 };
/* Of `numbers`: of all, and of sound between others. */
enum { HOLES, UNIT = 1, LONGEST, SEVERAL, LENGTHS, OPUS_LONGEST = 1, LARGEST_CHUNK, LARGEST };

typedef struct {
    int lane;
    found_t found;
} option_t;

typedef struct {
    double sound, picture, least, most, low, high;
    int there;
} pace_t;

typedef struct {
    window_t window;
    lane_t lanes[MOST_LANES];
    int count, loose;          /* -1: no sound between others */
    pace_t pace;
    int64_t unknown, heard_to; /* heard_to: where sound ends that was passed last */
    int64_t keys[SLOTS];       /* places that were looked at; -1: none */
    uint8_t counts[SLOTS];
    option_t *known;           /* `count` of each */
    rows_t lost;               /* row of sound, start, stop, samples */
    int no_memory;
} walk_t;

/* Where sound that begins here may end. */
typedef struct {
    int64_t at, place, held;
    int phase, tried;
    const uint8_t *data;
} gaps_t;

/* A division of bytes into packets; `count` of 0: there are several. */
typedef struct {
    int64_t count, sizes[MOST_PACKETS];
} split_t;

static int options(walk_t *w, int64_t at, option_t *out);

static int has_zeros(const uint8_t *data, int64_t size)
{
    for (int64_t i = HOLE - 1; i < size; i += HOLE) {
        if (data[i])
            continue;
        int64_t low = i, high = i + 1;
        while (low > 0 && !data[low - 1])
            low--;
        while (high < size && high - low < HOLE && !data[high])
            high++;
        if (high - low >= HOLE)
            return 1;
    }
    return 0;
}

static int find_in(walk_t *w, lane_t *lane, int64_t at, found_t *found)
{
    if (lane->kind == AAC)
        return find_aac(&w->window, lane, at, found);
    return (lane->kind == AV1 ? find_obus : find_units)(&w->window, lane, at, found);
}

/* Samples that may begin here. */
static int options(walk_t *w, int64_t at, option_t *out)
{
    /* chunks of sound have sizes of powers of two: the high bits of a product do not */
    int slot = (int)((uint64_t)at * 0x9E3779B97F4A7C15u >> (64 - SLOT_BITS)), found = 0;
    if (w->keys[slot] == at) {
        memcpy(out, w->known + (int64_t)slot * w->count, w->counts[slot] * sizeof *out);
        return w->counts[slot];
    }
    for (int i = 0; i < w->count && at < w->window.stop; i++) {
        lane_t *lane = w->lanes + i;
        if (i == w->loose)
            continue;
        option_t *option = out + found;
        int is_sample = find_in(w, lane, at, &option->found);
        is_sample = is_sample && option->found.stop - at <= lane->most;
        if (is_sample && !lane->holes) {
            int64_t held;
            const uint8_t *data =
                bytes_at(&w->window, at, option->found.stop - at, &held);
            is_sample = data && !has_zeros(data, held);
        }
        if (w->window.leaves)
            return 0;
        option->lane = i;
        found += is_sample;
    }
    w->keys[slot] = at;
    w->counts[slot] = (uint8_t)found;
    memcpy(w->known + (int64_t)slot * w->count, out, found * sizeof *out);
    return found;
}

static void forget(walk_t *w)
{
    memset(w->keys, 0xff, sizeof w->keys);
}

static int may_start(walk_t *w, int64_t at)
{
    const lane_t *loose = w->lanes + w->loose;
    int64_t held;
    if (loose->kind == EVEN)
        return at + loose->copied[UNIT] <= w->window.stop;
    const uint8_t *head = bytes_at(&w->window, at, 1, &held), *heads = loose->tables[0].buf;
    return head && held && heads[*head];
}

/* Whether a sample of a track may begin at a place of `size` bytes. */
static int starts_at(const lane_t *lane, const uint8_t *data, int64_t size, int64_t place)
{
    if (lane->kind == AAC)
        return ((const uint8_t *)lane->tables[5].buf)[data[place] >> 5];
    if (lane->kind == AV1)
        return ((const uint8_t *)lane->tables[2].buf)[data[place]];
    if (lane->copied[1] < 4 || size < 5 || place >= size - 4)
        return 1;
    return data[place] <= 8 && ((const uint8_t *)lane->tables[1].buf)[data[place + 4]];
}

static int is_length(const lane_t *loose, int64_t length)
{
    for (int64_t i = LENGTHS; loose->kind == EVEN && i < loose->numbers.count; i++)
        if (loose->copied[i] == length)
            return 1;
    return 0;
}

/* The next place where sound may end; 0: there is none. */
static int next_gap(walk_t *w, gaps_t *g, int64_t *stop)
{
    const lane_t *loose = w->lanes + w->loose;
    option_t out[MOST_LANES];
    int64_t longest = loose->copied[loose->kind == EVEN ? LONGEST : OPUS_LONGEST];
    if (g->phase == 0) {
        int64_t lengths = loose->kind == EVEN ? loose->numbers.count - LENGTHS : 0;
        while (g->place < lengths) {
            *stop = g->at + loose->copied[LENGTHS + g->place++];
            if (*stop < w->window.stop && options(w, *stop, out))
                return 1;
            if (w->window.leaves)
                return 0;
        }
        g->data = bytes_at(&w->window, g->at, longest, &g->held);
        if (!g->data)
            return 0;
        g->phase = 1;
        g->place = 1;
    }
    while (g->phase == 1) {
        if (g->tried >= MOST_GAPS)
            return 0;
        if (g->place >= g->held) {
            g->phase = 2;
            break;
        }
        int64_t place = g->place++;
        int starts = 0;
        for (int i = 0; i < w->count && !starts; i++)
            starts = i != w->loose && starts_at(w->lanes + i, g->data, g->held, place);
        if (!starts || is_length(loose, place) ||
            (loose->kind == EVEN && place % loose->copied[UNIT]))
            continue;
        if (options(w, g->at + place, out)) {
            g->tried++;
            *stop = g->at + place;
            return 1;
        }
        if (w->window.leaves)
            return 0;
    }
    if (g->phase == 2) {
        g->phase = 3;
        *stop = w->window.stop;
        return *stop - g->at <= longest && !w->window.cut;
    }
    return 0;
}

/* Whether so many samples follow one another from here on, or all to the end. */
static int chain(walk_t *w, int64_t at, int depth, int *steps, int framed)
{
    option_t out[MOST_LANES];
    if (at == w->window.stop || (depth <= 0 && !framed))
        return 1;
    if (--*steps < 0)
        return 0;
    int count = options(w, at, out);
    for (int i = 0; i < count && !w->window.leaves; i++)
        if (chain(w, out[i].found.stop, depth - 1, steps, 0))
            return 1;
    if (w->window.leaves || framed || w->loose < 0 || !may_start(w, at))
        return 0;
    gaps_t gaps = {.at = at};
    int64_t stop;
    while (next_gap(w, &gaps, &stop)) {
        if (chain(w, stop, depth - 1, steps, 1))
            return 1;
        if (w->window.leaves)
            return 0;
    }
    return 0;
}

static int goes_on(walk_t *w, int64_t at)
{
    option_t out[MOST_LANES];
    int steps = MOST_STEPS;
    if (at == w->window.stop) {
        if (w->window.cut)
            w->window.leaves = OTHER; /* may a sample of another track begin where it does? */
        return 1;
    }
    if (options(w, at, out))
        return 1;
    if (w->window.leaves)
        return 0;
    if (w->loose >= 0)
        return chain(w, at, 1, &steps, 0);
    w->window.leaves = OTHER; /* does one begin that ends after the last byte? */
    return 0;
}

/* How far sound is ahead, of so many packets in front of the picture that follows. */
static double ahead(const walk_t *w, int64_t count)
{
    const lane_t *loose = w->lanes + w->loose;
    int64_t packets = (loose->kind == EVEN ? 0 : loose->count) + w->unknown + count;
    /* volatile: each product is rounded, as in Python */
    volatile double heard = (double)packets * w->pace.sound;
    volatile double seen = (double)w->lanes[0].count * w->pace.picture;
    return heard - seen;
}

static int fits(const walk_t *w, int64_t count)
{
    if (!w->pace.there)
        return 1;
    double lead = ahead(w, count);
    return lead + w->pace.high >= w->pace.least && lead + w->pace.low <= w->pace.most;
}

static void pass_gap(walk_t *w, int64_t count)
{
    pace_t *p = &w->pace;
    double lead = ahead(w, count), low = p->least - lead, high = p->most - lead;
    p->low = p->low > low ? p->low : low;
    p->high = p->high < high ? p->high : high;
    if (p->low > p->high) {
        p->low = -1e9;
        p->high = 1e9;
    }
}

/* How packets that begin at some of these places fill all bytes: how many ways, 2: several. */
static int ways_of(const walk_t *w, const int64_t *heads, int count, int64_t size, split_t *split)
{
    uint8_t ways[MOST_HEADS + 1][MOST_PACKETS + 1] = {{1}};
    int8_t from[MOST_HEADS + 1][MOST_PACKETS + 1] = {{0}};
    int most = 0, all = 0, best = 0;
    for (int n = 1; n <= MOST_PACKETS; n++)
        if (fits(w, n))
            most = n;
    for (int i = 1; i <= count; i++) {
        int64_t place = i < count ? heads[i] : size;
        for (int low = 0; low < i; low++) {
            if (place - heads[low] > MOST_PACKET + 1)
                continue;
            for (int n = 0; n < most; n++)
                if (ways[low][n]) {
                    ways[i][n + 1] = ways[i][n + 1] + ways[low][n] > 1 ? 2 : 1;
                    from[i][n + 1] = (int8_t)low;
                }
        }
    }
    for (int n = 1; n <= most; n++)
        if (ways[count][n] && fits(w, n)) {
            all += ways[count][n];
            best = n;
        }
    if (all != 1)
        return all > 1 ? 2 : 0;
    split->count = best;
    for (int i = count, n = best; n > 0; i = from[i][n], n--)
        split->sizes[n - 1] = (i < count ? heads[i] : size) - heads[from[i][n]];
    return 1;
}

static int is_seen(const lane_t *loose, const uint8_t *data)
{
    const uint8_t *seen = loose->tables[1].buf;
    int64_t low = 0, high = loose->tables[1].len / LIKENESS;
    while (low < high) {
        int64_t middle = (low + high) / 2;
        int order = memcmp(data, seen + middle * LIKENESS, LIKENESS);
        if (!order)
            return 1;
        if (order < 0)
            high = middle;
        else
            low = middle + 1;
    }
    return 0;
}

/* The packets of Opus that fill these bytes; 0: they do not. */
static int split_opus(walk_t *w, int64_t start, int64_t stop, split_t *split)
{
    const lane_t *loose = w->lanes + w->loose;
    const uint8_t *is_head = loose->tables[0].buf;
    int64_t size = stop - start, held, heads[MOST_HEADS], seen[MOST_HEADS];
    int count = 0, known = 0, any = 0;
    split->count = 0;
    if (size <= 0 || size > loose->copied[OPUS_LONGEST] || !may_start(w, start))
        return 0;
    const uint8_t *data = bytes_at(&w->window, start, size, &held);
    if (!data || (!loose->holes && has_zeros(data, size)))
        return 0;
    for (int n = 1; n <= MOST_PACKETS && !any; n++)
        any = fits(w, n);
    if (!any)
        return 0;
    for (int64_t place = 0; place < size; place++) {
        if (!is_head[data[place]])
            continue;
        if (count == MOST_HEADS)
            return 1;
        if (place + LIKENESS <= size && is_seen(loose, data + place))
            seen[known++] = place;
        heads[count++] = place;
    }
    int ways = ways_of(w, heads, count, size, split);
    if (ways == 2) {
        split->count = 0;
        if (known && !seen[0] && ways_of(w, seen, known, size, split) != 1)
            split->count = 0;
    }
    /* the beginning of another packet may not be known */
    for (int64_t i = 0; i < split->count; i++)
        if (split->sizes[i] > loose->copied[LARGEST])
            split->count = 0;
    return ways > 0;
}

/* Samples of one size that fill these bytes; 0: they do not. */
static int split_even(walk_t *w, int64_t start, int64_t stop, split_t *split)
{
    const lane_t *loose = w->lanes + w->loose;
    const int64_t *numbers = loose->copied;
    int64_t length = stop - start;
    if (length <= 0 || length % numbers[UNIT])
        return 0;
    int several = numbers[SEVERAL] || (stop == w->window.stop && !w->window.cut);
    if (!is_length(loose, length) && !(several && CHUNKS * length <= numbers[LONGEST]))
        return 0;
    split->count = length / numbers[UNIT];
    return fits(w, split->count);
}

/* Whether what is found here cannot be the end of a sample with much in front of it. */
static int begins(const walk_t *w, const option_t *following, int count)
{
    for (int i = 0; i < count; i++)
        if (w->lanes[following[i].lane].kind == AV1 && !following[i].found.whole)
            return 0;
    return 1;
}

static int keep(walk_t *w, int lane, int64_t at, found_t *found)
{
    lane_t *kept = w->lanes + lane;
    if (kept->kind == AVC || kept->kind == HEVC)
        keep_units(kept, found);
    else if (kept->kind == AV1)
        keep_obus(kept, found);
    int64_t *row = next_row(&kept->rows);
    if (!row) {
        w->no_memory = 1;
        return 0;
    }
    row[0] = at;
    row[1] = found->stop - at;
    row[2] = found->order;
    row[3] = found->sync;
    row[4] = found->fresh;
    /* after sound it may be the end of a sample whose beginning was taken for sound */
    row[5] = lane != w->loose && (at != w->heard_to || found->whole);
    kept->count++;
    if (kept->kind == AV1) /* what is a sample depends on the samples before it */
        forget(w);
    return 1;
}

/* How many samples lie where they cannot be told apart; -1: not known. */
static int64_t counted(const walk_t *w)
{
    int64_t fitting = -1;
    for (int n = 1; n < MOST_COUNTED; n++)
        if (fits(w, n)) {
            if (fitting > 0)
                return -1;
            fitting = n;
        }
    return fitting;
}

static int keep_sound(walk_t *w, int64_t at, int64_t stop, const split_t *split)
{
    lane_t *loose = w->lanes + w->loose;
    int64_t count = split->count ? split->count : counted(w);
    found_t found = {.stop = stop, .sync = 1};
    w->heard_to = stop;
    if (w->pace.there && count > 0) {
        pass_gap(w, count);
        w->unknown += !split->count || loose->kind == EVEN ? count : 0;
    } else if (w->pace.there) {
        w->pace.low = -1e9;
        w->pace.high = 1e9;
    }
    if (!split->count) {
        int64_t *row = next_row(&w->lost);
        if (!row) {
            w->no_memory = 1;
            return 0;
        }
        row[0] = loose->count;
        row[1] = at;
        row[2] = stop;
        row[3] = count;
        return 1;
    }
    if (loose->kind == EVEN)
        return keep(w, w->loose, at, &found);
    for (int64_t i = 0; i < split->count; i++) {
        found.stop = at + split->sizes[i];
        if (!keep(w, w->loose, at, &found))
            return 0;
        at = found.stop;
    }
    return 1;
}

/* Sound that begins here, between others; where it ends, -1: none does. */
static int64_t pass_loose(walk_t *w, int64_t at)
{
    const lane_t *loose = w->lanes + w->loose;
    option_t following[MOST_LANES];
    int left = FEW * MOST_STEPS;
    gaps_t gaps = {.at = at};
    int64_t stop;
    split_t split = {0};
    if (!may_start(w, at))
        return -1;
    while (next_gap(w, &gaps, &stop)) {
        int count = options(w, stop, following), may_follow = !count;
        for (int i = 0; i < count; i++) {
            const lane_t *lane = w->lanes + following[i].lane;
            may_follow |= lane->kind != AV1 || follows_obus(lane, &following[i].found);
        }
        if (w->window.leaves)
            return -1;
        if (!may_follow)
            continue;
        int most = left < MOST_STEPS ? left : MOST_STEPS, steps = most;
        int continues = chain(w, stop, DEPTH, &steps, 1);
        if (w->window.leaves)
            return -1;
        left -= MOST_STEPS - (steps > 0 ? steps : 0);
        if (!continues || !(loose->kind == EVEN ? split_even : split_opus)(w, at, stop, &split))
            continue;
        int usual = 1;
        if (loose->kind == OPUS && !split.count)
            usual = stop - at <= loose->copied[LARGEST_CHUNK];
        if (!usual && (!count || !begins(w, following, count)))
            continue;
        if (w->window.leaves)
            return -1;
        return keep_sound(w, at, stop, &split) ? stop : -1;
    }
    return -1;
}

/* Keeps what begins here; where it ends, -1: nothing was kept. */
static int64_t step(walk_t *w, int64_t at)
{
    option_t found[MOST_LANES];
    int count = options(w, at, found), left = 0, chained = 0, steps = MOST_STEPS;
    for (int i = 0; i < count; i++) {
        const lane_t *lane = w->lanes + found[i].lane;
        int follows = lane->kind != AV1 || follows_obus(lane, &found[i].found);
        if (follows && goes_on(w, found[i].found.stop))
            found[left++] = found[i];
        if (w->window.leaves)
            return -1;
    }
    if (left > 1)
        for (int i = 0; i < left; i++) {
            if (chain(w, found[i].found.stop, 2 * DEPTH, &steps, 0) && !chained++)
                found[0] = found[i];
            if (w->window.leaves)
                return -1;
        }
    if (w->window.leaves)
        return -1;
    if (left)
        return keep(w, found[0].lane, at, &found[0].found) ? found[0].found.stop : -1;
    return w->loose < 0 ? -1 : pass_loose(w, at);
}

/* A lane of (kind, samples so far, bytes of one at most, numbers, table, ...). 0, or an error is raised. */
static int read_lane(lane_t *lane, PyObject *given)
{
    Py_ssize_t size = PyTuple_Check(given) ? PyTuple_Size(given) : 0;
    if (size < 4 || size > 4 + MOST_TABLES) {
        PyErr_SetString(PyExc_ValueError, "no track");
        return -1;
    }
    lane->kind = (int)PyLong_AsLong(PyTuple_GetItem(given, 0));
    lane->count = PyLong_AsLongLong(PyTuple_GetItem(given, 1));
    lane->most = PyLong_AsLongLong(PyTuple_GetItem(given, 2));
    lane->rows.width = ROW;
    if (PyErr_Occurred() || !column_to_read(PyTuple_GetItem(given, 3), &lane->numbers))
        return -1;
    for (Py_ssize_t i = 4; i < size; i++, lane->lent++)
        if (PyObject_GetBuffer(PyTuple_GetItem(given, i), lane->tables + lane->lent, PyBUF_SIMPLE))
            return -1;
    lane->copied = malloc(8 * ((size_t)lane->numbers.count + 1));
    if (!lane->copied) {
        PyErr_NoMemory();
        return -1;
    }
    for (Py_ssize_t i = 0; i < lane->numbers.count; i++)
        lane->copied[i] = number_at(&lane->numbers, i);
    Py_ssize_t count = lane->numbers.count;
    const int64_t *numbers = lane->copied;
    int right = count > 0 && lane->count >= 0;
    lane->holes = right && numbers[HOLES] != 0;
    if (right && (lane->kind == AVC || lane->kind == HEVC))
        return check_units(lane);
    if (right && lane->kind == AV1)
        return check_obus(lane);
    if (right && lane->kind == AAC)
        return check_aac(lane);
    if (lane->kind == EVEN) {
        right = right && count >= LENGTHS && numbers[UNIT] > 0 && numbers[LONGEST] >= 0;
        for (Py_ssize_t i = LENGTHS; right && i < count; i++)
            right = numbers[i] > 0 && numbers[i] < (int64_t)1 << 40;
    } else {
        right = right && lane->kind == OPUS && count == 4 && lane->lent == 2 &&
                lane->tables[0].len == 256 && !(lane->tables[1].len % LIKENESS);
    }
    if (!right)
        PyErr_SetString(PyExc_ValueError, "no such track");
    return right ? 0 : -1;
}

static void release(walk_t *w)
{
    for (int i = 0; i < w->count; i++) {
        lane_t *lane = w->lanes + i;
        if (lane->numbers.buffer.obj)
            PyBuffer_Release(&lane->numbers.buffer);
        for (int table = 0; table < lane->lent; table++)
            PyBuffer_Release(lane->tables + table);
        free(lane->copied);
        free(lane->quick);
        free(lane->rows.cells);
    }
    free(w->lost.cells);
    free(w->known);
    free(w);
}

/* (place, why, rows of each track, lost rows, states, (low, high), (unknown, heard_to)) */
static PyObject *result_of(walk_t *w, int64_t at)
{
    PyObject *rows = PyList_New(0), *states = PyList_New(0), *out = NULL;
    for (int i = 0; rows && states && i < w->count; i++) {
        lane_t *lane = w->lanes + i;
        PyObject *found = bytes_of(&lane->rows);
        PyObject *state = Py_BuildValue("(LLL)", (long long)lane->state[0],
                                        (long long)lane->state[1], (long long)lane->spent);
        int kept = found && state && !PyList_Append(rows, found) && !PyList_Append(states, state);
        Py_XDECREF(found);
        Py_XDECREF(state);
        if (!kept)
            goto done;
    }
    if (rows && states) {
        PyObject *lost = bytes_of(&w->lost);
        if (lost)
            out = Py_BuildValue("(LiOOO(dd)(LL))", (long long)at, w->window.leaves, rows, lost, states,
                                w->pace.low, w->pace.high, (long long)w->unknown,
                                (long long)w->heard_to);
        Py_XDECREF(lost);
    }
done:
    Py_XDECREF(rows);
    Py_XDECREF(states);
    return out;
}

/* Asks Python for bytes from a place on; for more of them where that was not enough. */
static int hold(walk_t *w, PyObject *read, int64_t at, int tries, Py_buffer *buffer)
{
    PyBuffer_Release(buffer);
    PyObject *got = PyObject_CallFunction(read, "Li", (long long)at, tries);
    long long base;
    int done = got && PyArg_Parse(got, "(y*L)", buffer, &base);
    Py_XDECREF(got);
    if (!done)
        return -1;
    if (base < 0 || base > at) {
        PyErr_SetString(PyExc_ValueError, "bytes from another place");
        return -1;
    }
    w->window.data = buffer->buf;
    w->window.base = base;
    w->window.held = base + buffer->len;
    return 0;
}

static int64_t pass(walk_t *w, int64_t at)
{
    while (at < w->window.stop) {
        int64_t next = step(w, at);
        if (w->window.leaves || w->no_memory)
            break;
        if (next < 0) {
            w->window.leaves = NOTHING;
            break;
        }
        at = next;
    }
    return at;
}

PyObject *walk_media(PyObject *self, PyObject *args)
{
    (void)self;
    Py_buffer data = {0};
    PyObject *read, *lanes, *pace, *out = NULL;
    long long start, stop, unknown, heard_to;
    int cut;
    if (!PyArg_ParseTuple(args, "OLLpO!O(LL)", &read, &start, &stop, &cut, &PyTuple_Type, &lanes,
                          &pace, &unknown, &heard_to))
        return NULL;
    walk_t *w = calloc(1, sizeof *w);
    Py_ssize_t count = PyTuple_Size(lanes);
    if (!w)
        return PyErr_NoMemory();
    w->loose = -1;
    w->unknown = unknown;
    w->heard_to = heard_to;
    w->lost.width = LOST_ROW;
    if (count < 1 || count > MOST_LANES || start < 0 || stop < start || stop > INT64_MAX >> 2) {
        PyErr_SetString(PyExc_ValueError, "no media data, or too many tracks");
        goto done;
    }
    for (; w->count < count; w->count++) {
        if (read_lane(w->lanes + w->count, PyTuple_GetItem(lanes, w->count))) {
            w->count++;
            goto done;
        }
        if (w->lanes[w->count].kind >= EVEN)
            w->loose = w->count;
    }
    if (pace != Py_None) {
        pace_t *p = &w->pace;
        if (!PyArg_Parse(pace, "(dddddd)", &p->sound, &p->picture, &p->least, &p->most, &p->low,
                         &p->high))
            goto done;
        p->there = w->loose >= 0;
    }
    w->known = malloc(sizeof(option_t) * SLOTS * (size_t)w->count);
    if (!w->known) {
        PyErr_NoMemory();
        goto done;
    }
    forget(w);
    w->window = (window_t){.data = NULL, .base = start, .held = start, .stop = stop, .cut = cut};
    int64_t at = start;
    for (int tries = 0; at < stop; tries++) {
        int64_t reached;
        if (hold(w, read, at, tries, &data))
            goto done;
        w->window.leaves = 0;
        Py_BEGIN_ALLOW_THREADS
        reached = pass(w, at);
        Py_END_ALLOW_THREADS
        if (w->window.leaves != MORE || w->no_memory || (reached == at && tries >= TRIES)) {
            at = reached;
            break;
        }
        if (reached > at)
            tries = 0;
        at = reached;
        if (at - start >= SPAN)
            break;
    }
    if (w->no_memory)
        PyErr_NoMemory();
    else
        out = result_of(w, at);
done:
    release(w);
    PyBuffer_Release(&data);
    return out;
}
