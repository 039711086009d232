"""`index.ranges` says whether its bytes alone play: held against FFmpeg on every fixture."""

import hashlib
import io
import math
from pathlib import Path

import pytest

import fragdex
from fragdex.errors import FragdexError
from fragdex.testing import movie

FIXTURES = Path(__file__).parents[2] / "fixtures"
FILES = [p for p in sorted(FIXTURES.iterdir()) if p.suffix in {".mp4", ".m4a", ".mov", ".ismv"}]


def alone(data, span):
    return b"".join(data[part.start : part.stop] for part in (*span.init, *span.media))


def samples(data, index):
    by_track = {}
    for track in index.tracks:
        table = track.samples
        places = zip(table.offset.tolist(), table.size.tolist(), strict=True)
        times = zip(table.dts.tolist(), table.cts.tolist(), strict=True)
        by_track[track.id] = [
            (*time, hashlib.md5(data[at : at + size]).hexdigest())
            for time, (at, size) in zip(times, places, strict=True)
        ]
    return by_track


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_what_is_said_to_play_has_its_samples_and_times(path):
    """In the bytes alone each sample is found as in the file; else the view is named."""
    data = path.read_bytes()
    try:
        index = fragdex.index(path, exact=True)
        start = index.tracks[0].start
        middle = 0 if start is None else start.fraction + 1
        span = index.span(middle, math.inf)
    except (FragdexError, IndexError):
        return  # nothing to seek in
    if not span.plays:
        assert span.obstacle
        assert bool(span.init) is (
            "moov" in span.obstacle or "places" in span.obstacle or "outside" in span.obstacle
        )
        return
    part = alone(data, span)
    part_samples, known = samples(part, fragdex.index(part, exact=True)), samples(data, index)
    for track, rows in part_samples.items():
        assert not rows or set(rows) <= set(known[track])
    assert any(part_samples.values())


@pytest.mark.parametrize("name", ["frag-cmaf", "frag-av1-opus", "faststart", "hybrid"])
def test_ffmpeg_agrees(name):
    av = pytest.importorskip("av")
    path = FIXTURES / f"{name}.mp4"
    index = fragdex.index(path, exact=True)
    span = index.span(1, 2)

    def packets(what):
        with av.open(what) as container:
            return {
                hashlib.md5(bytes(packet)).hexdigest()
                for packet in container.demux()
                if packet.size
            }

    whole = packets(str(path))
    try:
        packet_digests = packets(io.BytesIO(alone(path.read_bytes(), span)))
    except av.FFmpegError:
        packet_digests = set()
    assert span.plays is (bool(packet_digests) and packet_digests <= whole)


def test_what_plays_where_ranges_do_not():
    def obstacle(data, **options):
        return fragdex.index(data, exact=True).span(0, 1, **options).obstacle

    assert obstacle(movie()) == ""
    assert "fragdex.clip(index, start, stop)" in obstacle(movie(fragmented=False))
    assert "initialization segment" in obstacle(movie(moov=False))
    two = fragdex.index(movie() + movie(), exact=True)
    assert "several periods" in two.span(0, 1).obstacle
    hybrid = fragdex.index(FIXTURES / "hybrid.mp4", exact=True)
    end = hybrid.track(1).stop
    assert "moov names samples" in hybrid.span(end.fraction - 1, end).obstacle
