"""Films of the fixtures, broken in known ways, and the truth about their samples."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import fragdex
from fragdex.repairing.repair import Repair

FIXTURES = Path(__file__).parents[2] / "fixtures"


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
    data = (FIXTURES / name).read_bytes()
    index = fragdex.index(data, exact=True)
    truth = {
        t.id: dict(zip(t.samples.offset.tolist(), t.samples.size.tolist(), strict=True))
        for t in index.tracks
    }
    return Film(data, index, truth)


def samples_of(repair: Repair) -> dict[int, dict[int, int]]:
    """Place and size of each sample that was found, by track."""
    found = {}
    for track in repair.tracks:
        table = track.table()
        found[track.id] = dict(zip(table.offset.tolist(), table.size.tolist(), strict=True))
    return found


def check_no_invention(good: Film, broken: bytes, repair: Repair, shift: int = 0) -> None:
    """Each sample that was found is one of the film, with its bytes, in the mended film too.

    Args:
        shift: bytes by which samples of the broken film lie behind those of the good one.
    """
    mended = repair.view.read(source=broken)
    assert len(mended) == repair.view.size
    index = fragdex.index(mended, exact=True)
    assert {t.id for t in index.tracks} == {t.id for t in repair.tracks}
    found = samples_of(repair)
    for track in repair.tracks:
        truth = good.truth[track.id]
        for at, size in found[track.id].items():
            assert truth.get(at - shift) == size, (track.id, at, size)
            assert good.data[at - shift : at - shift + size] == broken[at : at + size]
        samples = index.track(track.id).samples
        assert len(samples) == track.samples == len(found[track.id])
        for (at, size), place, length in zip(
            found[track.id].items(), samples.offset.tolist(), samples.size.tolist(), strict=True
        ):
            assert length == size
            assert mended[place : place + size] == broken[at : at + size]
    check_spans(broken, repair)


def check_spans(broken: bytes, repair: Repair) -> None:
    """Spans tell of each byte once."""
    at = 0
    for span in repair.spans:
        assert span.start == at < span.stop
        at = span.stop
    assert at == len(broken) == repair.size
