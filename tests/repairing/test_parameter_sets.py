"""Parameter sets among samples: known with the pictures that need them, whatever looks like one."""

from __future__ import annotations

import contextlib
from unittest.mock import patch

import pytest
from tests.repairing.broken import film, samples_of

import fragdex
from fragdex.boxes import find, parse
from fragdex.indexing.access import family_of
from fragdex.muxing.elementary_stream import parameter_sets
from fragdex.repairing import walk
from fragdex.repairing.av1 import Av1
from fragdex.repairing.avc import Avc
from fragdex.repairing.hevc import Hevc
from fragdex.repairing.nal_units import NalUnits
from fragdex.repairing.syntax import Syntax, Window
from fragdex.repairing.vvc import Vvc
from fragdex.sources import open_source


def sets_of(name: str) -> list[bytes]:
    """Parameter sets of the sample entry of a film's pictures."""
    moov = find(parse(film(name).data), "moov")
    assert moov is not None
    (entry, *_) = (
        entry
        for stsd in moov.find_all("trak/mdia/minf/stbl/stsd")
        for entry in stsd.children
        if family_of(entry.type) in ("avc", "hevc", "vvc")
    )
    return list(parameter_sets(entry))


@pytest.mark.parametrize(
    ("name", "kind"),
    [("moov-last.mp4", Avc), ("hevc-aac.mp4", Hevc), ("vvc/idr.mp4", Vvc)],
)
def test_parameter_sets_are_known_once_a_picture_with_them_is(
    name: str, kind: type[NalUnits]
) -> None:
    good, syntax = film(name), kind()
    units = b"".join(len(unit).to_bytes(4, "big") + unit for unit in sets_of(name))
    (at, size), *_ = good.truth[1].items()
    for rest in (b"", bytes(8), good.data[at : at + size // 2]):
        data = units + rest
        assert syntax.find(Window(open_source(data), len(data)), 0, len(data)) is None
        assert not syntax.sets
        assert not syntax.raw
    data = units + good.data[at : at + size]
    sample = syntax.find(Window(open_source(data), len(data)), 0, len(data))
    assert sample is not None
    assert sample.stop == len(data)
    assert syntax.sets
    assert syntax.forget_ahead()
    assert not syntax.sets
    assert not syntax.raw
    syntax.accept(sample)
    assert not syntax.forget_ahead()
    assert set(syntax.raw.values()) >= set(sample.sets) != set()


def test_a_sequence_header_is_known_once_a_picture_with_it_is() -> None:
    good, syntax = film("av1-opus.mp4"), Av1()
    (at, size), *_ = good.truth[1].items()
    data = good.data[at : at + size]
    assert syntax.find(Window(open_source(data), size - 1), 0, size - 1) is None
    assert syntax.sequence is None
    sample = syntax.find(Window(open_source(data), size), 0, size)
    assert sample is not None
    assert syntax.sequence is not None


@pytest.mark.parametrize("kind", [Avc, Hevc, Vvc, Av1])
def test_where_a_file_was_cut_any_bytes_may_begin_a_sample_or_not(kind: type[Syntax]) -> None:
    """Headers of all types, after lengths up to more than there is, cut off anywhere."""
    headers = {bytes((one, 16)) for one in range(256)}
    headers |= {bytes((one << 1, 1)) for one in range(64)} | {
        bytes((0, one << 3 | 1)) for one in range(32)
    }
    syntax = kind()
    for header in headers:
        for size in range(7):
            source = open_source(size.to_bytes(4, "big") + header + b"\x50")
            for stop in range(8):
                window = Window(source, stop, cut=True)
                assert syntax.begins(window, 0) <= syntax.may_begin(window, 0)


NOISE = bytes.fromhex("4755ce21b72809119f7223280494fc9969d01b60")
"""Sound that can be read as a sequence parameter set of AVC, with the number 0."""


@pytest.mark.parametrize("pictures", [0, 1, 2])
@pytest.mark.parametrize("sets", [[NOISE], sets_of("all-intra.mp4")])
@pytest.mark.parametrize("pure", [False, True])
def test_parameter_sets_among_lost_bytes_change_nothing(
    pictures: int, sets: list[bytes], pure: bool
) -> None:
    """Others in a hole, with pictures or not: those of the film after it are found."""
    good, other = film("moov-last.mp4"), film("all-intra.mp4")
    samples = [other.data[at : at + size] for at, size in other.truth[1].items()]
    units = [len(unit).to_bytes(4, "big") + unit for unit in sets]
    start = good.mdat[0] + 900
    foreign = b"".join([*units, *samples[:pictures]])
    broken = bytearray(good.without_moov())
    stop = start + len(foreign)
    broken[start:stop] = foreign
    with patch.object(walk, "compiled", None) if pure else contextlib.nullcontext():
        repair = fragdex.repair(bytes(broken), good.data)
    for number, truth in good.truth.items():
        kept = samples_of(repair)[number]
        whole = {at for at, size in truth.items() if at + size <= start or at >= stop}
        assert kept.items() <= truth.items()
        assert len(whole - kept.keys()) <= 2
