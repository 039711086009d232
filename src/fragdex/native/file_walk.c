/* The walk over a file that is read, not mapped: where fragments are large, two reads a fragment
 * cost less than a page fault.
 */
#ifndef _WIN32
#include "box_walk.h"
#include <errno.h>
#include <unistd.h>
#if defined(__linux__) && defined(__LP64__)
#include <sys/syscall.h>
/* The C library's own pread may be cancelled, for which it prepares at each call. */
#define read_from(fd, to, length, at) (ssize_t)syscall(SYS_pread64, fd, to, length, at)
#else
#define read_from pread
#endif

/* Reads [at, at + length) into the buffer; returns the bytes that came, fewer at the end only. */
static int64_t read_at(int fd, uint8_t *to, int64_t length, int64_t at)
{
    int64_t have = 0;
    while (have < length) {
        ssize_t n = read_from(fd, to + have, (size_t)(length - have), (off_t)(at + have));
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -1;
        if (n == 0)
            break;
        have += n;
    }
    return have;
}

/* Boxes that are kept are read to where they stay, one behind the other. */
typedef struct {
    PyObject *blob;       /* a bytearray: of the stable ABI's types the one that can grow */
    uint8_t *buffer;      /* in the blob, behind what is kept */
    int64_t kept, room;   /* bytes of the blob */
    int64_t base, have;   /* place in the file of the buffer's first byte, and bytes from there */
    int64_t reads, bytes;
    int fd;
} reader_t;

enum { LARGEST_GUESS = 1 << 26 };

/* Makes room for `want` bytes behind what is kept. `share`: of the walk that is done. Needs the
 * GIL. 0, or -1: no memory. */
static int make_room(reader_t *r, int64_t want, double share)
{
    int64_t larger = r->room ? r->room * 2 : 1 << 16;
    /* A bytearray that grows once is copied once; the guess is about what is really in the file. */
    double guess = share > 0 ? 1.1 * (double)(r->kept + want) / share : 0;
    if (guess > LARGEST_GUESS)
        guess = LARGEST_GUESS;
    if (larger < (int64_t)guess)
        larger = (int64_t)guess;
    if (larger < r->kept + want)
        larger = r->kept + want;
    if (larger > PY_SSIZE_T_MAX || PyByteArray_Resize(r->blob, (Py_ssize_t)larger))
        return -1;
    r->room = larger;
    r->buffer = (uint8_t *)PyByteArray_AsString(r->blob) + r->kept;
    return 0;
}

/* Makes `want` bytes from `at` on lie at the buffer's start, fewer where the file ends; what is
 * there already is not read again. There is room for them. 0, or errno. */
static int fill(reader_t *r, int64_t at, int64_t want)
{
    int64_t left = at >= r->base && at <= r->base + r->have ? r->base + r->have - at : 0;
    if (left && at != r->base)
        memmove(r->buffer, r->buffer + (at - r->base), (size_t)left);
    r->base = at;
    r->have = left;
    if (left >= want)
        return 0;
    int64_t came = read_at(r->fd, r->buffer + left, want - left, at + left);
    if (came < 0)
        return errno;
    r->reads++;
    r->bytes += came;
    r->have += came;
    return 0;
}

PyObject *walk_file(PyObject *self, PyObject *args)
{
    int fd;
    long long start, stop, max_rows, max_bytes, probe, dense;
    const char *descend, *whole, *passed, *counted;
    Py_ssize_t n_descend, n_whole, n_passed, n_counted;
    PyObject *given, *asked;
    if (!PyArg_ParseTuple(args, "iLLy#y#y#LLy#LLO!O", &fd, &start, &stop, &descend, &n_descend,
                          &whole, &n_whole, &passed, &n_passed, &max_rows, &max_bytes, &counted,
                          &n_counted, &probe, &dense, &PyTuple_Type, &given, &asked))
        return NULL;
    if (start < 0 || stop < start || max_bytes < 0 || max_bytes > INT32_MAX || probe < 0 ||
        dense < 0) {
        PyErr_SetString(PyExc_ValueError, "walk_file: an impossible stretch or limit");
        return NULL;
    }
    walk_t w = {0};
    if ((w.n_shaped = codes(counted, n_counted, w.shaped)) < 0 ||
        (w.n_containers = codes(descend, n_descend, w.containers)) < 0 ||
        (w.n_whole = codes(whole, n_whole, w.whole)) < 0 ||
        (w.n_passed = codes(passed, n_passed, w.passed)) < 0 ||
        shapes_from(given, asked, &w.shapes))
        return NULL;
    int64_t at = start, met = 0;
    reader_t r = {PyByteArray_FromStringAndSize(NULL, 0), NULL, 0, 0, start, 0, 0, 0, fd};
    int status = DONE, broken = 0, behind_container = 0, raised = 0;
    int failed = !r.blob;

    Py_BEGIN_ALLOW_THREADS
    while (!failed && at < stop) {
        int64_t size = 0, want = 0, more = 8;
        int is_whole = 0;
        if ((w.top.count + w.inner.count >= max_rows && !behind_container) ||
            r.kept >= max_bytes) {
            status = FULL;
            break;
        }
        if (probe && w.top.count >= probe && !behind_container) {
            if (met && (double)(at - start) <= (double)met * (double)dense) {
                status = DENSE;
                break;
            }
            probe = 0;
        }
        /* No more than a header, then no more than the box and the header behind it: of media
         * data nothing is read. */
        do {
            want = more < stop - at ? more : stop - at;
            if (want > r.room - r.kept) {
                Py_BLOCK_THREADS
                failed = make_room(&r, want, (double)(at - start) / (double)(stop - start));
                Py_UNBLOCK_THREADS
                if (failed)
                    break;
            }
            broken = fill(&r, at, want);
            if (broken)
                break;
            status = pass_box(r.buffer, r.have, at, stop, &w, &size, &is_whole);
            if (is_whole && (size > stop - at || size > max_bytes))
                break;
            more = is_whole ? size + 8 : 16;
        } while (status == PARTIAL && r.have >= want && want < more && want < stop - at);
        if (failed || broken)
            break;
        if (status < 0)
            failed = 1;
        if (status != DONE)
            break;
        met += among(be32(r.buffer + 4), w.shaped, w.n_shaped);
        if (shapes_asks(&w.shapes)) {
            Py_BLOCK_THREADS
            raised = shapes_learn(&w.shapes, asked, r.buffer, size);
            Py_UNBLOCK_THREADS
            if (raised)
                break;
        }
        if (is_whole) {
            /* What was read behind the box lies where the next one is read to. */
            r.kept += size;
            r.buffer += size;
            r.base += size;
            r.have -= size;
        }
        behind_container = is_whole;
        at += size;
    }
    Py_END_ALLOW_THREADS

    if (!failed && !broken && !raised)
        failed = PyByteArray_Resize(r.blob, (Py_ssize_t)r.kept);
    if (failed || broken || raised) {
        forget(&w);
        Py_XDECREF(r.blob);
        if (raised)
            return NULL;
        if (failed)
            return PyErr_NoMemory();
        errno = broken;
        return PyErr_SetFromErrno(PyExc_OSError);
    }
    PyObject *walked = result(&w, at, status);
    if (!walked) {
        forget(&w);
        Py_DECREF(r.blob);
        return NULL;
    }
    return Py_BuildValue("NNLL", walked, r.blob, (long long)r.reads, (long long)r.bytes);
}
#endif
