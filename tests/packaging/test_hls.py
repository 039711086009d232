"""HLS playlists: a player that reads one gets the packets of the file."""

from __future__ import annotations

import io
import re
import shutil
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import fragdex
from fragdex.errors import BuildError, InexactIndex, NoSyncSample
from fragdex.packaging import hls
from fragdex.packaging.m3u8 import bandwidths
from fragdex.seeking.model import FileInfo, How, Index
from fragdex.testing import movie

FIXTURES = Path(__file__).parents[2] / "fixtures"

PLAYED = sorted(FIXTURES.glob("frag-*.m[4op]*")) + sorted(FIXTURES.glob("piff*.ismv"))
PLAYED += [FIXTURES / name for name in ("hls-single-file.mp4", "joined-segments.mp4")]
PLAYED += [FIXTURES / name for name in ("mdat-to-end.mp4", "two-inits.mp4", "cut-in-mfra.mp4")]
NOT_TO_BE_PLAYED = {"frag-samples-in-moov.mp4"}
"""The moov holds samples itself: no playlist can name them."""


def packets(path: Path) -> list[list[tuple[Any, ...]]]:
    """Size, decode and presentation time in seconds and key flag of the packets of each stream."""
    av = pytest.importorskip("av")
    options = {}
    if path.suffix == ".m3u8":
        options = {"protocol_whitelist": "file,crypto", "allowed_extensions": "ALL"}
        options["extension_picky"] = "0"
    by_stream: dict[int, list[tuple[Any, ...]]] = {}
    with av.open(str(path), options=options) as container:
        for packet in container.demux():
            if packet.size:
                base = packet.time_base
                times = [None if t is None else t * base for t in (packet.dts, packet.pts)]
                row = (packet.size, *times, packet.is_keyframe)
                by_stream.setdefault(packet.stream.index, []).append(row)
    # The players number streams in the order in which they meet them.
    return sorted(by_stream.values(), key=str)


@pytest.mark.parametrize("path", PLAYED, ids=lambda path: path.name)
def test_a_player_gets_the_packets_of_the_file(path: Path, tmp_path: Path) -> None:
    if path.name in NOT_TO_BE_PLAYED:
        with pytest.raises(BuildError, match="moov has samples"):
            fragdex.index(path).export("hls")
        return
    copy = shutil.copy(path, tmp_path)
    playlist = tmp_path / "list.m3u8"
    playlist.write_bytes(fragdex.index(path).export("hls", segment_duration=0.5))
    assert packets(playlist) == packets(Path(copy))


def lines(playlist: bytes) -> list[str]:
    return playlist.decode().splitlines()


def ranges(playlist: bytes) -> list[tuple[int, int]]:
    """(offset, size) of the segments."""
    ranges = re.findall(r"#EXT-X-BYTERANGE:(\d+)@(\d+)", playlist.decode())
    return [(int(start), int(size)) for size, start in ranges]


def test_a_playlist_names_whole_fragments_that_begin_with_a_sync_sample() -> None:
    data = movie(6, tracks=2, samples=10, fps=10)
    index = fragdex.index(data, exact=True)
    playlist = index.export("hls", uri="film.mp4")
    shown = lines(playlist)
    init = index.periods[0].init[-1].stop
    assert shown[:6] == [
        "#EXTM3U",
        "#EXT-X-VERSION:7",
        "#EXT-X-TARGETDURATION:2",
        "#EXT-X-MEDIA-SEQUENCE:0",
        "#EXT-X-PLAYLIST-TYPE:VOD",
        "#EXT-X-INDEPENDENT-SEGMENTS",
    ]
    assert shown[6] == f'#EXT-X-MAP:URI="film.mp4",BYTERANGE="{init}@0"'
    assert shown[-1] == "#EXT-X-ENDLIST"
    assert [line for line in shown if "EXTINF" in line] == ["#EXTINF:2.000000,"] * 3
    table = index.track(1).fragments
    assert [start for start, _ in ranges(playlist)] == table.offset[::2].tolist()
    assert sum(size for _, size in ranges(playlist)) == len(data) - init


def test_durations_do_not_drift() -> None:
    index = fragdex.index(movie(300, samples=1, fps=30), exact=True)
    shown = lines(index.export("hls", segment_duration=0))
    durations = [Fraction(line[8:-1]) for line in shown if line.startswith("#EXTINF")]
    assert len(durations) == 300
    assert sum(durations) == 10


def test_a_growing_file_has_no_end() -> None:
    shown = lines(fragdex.index(movie(2), exact=True).export("hls", growing=True))
    assert "#EXT-X-PLAYLIST-TYPE:EVENT" in shown
    assert "#EXT-X-ENDLIST" not in shown


def test_periods_are_parted() -> None:
    shown = lines(fragdex.index(FIXTURES / "two-inits.mp4").export("hls"))
    assert shown.count("#EXT-X-DISCONTINUITY") == 1
    assert sum(line.startswith("#EXT-X-MAP") for line in shown) == 2


@pytest.mark.parametrize(
    ("name", "given", "address"),
    [
        ("/films/a film.mp4", None, "a%20film.mp4"),
        ('C:\\films\\12:30 "x".mp4', None, "12%3A30%20%22x%22.mp4"),
        ("https://example.org/a.mp4?token=1", None, "https://example.org/a.mp4?token=1"),
        ("", None, "media.mp4"),
        ("a.mp4", '../b "c"\n.mp4', "../b%20%22c%22%0A.mp4"),
        ("a.mp4", "already%20escaped.mp4", "already%20escaped.mp4"),
    ],
)
def test_addresses_stand_on_one_line_and_in_quotes(
    name: str, given: str | None, address: str
) -> None:
    assert hls.uri_of(Index(FileInfo(name), How("boxes", True), ()), given) == address


def test_each_entry_of_the_iframe_playlist_is_one_picture() -> None:
    av = pytest.importorskip("av")
    path = FIXTURES / "frag-default-base.mp4"
    data = path.read_bytes()
    index = fragdex.index(path, exact=True)
    playlist = index.export("hls", playlist="iframes")
    assert "#EXT-X-I-FRAMES-ONLY" in lines(playlist)
    init = data[: index.periods[0].init[-1].stop]
    samples = index.track(1).samples
    expected = samples.rows(samples.sync)
    entries = ranges(playlist)
    assert len(entries) == len(expected)
    for (start, size), length, cts in zip(
        entries, expected.size.tolist(), expected.cts.tolist(), strict=True
    ):
        with av.open(io.BytesIO(init + data[start : start + size])) as container:
            packet = next(p for p in container.demux(video=0) if p.size)
            assert (packet.size, packet.pts, packet.is_keyframe) == (length, cts, True)


def test_a_master_playlist_describes_what_there_is() -> None:
    index = fragdex.index(FIXTURES / "frag-default-base.mp4", exact=True)
    shown = lines(index.export("hls", playlist="master"))
    variant = next(line for line in shown if line.startswith("#EXT-X-STREAM-INF"))
    assert 'CODECS="avc1.64000A,mp4a.40.2"' in variant
    assert "RESOLUTION=64x48" in variant
    assert "FRAME-RATE=25.000" in variant
    assert shown[-1] == "media.m3u8"
    both = lines(hls.write_master(index, iframes_uri="i.m3u8"))[-1]
    assert both.startswith("#EXT-X-I-FRAME-STREAM-INF:BANDWIDTH=")
    assert both.endswith('RESOLUTION=64x48,URI="i.m3u8"')
    bandwidth = int(re.findall(r"[:,]BANDWIDTH=(\d+)", variant)[0])
    average = int(re.findall(r"AVERAGE-BANDWIDTH=(\d+)", variant)[0])
    assert 0 < average <= bandwidth


def test_sound_alone_has_a_master_playlist_too() -> None:
    text = hls.write_master(fragdex.index(FIXTURES / "frag-audio.m4a", exact=True)).decode()
    assert "RESOLUTION" not in text
    assert "FRAME-RATE" not in text


def test_what_cannot_be_listed_is_refused() -> None:
    with pytest.raises(BuildError, match="movie fragments"):
        fragdex.index(movie(fragmented=False)).export("hls")
    with pytest.raises((BuildError, InexactIndex)):
        fragdex.index(movie(moov=False)).export("hls")
    index = fragdex.index(movie(3), exact=True)
    with pytest.raises(ValueError, match="no playlist"):
        index.export("hls", playlist="other")
    with pytest.raises(InexactIndex, match="samples"):
        fragdex.index(movie(3, sidx=True)).export("hls", playlist="iframes")
    with pytest.raises(NoSyncSample):
        fragdex.index(FIXTURES / "frag-text.mp4", exact=True).export(
            "hls", playlist="iframes", track=3
        )


def brute_peak(segments):
    """Every stretch of consecutive segments, as RFC 8216, 4.3.4.2 has it."""
    target = max(1, int(max(seconds for seconds, _, _ in segments) + Fraction(1, 2)))
    rates = [Fraction(0)]
    for start in range(len(segments)):
        for stop in range(start + 1, len(segments) + 1):
            seconds = sum(part[0] for part in segments[start:stop])
            if target <= 2 * seconds <= 3 * target:
                rates.append(8 * sum(part[2] for part in segments[start:stop]) / seconds)
    return max(rates)


@given(
    st.lists(
        st.tuples(
            st.fractions(Fraction(1, 4), 6, max_denominator=25), st.just(0), st.integers(0, 9999)
        ),
        min_size=1,
        max_size=12,
    )
)
def test_the_peak_is_that_of_the_worst_stretch(segments):
    whole = Fraction(8 * sum(size for _, _, size in segments)) / sum(s for s, _, _ in segments)
    peak = brute_peak(segments) or max(Fraction(8 * size) / s for s, _, size in segments)
    assert bandwidths(segments) == (int(max(peak, whole)) + 1, int(whole) + 1)


def test_many_segments_of_no_length_take_no_longer():
    """The stretches that are looked at are bounded, whatever the durations."""
    segments = [(Fraction(1), 0, 1), *[(Fraction(0), 0, 1)] * 20_000, (Fraction(1), 0, 1)]
    assert bandwidths(segments)[1] == 8 * 20_002 // 2 + 1
