"""A copy with captions has the same other tracks, and a track that says what it was given."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import fragdex
from fragdex.boxes import find_all, parse
from fragdex.errors import BuildError, InexactIndex
from fragdex.muxing.captions import with_captions
from fragdex.testing import movie

FIXTURES = Path(__file__).parents[2] / "fixtures"
FILES = (
    "faststart.mp4", "moov-last.mp4", "aac.m4a", "start-7s.mp4", "frag-default-base.mp4",
    "frag-base-data-offset.mp4", "frag-base-implicit.mp4", "frag-cmaf.mp4", "frag-dash.mp4",
    "frag-global-sidx.mp4", "frag-two-languages.mp4", "frag-start-7s.mp4", "hybrid.mp4",
    "frag-encrypted.mp4", "mdat-to-end.mp4", "track-ids.mp4",
)  # fmt: skip
CUES = [(500, 1500, "hello there"), (1500, 1800, "a < b & c"), (2500, 4000, "two\nlines")]


def copied(data: bytes, cues: list[tuple[int, int, str]], language: str | None = None) -> bytes:
    index = fragdex.index(data, exact=True)
    pieces = with_captions(
        index, lambda part: data[part.start : part.stop], cues, language=language
    )
    return b"".join(p if isinstance(p, bytes) else data[p.start : p.stop] for p in pieces)


def payloads(copy: bytes) -> list[tuple[int, int, str]]:
    """What the last track shows, read sample by sample."""
    track = fragdex.index(copy, exact=True).tracks[-1]
    assert (track.kind, track.info.format, track.timescale) == ("text", "wvtt", 1000)
    shown = []
    samples = track.samples
    for offset, size, cts, duration in zip(
        *(c.tolist() for c in (samples.offset, samples.size, samples.cts, samples.duration)),
        strict=True,
    ):
        (box,) = parse(copy[offset : offset + size])
        if box.type == "vttc":
            shown.append((cts, cts + duration, box.find("payl")["cue_text"]))
        else:
            assert box.type == "vtte"
    return shown


@pytest.mark.parametrize("name", FILES)
def test_the_captions_are_there_and_the_rest_is_as_before(name):
    data = (FIXTURES / name).read_bytes()
    copy = copied(data, CUES, "en")
    before, after = fragdex.index(data, exact=True), fragdex.index(copy, exact=True)
    assert after.complete == before.complete
    # In a file of fragments, captions are a fragment like any other.
    moofs = [len(find_all(parse(file), "moof")) for file in (data, copy)]
    assert moofs[1] - moofs[0] == len(find_all(parse(data), "moov/mvex"))
    assert len(after.tracks) == len(before.tracks) + 1
    for old, new in zip(before.tracks, after.tracks[:-1], strict=True):
        assert old.info.id == new.info.id
        assert (old.samples.cts == new.samples.cts).all()
        for sample in (0, len(old.samples) // 2, -1):
            there = [
                file[int(t.samples.offset[sample]) :][: int(t.samples.size[sample])]
                for file, t in ((data, old), (copy, new))
            ]
            assert there[0] == there[1]
    escaped = [(500, 1500, "hello there"), (1500, 1800, "a &lt; b &amp; c"), CUES[2]]
    assert payloads(copy) == escaped
    assert after.tracks[-1].info.language == "eng"


@pytest.mark.parametrize("name", FILES)
def test_ffmpeg_reads_the_same_packets(name):
    av = pytest.importorskip("av")
    data = (FIXTURES / name).read_bytes()

    def packets(file: bytes) -> list[tuple[object, ...]]:
        import io

        with av.open(io.BytesIO(file)) as container:
            streams = [s for s in container.streams if s.type in ("video", "audio")]
            return [(p.stream.id, p.pts, bytes(p)) for p in container.demux(streams) if p.size]

    old, new = packets(data), packets(copied(data, CUES))
    for stream in {row[0] for row in old}:
        assert [r for r in old if r[0] == stream] == [r for r in new if r[0] == stream]


@given(
    st.lists(
        st.tuples(st.integers(0, 10_000), st.integers(0, 3_000), st.text(min_size=1, max_size=9)),
        max_size=20,
    ),
    st.booleans(),
)
def test_cues_never_overlap_and_none_is_late(drawn, fragmented):
    cues = sorted((start, start + length, text) for start, length, text in drawn)
    shown = payloads(copied(movie(fragmented=fragmented), cues))
    edges = [time for start, stop, _ in shown for time in (start, stop)]
    assert edges == sorted(edges)
    texts = [text for _, _, text in cues]
    assert len(shown) <= len(texts)
    assert {start for start, *_ in shown} <= {start for start, *_ in cues} | {
        stop for _, stop, _ in shown
    }


def test_no_cue_at_all_makes_an_empty_track():
    assert payloads(copied(movie(), [])) == []


def test_a_second_track_of_captions_goes_beside_the_first():
    twice = copied(copied(movie(), CUES, "en"), [(0, 100, "encore")], "fr")
    ids = [box["track_ID"] for box in find_all(parse(twice), "moov/trak/tkhd")]
    assert len(set(ids)) == len(ids) == 3
    assert payloads(twice) == [(0, 100, "encore")]


def test_a_file_whose_moofs_are_not_known_is_refused():
    """A sidx tells where segments are, and not what a new track moves in them."""
    source = fragdex.open_source(movie(fragments=3, sidx=True))
    source.remote = True  # a sidx is taken where reading every moof costs much
    index = fragdex.index(source)
    assert index.how.method == "sidx"
    with pytest.raises(InexactIndex, match="positions of the movie fragments"):
        with_captions(index, source.read, CUES)


def test_a_segment_without_a_moov_is_refused():
    data = (FIXTURES / "dash-segment-1.m4s").read_bytes()
    with pytest.raises(BuildError, match="no moov"):
        copied(data, CUES)


def test_a_file_of_several_moovs_is_refused_and_the_advice_helps():
    data = movie(2)
    moof = next(box.offset for box in parse(data) if box.type == "moof")
    again = data[:moof]
    later = movie(4)[len(data) :]
    joined = data + again + later
    for many in (joined, data + data):
        with pytest.raises(BuildError, match=r"several moovs.*fragdex extract"):
            copied(many, CUES)
    index = fragdex.index(joined)
    one = fragdex.clip(index, source=joined).read(source=joined)
    assert len(payloads(copied(one, CUES))) >= len(CUES)
