"""Files that claim far more than their bytes hold: each repeats a box of few bytes."""

from __future__ import annotations

from struct import pack
from typing import Any

import numpy as np

from repeats.boxes import (
    FTYP,
    MEDIA,
    box,
    file_of,
    full,
    moov,
    numbers,
    stbl,
    table,
    track,
)
from repeats.fragments import fragment, init

MOST = 2**32 - 1
MANY = 2**23
"""Samples of a run; fewer than a run may claim."""
DATA_OFFSET, NO_SIZE = 0x1, 0x20010
"""Flags of trun; of tfhd: default-base-is-moof and a default size."""


def _claiming(track_id: int, time: int, size: int, samples: int) -> bytes:
    """A fragment of samples of one size and one tick, told by its defaults alone."""
    tfhd = full("tfhd", numbers(track_id, size), flags=NO_SIZE)
    parts = (tfhd, full("tfdt", numbers(time)))
    return fragment(
        1,
        lambda at: [box("traf", *parts, full("trun", numbers(samples, at), flags=DATA_OFFSET))],
    )


def runs_of_nothing(count: int) -> bytes:
    """Fragments that claim 2^23 samples of no bytes each, one behind the other in time."""
    some = (_claiming(1, (n * MANY) % 2**32, 0, MANY) for n in range(count))
    return init(1) + b"".join(some)


def overlapping_runs_of_nothing(count: int) -> bytes:
    """Fragments that claim 2^23 samples of no bytes each, at times that overlap."""
    return init(1) + b"".join(_claiming(1, n, 0, MANY) for n in range(count))


def runs_of_nothing_of_many_tracks(count: int) -> bytes:
    """Fragments that claim 2^23 samples of no bytes, each of another track."""
    ids = range(1, count + 1)
    return init(*ids) + b"".join(_claiming(n, 0, 0, MANY) for n in ids)


def runs_past_the_end(count: int) -> bytes:
    """Fragments that claim 2^23 samples of 256 bytes each."""
    return init(1) + b"".join(_claiming(1, n * MANY % 2**32, 256, MANY) for n in range(count))


def truns_of_nothing(count: int) -> bytes:
    """Runs of one traf that claim 2^23 samples of no bytes each."""
    run = full("trun", numbers(MANY))
    tfhd = full("tfhd", numbers(1, 0), flags=NO_SIZE)
    return init(1) + fragment(0, lambda _: [box("traf", tfhd, run * count)])


def trafs_of_nothing(count: int) -> bytes:
    """Trafs of one moof that claim 2^23 samples of no bytes, at times that overlap."""
    run = full("trun", numbers(MANY))
    tfhd = full("tfhd", numbers(1, 0), flags=NO_SIZE)
    some = [box("traf", tfhd, full("tfdt", numbers(3 * n)), run) for n in range(count)]
    return init(1) + fragment(0, lambda _: some)


def _claimed(number: int, samples: int, **tables: Any) -> bytes:
    """A track whose tables claim so many samples of one byte, in one chunk."""
    known: dict[str, Any] = {"stts": [(samples, 1)], "stsc": [(1, samples, 1)], "stco": [MEDIA]}
    known |= {"stsz": numbers(1, samples)}
    return track(number, stbl(**known | tables))


def sizes_of_one_number(count: int) -> bytes:
    """Tracks whose stsz claims 2^32 - 1 samples of one byte."""
    return file_of(1, moov(_claimed(n, MOST) for n in range(1, count + 1)))


def samples_of_one_number(count: int) -> bytes:
    """Tracks whose stsz claims 2^22 samples of one byte."""
    return file_of(1, moov(_claimed(n, 2**22) for n in range(1, count + 1)))


def samples_of_one_number_with_offsets(count: int) -> bytes:
    """Tracks that claim 2^24 samples of one byte, with composition offsets."""
    ctts = full("ctts", table([(2**24, 3)]))
    return file_of(1, moov(_claimed(n, 2**24, more=ctts) for n in range(1, count + 1)))


def samples_of_one_number_with_sync(count: int) -> bytes:
    """Tracks that claim 2^24 samples of one byte, and name one sync sample."""
    stss = full("stss", table([(1,)]))
    return file_of(1, moov(_claimed(n, 2**24, more=stss) for n in range(1, count + 1)))


def compact_sizes(count: int) -> bytes:
    """Tracks whose stz2 claims 2^32 - 1 samples and holds none."""
    stz2 = full("stz2", numbers(8, MOST))
    none = stbl(stts=[(MOST, 1)], stsc=[(1, MOST, 1)], stco=[MEDIA])
    start = none.index(b"stsz") - 4
    stop = start + int.from_bytes(none[start : start + 4], "big")
    tables = box("stbl", none[8:start], stz2, none[stop:])
    return file_of(1, moov(track(n, tables) for n in range(1, count + 1)))


def durations_of_most(count: int) -> bytes:
    """Rows of stts that claim 2^32 - 1 samples each."""
    rows = np.broadcast_to([MOST, 1], (count, 2))
    return file_of(1, moov([_claimed(1, MOST, stts=rows)]))


def durations_of_changing_most(count: int) -> bytes:
    """Rows of stts that claim 2^20 samples each, the durations differing from row to row."""
    rows = np.stack([np.full(count, 2**20), 1 + np.arange(count) % 3], axis=1)
    return file_of(1, moov([_claimed(1, min(MOST, count * 2**20), stts=rows)]))


def offsets_of_most(count: int) -> bytes:
    """Rows of ctts that claim 2^32 - 1 samples each."""
    ctts = full("ctts", table(np.broadcast_to([MOST, 1], (count, 2))))
    return file_of(1, moov([_claimed(1, 1, more=ctts)]))


def chunks_of_most(count: int) -> bytes:
    """Chunks that claim 2^32 - 1 samples each."""
    tables = {"stsc": [(1, MOST, 1)], "stco": np.full((count, 1), MEDIA)}
    return file_of(1, moov([_claimed(1, MOST, **tables)]))


def groups_of_most(count: int) -> bytes:
    """Rows of an sbgp that claim 2^32 - 1 samples each."""
    sgpd = full("sgpd", b"roll", numbers(2, 1), b"\xff\xff", version=1)
    sbgp = full("sbgp", b"roll", table(np.broadcast_to([MOST, 1], (count, 2))))
    return file_of(1, moov([_claimed(1, 1, more=sgpd + sbgp)]))


def descriptions_of_most(count: int) -> bytes:
    """Boxes sgpd that claim 2^32 - 1 entries of no bytes each."""
    sgpd = full("sgpd", b"roll", numbers(0, MOST), version=1)
    return file_of(1, moov([_claimed(1, 1, more=sgpd * count)]))


def patterns_of_most(count: int) -> bytes:
    """Boxes csgp whose patterns claim 2^32 - 1 samples each."""
    csgp = full("csgp", b"roll", numbers(1, MOST, MOST), flags=0b111111)
    return file_of(1, moov([_claimed(1, 1, more=csgp * count)]))


def auxiliary_of_most(count: int) -> bytes:
    """Boxes saiz that claim 2^32 - 1 samples of one size."""
    saiz = full("saiz", b"\x08", numbers(MOST))
    return file_of(1, moov([_claimed(1, 1, more=saiz * count)]))


def long_samples(count: int) -> bytes:
    """Tracks of 2^22 samples that last a second each: as many virtual fragments."""
    one = (_claimed(n, 2**22, stts=[(2**22, 1000)]) for n in range(1, count + 1))
    return file_of(1, moov(one))


def durations_of_most_in_fragments(count: int) -> bytes:
    """Fragments of one sample whose times and durations are the largest there are."""
    tfhd = full("tfhd", numbers(1, MOST), flags=0x20008)
    parts = (tfhd, full("tfdt", pack(">Q", 2**63 - 1), version=1))
    one = fragment(
        1, lambda at: [box("traf", *parts, full("trun", numbers(1, at), flags=DATA_OFFSET))]
    )
    return init(1) + one * count


def boxes_of_most(count: int) -> bytes:
    """Boxes of a moov, damaged: each claims 2^32 - 1 bytes."""
    return FTYP + moov([pack(">I4s", MOST, b"free")] * count)


def rows_of_most(count: int) -> bytes:
    """Boxes stts that claim 2^32 - 1 rows and hold none, in a track each."""
    return file_of(
        1, moov(track(n, stbl(more=full("stts", numbers(MOST)))) for n in range(1, count + 1))
    )


def parts_of_most(count: int) -> bytes:
    """Boxes subs that claim 2^32 - 1 rows and hold none."""
    return file_of(1, moov([_claimed(1, 1, more=full("subs", numbers(MOST)) * count)]))


CLAIMS = (
    *(runs_of_nothing, overlapping_runs_of_nothing, runs_of_nothing_of_many_tracks),
    *(runs_past_the_end, truns_of_nothing, trafs_of_nothing, sizes_of_one_number),
    *(samples_of_one_number, samples_of_one_number_with_offsets),
    *(samples_of_one_number_with_sync, compact_sizes, durations_of_most),
    *(durations_of_changing_most, offsets_of_most, chunks_of_most, groups_of_most),
    *(descriptions_of_most, patterns_of_most, auxiliary_of_most, long_samples),
    *(durations_of_most_in_fragments, boxes_of_most, rows_of_most, parts_of_most),
)
