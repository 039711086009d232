"""More of what is fuzzed: large files, what the command line prints, the service's parsers.

As in targets.py, each function takes bytes and may raise our errors and nothing else.
"""

from __future__ import annotations

import io
import re
import struct
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from itertools import islice
from pathlib import Path

import fragdex
from fragdex.indexing import native
from fragdex.seeking.difference import differences

sys.path.append(str(Path(__file__).resolve().parents[1] / "tests"))

from repeats import CLAIMED, DIMENSIONS, repeated_to

__all__ = ["WIDER"]

OBEYED = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
FEW_LINES = 20_000

GROWTH = 4
"""Times as many bytes in the second file of `large` as in the first."""
SMALLEST, LARGEST = 8_192, 65_536
MOST_GROWTH = 3 * GROWTH
"""Times as long the second file may take: three times what is linear, for caches and chance."""
LEAST_S = 0.5
"""Seconds of the processor below which a time says nothing about growth."""
NUMBERS = (0, 1, 0x7F, 0xFF, 0x7FFF, 0xFFFF, 0x10000, 2**28, 2**31 - 1, 2**31, 2**32 - 2, 2**32 - 1)


def large(data: bytes) -> None:
    """A file that repeats one thing, and one four times as large: the cost may grow as much.

    The first bytes name the dimension, the size and the work; each four behind change a number of
    the file, at the same place of both.
    """
    data = data.ljust(4, b"\0")
    dimension = list(DIMENSIONS)[data[0] % len(DIMENSIONS)]
    size = SMALLEST + (LARGEST - SMALLEST) * data[1] // 255
    work = WORK[data[2] % len(WORK)]
    took = []
    for wanted in (size, GROWTH * size):
        made = bytearray(_repeated(dimension, wanted))
        for at in range(4, min(len(data), 40) - 3, 4):
            place, number = struct.unpack_from(">HxB", data, at)
            place %= max(1, len(made) - 4)
            struct.pack_into(">I", made, place, NUMBERS[number % len(NUMBERS)])
        began = time.process_time()
        with suppress(fragdex.FragdexError):
            work(bytes(made))
        took.append(time.process_time() - began)
    if dimension not in CLAIMED:
        assert took[1] < max(LEAST_S, MOST_GROWTH * took[0]), (
            f"{work.__name__} of {dimension} takes more than in proportion to its bytes"
        )


@cache
def _repeated(dimension: str, size: int) -> bytes:
    return repeated_to(dimension, size)


def _index(data: bytes) -> None:
    fragdex.index(data)


def _exact(data: bytes) -> None:
    fragdex.index(data, exact=True)


def _parse(data: bytes) -> None:
    fragdex.boxes.parse(data)


def _pieces(data: bytes) -> None:
    feeder = fragdex.Indexer()
    for at in range(0, len(data), 4096):
        feeder.feed(data[at : at + 4096])
    feeder.finish()


def _printed(data: bytes) -> None:
    repr(fragdex.index(data))


def _saved(data: bytes) -> None:
    made = fragdex.index(data).export("fidx")
    fragdex.open_index(made).duration  # noqa: B018 - it is asked for


WORK: tuple[Callable[[bytes], None], ...] = (_index, _exact, _parse, _pieces, _printed, _saved)


def dump(data: bytes) -> None:
    """The tree of boxes as text and as JSON: nothing that a terminal obeys, and valid JSON."""
    import json

    from fragdex.cli.box_tree import box_lines, box_pieces, top_level_boxes

    with fragdex.open_source(data) as source:
        try:
            for box in islice(top_level_boxes(source, None, strict=False), 1000):
                for line in islice(box_lines(box, full=len(data) % 2 == 0), FEW_LINES):
                    assert not OBEYED.search(line), "a terminal would obey what dump prints"
                json.loads("".join(box_pieces(box, full=True)))
        except fragdex.FragdexError:
            return


def verify(data: bytes) -> None:
    """An index holds against the file that it was made of, whichever way it was made."""
    try:
        truth = fragdex.index(data, exact=True)
        claimed = fragdex.open_index(truth.export("fidx"))
    except fragdex.FragdexError:
        return
    if any((track.sample_count or 0) > 1 << 16 for track in truth.tracks):
        return
    assert not list(differences(claimed, truth)), "a saved index differs from what was saved"


def pure(data: bytes) -> None:
    """The compiled loops and the plain ones say the same, and so do simple files in one call."""
    found = []
    compiled = native.compiled
    for one in (compiled, compiled, None):  # headers that were read once are known
        native.compiled = one
        try:
            made = fragdex.index(data, exact=True)
            told: object = [(t.fragments, t.sync_samples) for t in made.tracks], made.findings
        except fragdex.FragdexError as error:
            told = type(error).__name__
        finally:
            native.compiled = compiled
        found.append(told)
    assert found[0] == found[1] == found[2], "the compiled loops and the plain ones differ"


def repair(data: bytes) -> None:
    """A broken file alone and with a good one, and as the good one: samples lie in the file."""
    good = _good()
    for broken, like in ((data, None), (data, good), (good[: len(good) // 2], data)):
        try:
            repaired = fragdex.repair(broken, like)
        except fragdex.FragdexError:
            continue
        ends = [(span.start, span.stop) for span in repaired.spans]
        assert [0, *(stop for _, stop in ends)] == [*(start for start, _ in ends), len(broken)], (
            "what became of the bytes leaves some out, or says some twice"
        )
        tables = [track.table() for track in repaired.tracks]
        assert all((one.offset + one.size).max(initial=0) <= len(broken) for one in tables), (
            "a sample lies outside of the file"
        )
        repaired.index(broken)


@cache
def _good() -> bytes:
    """A film whose moov is its last box: half of it is a film that nothing describes."""
    return (Path(__file__).resolve().parents[1] / "fixtures/moov-last.mp4").read_bytes()


def captions(data: bytes) -> None:
    """Captions of every form."""
    from fragdex.muxing.captions import parse_json, parse_srt, parse_webvtt

    for read in (parse_webvtt, parse_srt, parse_json):
        try:
            cues = read(data)
        except fragdex.FragdexError:
            continue
        assert all(0 <= cue.start_ms <= cue.end_ms for cue in cues), "a cue ends before it starts"


def images(data: bytes) -> None:
    """The size of an image of the type that its bytes show."""
    from fragdex.service.images.probe import kind_of, probe

    kind = kind_of(data[:4096])
    if kind is None:
        return
    try:
        size = probe(io.BytesIO(data), kind, 10**8)
    except fragdex.FragdexError:
        return
    assert 0 < size.width * size.height <= 10**8, "an image has no pixels, or too many"


def archives(data: bytes) -> None:
    """The archive of a page: read through within its bounds."""
    from fragdex.rendering.archives import Bounds, examine

    with tempfile.NamedTemporaryFile() as file:
        file.write(data)
        file.flush()
        try:
            found = examine(Path(file.name), Bounds(unpacked_bytes=1 << 20, files=100))
        except fragdex.FragdexError:
            return
    assert found.byte_size <= 1 << 20, "an archive holds more than its bounds"


WIDER: dict[str, Callable[[bytes], None]] = {
    "large": large,
    "dump": dump,
    "verify": verify,
    "pure": pure,
    "repair": repair,
    "captions": captions,
    "images": images,
    "archives": archives,
}
"""Name → target."""
