/* A moov of the simple kind, read at once: boxes that stand where they should, in one version each,
 * tables that agree to the last row. Of anything else the answer is no, and the general way
 * (indexing/scan.py and what it uses) says what it means: nothing is decided here.
 *
 * The bytes are the caller's own: nobody changes them meanwhile.
 */
#include "simple_moov.h"

#define CODE(a, b, c, d) ((uint32_t)(a) << 24 | (uint32_t)(b) << 16 | (uint32_t)(c) << 8 | (d))

enum { IN_MOOV, IN_TRAK, IN_EDTS, IN_MDIA, IN_MINF, IN_DINF, IN_STBL, IN_MVEX, NOWHERE };
enum { PASS = -1, TRAK = -2, UDTA = -3, TREXS = -4 };

/* What may stand in which box, and where its body is kept; `inside`: what its children stand in. */
static const struct {
    uint32_t type;
    int8_t in, part, inside;
} known[] = {
    {CODE('m', 'v', 'h', 'd'), IN_MOOV, MVHD, NOWHERE},
    {CODE('t', 'r', 'a', 'k'), IN_MOOV, TRAK, IN_TRAK},
    {CODE('m', 'v', 'e', 'x'), IN_MOOV, MVEX, IN_MVEX},
    {CODE('u', 'd', 't', 'a'), IN_MOOV, UDTA, NOWHERE},
    {CODE('i', 'o', 'd', 's'), IN_MOOV, PASS, NOWHERE},
    {CODE('m', 'e', 'h', 'd'), IN_MVEX, MEHD, NOWHERE},
    {CODE('t', 'r', 'e', 'x'), IN_MVEX, TREXS, NOWHERE},
    {CODE('t', 'k', 'h', 'd'), IN_TRAK, TKHD, NOWHERE},
    {CODE('e', 'd', 't', 's'), IN_TRAK, EDTS, IN_EDTS},
    {CODE('m', 'd', 'i', 'a'), IN_TRAK, MDIA, IN_MDIA},
    {CODE('e', 'l', 's', 't'), IN_EDTS, ELST, NOWHERE},
    {CODE('m', 'd', 'h', 'd'), IN_MDIA, MDHD, NOWHERE},
    {CODE('h', 'd', 'l', 'r'), IN_MDIA, HDLR, NOWHERE},
    {CODE('m', 'i', 'n', 'f'), IN_MDIA, MINF, IN_MINF},
    {CODE('v', 'm', 'h', 'd'), IN_MINF, MEDIA_HEADER, NOWHERE},
    {CODE('s', 'm', 'h', 'd'), IN_MINF, MEDIA_HEADER, NOWHERE},
    {CODE('n', 'm', 'h', 'd'), IN_MINF, MEDIA_HEADER, NOWHERE},
    {CODE('s', 't', 'h', 'd'), IN_MINF, MEDIA_HEADER, NOWHERE},
    {CODE('d', 'i', 'n', 'f'), IN_MINF, DINF, IN_DINF},
    {CODE('s', 't', 'b', 'l'), IN_MINF, STBL, IN_STBL},
    {CODE('d', 'r', 'e', 'f'), IN_DINF, DREF, NOWHERE},
    {CODE('s', 't', 's', 'd'), IN_STBL, STSD, NOWHERE},
    {CODE('s', 't', 't', 's'), IN_STBL, STTS, NOWHERE},
    {CODE('c', 't', 't', 's'), IN_STBL, CTTS, NOWHERE},
    {CODE('s', 't', 's', 's'), IN_STBL, STSS, NOWHERE},
    {CODE('s', 't', 's', 'c'), IN_STBL, STSC, NOWHERE},
    {CODE('s', 't', 's', 'z'), IN_STBL, STSZ, NOWHERE},
    {CODE('s', 't', 'c', 'o'), IN_STBL, STCO, NOWHERE},
    {CODE('c', 'o', '6', '4'), IN_STBL, CO64, NOWHERE},
    {CODE('s', 'g', 'p', 'd'), IN_STBL, SGPD, NOWHERE},
    {CODE('s', 'b', 'g', 'p'), IN_STBL, SBGP, NOWHERE},
};
enum { KNOWN = sizeof known / sizeof *known };

static int is_part(simple_movie_t *movie, simple_track_t *track, int which, part_t body)
{
    part_t *to = track ? &track->part[which] : &movie->part[which];
    if (to->at)
        return 0; /* it comes again */
    *to = body;
    return 1;
}

/* Whether a chapter list may be among user data. */
static int has_chapters(part_t body)
{
    for (uint32_t at = 0; at + 4 <= body.size; at++)
        if (be32(body.at + at) == CODE('c', 'h', 'p', 'l'))
            return 1;
    return 0;
}

static int pass_children(simple_movie_t *movie, simple_track_t *track, int in, const uint8_t *at,
                         const uint8_t *stop)
{
    while (stop - at >= 8) {
        uint32_t size = be32(at), type = be32(at + 4);
        int row = 0;
        if (size < 8 || size > stop - at)
            return 0;
        while (row < KNOWN && (known[row].type != type || known[row].in != in))
            row++;
        if (row == KNOWN)
            return 0;
        part_t body = {at + 8, size - 8};
        simple_track_t *inside = track;
        switch (known[row].part) {
        case PASS:
            break;
        case UDTA:
            if (has_chapters(body))
                return 0;
            break;
        case TREXS:
            if (movie->trexs == MOST_SIMPLE_TRACKS)
                return 0;
            movie->trex[movie->trexs++] = body;
            break;
        case TRAK:
            inside = movie->count < MOST_SIMPLE_TRACKS ? calloc(1, sizeof *inside) : NULL;
            if (!inside)
                return 0;
            movie->track[movie->count++] = inside;
            break;
        default:
            if (!is_part(movie, track, known[row].part, body))
                return 0;
        }
        if (known[row].inside != NOWHERE &&
            !pass_children(movie, inside, known[row].inside, at + 8, at + size))
            return 0;
        at += size;
    }
    return at == stop;
}

/* A full box of version 0 or 1 without flags, with so many bytes in each. */
static int is_version(part_t box, uint32_t first, uint32_t second)
{
    if (!box.at || box.size < 4 || box.at[1] || box.at[2] || box.at[3])
        return 0;
    return (!box.at[0] && box.size == first) || (box.at[0] == 1 && box.size == second);
}

/* Rows of a table of version 0 that fills its box; -1: it does not. */
static int64_t rows_of(part_t box, uint32_t head, uint32_t width, int versions)
{
    if (!box.at || box.size < head || be32(box.at) & 0x00ffffff || box.at[0] >= versions)
        return -1;
    int64_t rows = be32(box.at + head - 4);
    return rows * width == box.size - head ? rows : -1;
}

static int key_of(simple_track_t *track, const uint8_t *at, uint32_t size)
{
    if (size > SIMPLE_KEY - track->key_size)
        return 0;
    memcpy(track->key + track->key_size, at, size);
    track->key_size += size;
    return 1;
}

/* The three numbers of a decoder configuration descriptor (14496-1, 7.2.6.6); NULL: not found. */
static uint8_t *rates_in_esds(uint8_t *at, const uint8_t *stop)
{
    static const struct {
        uint8_t tag, skipped;
    } levels[] = {{3, 3}, {4, 2}};
    at += 4;
    for (int level = 0; level < 2; level++) {
        if (stop - at < 2 || *at++ != levels[level].tag)
            return NULL;
        for (int i = 0; i < 4 && stop - at > 1 && *at & 0x80; i++)
            at++;
        if (stop - at < 4 || *at++ & 0x80 || (!level && at[2] & 0xe0))
            return NULL;
        at += levels[level].skipped;
    }
    return stop - at < 11 ? NULL : at;
}

/* Takes the bit rates out of a sample entry, which differ from file to file. */
static void take_rates(simple_track_t *track, uint8_t *entry, uint32_t size, uint32_t handler)
{
    uint32_t at = handler == CODE('v', 'i', 'd', 'e') ? 86 : 36;
    uint8_t *btrt = NULL, *esds = NULL, *numbers;
    if (size < at || (handler != CODE('v', 'i', 'd', 'e') && (handler != CODE('s', 'o', 'u', 'n') ||
                                                            entry[16] || entry[17])))
        return;
    while (size - at >= 8) {
        uint32_t bytes = be32(entry + at), type = be32(entry + at + 4);
        if (bytes < 8 || bytes > size - at)
            return;
        if (type == CODE('b', 't', 'r', 't')) {
            if (btrt || bytes != 20)
                return;
            btrt = entry + at + 8;
        }
        if (type == CODE('e', 's', 'd', 's')) {
            if (esds || bytes < 24)
                return;
            esds = entry + at + 8;
            if (!(esds = rates_in_esds(esds, entry + at + bytes)))
                return;
        }
        at += bytes;
    }
    if (at != size || (!btrt && !esds))
        return;
    numbers = btrt ? btrt + 4 : esds + 3;
    track->peak_rate = be32(numbers);
    track->average_rate = be32(numbers + 4);
    if (!track->peak_rate && !track->average_rate)
        return;
    track->has_rates = 1;
    if (btrt)
        memset(btrt, 0, 12);
    if (esds)
        memset(esds, 0, 11);
}

static int read_headers(simple_track_t *track)
{
    const part_t *part = track->part;
    part_t tkhd = part[TKHD], mdhd = part[MDHD], stsd = part[STSD], hdlr = part[HDLR];
    if (!tkhd.at || !(tkhd.at[0] ? tkhd.at[0] == 1 && tkhd.size == 96 : tkhd.size == 84))
        return 0;
    if (!is_version(mdhd, 24, 36) || !hdlr.at || hdlr.size < 24 || !part[DREF].at || !stsd.at)
        return 0;
    if (stsd.size < 16 || be32(stsd.at) || be32(stsd.at + 4) != 1 ||
        be32(stsd.at + 8) != stsd.size - 8)
        return 0;
    if (part[EDTS].at) {
        int wide = part[ELST].at && part[ELST].size && part[ELST].at[0] == 1;
        if (rows_of(part[ELST], 8, wide ? 20 : 12, 2) < 0)
            return 0;
    }
    int wide = tkhd.at[0], more = mdhd.at[0] ? 12 : 0;
    track->id = be32(tkhd.at + (wide ? 20 : 12));
    track->timescale = be32(mdhd.at + (mdhd.at[0] ? 20 : 12));
    track->duration = mdhd.at[0] ? be64(mdhd.at + 24) : be32(mdhd.at + 16);
    /* What is not shown by default may be told apart from others (auxiliary). */
    if (!track->id || !track->timescale || !(tkhd.at[3] & 1))
        return 0;
    if (!key_of(track, tkhd.at, 4) || !key_of(track, (const uint8_t *)&track->id, 4) ||
        !key_of(track, tkhd.at + (wide ? 36 : 24), 60) ||
        !key_of(track, (const uint8_t *)&track->timescale, 4) ||
        !key_of(track, mdhd.at + 20 + more, 4))
        return 0;
    static const int kept[] = {HDLR, DREF, TREX, STSD};
    for (int i = 0; i < 4; i++) {
        part_t one = part[kept[i]];
        if (!key_of(track, (const uint8_t *)&one.size, 4) || (one.size && !key_of(track, one.at, one.size)))
            return 0;
    }
    take_rates(track, track->key + track->key_size - stsd.size + 8, stsd.size - 8, be32(hdlr.at + 8));
    uint8_t has_rates = (uint8_t)track->has_rates;
    return key_of(track, &has_rates, 1);
}

/* Gives each track its trex, and tells whether there is one for each. */
static int share_trexs(simple_movie_t *movie)
{
    if (!movie->part[MVEX].at)
        return 1;
    if (movie->trexs != movie->count)
        return 0;
    for (int i = 0; i < movie->count; i++) {
        simple_track_t *track = movie->track[i];
        part_t tkhd = track->part[TKHD];
        if (!tkhd.at || tkhd.size < 24)
            return 0;
        uint32_t id = be32(tkhd.at + (tkhd.at[0] ? 20 : 12));
        for (int j = 0; j < movie->trexs; j++) {
            part_t trex = movie->trex[j];
            if (trex.size != 24 || be32(trex.at))
                return 0;
            if (be32(trex.at + 4) == id && !is_part(movie, track, TREX, trex))
                return 0;
        }
        if (!track->part[TREX].at)
            return 0;
    }
    return 1;
}

int simple_moov(simple_movie_t *movie, const uint8_t *moov, int64_t size)
{
    if (!pass_children(movie, NULL, IN_MOOV, moov + 8, moov + size) || !movie->count)
        return 0;
    part_t mvhd = movie->part[MVHD];
    if (!is_version(mvhd, 100, 112) || !share_trexs(movie))
        return 0;
    movie->timescale = be32(mvhd.at + (mvhd.at[0] ? 20 : 12));
    movie->duration = mvhd.at[0] ? be64(mvhd.at + 24) : be32(mvhd.at + 16);
    if (movie->part[MEHD].at) {
        part_t mehd = movie->part[MEHD];
        if (!is_version(mehd, 8, 12))
            return 0;
        movie->duration = mehd.at[0] ? be64(mehd.at + 4) : be32(mehd.at + 4);
    }
    if (!movie->timescale)
        return 0;
    for (int i = 0; i < movie->count; i++) {
        if (!read_headers(movie->track[i]))
            return 0;
        for (int j = 0; j < i; j++)
            if (movie->track[j]->id == movie->track[i]->id)
                return 0;
    }
    return 1;
}

/* Runs of (samples, value), 8 bytes each, none of them empty. */
typedef struct {
    const uint8_t *at, *stop;
    uint32_t left, value;
} value_t;

static inline int next_value(value_t *run)
{
    if (!run->left) {
        if (run->at == run->stop)
            return 0;
        run->left = word_at(run->at);
        run->value = word_at(run->at + 4);
        run->at += 8;
        if (!run->left)
            return 0;
    }
    run->left--;
    return 1;
}

/* Chunks one after the other. */
typedef struct {
    const uint8_t *offset, *rows, *stop; /* of stco or co64; of stsc */
    int64_t chunks, chunk;
    int wide;
    uint32_t each, left;
} chunk_t;

static int next_chunk(chunk_t *c, int64_t *place, int64_t file)
{
    if (c->chunk == c->chunks)
        return 0;
    uint64_t at = c->wide ? be64(c->offset + 8 * c->chunk) : word_at(c->offset + 4 * c->chunk);
    c->chunk++;
    if (c->rows < c->stop && word_at(c->rows) <= c->chunk) {
        if (word_at(c->rows) != c->chunk || word_at(c->rows + 8) != 1)
            return 0;
        c->each = word_at(c->rows + 4);
        c->rows += 12;
    }
    if (!c->each || at > (uint64_t)file)
        return 0;
    c->left = c->each;
    *place = (int64_t)at;
    return 1;
}

#define CELL(track, column, row) (track)->table[(int64_t)(column) * (track)->room + (row)]
#define SYNC(track, column, row) (track)->sync[(int64_t)(column) * (track)->sync_room + (row)]
enum { MANY = 1 << 16 }; /* samples of one size: of more it is asked whether the file has them */

static void begin_row(simple_track_t *t, int64_t row, int64_t dts, int64_t sample, int64_t first_sync)
{
    CELL(t, T_MOOF, row) = INT64_MIN;
    CELL(t, T_DATA_START, row) = CELL(t, T_CTS_MIN, row) = INT64_MAX;
    CELL(t, T_DATA_STOP, row) = CELL(t, T_CTS_END, row) = INT64_MIN;
    CELL(t, T_DTS, row) = dts;
    CELL(t, T_DURATION, row) = CELL(t, T_SAMPLE_COUNT, row) = 0;
    CELL(t, T_SAMPLE_START, row) = sample;
    CELL(t, T_SYNC, row) = first_sync;
}

static int begin_sync(simple_track_t *t, int64_t cts, int64_t dts, int64_t sample, int64_t fragment)
{
    int64_t row = t->sync_rows;
    if (row == t->sync_room)
        return 0;
    SYNC(t, S_CTS, row) = cts;
    SYNC(t, S_DTS, row) = dts;
    SYNC(t, S_STEP, row) = 0;
    SYNC(t, S_COUNT, row) = 1;
    SYNC(t, S_SAMPLE, row) = sample;
    SYNC(t, S_SAMPLE_STEP, row) = 1;
    SYNC(t, S_FRAGMENT, row) = fragment;
    t->sync_rows++;
    return 1;
}

int simple_table(simple_track_t *t, int sharing, int64_t most, int64_t file, int64_t start, int64_t stop)
{
    const part_t *part = t->part, stsz = part[STSZ];
    part_t places = part[STCO].at ? part[STCO] : part[CO64];
    if (!stsz.at || stsz.size < 12 || be32(stsz.at) || !(part[STCO].at ? !part[CO64].at : part[CO64].at != NULL))
        return 0;
    uint32_t each = be32(stsz.at + 4);
    int64_t count = be32(stsz.at + 8), n_stts = rows_of(part[STTS], 8, 8, 1);
    int64_t n_chunks = rows_of(places, 8, part[CO64].at ? 8 : 4, 1);
    int64_t n_stsc = rows_of(part[STSC], 8, 12, 1);
    int64_t n_ctts = part[CTTS].at ? rows_of(part[CTTS], 8, 8, 2) : 0;
    int64_t n_sync = part[STSS].at ? rows_of(part[STSS], 8, 4, 1) : count;
    if (stsz.size - 12 != (each ? 0 : 4 * count) || n_stts < 0 || n_chunks < 0 || n_stsc < 0 ||
        n_ctts < 0 || n_sync < 0)
        return 0;
    if (!count) /* samples are in fragments; none has groups here */
        return !n_stts && !n_chunks && !n_stsc && !n_ctts && !part[STSS].at && !part[SGPD].at &&
               !part[SBGP].at && start == stop;
    if (start == stop || !n_stts || !n_chunks || !n_stsc || (each && count > MANY) || n_sync > count ||
        (part[STSS].at && !n_sync) || (part[CTTS].at && !n_ctts))
        return 0;
    const uint8_t *sizes = stsz.at + 12, *syncs = part[STSS].at ? part[STSS].at + 8 : NULL;
    for (int64_t i = 0; syncs && i < n_sync; i++) {
        uint32_t number = word_at(syncs + 4 * i);
        if (!number || number > count || (i && number <= word_at(syncs + 4 * i - 4)))
            return 0;
    }
    if (n_sync == count)
        syncs = NULL;
    if (!syncs && part[CTTS].at)
        return 0; /* what is shown in another order depends on others */
    value_t step = {part[STTS].at + 8, part[STTS].at + 8 + 8 * n_stts, 0, 0};
    value_t shift = {n_ctts ? part[CTTS].at + 8 : NULL, n_ctts ? part[CTTS].at + 8 + 8 * n_ctts : NULL, 0, 0};
    chunk_t chunk = {places.at + 8, part[STSC].at + 8, part[STSC].at + 8 + 12 * n_stsc,
                     n_chunks, 0, part[CO64].at != NULL, 0, 0};
    uint64_t total = 0;
    uint32_t longest = 0;
    for (int64_t i = 0; i < n_stts; i++) {
        uint32_t samples = word_at(step.at + 8 * i), value = word_at(step.at + 8 * i + 4);
        if (!value || value >> 31)
            return 0;
        total += (uint64_t)samples * value;
        longest = value > longest ? value : longest;
        if (samples > count)
            return 0;
    }
    int64_t room = syncs ? n_sync + 1 : count;
    if (!syncs && total / t->timescale + 1 < (uint64_t)room)
        room = (int64_t)(total / t->timescale) + 1;
    if (!syncs && each) {
        most = (file < most ? file : most) / sharing;
        if (most < 1 || room > most || (count + most - 1) / most > t->timescale / longest)
            return 0;
    }
    t->room = room;
    t->sync_room = syncs ? n_sync : n_stts;
    t->table = malloc((size_t)room * 8 * TABLE_COLUMNS);
    t->sync = malloc((size_t)t->sync_room * 8 * SYNC_COLUMNS);
    if (!t->table || !t->sync)
        return 0;
    int64_t row = -1, place = 0, dts = 0, named = 0, until = 0, value = -1;
    for (int64_t i = 0; i < count; i++, chunk.left--) {
        if (!chunk.left && !next_chunk(&chunk, &place, file))
            return 0;
        if (!next_value(&step) || (n_ctts && !next_value(&shift)))
            return 0;
        int64_t size = each ? each : word_at(sizes + 4 * i);
        int64_t offset = n_ctts ? (int32_t)shift.value : 0;
        if ((offset < 0 && !part[CTTS].at[0]) || place < start || size > stop - place)
            return 0;
        int64_t cts = dts + offset;
        int is_sync = syncs && named < n_sync && word_at(syncs + 4 * named) == i + 1;
        if (syncs ? is_sync || !i : dts >= until) {
            if (++row == room)
                return 0;
            begin_row(t, row, dts, i, syncs && !is_sync ? -1 : 0);
            until = dts + t->timescale;
        }
        if (syncs ? is_sync : value != step.value) {
            named++;
            value = step.value;
            if (!begin_sync(t, cts, dts, i, row))
                return 0;
        } else if (!syncs) {
            SYNC(t, S_STEP, t->sync_rows - 1) = value;
            SYNC(t, S_COUNT, t->sync_rows - 1)++;
        }
        if (place < CELL(t, T_DATA_START, row))
            CELL(t, T_DATA_START, row) = place;
        place += size;
        if (place > CELL(t, T_DATA_STOP, row))
            CELL(t, T_DATA_STOP, row) = place;
        if (cts < CELL(t, T_CTS_MIN, row))
            CELL(t, T_CTS_MIN, row) = cts;
        if (cts + step.value > CELL(t, T_CTS_END, row))
            CELL(t, T_CTS_END, row) = cts + step.value;
        CELL(t, T_DURATION, row) += step.value;
        CELL(t, T_SAMPLE_COUNT, row)++;
        dts += step.value;
    }
    if (chunk.left || chunk.chunk != n_chunks || chunk.rows != chunk.stop || step.left ||
        step.at != step.stop || shift.left || shift.at != shift.stop)
        return 0;
    t->count = count;
    t->rows = row + 1;
    for (row = 0; row < t->rows; row++) {
        CELL(t, T_OFFSET, row) = CELL(t, T_DATA_START, row);
        CELL(t, T_SIZE, row) = CELL(t, T_DATA_STOP, row) - CELL(t, T_DATA_START, row);
    }
    return 1;
}

/* Samples `first` to `stop` of a track, column by column: offset, size, decode and composition time,
 * duration, and a byte that says whether it is a sync sample. 1, or 0: tables are not simple. */
static int write_samples(const simple_track_t *t, int64_t first, int64_t stop, int64_t *to)
{
    const part_t *part = t->part;
    part_t places = part[STCO].at ? part[STCO] : part[CO64], stsz = part[STSZ], stss = part[STSS];
    int64_t n_stts = rows_of(part[STTS], 8, 8, 1), n_stsc = rows_of(part[STSC], 8, 12, 1);
    int64_t n_chunks = rows_of(places, 8, part[CO64].at ? 8 : 4, 1), rows = stop - first;
    int64_t n_ctts = part[CTTS].at ? rows_of(part[CTTS], 8, 8, 2) : 0;
    int64_t n_sync = stss.at ? rows_of(stss, 8, 4, 1) : 0;
    if (!stsz.at || stsz.size < 12 || n_stts < 0 || n_stsc < 0 || n_chunks < 0 || n_ctts < 0 ||
        n_sync < 0)
        return 0;
    uint32_t each = be32(stsz.at + 4);
    int64_t count = be32(stsz.at + 8);
    if (stop > count || stsz.size - 12 != (each ? 0 : 4 * count))
        return 0;
    value_t step = {part[STTS].at + 8, part[STTS].at + 8 + 8 * n_stts, 0, 0}, shift = {0};
    if (n_ctts)
        shift = (value_t){part[CTTS].at + 8, part[CTTS].at + 8 + 8 * n_ctts, 0, 0};
    chunk_t chunk = {places.at + 8, part[STSC].at + 8, part[STSC].at + 8 + 12 * n_stsc,
                     n_chunks, 0, part[CO64].at != NULL, 0, 0};
    uint8_t *syncs = (uint8_t *)(to + 5 * rows);
    int64_t place = 0, dts = 0, named = 0;
    for (int64_t i = 0; i < stop; i++, chunk.left--) {
        if ((!chunk.left && !next_chunk(&chunk, &place, INT64_MAX >> 1)) || !next_value(&step) ||
            (n_ctts && !next_value(&shift)))
            return 0;
        int64_t size = each ? each : word_at(stsz.at + 12 + 4 * i);
        int is_sync = !stss.at;
        if (named < n_sync && word_at(stss.at + 8 + 4 * named) == i + 1) {
            is_sync = 1;
            named++;
        }
        if (i >= first) {
            int64_t *cell = to + (i - first);
            cell[0] = place;
            cell[rows] = size;
            cell[2 * rows] = dts;
            cell[3 * rows] = dts + (n_ctts ? (int32_t)shift.value : 0);
            cell[4 * rows] = step.value;
            syncs[i - first] = (uint8_t)is_sync;
        }
        place += size;
        dts += step.value;
    }
    return 1;
}

/* The samples of a track by its stbl, a part of a moov that `simple_file` took. */
PyObject *simple_samples(PyObject *self, PyObject *args)
{
    (void)self;
    PyObject *moov, *out = NULL;
    long long at, size, first, stop;
    if (!PyArg_ParseTuple(args, "O!LLLL", &PyBytes_Type, &moov, &at, &size, &first, &stop))
        return NULL;
    const uint8_t *data = (const uint8_t *)PyBytes_AsString(moov);
    if (outside(at, size, PyBytes_Size(moov)) || size < 8 || first < 0 || stop < first ||
        stop > size) /* each has bytes in a table, or a file is not simple */
        return Py_NewRef(Py_None);
    simple_track_t *track = calloc(1, sizeof *track);
    if (!track)
        return PyErr_NoMemory();
    if (pass_children(NULL, track, IN_STBL, data + at + 8, data + at + size) &&
        (out = PyByteArray_FromStringAndSize(NULL, (Py_ssize_t)(41 * (stop - first)))) &&
        !write_samples(track, first, stop, (int64_t *)PyByteArray_AsString(out)))
        Py_CLEAR(out);
    free(track);
    return out || PyErr_Occurred() ? out : Py_NewRef(Py_None);
}

void simple_forget(simple_movie_t *movie)
{
    for (int i = 0; i < movie->count; i++) {
        free(movie->track[i]->table);
        free(movie->track[i]->sync);
        free(movie->track[i]);
    }
}
