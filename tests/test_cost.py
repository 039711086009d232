"""What an index costs grows with the bytes, whatever a file repeats; steps are counted.

A step is a line of Python that runs, or 256 bytes that it allocates for what it makes: numpy's
loops show in what they write.
"""

from __future__ import annotations

import contextlib
import functools
import math
import re
import sys
import tracemalloc
from collections import Counter as Counts
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

import fragdex
from fragdex.boxes import build, limits, parse
from fragdex.cli import info
from fragdex.cli.box_tree import box_lines, box_pieces
from fragdex.formats import fidx
from fragdex.indexing import embedded_index, scan
from fragdex.muxing.clip import clip
from fragdex.muxing.mixed_files import muxed
from fragdex.packaging.subtitles import Captions, captions_of
from fragdex.testing import movie
from repeats import CLAIMED, DIMENSIONS, repeated, repeated_to

LINE = 256
"""Bytes allocated that count as a line."""
MOST = 1.2
"""Exponent of the steps from one size to the next."""
FREE = 6000
"""Steps that are not looked at: at that size a file costs what starting costs."""
HOUSE = str(Path(fragdex.__file__).parent)

LENDS = {"one-sidx-for-many-tracks"}
"""Up to `MAX_LENT_ROWS`, rows stand for tracks that the file's index does not name."""


class Counter:
    """Counts lines that run and bytes that they allocate, and the greatest memory in use."""

    def __init__(self) -> None:
        self.lines = self.bytes = self.peak = 0

    def run(self, work: Callable[[], object]) -> None:
        before = sys.gettrace()
        traced, reset = tracemalloc.get_traced_memory, tracemalloc.reset_peak
        tracemalloc.start()
        held = start = traced()[0]
        lines = written = peak = 0

        def called(frame: FrameType, event: str, argument: Any) -> Any:
            return line if frame.f_code.co_filename.startswith(HOUSE) else None

        def line(frame: FrameType, event: str, argument: Any) -> Any:
            nonlocal held, lines, written, peak
            lines += 1
            now, most = traced()
            if most > held:
                written += most - held
                if most > peak:
                    peak = most
            elif now == held:
                return line
            held = now
            reset()
            return line

        sys.settrace(called)
        try:
            work()
        finally:
            sys.settrace(before)
            peak = max(peak, traced()[1])
            tracemalloc.stop()
        self.lines += lines
        self.bytes += written
        self.peak = max(self.peak, peak - start)

    @property
    def steps(self) -> float:
        return self.lines + self.bytes / LINE


def indexed(data: bytes) -> fragdex.Index | None:
    with contextlib.suppress(fragdex.FragdexError):
        return fragdex.index(data)
    return None


def asked(data: bytes, folder: Path) -> None:
    """Index a file and ask what is usually asked."""
    index = indexed(data)
    if index is None:
        return
    for track in index.tracks:
        with contextlib.suppress(fragdex.FragdexError):
            index.track(track.id)
            track.seek(1)
    with contextlib.suppress(fragdex.FragdexError):
        index.span(0, 5)
    repr(index)
    index.save(folder / "saved.fidx")
    for track in fragdex.open_index(folder / "saved.fidx").tracks:
        _ = track.fragments


def hold(
    dimension: str,
    sizes: tuple[int, ...],
    work: Callable[[bytes], object],
    *,
    memory: bool = True,
) -> None:
    """The steps grow no faster than they may from each size to the next, nor does the memory."""

    def counted(data: bytes) -> Counter:
        counter = Counter()
        counter.run(lambda: work(data))
        return counter

    one = repeated(dimension, 1)
    work(one)  # what is loaded once
    least = counted(one).steps
    known: list[tuple[int, float]] = []
    for size, times in zip(sizes, (2, 8), strict=True):
        # several times what one is, so that there is something to count
        data = repeated_to(dimension, max(size, times * len(one)))
        counter = counted(data)
        known.append((len(data) - len(one), max(counter.steps - least, FREE)))
        room = 50 << 20 if dimension in CLAIMED else 2 << 20
        assert counter.peak <= 60 * len(data) + room or not memory
    for (small, few), (large, many) in pairwise(known):
        exponent = math.log(many / few) / math.log(large / small)
        assert exponent <= MOST or dimension in LENDS, (dimension, known)


@pytest.mark.parametrize("dimension", DIMENSIONS)
def test_an_index_costs_what_its_bytes_cost(dimension: str) -> None:
    hold(dimension, (1_000, 4_000), indexed)


@pytest.mark.slow
@pytest.mark.parametrize(
    "dimension",
    ["tracks", "trafs", "truns", "movies", "chunks", "sync-samples", "sidx-chain", "fragments"],
)
def test_a_larger_index_and_its_answers_cost_what_its_bytes_cost(
    dimension: str, tmp_path: Path
) -> None:
    """The others are tried at sizes of megabytes by `benchmarks/cost.py`."""
    hold(dimension, (4_000, 16_000), lambda data: asked(data, tmp_path), memory=False)


ANSWERS: dict[str, Callable[[fragdex.Index], object]] = {
    "seek": lambda index: index.track(1).seek(1.5),
    "ranges": lambda index: index.span(1.5, 2),
    "ranges to the end": lambda index: index.span(index.duration - 0.5, math.inf),  # type: ignore[operator]
    "plan": lambda index: index.plan(1.5),
    "duration": lambda index: index.duration,
    "start and end": lambda index: [(track.start, track.stop) for track in index.tracks],
    "sample_count": lambda index: [track.sample_count for track in index.tracks],
    "exact": lambda index: index.exact,
    "repr": repr,
}
"""What is asked of an opened index; `rates` says that it counts anew."""


@functools.cache
def short_and_long(fragmented: bool) -> list[tuple[fragdex.Index, ...]]:
    """Indexes of a short and a long film, as they are made and as they are saved."""
    films = [movie(fragments=n, samples=2, tracks=2, fragmented=fragmented) for n in (80, 5120)]
    fresh = tuple(fragdex.index(film, exact=True) for film in films)
    saved = tuple(fidx.read(index.export("fidx", samples=True)) for index in fresh)
    return [fresh, saved]


@pytest.mark.parametrize("fragmented", [True, False], ids=["fragmented", "progressive"])
@pytest.mark.parametrize("answer", ANSWERS)
def test_an_answer_costs_the_same_in_a_long_film(answer: str, fragmented: bool) -> None:
    """Columns are read once; what is asked again bisects."""
    for indexes in short_and_long(fragmented):
        steps = []
        for index in indexes:
            ANSWERS[answer](index)  # what is read once
            counter = Counter()
            counter.run(lambda index=index: ANSWERS[answer](index))  # type: ignore[misc]
            steps.append(counter.steps)
        assert steps[1] <= 1.3 * steps[0] + 30, steps


@pytest.mark.parametrize("form", ["json", "mfra", "csv"])
def test_an_export_costs_what_its_tracks_cost(form: str) -> None:
    """For each track, all tracks were gone through."""
    steps = []
    for tracks in (30, 120):
        index = fragdex.index(repeated("fragments-of-many-tracks", tracks), exact=True)
        index.export(form)  # what is loaded once, and samples
        counter = Counter()
        counter.run(lambda index=index: index.export(form))
        steps.append(counter.steps)
    assert math.log(steps[1] / steps[0], 4) <= MOST, steps


def grown(dimension: str) -> frozenset[tuple[str, str]]:
    """Which boxes a dimension makes more, or longer, by the path of their types."""

    def counted(boxes: Any, path: str, into: Counts) -> Counts:
        for box in boxes:
            at = f"{path}/{box.type}"
            own = box.size - sum(child.size for child in box.children)
            into.update({(at, "count"): 1, (at, "bytes"): own})
            counted(box.children, at, into)
        return into

    few, many = (counted(parse(repeated(dimension, n)), "", Counts()) for n in (2, 9))
    return frozenset(one for one, number in many.items() if number > 1.5 * few[one])


def unlike_boxes() -> list[str]:
    """Dimensions, without those that only repeat the boxes of another: they differ in an index."""
    known: dict[object, str] = {}
    for dimension in DIMENSIONS:
        of: object = dimension
        if dimension not in CLAIMED:
            with contextlib.suppress(fragdex.FragdexError):
                of = grown(dimension)
        known.setdefault(of, dimension)
    return list(known.values())


def test_dimensions_of_the_same_boxes_are_found() -> None:
    dimensions = unlike_boxes()
    assert "fragments" in dimensions
    assert "fragments-backwards" not in dimensions
    assert set(dimensions) >= CLAIMED


@pytest.mark.parametrize("dimension", unlike_boxes())
def test_boxes_and_their_text_cost_what_their_bytes_cost(dimension: str) -> None:
    def dumped(data: bytes) -> None:
        with contextlib.suppress(fragdex.FragdexError):
            for box in parse(data):
                for _ in (*box_lines(box, full=True), *box_pieces(box, full=True)):
                    pass

    hold(dimension, (300, 1_200), dumped)


def cut(data: bytes) -> None:
    """Make a clip, all pieces of it."""
    index = indexed(data)
    with contextlib.suppress(fragdex.FragdexError), fragdex.open_source(data) as source:
        if index is not None:
            list(clip(index, source.read, 0, 10, period=0).pieces)


@pytest.mark.slow
@pytest.mark.parametrize(
    "dimension", ["tracks", "hybrid-movies", "fragments-of-many-tracks", "trafs"]
)
def test_a_clip_costs_what_its_bytes_cost(dimension: str) -> None:
    """The parts that are copied are listed once, and a moof is read once, not once a track."""
    hold(dimension, (4_000, 16_000), cut, memory=False)


@pytest.mark.parametrize(
    "dimension",
    ["sizes-of-one-number", "samples-of-one-number-with-sync", "long-samples"],
)
def test_a_clip_of_tracks_in_the_same_bytes_takes_memory_by_the_bytes(dimension: str) -> None:
    """Each of many tracks claimed a sample for every byte of the file."""
    data = repeated_to(dimension, 64_000)
    cut(repeated(dimension, 1))  # what is loaded once
    tracemalloc.start()
    cut(data)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < 60 * len(data) + (50 << 20)


@pytest.mark.parametrize("dimension", ["sizes-of-one-number", "movies"])
def test_what_is_said_of_tracks_costs_what_the_bytes_cost(dimension: str) -> None:
    """Bit rates were counted of every sample that any track claims."""

    def said(data: bytes) -> None:
        index = fragdex.index(data)
        info._value(index)
        info._more(index)

    hold(dimension, (4_000, 16_000), said, memory=False)


def test_info_has_lines_for_as_many_tracks_as_it_has_rows_for() -> None:
    """Of a file of many movies, it had a line for each."""
    index = fragdex.index(repeated("movies", 60))
    assert len(info._more(index).splitlines()) == 50
    assert "  and 10 more tracks" in repr(index).splitlines()


def test_a_count_that_grows_too_fast_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """The counter itself: a pass over everything for each thing does not get through."""

    def squared(data: bytes) -> None:
        for one in range(len(data)):
            bytes(one)

    monkeypatch.setattr(squared, "__code__", squared.__code__.replace(co_filename=HOUSE))
    with pytest.raises(AssertionError):
        hold("empty-boxes", (2_000, 8_000), squared)


def test_limits_say_what_where_and_how_many() -> None:
    for dimension, path in (
        ("track-headers", "moov/trak"),
        ("empty-trafs", "moof/traf/tfhd"),
    ):
        with pytest.raises(fragdex.errors.LimitExceeded) as caught:
            fragdex.index(repeated(dimension, limits.MAX_TRACKS + 10))
        assert caught.value.path == path
        assert caught.value.offset
        assert str(limits.MAX_TRACKS) in str(caught.value)
    assert len(fragdex.index(repeated("track-headers", limits.MAX_TRACKS)).tracks) == 4096


def test_more_movies_than_anyone_has_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scan, "MAX_PERIODS", 5)
    assert len(fragdex.index(repeated("movies", 5)).periods) == 5
    with pytest.raises(fragdex.errors.LimitExceeded, match="movies") as caught:
        fragdex.index(repeated("movies", 6))
    assert caught.value.path == "moov"
    assert caught.value.offset


def test_a_sidx_that_stands_for_too_many_tracks_is_not_used(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    data = repeated("one-sidx-for-many-tracks", 30)
    assert fragdex.index(data).how.method == "sidx"
    monkeypatch.setattr(embedded_index, "MAX_LENT_ROWS", 500)
    index = fragdex.index(data)
    assert index.how.method == "boxes"
    assert "sidx-limit" in [finding.code for finding in index.findings]


def with_sample_entries(count: int) -> bytes:
    """A film with so many sample entries."""

    def changed(box: Any, shift: int) -> Any:
        if box.type == "stsd":
            return box.replace(children=[box.children[0]] * count, entry_count=count)
        if box.type in ("stco", "co64"):
            entries = box["entries"].copy()
            entries["chunk_offset"] += shift
            return box.replace(entries=entries)
        return box.replace(children=[changed(child, shift) for child in box.children])

    film = movie(3, fragmented=False)
    boxes = parse(film)
    (moov,) = (box for box in boxes if box.type == "moov")
    moov_bytes = build(changed(moov, 0))
    if moov.offset < next(box.offset for box in boxes if box.type == "mdat"):
        moov_bytes = build(changed(moov, len(moov_bytes) - moov.size))
    return film[: moov.offset] + moov_bytes + film[moov.stop :]


def with_cues(count: int) -> tuple[list[bytes], list[Captions]]:
    """A film, and so many cues that are shown all the time."""
    lines = (f"00:00:00.{n % 1000:03d} --> 09:00:00.000\ncue {n}\n\n" for n in range(count))
    captions = captions_of(("WEBVTT\n\n" + "".join(lines)).encode(), ".vtt")
    return [movie(12)], [captions]


TITLES: dict[str, Callable[[int], tuple[list[bytes], list[Captions]]]] = {
    "tracks": lambda count: ([movie(3, tracks=count, fragmented=False)], []),
    "tracks in fragments": lambda count: ([movie(3, tracks=count)], []),
    "renditions": lambda count: ([movie(3, tracks=2)] * count, []),
    "renditions of their own files": lambda count: (
        # no two files are equal: each has a box of another size at its end
        [movie(3, tracks=2) + (8 + n).to_bytes(4) + b"free" + bytes(n) for n in range(count)],
        [],
    ),
    "sample entries": lambda count: ([with_sample_entries(count)], []),
    "cues": with_cues,
}


ALIKE = 4
"""Files of one kind that are read, of each package."""


@pytest.mark.parametrize("what", TITLES)
def test_each_file_of_a_package_costs_what_is_in_it(what: str) -> None:
    """Each initialization segment parsed the whole moov; each variant asked every rendition.

    Each playlist compared every file with every other, to find the media of none.
    """
    known: dict[str, list[float]] = {}
    for count in (1, 8, 32):  # the first time loads what is loaded once
        data, captions = TITLES[what](count)
        indexes = [fragdex.index(one, exact=True) for one in data]
        counters: dict[str, Counter] = {}
        packages: list[fragdex.Package] = []

        def counted(kind: str, work: Callable[[], object], into: Any = counters) -> None:
            into.setdefault(kind, Counter()).run(work)

        def packaged(given: Any = (indexes, data, captions), into: Any = packages) -> None:
            indexes, data, captions = given
            into.append(
                fragdex.package(indexes, source=data, captions=captions, segment_duration=None)
            )

        counted("the package", packaged)
        files: dict[str, list[str]] = {}
        share: dict[str, float] = {}
        for name in packages[0]:
            files.setdefault(re.sub(r"\d+", "#", name), []).append(name)
        for kind, names in files.items():
            # A few of a kind stand for all of it: counting takes longer than reading.
            some = names[:: -(-len(names) // ALIKE)]
            share[kind] = len(names) / len(some)
            for name in some:

                def read(name: str = name, package: fragdex.Package = packages[0]) -> None:
                    package[name].read()

                counted(kind, read)
        counted("fragments of all", lambda: muxed(indexes, source=data).read(source=data))  # noqa: B023
        for kind, counter in counters.items():
            known.setdefault(kind, []).append(max(share.get(kind, 1) * counter.steps, FREE))
    for kind, (*_, few, many) in known.items():
        assert math.log(many / few, 4) <= MOST, (kind, few, many)
