/* What is asked of the bytes of samples that are looked for.
 *
 * Of AAC Low Complexity (ISO/IEC 14496-3, 4.4.2) the end is known when all of the frame has been
 * read, coefficient by coefficient: repairing/sound.py holds the same in Python, with the names of
 * the standard, and lends the tables. Of FLAC it is where the checksum is right (repairing/flac.py).
 */
#include "lanes.h"

enum { SCE, CPE, CCE, LFE, DSE, PCE, FIL, END };
enum { RESERVED = 12, NOISE = 13, MOST_FILL = 16, MOST_BANDS = 64, MOST_GROUPS = 8 };
enum { WORDS = 1 << 16, BOOKS = 11, DELTAS = 1 << 19, MOST_BYTES = 8192 };
enum { QUICK_BITS = 10, QUICK = 1 << QUICK_BITS };

typedef struct {
    const uint8_t *data;
    int64_t held, at, stop;        /* bytes; bits */
    const uint16_t *books, *deltas;
    const uint16_t *quick;         /* the same by fewer bits, or NULL; see `quicken` */
    const int *count, (*edges)[MOST_BANDS]; /* of long and of short windows */
} frame_t;

typedef struct {
    int is_short, limit, groups, length[MOST_GROUPS];
} windows_t;

typedef struct {
    int codebook, low, high;
} section_t;

/* 32 bits from a place on; zeros after the end. */
static uint32_t peek(const frame_t *f, int64_t at)
{
    int64_t first = at >> 3;
    uint64_t word = 0;
    if (first + 8 <= f->held)
        return (uint32_t)(be64(f->data + first) << (at & 7) >> 32);
    for (int64_t i = first; i < first + 5; i++)
        word = word << 8 | (i < f->held ? f->data[i] : 0);
    return (uint32_t)(word >> (8 - (at & 7)));
}

static int skip(frame_t *f, int64_t bits)
{
    f->at += bits;
    return f->at <= f->stop;
}

/* Up to 16 bits; -1: the frame ends before. */
static int take_bits(frame_t *f, int bits)
{
    uint32_t word = peek(f, f->at);
    if (!skip(f, bits))
        return -1;
    return (int)(word >> (32 - bits));
}

/* escape_sequence: ones, a zero, and four bits more than ones (4.6.3.3). */
static int escape(frame_t *f)
{
    for (int ones = 0; ones < 9; ones++) {
        int bit = take_bits(f, 1);
        if (bit < 0)
            return 0;
        if (!bit)
            return skip(f, ones + 4);
    }
    return 0;
}

/* Pass so many codewords, with their signs and escape sequences. */
static int pass_codewords(frame_t *f, int codebook, int count)
{
    const uint16_t *table = f->books + (int64_t)(codebook - 1) * WORDS;
    const uint16_t *quick = f->quick ? f->quick + (int64_t)(codebook - 1) * QUICK : NULL;
    while (count > 0) {
        /* Several codewords of one load, as long as 16 bits are left for the next. */
        for (int is_short = 0; !is_short && count > 0 && (f->at >> 3) + 8 <= f->held;) {
            uint64_t word = be64(f->data + (f->at >> 3)) << (f->at & 7);
            int used = 0;
            for (; count > 0 && used <= 57 - 16; count--) {
                int entry = quick ? quick[word << used >> (64 - QUICK_BITS)] : 0;
                if (!entry)
                    entry = table[word << used >> 48];
                is_short = entry >> 6;
                if (is_short || (entry & 63) > 57 - used)
                    break;
                used += entry & 63;
            }
            is_short |= !used;
            f->at += used;
        }
        if (count-- <= 0)
            break;
        int entry = table[peek(f, f->at) >> 16];
        f->at += entry & 63;
        for (int escapes = entry >> 6; escapes > 0; escapes--)
            if (!escape(f))
                return 0;
        if (f->at > f->stop)
            return 0;
    }
    return 1;
}

static int fill(frame_t *f)
{
    int count = take_bits(f, 4);
    if (count == 15) {
        int more = take_bits(f, 8);
        if (more < 0)
            return 0;
        count += more - 1;
    }
    return count >= 0 && skip(f, 8 * count);
}

static int stream(frame_t *f)
{
    if (!skip(f, 4))
        return 0;
    int aligned = take_bits(f, 1), count = aligned < 0 ? -1 : take_bits(f, 8);
    if (count == 255) {
        int more = take_bits(f, 8);
        count = more < 0 ? -1 : count + more;
    }
    if (count < 0)
        return 0;
    if (aligned && !skip(f, -f->at & 7))
        return 0;
    return skip(f, 8 * count);
}

static int read_windows(frame_t *f, windows_t *w)
{
    int reserved = take_bits(f, 1);
    if (reserved)
        return 0;
    int sequence = take_bits(f, 2);
    if (sequence < 0 || !skip(f, 1))
        return 0;
    w->is_short = sequence == 2;
    w->groups = 1;
    w->length[0] = 1;
    w->limit = take_bits(f, w->is_short ? 4 : 6);
    if (w->limit < 0)
        return 0;
    if (w->is_short) {
        for (int i = 0; i < 7; i++) {
            int grouped = take_bits(f, 1);
            if (grouped < 0)
                return 0;
            if (grouped)
                w->length[w->groups - 1]++;
            else
                w->length[w->groups++] = 1;
        }
    } else if (take_bits(f, 1)) {
        return 0;
    }
    return w->limit < f->count[w->is_short];
}

/* section_data; the sections of all groups, MOST_BANDS each. -1: damaged. */
static int read_sections(frame_t *f, const windows_t *w, section_t *sections, int *counts)
{
    int width = w->is_short ? 3 : 5, full = (1 << width) - 1;
    for (int group = 0; group < w->groups; group++) {
        int band = 0, count = 0;
        while (band < w->limit) {
            int codebook = take_bits(f, 4), high = band, step;
            if (codebook < 0 || codebook == RESERVED)
                return -1;
            while ((step = take_bits(f, width)) == full) {
                high += step;
                if (high > w->limit)
                    high = w->limit + 1;
            }
            if (step < 0)
                return -1;
            high += step;
            if (high > w->limit || high == band)
                return -1;
            sections[group * MOST_BANDS + count++] = (section_t){codebook, band, high};
            band = high;
        }
        counts[group] = count;
    }
    return 0;
}

static int scale_factors(frame_t *f, const windows_t *w, const section_t *sections,
                         const int *counts, int gain)
{
    int noisy = 0;
    for (int group = 0; group < w->groups; group++)
        for (int i = 0; i < counts[group]; i++) {
            section_t s = sections[group * MOST_BANDS + i];
            for (int band = s.low; band < s.high && s.codebook; band++) {
                if (s.codebook == NOISE && !noisy) {
                    noisy = 1;
                    if (!skip(f, 9))
                        return 0;
                    continue;
                }
                uint32_t word = peek(f, f->at);
                int entry = f->quick ? f->quick[BOOKS * QUICK + (word >> (32 - QUICK_BITS))] : 0;
                if (!entry)
                    entry = f->deltas[word >> 13];
                if (!entry || !skip(f, entry & 31))
                    return 0;
                if (s.codebook < NOISE) {
                    gain += (entry >> 5) - 64;
                    if (gain < 0 || gain > 255)
                        return 0;
                }
            }
        }
    return 1;
}

static int noise_shaping(frame_t *f, const windows_t *w)
{
    for (int window = 0; window < (w->is_short ? 8 : 1); window++) {
        int filters = take_bits(f, w->is_short ? 1 : 2);
        int resolution = filters > 0 ? take_bits(f, 1) : 0;
        if (filters < 0 || resolution < 0)
            return 0;
        for (; filters > 0; filters--) {
            if (!skip(f, w->is_short ? 4 : 6))
                return 0;
            int order = take_bits(f, w->is_short ? 3 : 5);
            if (order < 0)
                return 0;
            if (order) {
                if (!skip(f, 1))
                    return 0;
                int compressed = take_bits(f, 1);
                if (compressed < 0 || !skip(f, (3 + resolution - compressed) * order))
                    return 0;
            }
        }
    }
    return 1;
}

static int channel(frame_t *f, const windows_t *shared)
{
    section_t sections[MOST_GROUPS * MOST_BANDS];
    int counts[MOST_GROUPS];
    windows_t own;
    int gain = take_bits(f, 8);
    if (gain < 0)
        return 0;
    if (!shared) {
        if (!read_windows(f, &own))
            return 0;
        shared = &own;
    }
    if (read_sections(f, shared, sections, counts) ||
        !scale_factors(f, shared, sections, counts, gain))
        return 0;
    int pulses = take_bits(f, 1);
    if (pulses < 0 || (pulses && shared->is_short))
        return 0;
    if (pulses) {
        int count = take_bits(f, 2), first = count < 0 ? -1 : take_bits(f, 6);
        if (first < 0 || first >= f->count[0] || !skip(f, 9 * (count + 1)))
            return 0;
    }
    int shaped = take_bits(f, 1);
    if (shaped < 0 || (shaped && !noise_shaping(f, shared)))
        return 0;
    if (take_bits(f, 1))
        return 0;
    const int *edges = f->edges[shared->is_short];
    for (int group = 0; group < shared->groups; group++)
        for (int i = 0; i < counts[group]; i++) {
            section_t s = sections[group * MOST_BANDS + i];
            if (!s.codebook || s.codebook >= RESERVED)
                continue;
            int count = (edges[s.high] - edges[s.low]) * shared->length[group];
            if (!pass_codewords(f, s.codebook, count / (s.codebook < 5 ? 4 : 2)))
                return 0;
        }
    return 1;
}

static int pair(frame_t *f)
{
    windows_t windows;
    int common = take_bits(f, 1);
    if (common < 0)
        return 0;
    if (common) {
        if (!read_windows(f, &windows))
            return 0;
        int mask = take_bits(f, 2);
        if (mask < 0 || mask == 3)
            return 0;
        if (mask == 1 && !skip(f, windows.groups * windows.limit))
            return 0;
    }
    return channel(f, common ? &windows : NULL) && channel(f, common ? &windows : NULL);
}

/* raw_data_block; `elements` of so many are those that there are, NULL: any. */
static int is_frame(frame_t *f, const uint8_t *elements, Py_ssize_t expected)
{
    int count = 0, filled = 0, kind;
    while ((kind = take_bits(f, 3)) != END) {
        if (kind == SCE || kind == CPE || kind == LFE) {
            if (elements && (count >= expected || elements[count] != kind))
                return 0;
            count++;
            if (!skip(f, 4) || !(kind == CPE ? pair(f) : channel(f, NULL)))
                return 0;
        } else if ((kind == FIL || kind == DSE) && filled < MOST_FILL) {
            filled++;
            if (!(kind == FIL ? fill(f) : stream(f)))
                return 0;
        } else {
            return 0;
        }
    }
    return elements ? count == expected : count > 0;
}

/* Copies where bands begin. 0: they do not rise from 0 to 1024 at most. */
static int copy_bands(const Py_buffer *given, int *edges)
{
    Py_ssize_t count = given->len / 2;
    if (count < 2 || count > MOST_BANDS)
        return 0;
    uint16_t column[MOST_BANDS];
    memcpy(column, given->buf, 2 * (size_t)count);
    for (Py_ssize_t i = 0; i < count; i++) {
        edges[i] = column[i];
        if (edges[i] > 1024 || (i && edges[i] <= edges[i - 1]))
            return 0;
    }
    return (int)count;
}

/* Whether tables are as large as they have to be; copies where bands begin. */
static int are_tables(const Py_buffer *books, const Py_buffer *deltas, const Py_buffer *bands,
                      int edges[2][MOST_BANDS], int *count)
{
    count[0] = copy_bands(&bands[0], edges[0]);
    count[1] = copy_bands(&bands[1], edges[1]);
    if (count[0] && count[1] && books->len == 2 * (Py_ssize_t)BOOKS * WORDS &&
        deltas->len == 2 * (Py_ssize_t)DELTAS &&
        !(((uintptr_t)books->buf | (uintptr_t)deltas->buf) & 1))
        return 1;
    PyErr_SetString(PyExc_ValueError, "tables of other sizes");
    return 0;
}

PyObject *aac_frame(PyObject *self, PyObject *args)
{
    (void)self;
    Py_buffer data, books, deltas, bands[2], elements;
    int count[2], edges[2][MOST_BANDS];
    if (!PyArg_ParseTuple(args, "y*y*y*y*y*y*", &data, &books, &deltas, &bands[0], &bands[1],
                          &elements))
        return NULL;
    PyObject *out = NULL;
    if (data.len > PY_SSIZE_T_MAX >> 4)
        PyErr_SetString(PyExc_ValueError, "a frame of so many bytes");
    else if (are_tables(&books, &deltas, bands, edges, count)) {
        frame_t f = {data.buf, data.len, 0, 8 * (int64_t)data.len, books.buf, deltas.buf, NULL, count,
                     edges};
        int whole = is_frame(&f, elements.len ? elements.buf : NULL, elements.len);
        int64_t bits = f.at < f.stop ? f.at : f.stop;
        out = Py_BuildValue("LL", whole ? (long long)((bits + 7) >> 3) : 0LL, (long long)bits);
    }
    for (int i = 0; i < 2; i++)
        PyBuffer_Release(&bands[i]);
    PyBuffer_Release(&data);
    PyBuffer_Release(&books);
    PyBuffer_Release(&deltas);
    PyBuffer_Release(&elements);
    return out;
}

/* What each 10 bits begin with, where they decide it, else 0: so much is near to the processor. */
static void quicken(const uint16_t *table, int each, uint16_t *quick)
{
    for (int i = 0; i < QUICK; i++, table += each) {
        int other = 0;
        for (int k = 1; k < each; k++)
            other |= table[k] ^ table[0];
        quick[i] = other ? 0 : table[0];
    }
}

/* Of a lane of AAC: codebooks, deltas, bands of long and short windows, elements, first bits. */
int check_aac(lane_t *lane)
{
    if (lane->lent != 6 || lane->tables[5].len != 8) {
        PyErr_SetString(PyExc_ValueError, "no tables of AAC");
        return -1;
    }
    if (!are_tables(&lane->tables[0], &lane->tables[1], &lane->tables[2], lane->edges, lane->bands))
        return -1;
    lane->quick = malloc(2 * (BOOKS + 1) * QUICK);
    if (!lane->quick) {
        PyErr_NoMemory();
        return -1;
    }
    for (int book = 0; book < BOOKS; book++)
        quicken((const uint16_t *)lane->tables[0].buf + (int64_t)book * WORDS, WORDS / QUICK,
                lane->quick + book * QUICK);
    quicken(lane->tables[1].buf, DELTAS / QUICK, lane->quick + BOOKS * QUICK);
    return 0;
}

int find_aac(window_t *w, lane_t *lane, int64_t at, found_t *found)
{
    int64_t held;
    const Py_buffer *tables = lane->tables;
    const uint8_t *data = bytes_at(w, at, MOST_BYTES, &held), *leads = tables[5].buf;
    if (!data || !held || !leads[data[0] >> 5])
        return 0;
    frame_t f = {data, held, 0, 8 * held, tables[0].buf, tables[1].buf, lane->quick, lane->bands,
                 (const int(*)[MOST_BANDS])lane->edges};
    int whole = is_frame(&f, tables[4].len ? tables[4].buf : NULL, tables[4].len);
    int64_t bits = f.at < f.stop ? f.at : f.stop;
    lane->spent += bits >> 3;
    *found = (found_t){.stop = at + ((bits + 7) >> 3), .sync = 1, .whole = 1};
    return whole;
}

/* Where a pattern stands first, or -1: bytes.find, several times as fast. */
PyObject *find_bytes(PyObject *self, PyObject *args)
{
    (void)self;
    Py_buffer data, pattern;
    if (!PyArg_ParseTuple(args, "y*y*", &data, &pattern))
        return NULL;
    const uint8_t *begin = data.buf, *at = begin, *first = pattern.buf;
    Py_ssize_t left = data.len - pattern.len, found = pattern.len ? -1 : 0;
    while (found < 0 && left >= 0) {
        const uint8_t *place = memchr(at, *first, (size_t)left + 1);
        if (!place)
            break;
        if (!memcmp(place, first, (size_t)pattern.len))
            found = place - begin;
        left -= place + 1 - at;
        at = place + 1;
    }
    PyBuffer_Release(&data);
    PyBuffer_Release(&pattern);
    return PyLong_FromSsize_t(found);
}

/* Where two zeros begin that 0, 1 or 2 follows, or -1: in a NAL unit there are none
 * (ISO/IEC 14496-10, 7.4.1). */
int64_t find_bare(const uint8_t *data, int64_t size)
{
    int64_t at = 0;
    while (at + 2 < size) {
        /* Blocks without two zeros are passed at the speed of memory: compilers know this loop. */
        for (; at + 66 <= size; at += 64) {
            uint8_t any = 0;
            for (int i = 0; i < 64; i++)
                any |= (uint8_t)-!(data[at + i] | data[at + i + 1]);
            if (any)
                break;
        }
        int64_t stop = at + 66 <= size ? at + 64 : size - 2;
        for (; at < stop; at++)
            if (!data[at] && !data[at + 1] && data[at + 2] < 3)
                return at;
    }
    return -1;
}

PyObject *bare_zeros(PyObject *self, PyObject *args)
{
    (void)self;
    Py_buffer data;
    if (!PyArg_ParseTuple(args, "y*", &data))
        return NULL;
    int64_t found = find_bare(data.buf, data.len);
    PyBuffer_Release(&data);
    return PyLong_FromLongLong(found);
}

/* CRC-16 of FLAC: x^16 + x^15 + x^2 + 1 (RFC 9639, 9.3). */
PyObject *crc16_ends(PyObject *self, PyObject *args)
{
    (void)self;
    Py_buffer data;
    Py_ssize_t least, most;
    if (!PyArg_ParseTuple(args, "y*nn", &data, &least, &most))
        return NULL;
    uint16_t table[256];
    for (int byte = 0; byte < 256; byte++) {
        unsigned value = (unsigned)byte << 8;
        for (int bit = 0; bit < 8; bit++)
            value = value << 1 ^ (value & 0x8000 ? 0x8005 : 0);
        table[byte] = (uint16_t)value;
    }
    const uint8_t *at = data.buf;
    PyObject *ends = PyList_New(0);
    uint16_t value = 0;
    for (Py_ssize_t i = 0; ends && i < data.len; i++) {
        value = (uint16_t)(value << 8 ^ table[value >> 8 ^ at[i]]);
        if (value || i + 1 < least)
            continue;
        PyObject *count = PyLong_FromSsize_t(i + 1);
        if (!count || PyList_Append(ends, count))
            Py_CLEAR(ends);
        Py_XDECREF(count);
        if (ends && PyList_Size(ends) >= most)
            break;
    }
    PyBuffer_Release(&data);
    return ends;
}
