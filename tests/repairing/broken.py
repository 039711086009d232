"""Films of the fixtures, broken in known ways, and the truth about their samples."""

from __future__ import annotations

import io
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from pathlib import Path

import av
import numpy as np
from hypothesis import strategies as st

import fragdex
from fragdex.repairing.repair import Repair, RepairedTrack
from fragdex.repairing.syntax import HOLE

FIXTURES = Path(__file__).parents[2] / "fixtures"
DAMAGE = (
    st.sampled_from(["zeros", "cut", "foreign"]),
    st.floats(0, 1),
    st.sampled_from([8, 40, 64, 200, 512, 1500]),
    st.integers(0, 1 << 32),
)
"""What becomes of some bytes, where in the media data, of how many, and a seed for it."""


def changed_by(kind: str, start: int, size: int) -> tuple[int, int] | None:
    """The bytes that damage has made others; None: they are gone, or a hole that is seen."""
    seen = kind == "cut" or (kind == "zeros" and size >= 2 * len(HOLE))
    return None if seen else (start, start + size)


def boxes_of(data: bytes) -> list[tuple[bytes, int, int]]:
    """Type, start and stop of the boxes at the top level; the last one may be cut off."""
    at, boxes = 0, []
    while at < len(data):
        size = int.from_bytes(data[at : at + 4], "big") or len(data) - at
        boxes.append((data[at + 4 : at + 8], at, min(at + size, len(data))))
        at += size
    return boxes


def segments_of(data: bytes) -> list[tuple[int, int]]:
    """Start and stop of each moof with the mdat behind it."""
    boxes = boxes_of(data)
    return [(one[1], other[2]) for one, other in pairwise(boxes) if one[0] == b"moof"]


@dataclass
class Film:
    """A good film: its bytes, and the samples of each track by place and size."""

    data: bytes
    index: fragdex.Index
    truth: dict[int, dict[int, int]]

    @property
    def moov(self) -> tuple[int, int]:
        return self.box(b"moov")

    @property
    def mdat(self) -> tuple[int, int]:
        start, stop = self.box(b"mdat")
        return start + 8, stop

    def box(self, kind: bytes) -> tuple[int, int]:
        """Start and stop of the first box of a type at the top level."""
        at = 0
        while at < len(self.data):
            size = int.from_bytes(self.data[at : at + 4], "big") or len(self.data) - at
            if self.data[at + 4 : at + 8] == kind:
                return at, at + size
            at += size
        raise LookupError(kind)

    def without_moov(self) -> bytes:
        """Cut before the moov, or with a moov that is all zeros."""
        start, stop = self.moov
        if start > self.mdat[0]:
            return self.data[:start]
        return self.data[:start] + bytes(stop - start) + self.data[stop:]


def film(name: str) -> Film:
    """A fixture; of `a.mp4 + b.mp4` the pictures of one with the sound of another."""
    pictures, *sound = name.split(" + ")
    data = interleaved(pictures, *sound) if sound else (FIXTURES / name).read_bytes()
    index = fragdex.index(data, exact=True)
    truth = {
        t.id: dict(zip(t.samples.offset.tolist(), t.samples.size.tolist(), strict=True))
        for t in index.tracks
    }
    return Film(data, index, truth)


def interleaved(pictures: str, sound: str) -> bytes:
    """Pictures of a fixture and sound of another, in the order of their decode times."""
    made = io.BytesIO()
    with (
        av.open(str(FIXTURES / pictures)) as seen,
        av.open(str(FIXTURES / sound)) as heard,
        av.open(made, "w", format="mp4") as out,
    ):
        packets = []
        for given, kind in ((seen, "video"), (heard, "audio")):
            stream = out.add_stream_from_template(next(iter(getattr(given.streams, kind))))
            for packet in given.demux(**{kind: 0}):
                if packet.size:
                    packets.append((packet.dts * packet.time_base, kind == "audio", packet))
                    packet.stream = stream
        for _, _, packet in sorted(packets, key=lambda one: one[:2]):
            out.mux_one(packet)
    return made.getvalue()


def samples_of(repair: Repair) -> dict[int, dict[int, int]]:
    """Place and size of each sample that was found, by track."""
    samples = {}
    for track in repair.tracks:
        table = track.table()
        samples[track.id] = dict(zip(table.offset.tolist(), table.size.tolist(), strict=True))
    return samples


def proved_samples_of(repair: Repair) -> dict[int, dict[int, int]]:
    """Those of `samples_of` that lie in spans that are proved."""
    spans = [span for span in repair.spans if span.state == "proved"]
    starts = np.array([span.start for span in spans], np.int64)
    stops = np.array([0, *(span.stop for span in spans)], np.int64)
    return {
        number: {
            at: size
            for at, size in samples.items()
            if at + size <= stops[np.searchsorted(starts, at, side="right")]
        }
        for number, samples in samples_of(repair).items()
    }


def check_samples(
    repair: Repair,
    track: RepairedTrack,
    samples: dict[int, int],
    truths: dict[int, dict[int, int]],
    changed: tuple[int, int] | None,
) -> None:
    """Samples of a track are those of the film, but where changed bytes are in them.

    Such a slice may be taken for another one of the picture before it. The last bit of a frame of
    AAC is found by reading all of it: such a one may end with a later sample, or early, and then
    the bytes after it are lost.

    Args:
        changed: start and stop of bytes that are others, and no zeros that are seen as a hole.
    """
    codec = (track.codec or "").split(".")[0]
    known = list(truths.values()) if codec == "mp4a" else [truths[track.id]]
    starts = {at for one in known for at in one}
    ends = {at + size for one in known for at, size in one.items()}
    if codec == "mp4a":
        ends |= {span.start for span in repair.spans if span.state == "lost"}
    for at, size in samples.items() - truths[track.id].items():
        assert changed is not None, (track.id, at, size)
        assert codec in ("mp4a", "avc1", "avc3", "hev1", "hvc1", "vvc1", "vvi1")
        assert at in starts
        assert at < changed[1]
        assert at + size > changed[0]
        assert at + size in ends


def check_no_invention(good: Film, broken: bytes, repair: Repair, shift: int = 0) -> None:
    """Each sample that was found is one of the film, with its bytes, in the mended film too.

    Args:
        shift: bytes by which samples of the broken film lie behind those of the good one.
    """
    mended = repair.view.read(source=broken)
    assert len(mended) == repair.view.size
    index = fragdex.index(mended, exact=True)
    assert {t.id for t in index.tracks} == {t.id for t in repair.tracks}
    repaired_samples = samples_of(repair)
    for track in repair.tracks:
        truth = good.truth[track.id]
        for at, size in repaired_samples[track.id].items():
            assert truth.get(at - shift) == size, (track.id, at, size)
            assert good.data[at - shift : at - shift + size] == broken[at : at + size]
        samples = index.track(track.id).samples
        assert len(samples) == track.samples == len(repaired_samples[track.id])
        for (at, size), place, length in zip(
            repaired_samples[track.id].items(),
            samples.offset.tolist(),
            samples.size.tolist(),
            strict=True,
        ):
            assert length == size
            assert mended[place : place + size] == broken[at : at + size]
    check_spans(broken, repair)


def check_part(
    good: Film, broken: bytes, repair: Repair, where: Callable[[int], int] = lambda at: at
) -> dict[int, set[int]]:
    """Each sample that was found is one of the film, in the film's order and at its times.

    Tracks stay together: all of them are earlier or later by the same time, to a tick.

    Args:
        where: the place in the film of a byte of the broken one.

    Returns:
        Places in the film of the samples that were found, by track.
    """
    check_spans(broken, repair)
    mended = repair.view.read(source=broken)
    index = fragdex.index(mended, exact=True)
    assert "negative-duration" not in [finding.code for finding in index.findings]
    places_by_track, moved = {}, []
    for track in repair.tracks:
        table, wanted = index.track(track.id), good.index.track(track.id)
        samples, truth = table.samples, wanted.samples
        rows = {at: row for row, at in enumerate(truth.offset.tolist())}
        places = [where(at) for at in track.table().offset.tolist()]
        kept = np.array([rows[at] for at in places], np.int64)
        assert (np.diff(kept) > 0).all()
        assert np.array_equal(samples.size, truth.size[kept])
        for at, size, place in zip(
            samples.offset.tolist(), samples.size.tolist(), places, strict=True
        ):
            assert mended[at : at + size] == good.data[place : place + size]
        by = {*(samples.dts - truth.dts[kept]).tolist(), *(samples.cts - truth.cts[kept]).tolist()}
        assert len(by) == 1, track.id
        late = Fraction(by.pop()) + table.shift - wanted.shift
        moved.append(late / wanted.timescale)
        places_by_track[track.id] = set(places)
    assert max(moved) - min(moved) <= Fraction(1, good.index.tracks[0].movie_timescale or 1)
    return places_by_track


def check_spans(broken: bytes, repair: Repair) -> None:
    """Spans tell of each byte once."""
    at = 0
    for span in repair.spans:
        assert span.start == at < span.stop
        at = span.stop
    assert at == len(broken) == repair.size
