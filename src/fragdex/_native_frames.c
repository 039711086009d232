/* What is asked of the bytes of samples that are looked for.
 *
 * Of AAC Low Complexity (ISO/IEC 14496-3, 4.4.2) the end is known when all of the frame has been
 * read, coefficient by coefficient: repairing/sound.py holds the same in Python, with the names of
 * the standard, and lends the tables. Of FLAC it is where the checksum is right (repairing/flac.py).
 */
#include "_native.h"

enum { SCE, CPE, CCE, LFE, DSE, PCE, FIL, END };
enum { RESERVED = 12, NOISE = 13, MOST_FILL = 16, MOST_BANDS = 64, MOST_GROUPS = 8 };
enum { WORDS = 1 << 16, BOOKS = 11, DELTAS = 1 << 19 };

typedef struct {
    const uint8_t *data;
    int64_t held, at, stop;        /* bytes; bits */
    const uint16_t *books, *deltas;
    int count[2], edges[2][MOST_BANDS]; /* of long and of short windows */
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
static int take(frame_t *f, int bits)
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
        int bit = take(f, 1);
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
    while (count-- > 0) {
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
    int count = take(f, 4);
    if (count == 15) {
        int more = take(f, 8);
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
    int aligned = take(f, 1), count = aligned < 0 ? -1 : take(f, 8);
    if (count == 255) {
        int more = take(f, 8);
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
    int reserved = take(f, 1);
    if (reserved)
        return 0;
    int sequence = take(f, 2);
    if (sequence < 0 || !skip(f, 1))
        return 0;
    w->is_short = sequence == 2;
    w->groups = 1;
    w->length[0] = 1;
    w->limit = take(f, w->is_short ? 4 : 6);
    if (w->limit < 0)
        return 0;
    if (w->is_short) {
        for (int i = 0; i < 7; i++) {
            int grouped = take(f, 1);
            if (grouped < 0)
                return 0;
            if (grouped)
                w->length[w->groups - 1]++;
            else
                w->length[w->groups++] = 1;
        }
    } else if (take(f, 1)) {
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
            int codebook = take(f, 4), high = band, step;
            if (codebook < 0 || codebook == RESERVED)
                return -1;
            while ((step = take(f, width)) == full) {
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
                int entry = f->deltas[peek(f, f->at) >> 13];
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
        int filters = take(f, w->is_short ? 1 : 2);
        int resolution = filters > 0 ? take(f, 1) : 0;
        if (filters < 0 || resolution < 0)
            return 0;
        for (; filters > 0; filters--) {
            if (!skip(f, w->is_short ? 4 : 6))
                return 0;
            int order = take(f, w->is_short ? 3 : 5);
            if (order < 0)
                return 0;
            if (order) {
                if (!skip(f, 1))
                    return 0;
                int compressed = take(f, 1);
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
    int gain = take(f, 8);
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
    int pulses = take(f, 1);
    if (pulses < 0 || (pulses && shared->is_short))
        return 0;
    if (pulses) {
        int count = take(f, 2), first = count < 0 ? -1 : take(f, 6);
        if (first < 0 || first >= f->count[0] || !skip(f, 9 * (count + 1)))
            return 0;
    }
    int shaped = take(f, 1);
    if (shaped < 0 || (shaped && !noise_shaping(f, shared)))
        return 0;
    if (take(f, 1))
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
    int common = take(f, 1);
    if (common < 0)
        return 0;
    if (common) {
        if (!read_windows(f, &windows))
            return 0;
        int mask = take(f, 2);
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
    while ((kind = take(f, 3)) != END) {
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

PyObject *aac_frame(PyObject *self, PyObject *args)
{
    (void)self;
    Py_buffer data, books, deltas, bands[2], elements;
    if (!PyArg_ParseTuple(args, "y*y*y*y*y*y*", &data, &books, &deltas, &bands[0], &bands[1],
                          &elements))
        return NULL;
    frame_t f = {.data = data.buf, .held = data.len, .books = books.buf, .deltas = deltas.buf};
    PyObject *out = NULL;
    f.count[0] = copy_bands(&bands[0], f.edges[0]);
    f.count[1] = copy_bands(&bands[1], f.edges[1]);
    if (!f.count[0] || !f.count[1] || books.len != 2 * (Py_ssize_t)BOOKS * WORDS ||
        deltas.len != 2 * (Py_ssize_t)DELTAS || data.len > PY_SSIZE_T_MAX >> 4 ||
        ((uintptr_t)books.buf | (uintptr_t)deltas.buf) & 1) {
        PyErr_SetString(PyExc_ValueError, "tables of other sizes");
    } else {
        f.stop = 8 * (int64_t)data.len;
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
PyObject *bare_zeros(PyObject *self, PyObject *args)
{
    (void)self;
    Py_buffer data;
    if (!PyArg_ParseTuple(args, "y*", &data))
        return NULL;
    const uint8_t *begin = data.buf, *at = begin, *stop = begin + data.len;
    Py_ssize_t found = -1;
    while (stop - at > 2 && (at = memchr(at, 0, (size_t)(stop - at - 2)))) {
        if (!at[1] && at[2] < 3) {
            found = at - begin;
            break;
        }
        at += at[1] ? 2 : 1;
    }
    PyBuffer_Release(&data);
    return PyLong_FromSsize_t(found);
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
