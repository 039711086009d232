"""One count of frames: ours, that of our exports and that of FFmpeg, wherever an edit begins.

Each film's edit list is set to begin and end at, before, in and after pictures. Where FFmpeg counts
or times frames otherwise, a finding says so.
"""

import io
import json
import struct
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

import pytest

import fragdex
from fragdex.errors import BuildError
from fragdex.seeking.numbering import Numbering

av = pytest.importorskip("av")
FIXTURES = Path(__file__).parents[2] / "fixtures"
FILMS = ("all-intra.mp4", "open-gop.mp4", "variable-rate.mp4", "flash.f4v", "frag-delay-moov.mp4")


def with_edit(data: bytes, duration: int, media_time: int) -> bytes:
    """The last edit of the first edit list, with these numbers (ISO/IEC 14496-12, 8.6.6)."""
    at = data.index(b"elst") + 4
    form, size = (">Qq", 20) if data[at] else (">Ii", 12)
    count = int.from_bytes(data[at + 4 : at + 8], "big")
    edited = bytearray(data)
    struct.pack_into(form, edited, at + 8 + size * (count - 1), duration, media_time)
    return bytes(edited)


def edits(index: fragdex.Index) -> Iterator[tuple[int, int]]:
    """Durations and media times at every boundary."""
    track = index.video
    cts = sorted(track.samples.cts.tolist())
    step = cts[1] - cts[0]
    times = (0, cts[0], cts[0] + 1, cts[0] + step // 2, cts[1] - 1, cts[1], cts[3] + step // 3)
    for media_time in (*times, cts[-1], cts[-1] + step // 2):
        for ticks in (0, step * 3 // 2, 3 * step, 3 * step + step // 2, step // 3):
            yield round(ticks * track.movie_timescale / track.timescale), media_time


def counted_by_ffmpeg(data: bytes) -> list[int]:
    with av.open(io.BytesIO(data)) as film:
        film.streams.video[0].thread_count = 1
        return [frame.pts for frame in film.decode(video=0)]


@pytest.mark.parametrize("name", FILMS)
def test_all_count_the_same_frames(name: str) -> None:
    whole = (FIXTURES / name).read_bytes()
    agreed = 0
    for duration, media_time in edits(fragdex.index(whole)):
        data = with_edit(whole, duration, media_time)
        index = fragdex.index(data)
        track = index.video
        numbering = Numbering(track, track.samples)
        ticks = numbering.ticks.tolist()
        place = (duration, media_time)
        table = json.loads(index.export("frames-json"))["frames"]
        assert [frame["ticks"] for frame in table] == ticks, place
        times = [Fraction(one, numbering.timescale) for one in ticks]
        assert numbering.numbers_at(times).tolist() == list(range(len(ticks))), place
        if ticks:
            window = index.window("video", 0, len(ticks))
            assert window.ticks.tolist() == ticks, place
        if any(finding.code == "other-frames" for finding in index.findings):
            continue
        agreed += 1
        counted = counted_by_ffmpeg(data)
        if not track.extent.is_virtual:
            # in fragments, FFmpeg shows what is hidden before an edit (docs/disagreements.md)
            assert all(one < 0 for one in counted[: -len(ticks)]), place
            assert counted[-len(ticks) :] == ticks, place
            continue
        assert counted == ticks, place
        try:
            mapping = json.loads(index.export("torchcodec"))["frames"]
        except BuildError:
            assert not track.samples.sync[numbering.sample].all()  # a key frame is hidden
        else:
            assert [frame["pts"] for frame in mapping] == ticks, place
    assert agreed


def test_an_edit_that_begins_inside_a_picture_begins_with_the_next_one() -> None:
    """Of all-intra pictures of 512 ticks, the first is cut in half."""
    data = with_edit((FIXTURES / "all-intra.mp4").read_bytes(), 980, 256)
    index = fragdex.index(data)
    track = index.video
    assert [finding.code for finding in index.findings] == ["edit-inside-picture"]
    assert (track.start, track.shift) == (0, -512)
    assert len(fragdex.Frames(data)) == 24
    assert fragdex.open_index(index.export("fidx")).video.segments == track.segments
    # the clip of everything is everything
    copy = fragdex.index(fragdex.clip(data, 0, float("inf")).read())
    assert len(Numbering(copy.video, copy.video.samples)) == 24
