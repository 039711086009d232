/* The loops that Python is slow at: walking over box headers (box_walk.c, file_walk.c), reading
 * fragments that look alike as they are passed (box_shapes.c, trafs.c) and making their tables
 * (fragment_tables.c, sync_samples.c) and samples (fragment_samples.c), reading big-endian integers
 * that stand at the same place in many boxes (box_fields.c), summing up rows of samples
 * (sample_runs.c), laying them out in chunks (chunks.c) and in fragments (moofs.c), reading simple
 * files at once (simple_file.c, simple_moov.c, simple_fragments.c), looking for samples by their own syntax
 * (media_walk.c, with a file for each family of codecs), and pixels of PNGs (pixels.c).
 *
 * Python holds the same, most of it in indexing/native_plain.py; property tests hold the two equal.
 * What is done with pixels, FFmpeg does too.
 * Stable ABI, Python 3.11 on.
 */
#include "native.h"

static PyMethodDef methods[] = {
    {"walk", walk, METH_VARARGS,
     "walk(buffer, start, descend, whole, passed, max_rows, shaped, shapes, learn) -> "
     "(top, inner, position, status, found)"},
#ifndef _WIN32
    {"walk_file", walk_file, METH_VARARGS,
     "walk_file(fd, start, stop, descend, whole, passed, max_rows, max_bytes, shaped, probe, "
     "dense, shapes, learn) -> ((top, inner, position, status, found), kept, reads, bytes)"},
#endif
    {"columns", columns, METH_VARARGS, "columns(buffer, offsets, places) -> bytes"},
    {"fit", fit, METH_VARARGS,
     "fit(buffer, offsets, sizes, shapes, learn) -> "
     "(shown, missed, odd, wide, met, ((trafs, points, doubted), ...)), or None where there is no shape"},
    {"join", join, METH_VARARGS, "join(buffer, offsets, sizes, made, base) -> bytes"},
    {"span", span, METH_VARARGS, "span(offsets, sizes) -> (start, stop, bytes)"},
    {"moofs", write_moofs, METH_VARARGS,
     "moofs(lead, number, track, edges, dts, durations, sizes, offsets, places, sync, behind) -> "
     "(bytes, where each piece is and its size)"},
    {"samples", fragment_samples, METH_VARARGS,
     "samples(buffer, sizes, shapes, slot, moofs, dts) -> columns one behind the other, or None "
     "where a fragment has none of the shapes"},
    {"sums", sums, METH_VARARGS,
     "sums(buffer, at, count, columns, durations, first, rest) -> (sums, points)"},
    {"lay_out", lay_out, METH_VARARGS, "lay_out((rows, ...), moof, mdat, lead) -> (moofs, mdats)"},
    {"kept", kept, METH_VARARGS,
     "kept(rows, type) -> (places, (number, type) of others, bytes, bytes of headers)"},
    {"settle", settle, METH_VARARGS,
     "settle(trafs, points, layout, samples, rows, short_time, began, table, start, sync, start) -> "
     "(next_dts, samples, short_time, began), or None where one is not regular"},
    {"join_sync", join_sync, METH_VARARGS, 
     "join_sync(columns, checked) -> rows left in each, or None where runs fall or overlap"},
    {"chunk_starts", chunk_starts, METH_VARARGS,
     "chunk_starts(rows, stride, first, each, into) -> samples, or None where rows fall back"},
    {"places", places, METH_VARARGS,
     "places(size, chunk_start, chunk_offset, first, into)"},
    {"extents", extents, METH_VARARGS,
     "extents(sizes, each, chunk_start, chunk_offset, duration_stop, duration, offset_stop, offset, "
     "starts, count, into)"},
    {"simple_file", simple_file, METH_VARARGS,
     "simple_file(fd or bytes, size, passed, most rows, by chunks) -> (moov, ..., tracks, moofs), None where "
     "it is not simple, 1 where it should be mapped, or 2 where it should be read by chunks"},
    {"simple_samples", simple_samples, METH_VARARGS,
     "simple_samples(moov, stbl, size, first, stop) -> columns one behind the other, or None"},
    {"aac_frame", aac_frame, METH_VARARGS,
     "aac_frame(data, codebooks, deltas, long, short, elements) -> (bytes of the frame or 0, bits)"},
    {"find_bytes", find_bytes, METH_VARARGS, "find_bytes(data, pattern) -> place or -1"},
    {"bare_zeros", bare_zeros, METH_VARARGS, "bare_zeros(data) -> place or -1"},
    {"walk_media", walk_media, METH_VARARGS,
     "walk_media(read, at, stop, cut, lanes, pace, counts) -> "
     "(at, why, rows of each, lost rows, states, (low, high), counts)"},
    {"crc16_ends", crc16_ends, METH_VARARGS, "crc16_ends(data, least, most) -> [bytes, ...]"},
    {"unfilter", unfilter, METH_VARARGS,
     "unfilter(data, rows, size, pixel, into, stride) -> whether all filters are known"},
#if defined(__x86_64__) && defined(__GNUC__)
    {"to_yuv420", to_yuv420, METH_VARARGS,
     "to_yuv420(pixels, layout, stride, width, height, y, y stride, u, u stride, v, v stride) -> "
     "whether this processor can"},
#endif
    {NULL, NULL, 0, NULL},
};

static PyModuleDef_Slot slots[] = {
    {0, NULL},
};

static struct PyModuleDef module = {
    PyModuleDef_HEAD_INIT, "_native", "Walks over box headers; see indexing/native.py.", 0, methods,
    slots, NULL, NULL, NULL,
};

PyMODINIT_FUNC PyInit__native(void)
{
    return PyModuleDef_Init(&module);
}
