/* A simple file, read at once: a moov that names all samples of one mdat, or fragments after it,
 * each a moof and its mdat; and a table for each track.
 *
 * What is read is copied first, so that nobody changes it meanwhile. Of media data nothing is read
 * but what stands behind a moof in the pages that hold its boxes: one read takes what two exact ones
 * would. Where every page has boxes, the file is read in chunks, which costs half of what mapping it
 * does, and touches no other page.
 */
#include "simple_fragments.h"
#ifndef _WIN32
#include <unistd.h>
#endif

enum { LARGEST_MOOV = 1 << 24, LARGEST_MOOF = 1 << 20, PAGE = 4096, LONGEST_HEADER = 16 };
enum { PROBE = 256, DENSE = 1 << 14, LEAST_DENSE = 1 << 22, PASSED = 1 << 24, CHUNK = 1 << 18 };

#define CODE(a, b, c, d) ((uint32_t)(a) << 24 | (uint32_t)(b) << 16 | (uint32_t)(c) << 8 | (d))

/* A file by its descriptor, or its bytes; and a copy of a part of it. */
typedef struct {
    int fd;
    const uint8_t *data;
    int64_t size, requests, bytes;
    uint8_t *copy; /* owned */
    int64_t at, held, room, guess;
    int64_t chunk; /* twice as much from read to read where boxes go on in the next page; 0: never */
} file_t;

static int fetch(file_t *file, int64_t at, void *to, int64_t size)
{
    if (outside(at, size, file->size))
        return 0;
    if (file->data) {
        memcpy(to, file->data + at, (size_t)size);
        return 1;
    }
    file->requests++;
    file->bytes += size;
#ifdef _WIN32
    return 0;
#else
    while (size > 0) {
        ssize_t got = pread(file->fd, to, (size_t)size, (off_t)at);
        if (got <= 0)
            return 0;
        to = (uint8_t *)to + got;
        at += got;
        size -= got;
    }
    return 1;
#endif
}

/* A copy of some bytes, that holds until the next one; `ahead`: as many more as the page has, up to
 * what boxes took so far. NULL: they are not there, or there is no memory. */
static const uint8_t *copied(file_t *file, int64_t at, int64_t size, int ahead)
{
    if (outside(at, size, file->size))
        return NULL;
    if (at >= file->at && at - file->at + size <= file->held)
        return file->copy + (at - file->at);
    int64_t kept = 0, want = size;
    if (file->chunk) {
        int64_t gap = at - file->at - file->held;
        file->chunk = gap >= PAGE ? PAGE : file->chunk < CHUNK ? 2 * file->chunk : CHUNK;
    }
    if (at >= file->at && at - file->at < file->held) {
        kept = file->held - (at - file->at);
        memmove(file->copy, file->copy + (at - file->at), (size_t)kept);
    } else if (ahead && !file->data) {
        int64_t page = (at + size + PAGE - 1) / PAGE * PAGE;
        page = page < file->size ? page : file->size;
        want = file->guess > size ? file->guess : size;
        want = want < page - at ? want : page - at;
    }
    if (want < file->chunk)
        want = file->chunk < file->size - at ? file->chunk : file->size - at;
    if (want > file->room) {
        uint8_t *copy = realloc(file->copy, (size_t)want + PAGE);
        if (!copy)
            return NULL;
        file->copy = copy;
        file->room = want + PAGE;
    }
    file->at = at;
    file->held = kept;
    if (!fetch(file, at + kept, file->copy + kept, want - kept))
        return NULL;
    file->held = want;
    return file->copy;
}

enum { FAR_APART, NEAR, IN_EACH_PAGE };

typedef struct {
    file_t file;
    simple_movie_t movie;
    fragmented_t fragmented;
    columns_t moofs;      /* offset and size of each */
    columns_t moof_bytes; /* of a file that is read: their bytes, in words */
    int64_t moof_size;    /* all of them */
    uint8_t *moov;        /* owned */
    int64_t moov_at, moov_size, brand_at, brand_size, data_start, data_stop, boxes;
    int64_t first_moof, passed, most;
    int distance; /* of moofs, where they are too near to be read one by one */
    PyObject *pass; /* told how far the bytes were passed, or None */
    PyThreadState *state;
} simple_t;

static int read_moov(simple_t *p, int64_t at, int64_t size)
{
    if (p->moov || size > LARGEST_MOOV)
        return 0;
    p->moov = malloc((size_t)size);
    p->moov_at = at;
    p->moov_size = size;
    if (!p->moov || !fetch(&p->file, at, p->moov, size) || be32(p->moov) != size ||
        !simple_moov(&p->movie, p->moov, size))
        return 0;
    if (p->movie.part[MVEX].at) {
        fragments_begin(&p->fragmented, &p->movie);
        p->fragmented.state = &p->state;
        p->file.guess = PAGE;
    }
    return 1;
}

/* Room for so many more bytes of moofs. */
static uint8_t *room_for(simple_t *p, int64_t size)
{
    columns_t *c = &p->moof_bytes;
    int64_t words = (p->moof_size + size + 7) / 8;
    if (!grow_columns(c, words, p->fragmented.share, &p->state))
        return NULL;
    c->count = words;
    return (uint8_t *)c->cells + p->moof_size;
}

static int read_moof(simple_t *p, int64_t at, int64_t size, int64_t lead)
{
    file_t *file = &p->file;
    if (!p->fragmented.count || size > LARGEST_MOOF || size < 24)
        return 0;
    int64_t more = file->size - at - size < LONGEST_HEADER ? file->size - at - size : LONGEST_HEADER;
    const uint8_t *moof = copied(file, at, size + (file->data ? 0 : more), 0);
    p->fragmented.share = (double)at / (double)file->size;
    if (!moof || !grow_columns(&p->moofs, p->moofs.count + 1, p->fragmented.share, &p->state))
        return 0;
    file->guess = size + LONGEST_HEADER > file->guess || file->guess == PAGE ? size + LONGEST_HEADER
                                                                            : file->guess;
    p->moofs.cells[p->moofs.count] = at;
    p->moofs.cells[p->moofs.room + p->moofs.count++] = size;
    if (!file->data && !file->chunk) {
        uint8_t *to = room_for(p, size);
        if (!to)
            return 0;
        memcpy(to, moof, (size_t)size);
    }
    p->moof_size += size;
    if (!fragments_add(&p->fragmented, moof, size, at, lead))
        return 0;
    if (!p->first_moof)
        p->first_moof = at;
    int64_t apart = (at - p->first_moof) / PROBE;
    if (!file->data && !file->chunk && p->moofs.count == PROBE && apart < DENSE &&
        file->size - at > LEAST_DENSE) {
        p->distance = apart < PAGE ? IN_EACH_PAGE : NEAR;
        return 0;
    }
    return 1;
}

static void tell_passed(simple_t *p, int64_t at)
{
    if (p->pass == Py_None || at - p->passed < PASSED)
        return;
    p->passed = at;
    PyEval_RestoreThread(p->state);
    PyObject *done = PyObject_CallFunction(p->pass, "L", (long long)at);
    if (!done)
        PyErr_Clear();
    Py_XDECREF(done);
    p->state = PyEval_SaveThread();
}

/* 1: it is simple. */
static int read_file(simple_t *p)
{
    int64_t at = 0, end = p->file.size, lead = -1;
    int is_open = 0; /* a moof waits for its mdat */
    while (at < end) {
        const uint8_t *head = copied(&p->file, at, 8, p->fragmented.count > 0);
        if (!head)
            return 0;
        int64_t size = be32(head), header = 8;
        uint32_t type = be32(head + 4);
        if (size == 1 && type == CODE('m', 'd', 'a', 't')) {
            if (!(head = copied(&p->file, at, 16, 0)))
                return 0;
            header = 16;
            uint64_t large = be64(head + 8);
            size = large > INT64_MAX ? 0 : (int64_t)large;
        }
        if (size < header || size > end - at || (is_open && type != CODE('m', 'd', 'a', 't')))
            return 0;
        int64_t kept = header, before = lead;
        lead = -1;
        switch (type) {
        case CODE('f', 't', 'y', 'p'):
            if (p->brand_size)
                return 0;
            p->brand_at = at;
            p->brand_size = kept = size;
            break;
        case CODE('m', 'o', 'o', 'v'):
            kept = size;
            if (!read_moov(p, at, size))
                return 0;
            break;
        case CODE('m', 'o', 'o', 'f'):
#ifdef __GNUC__
            if (p->file.data && at < end - PAGE)
                __builtin_prefetch(p->file.data + at + PAGE);
#endif
            kept = size;
            if (!read_moof(p, at, size, before < 0 ? at : before))
                return 0;
            is_open = 1;
            break;
        case CODE('m', 'd', 'a', 't'):
            if (is_open && !fragments_data(&p->fragmented, at + header, at + size))
                return 0;
            if (!is_open && (p->data_stop || p->fragmented.count))
                return 0;
            if (!is_open) {
                p->data_start = at + header;
                p->data_stop = at + size;
            }
            is_open = 0;
            break;
        case CODE('s', 't', 'y', 'p'):
            lead = before < 0 ? at : before;
            break;
        case CODE('f', 'r', 'e', 'e'):
        case CODE('s', 'k', 'i', 'p'):
        case CODE('w', 'i', 'd', 'e'):
            break;
        case CODE('m', 'f', 'r', 'a'):
            if (p->file.data) /* as the general way counts what is at hand */
                kept = size;
            break;
        default:
            return 0;
        }
        p->boxes += kept;
        at += size;
        tell_passed(p, at);
    }
    if (!p->moov || is_open || lead >= 0)
        return 0;
    int64_t start = p->data_start, stop = p->data_stop;
    int is_fragmented = p->fragmented.count > 0;
    if (is_fragmented ? stop || !fragments_end(&p->fragmented) : !stop)
        return 0;
    for (int i = 0; i < p->movie.count; i++) {
        simple_track_t *track = p->movie.track[i];
        if (!simple_table(track, p->movie.count, p->most, end, start, stop) || (track->count == 0) != is_fragmented)
            return 0;
    }
    return 1;
}

/* Columns of `room` cells: those of memory that is Python's already, or copied: (memory, rows, room). */
static PyObject *table_of(const columns_t *given, const int64_t *cells, int columns, int64_t rows,
                          int64_t room)
{
    if (given->memory)
        return Py_BuildValue("(OLL)", given->memory, (long long)given->count, (long long)given->room);
    PyObject *memory = PyByteArray_FromStringAndSize(NULL, (Py_ssize_t)(rows * 8 * columns));
    char *to = memory ? PyByteArray_AsString(memory) : NULL;
    for (int i = 0; to && rows && i < columns; i++)
        memcpy(to + 8 * rows * i, cells + room * i, 8 * (size_t)rows);
    return memory ? Py_BuildValue("(NLL)", memory, (long long)rows, (long long)rows) : NULL;
}

static PyObject *body_of(part_t part)
{
    return part.at ? PyBytes_FromStringAndSize((const char *)part.at, part.size) : Py_NewRef(Py_None);
}

static PyObject *track_of(const simple_t *p, const simple_track_t *t, const fragments_t *f)
{
    part_t stbl = t->part[STBL];
    PyObject *rates = t->has_rates ? Py_BuildValue("(II)", t->average_rate, t->peak_rate)
                                   : Py_NewRef(Py_None);
    return Py_BuildValue(
        "(IIKNNNNN(LL)NN)", t->id, t->timescale, (unsigned long long)t->duration, rates,
        PyBytes_FromStringAndSize((const char *)t->key, t->key_size), body_of(t->part[ELST]),
        body_of(t->part[SGPD]), body_of(t->part[SBGP]), (long long)(stbl.at - 8 - p->moov),
        (long long)stbl.size + 8, table_of(&f->table, t->table, TABLE_COLUMNS, t->rows, t->room),
        table_of(&f->sync, t->sync, SYNC_COLUMNS, t->sync_rows, t->sync_room));
}

static PyObject *file_of(const simple_t *p)
{
    const simple_movie_t *movie = &p->movie;
    PyObject *tracks = PyTuple_New(movie->count);
    for (int i = 0; tracks && i < movie->count; i++) {
        PyObject *track = track_of(p, movie->track[i], p->fragmented.track + i);
        if (!track || PyTuple_SetItem(tracks, i, track)) {
            Py_DECREF(tracks);
            return NULL;
        }
    }
    if (!tracks)
        return NULL;
    PyObject *bytes = p->moof_bytes.memory ? p->moof_bytes.memory : Py_None;
    PyObject *moofs = !p->fragmented.count ? Py_NewRef(Py_None)
                                           : Py_BuildValue("(NO)", table_of(&p->moofs, NULL, 2, 0, 0), bytes);
    return Py_BuildValue(
        "(Ly#LLIKLLLNN)", (long long)p->moov_at, (const char *)p->moov, (Py_ssize_t)p->moov_size,
        (long long)p->brand_at, (long long)p->brand_size, movie->timescale,
        (unsigned long long)movie->duration, (long long)p->file.requests, (long long)p->file.bytes,
        (long long)p->boxes, tracks, moofs);
}

PyObject *simple_file(PyObject *self, PyObject *args)
{
    (void)self;
    PyObject *given, *pass, *out = NULL;
    Py_buffer buffer = {0};
    long long size, most;
    int by_chunks;
    if (!PyArg_ParseTuple(args, "OLOLp", &given, &size, &pass, &most, &by_chunks))
        return NULL;
    simple_t *p = calloc(1, sizeof *p);
    if (!p)
        return PyErr_NoMemory();
    p->file.size = size;
    p->file.chunk = by_chunks ? PAGE : 0;
    p->pass = pass;
    p->most = most;
    p->moofs.columns = 2;
    p->moof_bytes.columns = 1;
    if (PyLong_Check(given)) {
        p->file.fd = (int)PyLong_AsLong(given);
        if (PyErr_Occurred())
            goto end;
    } else {
        if (PyObject_GetBuffer(given, &buffer, PyBUF_SIMPLE))
            goto end;
        p->file.data = buffer.buf;
        if (size > buffer.len)
            p->file.size = buffer.len;
    }
    p->state = PyEval_SaveThread();
    int is_simple = read_file(p);
    PyEval_RestoreThread(p->state);
    if (p->file.data)
        p->file.bytes = p->boxes;
    out = is_simple ? file_of(p) : p->distance ? PyLong_FromLong(p->distance) : Py_NewRef(Py_None);
end:
    if (buffer.obj)
        PyBuffer_Release(&buffer);
    fragments_forget(&p->fragmented);
    Py_XDECREF(p->moofs.memory);
    Py_XDECREF(p->moof_bytes.memory);
    simple_forget(&p->movie);
    free(p->file.copy);
    free(p->moov);
    free(p);
    return out;
}
