"""What is fuzzed: functions of bytes that may raise our errors and nothing else.

Each target does with a hostile input what a user would do with a good one: index it, ask for
samples, seek, hand it on. Where two ways lead to one answer, both are gone and held equal.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable

import numpy as np
from wider_targets import WIDER

import fragdex
from fragdex.boxes import build
from fragdex.digest import parse_digest
from fragdex.formats import fidx, wire
from fragdex.muxing.clip import clip
from fragdex.muxing.embed import embed as embedded
from fragdex.seeking.forms import FORMS as ALL_FORMS
from fragdex.sources import open_source

__all__ = ["TARGETS", "Target"]

Target = Callable[[bytes], None]

MOMENTS = (0.0, 0.04, 1.0, 1e9, -1.0, math.inf)
SPANS = ((0.0, math.inf), (0.05, 0.3), (-1.0, 0.1), (1.0, 1e9))
FORMS = [name for name in ALL_FORMS if name not in ("fidx", "arrow", "parquet")]
MOST_WRITTEN = 1 << 20
MOST_SAMPLES = 1 << 18
"""A file may rightly say that it has many samples of no bytes; they are not all asked for here."""


def parse(data: bytes) -> None:
    """Box tree there and back."""
    try:
        boxes = fragdex.boxes.parse(data)
    except fragdex.FragdexError:
        boxes = ()
    if boxes:
        assert build(boxes) == data[: boxes[-1].stop], "build(parse(x)) is not x"
        repr(boxes)
    try:
        fragdex.boxes.parse(data, strict=True)
    except fragdex.FragdexError:
        return


def index(data: bytes) -> None:
    """The index in every way, and what it answers."""
    whole = _index(data)
    exact = _index(data, exact=True)
    _index(data, strict=True)
    _index(data, partial=True)
    for made in (whole, exact):
        if made is not None:
            use(made)


def _index(data: bytes, **options: bool) -> fragdex.Index | None:
    try:
        return fragdex.index(data, **options)
    except fragdex.FragdexError:
        return None


def use(made: fragdex.Index) -> None:
    """Ask an index everything that it answers."""
    repr(made)
    made._repr_html_()
    for moment in MOMENTS:
        try:
            made.span(moment, moment + 1)
            made.plan(moment)
        except fragdex.FragdexError:
            continue
    for track in made.tracks:
        repr(track)
        count = track.sample_count
        if track.has_samples and count is not None and count <= MOST_SAMPLES:
            try:
                assert len(track.samples) == count, "samples are not as many as the fragments say"
            except fragdex.FragdexError:
                continue
        try:
            _seek(track)
        except fragdex.FragdexError:
            continue


def _seek(track: fragdex.Track) -> None:
    many = track.seek_many(np.array(MOMENTS))
    for row, moment in enumerate(MOMENTS):
        one = track.seek(moment)
        assert one.fragment == many.fragment[row], "seek and seek_many differ"
        assert one.cts == many.cts[row], "seek and seek_many differ"


def forms(data: bytes) -> None:
    """Every form that an index can be written in, and the saved one read again."""
    made = _index(data, exact=True)
    if made is None:
        return
    if _many(made):
        return
    for form in FORMS:
        try:
            made.export(form)
        except fragdex.FragdexError:
            continue
    again = fidx.read(made.export("fidx"))
    for old, new in zip(made.tracks, again.tracks, strict=True):
        assert old.fragments == new.fragments, "saving changes the fragments"
        assert old.sync_samples == new.sync_samples, "saving changes the sync samples"


def indexer(data: bytes) -> None:
    """Whole and in pieces: the same answer."""
    whole = _index(data, exact=True)
    size = 1 + len(data) % 61
    feeder = fragdex.Indexer()
    try:
        for at in range(0, len(data), size):
            feeder.feed(data[at : at + size])
        fed = feeder.finish()
    except fragdex.FragdexError:
        assert whole is None, "whole there is an index, in pieces there is none"
        return
    assert whole is not None, "in pieces there is an index, whole there is none"
    assert len(whole.tracks) == len(fed.tracks), "other tracks in pieces"
    for one, other in zip(whole.tracks, fed.tracks, strict=True):
        assert one.fragments == other.fragments, "other fragments in pieces"
        assert one.sync_samples == other.sync_samples, "other sync samples in pieces"


def extend(data: bytes) -> None:
    """First a part of the file, then the whole."""
    cut = len(data) * 2 // 3
    part = _index(data[:cut], exact=True)
    if part is None:
        return
    try:
        use(part.extend(data))
    except fragdex.FragdexError:
        return


def extract(data: bytes) -> None:
    """Clips, and what is in them."""
    made = _index(data, exact=True)
    if made is None or _many(made):
        return
    for number, (start, stop) in enumerate(SPANS):
        with open_source(data) as source:
            try:
                cut = clip(made, source.read, start, stop, keep_times=number % 2 == 1)
                out = _written(cut.pieces, source)
            except fragdex.FragdexError:
                continue
        if out is not None:
            again = _index(out, exact=True)
            assert again is not None, "the clip of a file with an index has none"


def embed(data: bytes) -> None:
    """A copy with an index inside: the samples are as many as before, and as large."""
    made = _index(data, exact=True)
    if made is None or _many(made):
        return
    with open_source(data) as source:
        try:
            out = _written(embedded(made, source.read), source)
        except fragdex.FragdexError:
            return
    again = None if out is None else _index(out, exact=True)
    if again is None:
        return
    for old, new in zip(made.tracks, again.tracks, strict=False):
        assert old.id == new.id, "other tracks in the copy"


def _many(made: fragdex.Index) -> bool:
    counts = [track.sample_count for track in made.tracks]
    return any(count is None or count > MOST_SAMPLES // 4 for count in counts)


def _written(pieces: Iterable[bytes | fragdex.ByteRange], source: fragdex.Source) -> bytes | None:
    """Pieces as bytes; None where samples that lie over each other make a small file large."""
    out = bytearray()
    for piece in pieces:
        if len(out) + (len(piece) if isinstance(piece, bytes) else piece.size) > MOST_WRITTEN:
            return None
        out += piece if isinstance(piece, bytes) else source.read(piece)
    return bytes(out)


def open_index(data: bytes) -> None:
    """A saved index from a stranger: what `verify` lets pass can be used."""
    try:
        opened = fragdex.open_index(data)
        repr(opened)
        fidx.verify(data)
    except fragdex.FragdexError:
        return
    use(opened)
    try:
        fidx.write(opened)
    except fragdex.FragdexError:
        return


def json(data: bytes) -> None:
    """The JSON form, and what it answers."""
    try:
        opened = wire.read(data)
    except fragdex.FragdexError:
        return
    use(opened)


def text(data: bytes) -> None:
    """Header fields and digests."""
    value = data.decode("latin-1")
    for size in (0, 1, 1000, 2**70):
        answer = fragdex.byterange.parse_range(value, size)
        if answer.status == 206:
            assert all(0 <= part.start < part.stop <= size for part in answer.ranges)
    for read in (fragdex.byterange.parse_content_range, parse_digest):
        try:
            read(value)
        except fragdex.FragdexError:
            continue


TARGETS: dict[str, Target] = {
    "index": index,
    "parse": parse,
    "forms": forms,
    "open_index": open_index,
    "indexer": indexer,
    "extend": extend,
    "extract": extract,
    "embed": embed,
    "json": json,
    "text": text,
    **WIDER,
}
"""Name → target, the ones with the most to find first."""
