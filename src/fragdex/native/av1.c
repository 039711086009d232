/* Temporal units of AV1: repairing/av1.py holds the same, with the names of the standard.
 *
 * The sequence header is Python's: it lends what frame headers need of it, and its bytes.
 */
#include "lanes.h"

enum { SEQUENCE = 1, DELIMITER, HEADER, TILES, METADATA, FRAME, COPY };
enum { KEY = 0, SWITCH = 3, SELECT = 2, NEAR = 8, FAR = 64 };
enum { MOST_UNITS = 256, HEAD_BYTES = 64, MOST_UNIT_BYTES = 1 << 27, MOST_SEQUENCE = 4096 };
/* Of `numbers`. */
enum { SHOWN = 1, COMING, EVEN_STEPS, LEARNED, AHEAD, REDUCED, ID_BITS, TOOLS, MOTION, ORDER, TIMED,
       LEADS, DELIMITERS, ALL };

typedef struct {
    int kind;
    int64_t begin, stop;
} obu_t;

typedef struct {
    int repeats, key, shown;
    int64_t hint;
} frame_t;

/* A number of seven bits a byte; its bytes, 0: none, or not as short as can be. */
static int leb128(const uint8_t *data, int64_t held, int64_t *value)
{
    *value = 0;
    for (int i = 0; i < held && i < 8; i++) {
        *value |= (int64_t)(data[i] & 0x7f) << 7 * i;
        if (!(data[i] & 0x80))
            return data[i] || !i ? i + 1 : 0;
    }
    return 0;
}

static int read_obu(window_t *w, int64_t at, obu_t *obu)
{
    int64_t held, size;
    const uint8_t *head = bytes_at(w, at, 10, &held);
    if (!head || !held || head[0] & 0x81 || !(head[0] & 2))
        return 0;
    int kind = head[0] >> 3 & 15, first = head[0] & 4 ? 2 : 1;
    if (kind < SEQUENCE || kind > COPY || (first == 2 && (held < 2 || head[1] & 7)))
        return 0;
    int used = leb128(head + first, held - first, &size);
    int64_t begin = at + first + used;
    if (!used || size > MOST_UNIT_BYTES || begin + size > w->stop || (!size && kind != DELIMITER))
        return 0;
    *obu = (obu_t){kind, begin, begin + size};
    return 1;
}

/* The beginning of a frame header. */
static int read_frame(const int64_t *numbers, const uint8_t *head, int64_t held, frame_t *frame)
{
    bits_t b = {head, 0, 8 * held, 0};
    if (numbers[REDUCED]) {
        *frame = (frame_t){0, 1, 1, -1};
        return 1;
    }
    if (take(&b, 1)) {
        take(&b, 3);
        if (b.missing || (!numbers[ID_BITS] && b.stop - b.at == 4 && take(&b, 4) != 8))
            return 0;
        *frame = (frame_t){1, 0, 1, -1};
        return held < 4;
    }
    int64_t kind = take(&b, 2);
    int shown = (int)take(&b, 1);
    *frame = (frame_t){0, kind == KEY, shown, -1};
    if (b.missing)
        return 0;
    if (!numbers[ORDER] || numbers[TIMED])
        return 1;
    if (!shown)
        take(&b, 1);
    if (kind != SWITCH && !(kind == KEY && shown))
        take(&b, 1);
    take(&b, 1);
    int64_t tools = numbers[TOOLS] == SELECT ? take(&b, 1) : numbers[TOOLS];
    if (tools && numbers[MOTION] == SELECT)
        take(&b, 1);
    take(&b, numbers[ID_BITS]);
    if (kind != SWITCH)
        take(&b, 1);
    frame->hint = take(&b, numbers[ORDER]);
    return !b.missing;
}

/* Places in the order of output from another picture. */
static int64_t ahead(const lane_t *lane, int64_t hint, int64_t of)
{
    return (hint - of) & (((int64_t)1 << lane->copied[ORDER]) - 1);
}

static int is_near(const lane_t *lane, const frame_t *frame)
{
    const int64_t *state = lane->state; /* shown last, and a key frame that was seen ahead */
    if (state[0] < 0)
        return 1;
    int64_t most = NEAR + (frame->shown ? 0 : lane->copied[LEARNED] ? lane->copied[AHEAD] : FAR);
    int64_t step = ahead(lane, frame->hint, state[0]);
    if (0 < step && step <= most)
        return 1;
    step = state[1] < 0 ? 0 : ahead(lane, frame->hint, state[1]);
    return 0 < step && step <= most;
}

static int is_found(lane_t *lane, found_t *found, int64_t at, int sync, int64_t hint, int first)
{
    int whole = first == DELIMITER || !lane->copied[LEADS];
    if (sync)
        lane->state[1] = hint;
    if (first == SEQUENCE)
        whole = !lane->copied[DELIMITERS];
    *found = (found_t){.stop = at, .sync = sync, .whole = whole, .head = {hint}};
    return 1;
}

/* Of a frame header show_existing_frame alone, or with frame_type and show_frame. */
static int is_usual(const lane_t *lane, uint8_t first)
{
    const uint8_t *kinds = lane->tables[1].buf;
    return !lane->copied[LEARNED] || kinds[first & 0x80 ? 8 : first >> 4];
}

int find_obus(window_t *w, lane_t *lane, int64_t at, found_t *found)
{
    int sync = 0, sequenced = 0, is_open = 0, before = 0, first = 0;
    int64_t start = at, hint = -1, held;
    obu_t obu, following;
    frame_t frame;
    for (int i = 0; i < MOST_UNITS; i++) {
        if (!read_obu(w, at, &obu) || obu.stop - start > lane->most)
            return 0;
        int64_t size = obu.stop - obu.begin;
        const uint8_t *head = bytes_at(w, obu.begin, size < HEAD_BYTES ? size : HEAD_BYTES, &held);
        if (!head)
            return 0;
        at = obu.stop;
        first = i ? first : obu.kind;
        switch (obu.kind) {
        case DELIMITER:
            if (size || at - start > 2)
                return 0;
            break;
        case SEQUENCE:
            size = size < MOST_SEQUENCE ? size : MOST_SEQUENCE;
            head = bytes_at(w, obu.begin, size, &held);
            if (!head)
                return 0;
            if (!is_lent(&lane->tables[0], head, held)) {
                if (!lane->copied[LEARNED])
                    w->leaves = OTHER;
                return 0;
            }
            if (before)
                return 0;
            sequenced = 1;
            break;
        case METADATA:
            before = 1;
            if (head[0] < 1 || head[0] > 5)
                return 0;
            break;
        case HEADER:
        case FRAME:
        case COPY:
            if (!is_usual(lane, head[0]) || !read_frame(lane->copied, head, held, &frame) ||
                (obu.kind == FRAME && frame.repeats))
                return 0;
            if (frame.key && frame.shown && !sequenced)
                return 0;
            if (frame.hint >= 0 && !(frame.key && sequenced) && !is_near(lane, &frame))
                return 0;
            sync = sync || (sequenced && frame.key && frame.shown);
            if (frame.shown)
                hint = frame.hint;
            if (frame.shown && (obu.kind == FRAME || frame.repeats))
                return is_found(lane, found, at, sync, hint, first);
            is_open = frame.shown;
            break;
        case TILES:
            if (is_open && (!read_obu(w, at, &following) || following.kind != TILES))
                return !w->leaves && is_found(lane, found, at, sync, hint, first);
            break;
        }
    }
    return 0;
}

int follows_obus(const lane_t *lane, const found_t *found)
{
    if (!lane->copied[EVEN_STEPS] || found->head[0] < 0 || found->sync || lane->state[0] < 0)
        return 1;
    return ahead(lane, found->head[0], lane->state[0]) == (1 & (((int64_t)1 << lane->copied[ORDER]) - 1));
}

void keep_obus(lane_t *lane, const found_t *found)
{
    if (found->sync)
        lane->state[1] = -1;
    if (found->head[0] >= 0)
        lane->state[0] = found->head[0];
    else if (lane->state[0] >= 0)
        lane->state[0]++;
}

int check_obus(lane_t *lane)
{
    const int64_t *numbers = lane->copied;
    if (lane->numbers.count != ALL || lane->lent != 3 || lane->tables[1].len != 9 ||
        lane->tables[2].len != 256 || numbers[ID_BITS] < 0 || numbers[ID_BITS] > 32 ||
        numbers[ORDER] < 0 || numbers[ORDER] > 8) {
        PyErr_SetString(PyExc_ValueError, "no sequence header of AV1");
        return -1;
    }
    lane->state[0] = numbers[SHOWN];
    lane->state[1] = numbers[COMING];
    return 0;
}
