/* Access units of AVC and HEVC: repairing/nal_units.py, avc.py and hevc.py hold the same, with the
 * names of the standards.
 *
 * Parameter sets are Python's: it lends what slice headers need of each, and their bytes. Where
 * others stand among the samples, Python looks at them.
 */
#include "lanes.h"

enum { HEADER_BYTES = 96, SEI_BYTES = 2048, MOST_UNITS = 4096, MOST_LEAD = 32 };
enum { MOST_UNIT_BYTES = 1 << 27, MOST_SETS = 4096 };
enum { NONE, BEFORE, SLICE, AFTER };
enum { FIXED = 6, WIDTH = 9 };
/* Of `numbers`: bytes of a length, the state, whether pictures are sync that others recover at, and
 * how many sets follow. */
enum { LENGTH_SIZE = 1, STATE, OPEN_SYNC = 4, SETS };
/* Of a set of AVC, and of HEVC. */
enum { NUMBER, OWNER, PAIRED, MACROBLOCKS, PLANES, FRAME_BITS, FRAMES_ONLY, TYPE, ORDER_BITS };
enum { DEPENDENT = 2, OUTPUT, EXTRA, BLOCKS, BLOCK_BITS, HEVC_PLANES, HEVC_ORDER_BITS };

typedef struct {
    int first, sync, fresh, field, is_slice, mark;
    int64_t picture[8], head[MOST_HEAD];
} slice_t;

static int64_t ue(bits_t *b)
{
    int zeros = 0;
    while (!b->missing && !take(b, 1))
        if (++zeros > 32)
            b->missing = 1;
    if (b->missing)
        return 0;
    return ((int64_t)1 << zeros) - 1 + take(b, zeros);
}

static int64_t se(bits_t *b)
{
    int64_t code = ue(b);
    return code & 1 ? (code + 1) / 2 : -(code / 2);
}

/* Bytes without emulation prevention; how many. */
static int64_t plain(const uint8_t *data, int64_t size, uint8_t *out)
{
    int64_t count = 0;
    for (int64_t i = 0; i < size;) {
        if (i + 2 < size && !data[i] && !data[i + 1] && data[i + 2] == 3) {
            out[count++] = 0;
            out[count++] = 0;
            i += 3;
        } else {
            out[count++] = data[i++];
        }
    }
    return count;
}

/* Whether SEI messages fill these bytes, up to a byte 80. */
static int is_messages(const uint8_t *data, int64_t size)
{
    int64_t at = 0;
    while (at < size && !(at + 1 == size && data[at] == 0x80))
        for (int part = 0; part < 2; part++) {
            int64_t number = 0;
            for (; at < size && data[at] == 255; at++)
                number += 255;
            if (at >= size)
                return 0;
            number += data[at++];
            if (part)
                at += number;
        }
    return at < size;
}

static int is_sei(const uint8_t *data, int64_t size)
{
    uint8_t out[MOST_SETS];
    return size > 0 ? is_messages(out, plain(data, size, out)) : 0;
}

/* Whether the unit that begins here is an SEI with a recovery point of recovery_frame_cnt 0, in its
 * first bytes. */
static int recovers(window_t *w, const lane_t *lane, int64_t at)
{
    uint8_t out[SEI_BYTES];
    int64_t held, size, place = 0;
    const uint8_t *unit = bytes_at(w, at, SEI_BYTES, &held);
    if (!unit || !held || lane->kind != AVC || (unit[0] & 31) != 6)
        return 0;
    size = plain(unit + 1, held - 1, out);
    while (place + 2 <= size) {
        int64_t numbers[2] = {0, 0};
        for (int part = 0; part < 2; part++) {
            for (; place < size && out[place] == 255; place++)
                numbers[part] += 255;
            if (place == size)
                return 0;
            numbers[part] += out[place++];
        }
        if (numbers[0] == 6)
            return numbers[1] > 0 && place < size && out[place] >= 0x80;
        place += numbers[1];
    }
    return 0;
}

/* Filler data: FF, and 80 at the end where all of it is there. */
static int is_filler(const uint8_t *data, int64_t size, int whole)
{
    int64_t at = 0;
    while (at < size && data[at] == 255)
        at++;
    return whole ? at + 1 == size && data[at] == 0x80 : at == size;
}

static int avc_kind(const uint8_t *unit, int64_t held, int64_t size)
{
    int kind = unit[0] & 31, referred = (unit[0] & 0x60) != 0;
    if (unit[0] & 0x80)
        return NONE;
    switch (kind) {
    case 1:
        return SLICE;
    case 5:
        return referred ? SLICE : NONE;
    case 9:
        return size == 2 && !referred && (unit[1] & 31) == 16 ? BEFORE : NONE;
    case 6:
        return referred ? NONE : BEFORE;
    case 7:
    case 8:
        return referred && size <= MOST_SETS ? BEFORE : NONE;
    case 10:
    case 11:
        return NONE; /* they have no payload, and so no unit of them is long enough */
    case 12:
        return !referred && is_filler(unit + 1, held - 1, size <= held) ? AFTER : NONE;
    }
    return NONE;
}

static int hevc_kind(const uint8_t *unit, int64_t held, int64_t size)
{
    int kind = unit[0] >> 1, layer = (unit[0] & 1) << 5 | unit[1] >> 3, sub_layer = unit[1] & 7;
    uint8_t out[HEADER_BYTES];
    if (kind > 63 || layer || !sub_layer)
        return NONE;
    if (kind < 10 || (kind >= 16 && kind < 22))
        return kind < 16 || sub_layer == 1 ? SLICE : NONE;
    switch (kind) {
    case 35:
        return size == 3 && (unit[2] & 31) == 16 ? BEFORE : NONE;
    case 32:
    case 33:
    case 34:
        return size <= MOST_SETS ? BEFORE : NONE;
    case 39:
        return BEFORE;
    case 38:
        return is_filler(unit + 2, held - 2, size <= held) ? AFTER : NONE;
    case 40:
        if (size > held)
            return AFTER;
        return is_messages(out, plain(unit + 2, held - 2, out)) ? AFTER : NONE;
    }
    return NONE;
}

static int avc_slice(const lane_t *lane, const uint8_t *unit, int64_t held, slice_t *out)
{
    uint8_t bytes[HEADER_BYTES];
    bits_t b = {bytes, 0, 8 * plain(unit + 1, held - 1, bytes), 0};
    int idr = (unit[0] & 31) == 5, referred = (unit[0] & 0x60) != 0, field = 0;
    int64_t first = ue(&b), kind = ue(&b), number = ue(&b);
    if (b.missing || kind > 9 || number > 255 || !lane->set[number])
        return 0;
    const int64_t *set = lane->set[number];
    if (first >= set[MACROBLOCKS] || (idr && kind % 5 != 2 && kind % 5 != 4))
        return 0;
    if (set[PLANES])
        take(&b, 2);
    int64_t frame = take(&b, set[FRAME_BITS]), low = 0, delta = 0;
    if (idr && frame)
        return 0;
    if (!set[FRAMES_ONLY] && take(&b, 1))
        field = 1 + (int)take(&b, 1);
    int64_t epoch = idr ? ue(&b) : 0;
    if (epoch > 65535)
        return 0;
    if (set[TYPE] == 0) {
        low = take(&b, set[ORDER_BITS]);
        if (set[PAIRED] && !field)
            delta = se(&b);
    }
    if (b.missing)
        return 0;
    int mark = (unit[0] & 31) | (kind % 5 == 2 || kind % 5 == 4) << 5;
    *out = (slice_t){!first, idr, idr, field, 1, mark,
                     {frame, number, set[OWNER], field, idr, epoch, referred, low},
                     {number, frame, referred, low, delta, idr}};
    return 1;
}

static int hevc_slice(const lane_t *lane, const uint8_t *unit, int64_t held, slice_t *out)
{
    uint8_t bytes[HEADER_BYTES];
    bits_t b = {bytes, 0, 8 * plain(unit + 2, held - 2, bytes), 0};
    int kind = unit[0] >> 1, sub_layer = unit[1] & 7, depends = 0;
    int first = (int)take(&b, 1), intra = kind >= 16 && kind < 24;
    if (intra)
        take(&b, 1);
    int64_t number = ue(&b);
    if (b.missing || number > 255 || !lane->set[number])
        return 0;
    const int64_t *set = lane->set[number];
    if (!first) {
        depends = set[DEPENDENT] ? (int)take(&b, 1) : 0;
        int64_t address = take(&b, set[BLOCK_BITS]);
        if (b.missing || address <= 0 || address >= set[BLOCKS])
            return 0;
    }
    *out = (slice_t){.is_slice = 1, .mark = kind, .picture = {number, kind, sub_layer}};
    if (depends)
        return 1;
    take(&b, set[EXTRA]);
    int64_t sort = ue(&b);
    if (sort > 2)
        return 0;
    if (set[OUTPUT])
        take(&b, 1);
    if (set[HEVC_PLANES])
        take(&b, 2);
    int idr = kind == 19 || kind == 20;
    int64_t low = idr ? 0 : take(&b, set[HEVC_ORDER_BITS]);
    if (b.missing)
        return 0;
    int passed = (kind >= 6 && kind < 10) || (kind < 16 && !(kind & 1));
    int fresh = idr || (kind >= 16 && kind <= 18);
    out->first = first;
    out->sync = intra;
    out->fresh = fresh;
    int64_t head[MOST_HEAD] = {number, low, sub_layer == 1 && !passed, fresh};
    memcpy(out->head, head, sizeof head);
    return 1;
}

int is_lent(const Py_buffer *units, const uint8_t *unit, int64_t size)
{
    const uint8_t *at = units->buf, *stop = at + units->len;
    while (stop - at >= 4) {
        int64_t length = be32(at);
        at += 4;
        if (length > stop - at)
            break;
        if (length == size && !memcmp(at, unit, (size_t)size))
            return 1;
        at += length;
    }
    return 0;
}

/* Whether a unit that begins an access unit can be one; others than Python knows are its own. */
static int learn(window_t *w, const lane_t *lane, int64_t begin, int64_t size)
{
    int64_t count, header = lane->kind == AVC ? 1 : 2;
    const uint8_t *unit = bytes_at(w, begin, size, &count);
    if (!unit)
        return 0;
    int kind = lane->kind == AVC ? unit[0] & 31 : unit[0] >> 1;
    if (lane->kind == AVC ? kind == 6 : kind == 39)
        return is_sei(unit + header, size - header);
    if (lane->kind == AVC ? kind == 9 : kind == 35)
        return 1;
    if (is_lent(&lane->tables[0], unit, size))
        return 1;
    w->leaves = OTHER;
    return 0;
}

static int is_escaped(window_t *w, int64_t start, int64_t stop)
{
    if (start < w->low || start > w->high)
        w->low = w->high = start;
    if (w->high >= stop)
        return 1;
    int64_t count, from = w->high - 2 > start ? w->high - 2 : start;
    const uint8_t *data = bytes_at(w, from, stop - from, &count);
    if (!data)
        return 0;
    int64_t place = find_bare(data, count);
    w->high = place < 0 ? stop : from + place;
    return place < 0;
}

/* Kind of the unit that begins here, NONE: none does; its slice, and where it ends. */
static int read_unit(window_t *w, const lane_t *lane, int64_t at, const slice_t *last,
                     slice_t *slice, int64_t *end)
{
    int width = (int)lane->copied[LENGTH_SIZE], header = lane->kind == AVC ? 1 : 2;
    int64_t held, size = 0;
    const uint8_t *data = bytes_at(w, at, width + HEADER_BYTES, &held);
    if (!data || held <= width + header)
        return NONE;
    for (int i = 0; i < width; i++)
        size = size << 8 | data[i];
    const uint8_t *unit = data + width;
    held -= width;
    if (held > size)
        held = size;
    int64_t begin = at + width;
    *end = begin + size;
    if (size <= header || size > MOST_UNIT_BYTES || *end > w->stop)
        return NONE;
    int kind = lane->kind == AVC ? avc_kind(unit, held, size) : hevc_kind(unit, held, size);
    if (kind == NONE)
        return NONE;
    slice->is_slice = 0;
    if (kind == SLICE) {
        if (!(lane->kind == AVC ? avc_slice : hevc_slice)(lane, unit, held, slice))
            return NONE;
        if (!slice->first &&
            (!last || memcmp(slice->picture, last->picture, sizeof slice->picture)))
            return NONE;
    }
    const uint8_t *tail = bytes_at(w, *end - 1, 1, &held);
    if (!tail || !*tail || !is_escaped(w, begin, *end))
        return NONE;
    if (kind == BEFORE && size <= MOST_SETS && !learn(w, lane, begin, size))
        return NONE;
    return kind;
}

int find_units(window_t *w, lane_t *lane, int64_t at, found_t *found)
{
    slice_t begin = {0}, last = {0}, slice = {0};
    int64_t start = at, end = at, held;
    int is_open = 0, width = (int)lane->copied[LENGTH_SIZE], before = 0;
    uint8_t lead[1 + MOST_LEAD]; /* the mark of the first slice, and the types of units before it */
    for (int i = 0; i < MOST_UNITS; i++) {
        int kind = read_unit(w, lane, at, last.is_slice ? &last : NULL, &slice, &end);
        if (w->leaves)
            return 0;
        if (kind == NONE || (kind == BEFORE && begin.is_slice))
            break;
        if (kind == BEFORE && lane->copied[OPEN_SYNC])
            is_open |= recovers(w, lane, at + width);
        if (w->leaves || (kind == AFTER && !begin.is_slice))
            return 0;
        if (kind == BEFORE) {
            const uint8_t *unit = bytes_at(w, at + width, 1, &held);
            if (unit && before < MOST_LEAD)
                lead[1 + before] = lane->kind == AVC ? *unit & 31 : *unit >> 1 & 63;
            before++;
        }
        if (kind == SLICE) {
            if (!begin.is_slice) {
                begin = slice;
            } else if (slice.first) {
                /* the other field of the same frame belongs to the sample */
                int second = begin.field && slice.field && begin.field != slice.field &&
                             last.field == begin.field;
                if (!second || begin.picture[0] != slice.picture[0])
                    break;
            }
            last = slice;
        }
        at = end;
    }
    if (!begin.is_slice || at == start)
        return 0;
    lead[0] = (uint8_t)begin.mark;
    int whole = before <= MOST_LEAD && is_lent(&lane->tables[2], lead, 1 + before);
    *found = (found_t){
        .stop = at, .sync = begin.sync || is_open, .fresh = begin.fresh, .whole = whole};
    memcpy(found->head, begin.head, sizeof found->head);
    return 1;
}

/* The order of pictures continues over where its numbers begin again. */
static int64_t high_of(int64_t high, int64_t before, int64_t low, int64_t wrap)
{
    if (low < before && before - low >= wrap / 2)
        return high + wrap;
    if (low > before && low - before > wrap / 2)
        return high - wrap;
    return high;
}

void keep_units(lane_t *lane, found_t *found)
{
    const int64_t *head = found->head, *set = lane->set[head[0]];
    int64_t *state = lane->state;
    if (lane->kind == HEVC) {
        int64_t low = head[1], wrap = (int64_t)1 << set[HEVC_ORDER_BITS];
        int64_t high = head[3] ? 0 : high_of(state[0], state[1], low, wrap);
        if (head[2]) {
            state[0] = high;
            state[1] = low;
        }
        found->order = high + low;
        return;
    }
    int64_t frame = head[1], referred = head[2], low = head[3], delta = head[4], idr = head[5];
    if (set[TYPE] == 0) {
        int64_t wrap = (int64_t)1 << set[ORDER_BITS];
        int64_t high = high_of(idr ? 0 : state[0], idr ? 0 : state[1], low, wrap);
        if (referred) {
            state[0] = high;
            state[1] = low;
        }
        found->order = high + low + (delta < 0 ? delta : 0);
        return;
    }
    int64_t offset = idr ? 0 : state[0], before = idr ? 0 : state[1];
    if (frame < before)
        offset += (int64_t)1 << set[FRAME_BITS];
    state[0] = offset;
    state[1] = frame;
    found->order = 2 * (offset + frame) - !referred;
}

int check_units(lane_t *lane)
{
    int64_t count = lane->numbers.count, *numbers = lane->copied;
    int right = count >= FIXED && numbers[LENGTH_SIZE] >= 1 && numbers[LENGTH_SIZE] <= 4 &&
                numbers[SETS] >= 0 && numbers[SETS] <= 256 &&
                count == FIXED + WIDTH * numbers[SETS] && lane->lent == 3 &&
                lane->tables[1].len == 256;
    for (int64_t i = 0; right && i < numbers[SETS]; i++) {
        const int64_t *set = numbers + FIXED + i * WIDTH;
        if (lane->kind == AVC)
            right = set[FRAME_BITS] >= 0 && set[FRAME_BITS] <= 16 && set[ORDER_BITS] >= 0 &&
                    set[ORDER_BITS] <= 16 && (set[TYPE] == 0 || set[TYPE] == 2);
        else
            right = set[EXTRA] >= 0 && set[EXTRA] <= 7 && set[BLOCK_BITS] >= 0 &&
                    set[BLOCK_BITS] <= 32 && set[HEVC_ORDER_BITS] >= 0 &&
                    set[HEVC_ORDER_BITS] <= 16;
        right = right && set[NUMBER] >= 0 && set[NUMBER] < 256;
        if (right)
            lane->set[set[NUMBER]] = set;
    }
    lane->state[0] = right ? numbers[STATE] : 0;
    lane->state[1] = right ? numbers[STATE + 1] : 0;
    if (!right)
        PyErr_SetString(PyExc_ValueError, "no parameter sets of AVC or HEVC");
    return right ? 0 : -1;
}
