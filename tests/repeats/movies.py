"""Files whose moov repeats something: tracks, boxes, descriptions, rows of the sample tables."""

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
    video_entry,
)
from repeats.fragments import one_sample


def _rows(*columns: Any) -> np.ndarray:
    return np.stack(np.broadcast_arrays(*columns), axis=1)


def _plain(count: int, **tables: Any) -> bytes:
    """A file of one track whose samples of one byte, in one chunk, are told by these tables."""
    known: dict[str, Any] = {"stts": [(count, 1)], "stsc": [(1, count, 1)], "stco": [MEDIA]}
    known |= {"stsz": numbers(1, count)}
    return file_of(count, moov([track(1, stbl(**known | tables))]))


def tracks(count: int) -> bytes:
    """Tracks of one moov, of one sample each."""
    one = [
        track(n, stbl(stts=[(1, 1)], stsc=[(1, 1, 1)], stsz=numbers(1, 1), stco=[MEDIA + n - 1]))
        for n in range(1, count + 1)
    ]
    return file_of(count, moov(one))


def track_headers(count: int) -> bytes:
    """Tracks that have a tkhd and nothing else."""
    heads = (full("tkhd", numbers(0, 0, n, 0, 0), bytes(60)) for n in range(1, count + 1))
    return FTYP + moov(box("trak", head) for head in heads)


def tracks_of_one_id(count: int) -> bytes:
    """Tracks of one moov that all have the same track_ID."""
    tables = stbl(stts=[(1, 1)], stsc=[(1, 1, 1)], stsz=numbers(1, 1), stco=[MEDIA])
    return file_of(1, moov([track(1, tables)] * count))


def empty_tracks(count: int) -> bytes:
    """Tracks without any box inside."""
    return FTYP + moov([box("trak")] * count)


def damaged_tracks(count: int) -> bytes:
    """Tracks whose stsz claims more than it holds."""
    one = (track(n, stbl(stsz=numbers(0, 1000))) for n in range(1, count + 1))
    return FTYP + moov(one)


def trexes(count: int) -> bytes:
    """Defaults (trex) of tracks that are not there."""
    return FTYP + moov([track(1, stbl())], extended=range(1, count + 1))


def moovs(count: int) -> bytes:
    """Initialization segments, one behind the other."""
    return (FTYP + moov([track(1, stbl())], extended=[1])) * count


def moovs_of_free_boxes(count: int) -> bytes:
    """Movies without tracks, of a hundred empty boxes each."""
    return FTYP + moov([box("free") * 100]) * count


def hybrid_movies(count: int) -> bytes:
    """Movies that name a sample each and have a fragment behind it."""
    tables = stbl(stts=[(1, 1)], stsc=[(1, 1, 1)], stsz=numbers(1, 1), stco=[MEDIA])
    one = moov([track(1, tables)], extended=[1])
    return file_of(1, (one + one_sample(1)) * count)


def sample_group_descriptions(count: int) -> bytes:
    """Entries of one sgpd in a moov."""
    return _plain(1, more=_roll(count))


def edits(count: int) -> bytes:
    """Edits of one track, every other one empty."""
    rows = _rows(1, np.arange(count) % 2 - 1, 0x10000)
    edts = box("edts", full("elst", table(rows)))
    return FTYP + moov([track(1, stbl(), more=edts)])


def empty_edits(count: int) -> bytes:
    """Empty edits of one track, in front of all others."""
    edts = box("edts", full("elst", table(_rows(np.arange(count), -1, 0x10000))))
    return FTYP + moov([track(1, stbl(), more=edts)])


def edit_lists(count: int) -> bytes:
    """Edit boxes (edts) of one track."""
    edts = box("edts", full("elst", table([(1, 0, 0x10000)])))
    return FTYP + moov([track(1, stbl(), more=edts * count)])


def sample_descriptions(count: int) -> bytes:
    """Sample entries of one stsd."""
    return FTYP + moov([track(1, stbl(entries=[video_entry()] * count))])


def configurations(count: int) -> bytes:
    """Configurations (avcC) of one sample entry."""
    config = box("avcC", bytes.fromhex("0142000affe100"), b"\0")
    entry = video_entry()
    entry = box("avc1", entry[8:], config * count)
    return FTYP + moov([track(1, stbl(entries=[entry]))])


def parameter_sets(count: int) -> bytes:
    """Parameter sets of the configurations (hvcC) of one track, 65,535 in an array."""
    arrays = [min(65535, count - at) for at in range(0, count, 65535)]
    head = bytes.fromhex("0101600000009000000000005df000fcfdf8f800000f")
    entries = []
    for at in range(0, len(arrays), 255):
        some = arrays[at : at + 255]
        body = b"".join(pack(">BH", 0xA0, held) + pack(">HB", 1, 7) * held for held in some)
        config = box("hvcC", head, bytes([len(some)]), body)
        entries.append(box("hvc1", video_entry()[8:], config))
    return FTYP + moov([track(1, stbl(entries=entries))])


def data_references(count: int) -> bytes:
    """References (dref) to files that hold the media."""
    dref = full("dref", numbers(count), full("url ", flags=1) * count)
    return FTYP + moov([track(1, stbl(), inside=box("dinf", dref))])


def track_references(count: int) -> bytes:
    """Track_IDs of a tref."""
    return FTYP + moov([track(1, stbl(), more=box("tref", box("cdsc", numbers(*[1] * count))))])


def unknown_boxes(count: int) -> bytes:
    """Boxes in a moov whose types nobody declared, each of another type."""
    names = (f"{n % 2**16:04x}" for n in range(count))
    return FTYP + moov(box(name, b"x") for name in names)


def free_boxes(count: int) -> bytes:
    """Empty boxes (free) in a moov."""
    return FTYP + moov([box("free") * count])


def user_data(count: int) -> bytes:
    """Boxes of user data (udta), each with a name."""
    return FTYP + moov([box("udta", full("name", b"a\0"))] * count)


def protection_headers(count: int) -> bytes:
    """Headers of protection systems (pssh) in a moov."""
    pssh = full("pssh", bytes(16), numbers(0))
    return FTYP + moov([track(1, stbl()), pssh * count], extended=[1])


def sample_table_boxes(count: int) -> bytes:
    """Boxes stts of one sample table."""
    more = full("stts", table([(1, 1)])) * count
    return FTYP + moov([track(1, stbl(more=more))])


def nested_boxes(count: int) -> bytes:
    """Boxes inside each other (udta), as many deep as the count says."""
    sizes = range(8 * count, 0, -8)
    return FTYP + moov([b"".join(pack(">I4s", size, b"udta") for size in sizes)])


def branches(count: int) -> bytes:
    """Boxes (udta) in a moov with five more inside, inside each other."""
    one = b""
    for _ in range(6):
        one = box("udta", one)
    return FTYP + moov([one] * count)


def items(count: int) -> bytes:
    """Items of a still picture: a meta with as many infe, and as many rows in its iloc."""
    some = min(count, 65535)
    described = (full("infe", pack(">HH", n, 0), b"mime\0", version=2) for n in range(some))
    places = b"".join(pack(">HHHII", n, 0, 1, 0, 1) for n in range(some))
    iinf = full("iinf", numbers(count), *described, version=1)
    iinf = iinf[:12] + numbers(some) + iinf[16:]
    iloc = full("iloc", pack(">HH", 0x4400, some), places)
    meta = full("meta", full("hdlr", bytes(4), b"pict", bytes(13)), iinf, iloc)
    more = full("meta") * (count - some)
    return FTYP + meta + more


def metas(count: int) -> bytes:
    """Boxes meta at the top level."""
    return FTYP + full("meta", full("hdlr", bytes(4), b"pict", bytes(13))) * count


def durations(count: int) -> bytes:
    """Rows of stts, each of one sample."""
    return _plain(count, stts=_rows(1, 1 + np.arange(count) % 3))


def composition_offsets(count: int) -> bytes:
    """Rows of ctts, each of one sample."""
    ctts = full("ctts", table(_rows(1, np.arange(count) % 3)))
    return _plain(count, more=ctts)


def sync_samples(count: int) -> bytes:
    """Rows of stss: every other sample is one."""
    stss = full("stss", table(_rows(1 + 2 * np.arange(count))))
    return _plain(2 * count, more=stss)


def sizes(count: int) -> bytes:
    """Rows of stsz."""
    return _plain(count, stsz=numbers(0, count) + np.ones(count, ">u4").tobytes())


def chunks(count: int) -> bytes:
    """Chunks, each of one sample and with a row in stco and in stsc."""
    numbered = np.arange(count)
    stsc = _rows(1 + numbered, 1, 1 + numbered % 2)
    return _plain(count, stsc=stsc, stco=_rows(MEDIA + numbered))


def chunks_backwards(count: int) -> bytes:
    """Chunks that lie in the file in the opposite order."""
    return _plain(count, stsc=[(1, 1, 1)], stco=_rows(MEDIA + np.arange(count)[::-1]))


def sample_groups(count: int) -> bytes:
    """Rows of an sbgp in a moov, and of its sgpd."""
    return _plain(count, more=_roll(count) + _grouped(count))


def sample_group_boxes(count: int) -> bytes:
    """Boxes sbgp in a moov, each with a sgpd."""
    return _plain(1, more=(_roll(1) + _grouped(1)) * count)


def _roll(count: int) -> bytes:
    return full("sgpd", b"roll", numbers(2, count), b"\xff\xff" * count, version=1)


def _grouped(count: int) -> bytes:
    return full("sbgp", b"roll", table(_rows(1, 1 + np.arange(count))))


def group_patterns(count: int) -> bytes:
    """Patterns of a csgp in a moov, of one sample each."""
    patterns = bytes([1, 1]) * count
    csgp = full("csgp", b"roll", numbers(count), patterns, b"\1" * count, flags=0b010101)
    return _plain(count, more=_roll(1) + csgp)


def auxiliary_information(count: int) -> bytes:
    """Rows of saiz and of saio in a moov."""
    saiz = full("saiz", b"\0", numbers(count), b"\1" * count)
    saio = full("saio", table(_rows(np.full(count, MEDIA))))
    return _plain(count, more=saiz + saio)


def parts_of_samples(count: int) -> bytes:
    """Rows of subs, each with one part of a sample."""
    rows = (numbers(1) + pack(">HHBBI", 1, 1, 0, 0, 0)) * count
    return _plain(count, more=full("subs", numbers(count), rows))


MOVIES = (
    *(tracks, track_headers, tracks_of_one_id, empty_tracks, damaged_tracks, trexes, moovs),
    *(moovs_of_free_boxes, hybrid_movies, sample_group_descriptions),
    *(edits, empty_edits, edit_lists, sample_descriptions, configurations, parameter_sets),
    *(data_references, track_references, unknown_boxes, free_boxes, user_data),
    *(protection_headers, sample_table_boxes, nested_boxes, branches, items, metas),
    *(durations, composition_offsets, sync_samples, sizes, chunks, chunks_backwards),
    *(sample_groups, sample_group_boxes, group_patterns, auxiliary_information, parts_of_samples),
)
