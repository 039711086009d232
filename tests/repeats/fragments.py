"""Files that repeat something of movie fragments: fragments, trafs, runs, groups."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial

import numpy as np

from repeats.boxes import FTYP, box, full, moov, numbers, stbl, table, track

BASE_IS_MOOF, BASE_IS_NAMED = 0x20000, 0x1
DATA_OFFSET, DURATION, SIZE, FLAGS, COMPOSITION = 0x1, 0x100, 0x200, 0x400, 0x800
FAR = 2**31 - 1
ROLL = full("sgpd", b"roll", numbers(2, 1), b"\xff\xff", version=1)


def init(*ids: int) -> bytes:
    """An initialization segment; a sample has one tick and one byte by default."""
    return FTYP + moov((track(number, stbl()) for number in ids), extended=ids)


def traf(number: int, time: int, *parts: bytes) -> bytes:
    """A traf of a track: its decode time, and further boxes."""
    tfhd = full("tfhd", numbers(number), flags=BASE_IS_MOOF)
    return box("traf", tfhd, full("tfdt", numbers(time)), *parts)


def trun(offset: int, samples: int = 1) -> bytes:
    """A run of samples that have the defaults of `init`."""
    return full("trun", numbers(samples, offset), flags=DATA_OFFSET)


def fragment(media: int, trafs: Callable[[int], Iterable[bytes]]) -> bytes:
    """A moof and an mdat of so many bytes; `trafs` takes where the media data begins."""
    head = full("mfhd", numbers(1))
    size = len(box("moof", head, *trafs(0)))
    return box("moof", head, *trafs(size + 8)) + box("mdat", bytes(media))


def one_sample(
    time: int, number: int = 1, *parts: bytes, media: int = 1, offset: int | None = None
) -> bytes:
    """A fragment of one sample.

    Args:
        time: decode time; number: track_ID.
        parts: further boxes of the traf.
        media: bytes of the mdat.
        offset: data_offset; None: the one that leads to the mdat.
    """
    return fragment(
        media,
        lambda at: [traf(number, time, trun(at if offset is None else offset), *parts)],
    )


def fragments(count: int) -> bytes:
    """Fragments of one sample each."""
    return init(1) + b"".join(one_sample(n) for n in range(count))


def fragments_without_moov(count: int) -> bytes:
    """Fragments of one sample each, and no moov that governs them."""
    return b"".join(one_sample(n) for n in range(count))


def fragments_of_two_tracks(count: int) -> bytes:
    """Fragments of two tracks in turn."""
    return init(1, 2) + b"".join(one_sample(n, n % 2 + 1) for n in range(count))


def fragments_of_many_tracks(count: int) -> bytes:
    """Fragments, each of another track that the moov names."""
    return init(*range(1, count + 1)) + b"".join(one_sample(0, n) for n in range(1, count + 1))


def fragments_of_unknown_tracks(count: int) -> bytes:
    """Fragments, each of another track that the moov does not name."""
    return init(1) + b"".join(one_sample(0, n) for n in range(2, count + 2))


def fragments_of_many_shapes(count: int) -> bytes:
    """Fragments that have nothing of their layout in common with the one before."""
    spares = [box("free", bytes(n)) for n in range(251)]
    some = (one_sample(n, 1, spares[n % 251], media=1 + n % 7) for n in range(count))
    return init(1) + b"".join(some)


def fragments_backwards(count: int) -> bytes:
    """Fragments whose times fall."""
    return init(1) + b"".join(one_sample(n) for n in range(count, 0, -1))


def fragments_of_one_time(count: int) -> bytes:
    """Fragments that all play at the same time."""
    return init(1) + one_sample(0) * count


def fragments_with_leads(count: int) -> bytes:
    """Fragments with a styp and an emsg in front."""
    styp = box("styp", b"msdh", numbers(0), b"msdh")
    emsg = full("emsg", b"urn:a\0\0", numbers(1, 0, 0, 0))
    return init(1) + b"".join(styp + emsg + one_sample(n) for n in range(count))


def fragments_with_groups(count: int) -> bytes:
    """Fragments whose samples are in a group each."""
    sbgp = full("sbgp", b"roll", table([(1, 65537)]))
    return init(1) + b"".join(one_sample(n, 1, ROLL, sbgp) for n in range(count))


def fragments_with_protection(count: int) -> bytes:
    """Fragments with saiz, saio and senc."""
    saiz, saio = full("saiz", b"\x08", numbers(1)), full("saio", table([(0,)]))
    senc = full("senc", numbers(1), bytes(8))
    return init(1) + b"".join(one_sample(n, 1, saiz, saio, senc) for n in range(count))


def damaged_fragments(count: int) -> bytes:
    """Fragments whose trun claims more samples than it holds, every other one."""
    bad = box("moof", full("mfhd", numbers(1)), traf(1, 0, full("trun", numbers(99), flags=SIZE)))
    return init(1) + b"".join(one_sample(n) + bad for n in range(count))


def fragments_outside(count: int) -> bytes:
    """Fragments whose data_offset leads behind the end of the file."""
    return init(1) + b"".join(one_sample(n, offset=FAR) for n in range(count))


def fragments_of_outside_tracks(count: int) -> bytes:
    """Fragments outside of the media data, each of another track: one finding each."""
    ids = range(1, count + 1)
    return init(*ids) + b"".join(one_sample(0, n, offset=FAR) for n in ids)


def moofs_before_mdats(count: int) -> bytes:
    """All moofs in front, the media data of all behind the last."""
    one = box("moof", full("mfhd", numbers(1)), traf(1, 0, trun(0)))
    moofs = (
        box("moof", full("mfhd", numbers(1)), traf(1, n, trun((count - n) * len(one) + 8 + n)))
        for n in range(count)
    )
    return init(1) + b"".join(moofs) + box("mdat", bytes(count))


def mdats(count: int) -> bytes:
    """Empty mdats behind one moof."""
    return init(1) + one_sample(0) + box("mdat") * count


def movies(count: int) -> bytes:
    """Movies one behind the other: a moov and a fragment each."""
    return b"".join(init(1) + one_sample(0) for _ in range(count))


def _counted_from(tfhd: bytes, at: int) -> list[bytes]:
    return [box("traf", tfhd, trun(at))]


def movies_with_bases(count: int) -> bytes:
    """Movies of one fragment each, whose place counts from a named byte of the file."""
    parts, at = [], 0
    for _ in range(count):
        parts.append(init(1))
        at += len(parts[-1])
        tfhd = full("tfhd", numbers(1, 0, at), flags=BASE_IS_NAMED)
        parts.append(fragment(1, partial(_counted_from, tfhd)))
        at += len(parts[-1])
    return b"".join(parts)


def trafs(count: int) -> bytes:
    """Trafs of one moof, each of another track that the moov names."""
    ids = range(1, count + 1)
    return init(*ids) + fragment(count, lambda at: [traf(n, 0, trun(at + n - 1)) for n in ids])


def trafs_of_unknown_tracks(count: int) -> bytes:
    """Trafs of one moof, each of another track that the moov does not name."""
    ids = range(2, count + 2)
    return init(1) + fragment(count, lambda at: [traf(n, 0, trun(at + n - 2)) for n in ids])


def trafs_of_one_track(count: int) -> bytes:
    """Trafs of one moof, all of one track."""
    some = range(count)
    return init(1) + fragment(count, lambda at: [traf(1, n, trun(at + n)) for n in some])


def trafs_with_groups(count: int) -> bytes:
    """Trafs of one moof, each of another track and with a sample group."""
    sbgp = full("sbgp", b"roll", table([(1, 65537)]))
    ids = range(1, count + 1)
    return init(1) + fragment(
        count, lambda at: [traf(n, 0, trun(at + n - 1), ROLL, sbgp) for n in ids]
    )


def empty_trafs(count: int) -> bytes:
    """Trafs without samples, of one moof, each of another track."""
    ids = range(1, count + 1)
    return init(1) + fragment(0, lambda _: [traf(n, 0) for n in ids])


def truns(count: int) -> bytes:
    """Runs of one traf, of one sample each."""
    some = range(count)
    return init(1) + fragment(count, lambda at: [traf(1, 0, *(trun(at + n) for n in some))])


def truns_of_many_flags(count: int) -> bytes:
    """Runs of one traf whose flags differ from one to the next, sync samples in some."""
    runs = []
    for n in range(count):
        values = {DURATION: 1, SIZE: 1, FLAGS: 0x10000 * (n % 2), COMPOSITION: 5}
        flags = (n % 16) << 8
        runs.append((flags | DATA_OFFSET, [v for flag, v in values.items() if flags & flag]))

    def lay(at: int) -> Iterable[bytes]:
        boxes = (full("trun", numbers(1, at + n, *row), flags=f) for n, (f, row) in enumerate(runs))
        return [traf(1, 0, *boxes)]

    return init(1) + fragment(count, lay)


def samples(count: int) -> bytes:
    """Rows of one trun: duration, size, flags, composition offset."""
    rows = np.zeros((count, 4), ">u4")
    rows[:, 0], rows[:, 1] = 1, 1
    rows[:, 2] = np.where(np.arange(count) % 3, 0x10000, 0)
    rows[:, 3] = np.arange(count) % 5
    columns = DURATION | SIZE | FLAGS | COMPOSITION | DATA_OFFSET
    body = rows.tobytes()
    return init(1) + fragment(
        count, lambda at: [traf(1, 0, full("trun", numbers(count, at), body, flags=columns))]
    )


def groups_of_a_fragment(count: int) -> bytes:
    """Rows of the sbgp of one fragment, and of its sgpd."""
    sgpd = full("sgpd", b"roll", numbers(2, count), b"\xff\xff" * count, version=1)
    rows = np.stack([np.ones(count, int), 65537 + np.arange(count)], axis=1)
    sbgp = full("sbgp", b"roll", table(rows))
    return init(1) + fragment(count, lambda at: [traf(1, 0, trun(at, count), sgpd, sbgp)])


def group_boxes_of_a_fragment(count: int) -> bytes:
    """Boxes sbgp and sgpd of one fragment."""
    pair = ROLL + full("sbgp", b"roll", table([(1, 65537)]))
    return init(1) + fragment(1, lambda at: [traf(1, 0, trun(at), pair * count)])


def boxes_of_a_moof(count: int) -> bytes:
    """Empty boxes (free) of one moof."""
    return init(1) + fragment(1, lambda at: [traf(1, 0, trun(at)), box("free") * count])


def boxes_of_a_traf(count: int) -> bytes:
    """Empty boxes (free) of one traf."""
    return init(1) + fragment(1, lambda at: [traf(1, 0, trun(at), box("free") * count)])


def headers_of_a_traf(count: int) -> bytes:
    """Boxes tfhd and tfdt of one traf."""
    pair = full("tfhd", numbers(1), flags=BASE_IS_MOOF) + full("tfdt", numbers(0))
    return init(1) + fragment(1, lambda at: [traf(1, 0, pair * count, trun(at))])


FRAGMENTS = (
    *(fragments, fragments_without_moov, fragments_of_two_tracks, fragments_of_many_tracks),
    *(fragments_of_unknown_tracks, fragments_of_many_shapes, fragments_backwards),
    *(fragments_of_one_time, fragments_with_leads, fragments_with_groups),
    *(fragments_with_protection, damaged_fragments, fragments_outside),
    *(fragments_of_outside_tracks, moofs_before_mdats, mdats, movies, movies_with_bases, trafs),
    *(trafs_of_unknown_tracks, trafs_of_one_track, trafs_with_groups, empty_trafs, truns),
    *(truns_of_many_flags, samples, groups_of_a_fragment, group_boxes_of_a_fragment),
    *(boxes_of_a_moof, boxes_of_a_traf, headers_of_a_traf),
)
