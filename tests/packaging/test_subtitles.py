"""Subtitles of a title: what is in the tracks and caption files is what players are given."""

import json
import re
import struct
from fractions import Fraction
from html import escape, unescape
from pathlib import Path
from xml.etree import ElementTree as ET

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fragdex
from fragdex import ByteRange
from fragdex.boxes import build, make_box
from fragdex.errors import MalformedCaptions
from fragdex.muxing.captions import parse_webvtt, webvtt_cues, with_captions
from fragdex.packaging.subtitles import (
    FileCues,
    as_webvtt,
    captions_of,
    cues_of_sample,
    header,
    read_captions,
    sample_bound,
    written,
)
from fragdex.testing import check_dash, check_hls, movie

FIXTURES = Path(__file__).parents[2] / "fixtures"
MPD = "{urn:mpeg:dash:schema:mpd:2011}"
TEXT = st.text(st.sampled_from("ab <>&\né\U0001f600"), max_size=12)
CUES = st.lists(
    st.tuples(st.integers(0, 8000), st.integers(1, 3000), TEXT), min_size=1, max_size=6
).map(lambda rows: [(start, start + long, text) for start, long, text in rows])


def subtitled(data, cues, **options):
    index = fragdex.index(data, exact=True)
    pieces = with_captions(index, lambda part: data[part.start : part.stop], cues, **options)
    return b"".join(p if isinstance(p, bytes) else data[p.start : p.stop] for p in pieces)


def packaged(data, **options):
    return fragdex.package(fragdex.index(data, exact=True), source=data, **options)


def segments(package, name, source=None):
    """Start, end and cues of each segment of a WebVTT playlist."""
    text = package[f"{name}.m3u8"].read().decode()
    at, parts = Fraction(0), []
    for seconds, uri in re.findall(r"#EXTINF:([\d.]+),\n(.*)", text):
        view = package[uri]
        data = view.read(source=source)
        assert len(data) == view.size
        assert data.startswith(b"WEBVTT\nX-TIMESTAMP-MAP=MPEGTS:0,LOCAL:00:00:00.000\n")
        parts.append((at, at + Fraction(seconds), parse_webvtt(data)))
        at += Fraction(seconds)
    return parts


def expected(cues):
    """Cues as a track holds them: where two overlap the earlier ends first."""
    ordered, at, parts = sorted(cues, key=lambda cue: cue[0]), 0, []
    for number, (start, end, text) in enumerate(ordered):
        start = max(start, at)
        if number + 1 < len(ordered):
            end = min(end, max(ordered[number + 1][0], start))
        if end > start:
            shown = "\n".join(line for line in text.split("\n") if line.strip())
            shown = shown.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
            parts += [(start, end, shown)] if shown else []
            at = end
    return parts


def shown(cues, start, stop):
    """Runs of one text between two times in milliseconds."""
    runs = []
    for begin, end, text in sorted(cues):
        begin, end = max(begin, start), min(end, stop)
        if begin >= end:
            continue
        if runs and runs[-1][1:] == [begin, text]:
            runs[-1][1] = end
        else:
            runs.append([begin, end, text])
    return runs


@given(CUES, st.booleans(), st.sampled_from([1, 4, None]))
def test_what_a_segment_shows_is_what_the_track_shows_then(cues, fragmented, seconds):
    data = subtitled(movie(9, samples=2, fps=2, fragmented=fragmented), cues)
    package = packaged(data, segment_duration=seconds)
    wanted = expected(cues)
    parts = segments(package, "s1", data)
    for number, (start, end, captions) in enumerate(parts):
        until = 1 << 40 if number == len(parts) - 1 else end * 1000
        assert shown(captions, start * 1000, until) == shown(wanted, start * 1000, until)
        # a cue has its own times, not those of the segment: players join its parts
        assert {one.start_ms for one in captions} <= {start for start, _, _ in wanted}


STYLES = st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9), st.integers(0, 7)), max_size=3)


def tx3g(text, styles):
    raw = text.encode("utf-8")
    rows = b"".join(struct.pack(">HHHBBI", a, b, 1, flags, 12, 0) for a, b, flags in styles)
    box = struct.pack(">I4sH", 10 + len(rows), b"styl", len(styles)) + rows if styles else b""
    return struct.pack(">H", len(raw)) + raw + box


def wvtt(cues):
    boxes = []
    for text, settings in cues:
        children = [make_box("sttg", settings=settings)] * bool(settings)
        boxes.append(make_box("vttc", children=[*children, make_box("payl", cue_text=text)]))
    return b"".join(map(build, boxes)) or build(make_box("vtte"))


SAMPLES = (
    st.binary(max_size=60)
    | st.builds(tx3g, TEXT, STYLES)
    | st.lists(st.tuples(TEXT, st.sampled_from(["", "line:0", "a --> b"])), max_size=3).map(wvtt)
)


@given(st.lists(SAMPLES, max_size=4), st.sampled_from(["tx3g", "wvtt"]), st.integers(0, 1 << 40))
def test_a_text_is_never_larger_than_its_bound(samples, code, start):
    cues = [
        cue
        for at, data in enumerate(samples, start)
        for cue in cues_of_sample(data, code, Fraction(at), Fraction(at + 1))
    ]
    text = written(header(), cues)
    bounds = sample_bound(np.array([len(data) for data in samples], np.int64))
    assert len(text) <= len(header()) + int(bounds.sum())
    if start < 1000 * 3599:
        assert len(parse_webvtt(text)) <= len(cues)


def test_styles_of_timed_text_become_tags():
    data = tx3g("one two <3", [(0, 3, 1), (4, 7, 6)])
    (cue,) = cues_of_sample(data, "tx3g", Fraction(0), Fraction(1))
    assert cue.text == "<b>one</b> <i><u>two</u></i> &lt;3"


def test_any_range_of_a_segment_is_that_of_the_whole():
    data = subtitled(movie(4, samples=5, fps=5), [(500, 2500, "hello & all"), (2600, 3000, "x")])
    view = packaged(data)["s1/0.vtt"]
    whole = view.read(source=data)
    for start in range(0, view.size, 7):
        assert view.read(ByteRange(start, start + 11), source=data) == whole[start : start + 11]


def test_timed_text_as_ffmpeg_reads_it(tmp_path):
    av = pytest.importorskip("av")
    path = FIXTURES / "text.mp4"
    package = fragdex.package(fragdex.index(path, exact=True), segment_duration=1)
    for name in package:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(package[name].read())
    with av.open(str(path)) as container:
        stream = container.streams.subtitles[0]
        wanted = [
            (float(packet.pts * packet.time_base), bytes(packet)[2:].decode())
            for packet in container.demux(stream)
            if packet.size > 2
        ]
    with av.open(str(tmp_path / "s1.m3u8"), options={"allowed_extensions": "ALL"}) as container:
        lines = dict.fromkeys(
            (float(packet.pts * packet.time_base), bytes(packet).decode())
            for packet in container.demux(container.streams.subtitles[0])
            if packet.size
        )
    assert [(round(at, 3), text) for at, text in lines] == [(round(at, 3), t) for at, t in wanted]


@pytest.mark.parametrize("name", ["text.mp4", "frag-text.mp4", "frag-ttml.mp4"])
def test_the_rules_of_hls_and_dash(name):
    package = fragdex.package(fragdex.index(FIXTURES / name, exact=True), segment_duration=1)
    read = lambda name: package[name].read()  # noqa: E731
    text = package["master.m3u8"].read().decode()
    assert 'TYPE=SUBTITLES,GROUP-ID="subtitles"' in text
    assert 'SUBTITLES="subtitles"' in text
    # a track that begins after the title has a first segment that begins before its media
    late = any(one.made.time[0] > one.edges[0] for one in package.title.renditions)
    broken = check_hls(text, read=read)
    assert [one for one in broken if not (late and one.rule == "extinf-real")] == []
    assert check_dash(package["manifest.mpd"].read(), read=read) == []


def test_caption_files_beside_the_film(tmp_path):
    srt = "1\n00:00:00,500 --> 00:00:02,500\n<i>Bonjour</i> & <font color=red>salut</font>\n"
    (tmp_path / "film.fr.srt").write_text(srt)
    vtt = "WEBVTT\n\nSTYLE\n::cue { color: red }\n\n00:01.000 --> 00:01.500 line:0\nSIGN\n"
    (tmp_path / "film.en-GB.forced.vtt").write_text(vtt)
    data = movie(8, samples=5, fps=5)
    files = [tmp_path / "film.fr.srt", tmp_path / "film.en-GB.forced.vtt"]
    package = packaged(data, segment_duration=2, captions=files)
    master = package["master.m3u8"].read().decode()
    lines = re.findall("#EXT-X-MEDIA:TYPE=SUBTITLES,(.*)", master)
    assert ['LANGUAGE="fr"' in lines[0], 'LANGUAGE="en-GB"' in lines[1]] == [True, True]
    assert ["FORCED=YES" in line for line in lines] == [False, True]
    assert [len(cues) for _, _, cues in segments(package, "s1")] == [1, 1, 0, 0]
    first = package["s1/0.vtt"].read().decode()
    assert "00:00:00.500 --> 00:00:02.500\n<i>Bonjour</i> &amp; salut\n" in first
    forced = package["s2.vtt"].read().decode()
    assert "STYLE\n::cue { color: red }\n\n00:00:01.000 --> 00:00:01.500 line:0\nSIGN" in forced
    mpd = package["manifest.mpd"].read()
    assert check_dash(mpd, read=lambda name: package[name].read(source=data)) == []
    sets = ET.fromstring(mpd).findall(f".//{MPD}AdaptationSet[@contentType='text']")
    assert [one.get("lang") for one in sets] == ["fr", "en-GB"]
    assert [one.find(f"{MPD}Role").get("value") for one in sets] == ["subtitle", "forced-subtitle"]
    assert set(package) >= {"s1.m3u8", "s1.vtt", "s1/0.vtt", "s2.vtt"}
    for name in ("s1/init.mp4", "s3.vtt", "s1/1.vtt", "s1/0.m4s", "v1.vtt"):
        with pytest.raises(KeyError):
            package[name]


def test_other_captions_are_other_bytes():
    data = movie(4)
    one, two = (
        packaged(data, captions=[captions_of(b"1\n00:00:00,0 --> 00:00:01,0\n" + text, ".srt")])
        for text in (b"a\n", b"b\n")
    )
    assert one["s1.vtt"].etag != two["s1.vtt"].etag
    assert one["v1/0.m4s"].etag == two["v1/0.m4s"].etag


def test_captions_that_cannot_be_read(tmp_path):
    (tmp_path / "a.srt").write_text("no captions")
    with pytest.raises(MalformedCaptions, match=r"a\.srt: .*\(line 1\)"):
        read_captions(tmp_path / "a.srt")
    with pytest.raises(MalformedCaptions, match=r"\.vtt, \.srt, \.json"):
        read_captions(tmp_path / "a.txt")


def test_a_text_track_of_another_format_is_named_and_left_out():
    package = fragdex.package(fragdex.index(FIXTURES / "captions.mov", exact=True))
    assert package.title.subtitles == ()
    assert "c608" in package.findings[0]
    chapters = fragdex.package(fragdex.index(FIXTURES / "chapters.mp4", exact=True))
    assert chapters.title.subtitles == ()
    (finding,) = chapters.findings
    assert finding.startswith("track 3 (text) is left out: it names chapters")


# what a reader of captions may take for something else: no tag can be made of them
TEXTS = st.text(st.sampled_from("1 <>&-\n{}\u00fc"), max_size=12)
FOUND = st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9), TEXTS), min_size=1, max_size=5)


def subrip(cues):
    return "".join(f"0:00:0{a},0 --> 0:0:1{b},5\n{text}\n\n" for a, b, text in cues)


def written_json(cues):
    segments = [{"start": a, "end": 10.5 + b, "text": text} for a, b, text in cues]
    return json.dumps({"segments": segments})


def by_hand(cues):
    text = "\n\n".join(f"00:0{a}.000-->00:1{b}.500 line:{a}\n{escape(t)}" for a, b, t in cues)
    return f"WEBVTT\n\nSTYLE\n::cue {{}}\n\n{text}"


@pytest.mark.parametrize(
    ("kind", "write"), [(".srt", subrip), (".json", written_json), (".vtt", by_hand)]
)
@given(found=FOUND)
def test_every_cue_that_is_accepted_is_one_in_webvtt(kind, write, found):
    if kind == ".vtt":  # an empty line ends its cues
        found = [(a, b, re.sub(r"\n\s*", "\n", text).strip("\n")) for a, b, text in found]
    captions = captions_of(write(found).encode(), kind)
    blocks, cues = webvtt_cues(as_webvtt(captions))
    assert (tuple(blocks), tuple(cues)) == (captions.blocks, captions.cues)
    shown = [(a * 1000, 10_500 + b * 1000, lines(text)) for a, b, text in found]
    shown.sort(key=lambda one: (one[0], -one[1]))
    assert [(one.start_ms, one.end_ms, lines(unescape(one.text))) for one, _ in cues] == shown
    whole = FileCues(captions).block(Fraction(0), None)
    assert len(webvtt_cues(whole)[1]) == len(shown)


def lines(text):
    return [line.strip() for line in text.split("\n") if line.strip()]


def test_markup_of_subrip_is_not_text():
    data = b"1\n0:0:0,0 --> 0:0:1,0\n{\\an8}<font size=3>a</font> <b>1 < 2</b> > <3\n"
    (cue, _), = captions_of(data, ".srt").cues  # fmt: skip
    assert cue.text == "a <b>1 &lt; 2</b> &gt; &lt;3"
