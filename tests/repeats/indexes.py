"""Files that repeat something of the indexes inside them, or boxes of the top level."""

from __future__ import annotations

from itertools import accumulate
from struct import pack

import numpy as np

from repeats.boxes import FTYP, box, file_of, full, numbers, stbl, track
from repeats.boxes import moov as moov_of
from repeats.fragments import init, one_sample

ROOM = 65535
"""References that a sidx has room for."""


def _sidx(references: object, *, first_offset: int = 0, time: int = 0) -> bytes:
    rows = np.asarray(references, ">u4").reshape(-1, 3)
    head = numbers(1, 1000, time, first_offset) + pack(">HH", 0, len(rows))
    return full("sidx", head, rows.tobytes())


def _media(size: int, count: int) -> np.ndarray:
    """Rows of subsegments of so many bytes that begin with a sync sample."""
    return np.broadcast_to(np.array([size, 1, 0x90000000]), (count, 3))


def sidx_references(count: int) -> bytes:
    """References of a sidx in front of as many fragments; a further sidx where one is full."""
    one = [one_sample(n) for n in range(count)]
    size = len(one[0])
    parts = []
    for at in range(0, count, ROOM):
        some = one[at : at + ROOM]
        parts += [_sidx(_media(size, len(some)), time=at), *some]
    return init(1) + b"".join(parts)


def sidx_of_each_fragment(count: int) -> bytes:
    """Fragments with a sidx in front of each."""
    some = (_sidx(_media(len(one_sample(n)), 1), time=n) + one_sample(n) for n in range(count))
    return init(1) + b"".join(some)


def sidx_in_a_row(count: int) -> bytes:
    """Boxes sidx, one behind the other, that all speak of one fragment behind them."""
    media = one_sample(0)
    rows = _media(len(media), 1)
    size = len(_sidx(rows))
    some = (_sidx(rows, first_offset=size * n) for n in reversed(range(count)))
    return init(1) + b"".join(some) + media


def sidx_of_many_streams(count: int) -> bytes:
    """Boxes sidx in a row, each of another stream."""
    rows = _media(len(one_sample(0)), 1).astype(">u4").tobytes()
    some = (
        full("sidx", numbers(n, 1000, 0, 0), pack(">HH", 0, 1), rows) for n in range(1, count + 1)
    )
    return init(1) + b"".join(some) + one_sample(0)


def sidx_inside_sidx(count: int) -> bytes:
    """A sidx that names a sidx in front of each fragment; a further one where it is full."""
    pairs = [_sidx(_media(len(one_sample(n)), 1), time=n) + one_sample(n) for n in range(count)]
    parts = []
    for at in range(0, count, ROOM):
        some = pairs[at : at + ROOM]
        inner = len(some[0]) - len(one_sample(0))
        # The references to boxes stand one behind the other: the boxes do so as well.
        boxes = [pair[:inner] for pair in some]
        rows = np.broadcast_to(np.array([1 << 31 | inner, 1, 0]), (len(some), 3))
        parts += [_sidx(rows, time=at), *boxes, *(pair[inner:] for pair in some)]
    return init(1) + b"".join(parts)


def one_sidx_for_many_tracks(count: int) -> bytes:
    """References of a sidx, and as many tracks that it does not name."""
    one = [one_sample(n) for n in range(count)]
    rows = _media(len(one[0]), count)
    some = (_sidx(rows[at : at + ROOM], time=at) for at in range(0, count, ROOM))
    return init(*range(1, count + 1)) + b"".join(some) + b"".join(one)


def sidx_chain(count: int) -> bytes:
    """Boxes sidx that name one fragment and the next sidx."""
    media = [one_sample(n) for n in range(count)]
    parts = [_sidx(_media(len(media[-1]), 1), time=count - 1) + media[-1]]
    for n in reversed(range(count - 1)):
        rows = [(len(media[n]), 1, 0x90000000), (1 << 31 | len(parts[-1]) % 2**31, 1, 0)]
        parts.append(_sidx(rows, time=n) + media[n])
    return init(1) + b"".join(reversed(parts))


def empty_sidx(count: int) -> bytes:
    """Boxes sidx without references."""
    return init(1) + _sidx(()) * count + one_sample(0)


def _tfra(number: int, places: object) -> bytes:
    places = np.asarray(places)
    rows = np.zeros(len(places), [("time", ">u4"), ("place", ">u4"), ("numbers", "u1", 3)])
    rows["time"], rows["place"], rows["numbers"] = np.arange(len(places)), places, 1
    return full("tfra", numbers(number, 0, len(places)), rows.tobytes())


def _mfra(*tfras: bytes) -> bytes:
    mfra = box("mfra", *tfras, full("mfro", numbers(0)))
    return mfra[:-4] + numbers(len(mfra))


def tfra_entries(count: int) -> bytes:
    """Rows of a tfra at the end of as many fragments."""
    parts = [init(1), *(one_sample(n) for n in range(count))]
    places = list(accumulate(map(len, parts)))[:-1]
    return b"".join(parts) + _mfra(_tfra(1, places))


def tfras(count: int) -> bytes:
    """Boxes tfra of an mfra, each of another track."""
    start = init(1)
    return start + one_sample(0) + _mfra(*(_tfra(n, [len(start)]) for n in range(1, count + 1)))


def tfras_of_many_tracks(count: int) -> bytes:
    """Boxes tfra of an mfra, each of another track that the moov names."""
    start = init(*range(1, count + 1))
    return start + one_sample(0) + _mfra(*(_tfra(n, [len(start)]) for n in range(1, count + 1)))


def one_tfra_for_many_tracks(count: int) -> bytes:
    """Rows of one tfra, and as many tracks that none is for."""
    parts = [init(*range(1, count + 1)), *(one_sample(n) for n in range(count))]
    places = list(accumulate(map(len, parts)))[:-1]
    return b"".join(parts) + _mfra(_tfra(1, places))


def mfras(count: int) -> bytes:
    """Boxes mfra at the end of one fragment."""
    start = init(1)
    return start + one_sample(0) + _mfra(_tfra(1, [len(start)])) * count


def empty_boxes(count: int) -> bytes:
    """Boxes of eight bytes (free) at the top level."""
    return FTYP + box("free") * count


def unknown_top_level(count: int) -> bytes:
    """Boxes of the top level whose types nobody declared, each of another type."""
    return FTYP + b"".join(box(f"{n % 2**16:04x}") for n in range(count))


def brands(count: int) -> bytes:
    """Compatible brands of an ftyp."""
    return box("ftyp", b"isom", numbers(0), b"isom" * count) + init(1) + one_sample(0)


def ftyps(count: int) -> bytes:
    """Boxes ftyp in a row."""
    return FTYP * count + init(1) + one_sample(0)


def events(count: int) -> bytes:
    """Boxes emsg in front of one fragment."""
    emsg = full("emsg", b"urn:a\0\0", numbers(1, 0, 0, 0))
    return init(1) + emsg * count + one_sample(0)


def user_types(count: int) -> bytes:
    """Boxes uuid in front of one fragment, each of another user type."""
    some = (box("uuid", pack(">QQ", n, n)) for n in range(count))
    return init(1) + b"".join(some) + one_sample(0)


def leads(count: int) -> bytes:
    """Boxes styp in front of one fragment."""
    return init(1) + box("styp", b"msdh", numbers(0)) * count + one_sample(0)


def producer_times(count: int) -> bytes:
    """Boxes prft in front of one fragment."""
    return init(1) + full("prft", numbers(1, 0, 0, 0)) * count + one_sample(0)


def media_boxes(count: int) -> bytes:
    """Boxes mdat in front of the moov of a progressive file."""
    one = track(1, stbl(stts=[(1, 1)], stsc=[(1, 1, 1)], stsz=numbers(1, 1), stco=[len(FTYP) + 8]))
    return file_of(1, box("mdat") * count, moov_of([one]))


INDEXES = (
    *(sidx_references, sidx_of_each_fragment, sidx_in_a_row, sidx_of_many_streams),
    *(
        sidx_inside_sidx,
        one_sidx_for_many_tracks,
        sidx_chain,
        empty_sidx,
        tfra_entries,
        tfras,
        tfras_of_many_tracks,
    ),
    *(one_tfra_for_many_tracks, mfras, empty_boxes, unknown_top_level, brands, ftyps, events),
    *(user_types, leads, producer_times, media_boxes),
)
