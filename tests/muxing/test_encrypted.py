"""Encrypted samples in made fragments: the same bytes, with what decrypts them."""

import io
import re
import struct
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

import fragdex
from fragdex.boxes import find_all, parse, parse_box
from fragdex.errors import BuildError
from fragdex.muxing import protection
from fragdex.testing import check_cmaf, check_dash, check_hls

FIXTURES = Path(__file__).parents[2] / "fixtures"
MPD = "{urn:mpeg:dash:schema:mpd:2011}"
CENC = "{urn:mpeg:cenc:2013}"
KEY = "00112233445566778899aabbccddeeff"
KID = "0123456789abcdef0123456789abcdef"
ENCRYPT = {
    "encryption_scheme": "cenc-aes-ctr",
    "encryption_key": KEY,
    "encryption_kid": KID,
}


def frames(data, kind, key=None):
    """Times and bytes of decoded frames."""
    av = pytest.importorskip("av")
    options = {"decryption_key": key} if key else {}
    with av.open(io.BytesIO(data), options=options) as container:
        stream = next(one for one in container.streams if one.type == kind)
        return [
            (frame.pts * frame.time_base, hash(bytes(frame.to_ndarray())))
            for frame in container.decode(stream)
        ]


@pytest.fixture(scope="module", params=["progressive", "fragmented"])
def encrypted(request, tmp_path_factory):
    """A film, encrypted by FFmpeg, and its clear self."""
    av = pytest.importorskip("av")
    clear, path = FIXTURES / "faststart.mp4", tmp_path_factory.mktemp("encrypted") / "film.mp4"
    flags = "frag_keyframe+empty_moov+default_base_moof"
    options = ENCRYPT | ({"movflags": flags} if request.param == "fragmented" else {})
    with av.open(str(clear)) as source, av.open(str(path), "w", options=options) as out:
        streams = {one.index: out.add_stream_from_template(one) for one in source.streams}
        for packet in source.demux():
            if packet.dts is not None:
                packet.stream = streams[packet.stream.index]
                out.mux(packet)
    return clear, path


@pytest.mark.parametrize("seconds", [1, None])
def test_ffmpeg_decrypts_the_package_to_the_same_frames(encrypted, seconds):
    clear, path = encrypted
    package = fragdex.package(fragdex.index(path, exact=True), segment_duration=seconds)
    fragmented = not fragdex.index(path).how.method.startswith("stbl")
    for one in package.title.renditions:
        if fragmented and one.kind == "audio":
            continue  # FFmpeg cannot decrypt its own fragments of sound
        parts = [f"{one.name}/init.mp4", *(f"{one.name}/{s.time}.m4s" for s in one.segments)]
        whole = b"".join(package[name].read() for name in parts)
        cut = frames(whole, one.kind, KEY)
        assert cut == frames(path.read_bytes(), one.kind, KEY)
        assert [data for _, data in cut] == [d for _, d in frames(clear.read_bytes(), one.kind)]


def samples_of(data):
    return [
        [data[at : at + size] for at, size in zip(t.samples.offset, t.samples.size, strict=True)]
        for t in fragdex.index(data, exact=True).tracks
    ]


def test_a_fragmented_view_has_the_samples_of_the_source(encrypted):
    clear, path = encrypted
    index = fragdex.index(path, exact=True)
    view = fragdex.view(index, "fragmented", segment_duration=0.3)
    data = view.read()
    assert len(data) == view.size
    assert samples_of(data) == samples_of(path.read_bytes())
    for start in range(0, view.size, 997):
        assert view.read(fragdex.ByteRange(start, start + 50)) == data[start : start + 50]
    samples = [data for _, data in frames(data, "video", KEY)]
    assert samples == [data for _, data in frames(clear.read_bytes(), "video")]


def test_playlists_and_manifest_name_the_key(encrypted):
    _, path = encrypted
    package = fragdex.package(fragdex.index(path, exact=True), segment_duration=1)
    mpd = package["manifest.mpd"].read()
    for one in ET.fromstring(mpd).iter(f"{MPD}AdaptationSet"):
        (named,) = one.findall(f"{MPD}ContentProtection")
        assert named.get("schemeIdUri") == "urn:mpeg:dash:mp4protection:2011"
        assert named.get("value") == "cenc"
        assert named.get(f"{CENC}default_KID").replace("-", "") == KID
    assert check_dash(mpd, read=lambda name: package[name].read()) == []
    text = package["master.m3u8"].read().decode()
    # a track that begins after the title has a first segment that begins before its media
    late = any(one.made.time[0] > one.edges[0] for one in package.title.renditions)
    broken = check_hls(text, read=lambda name: package[name].read())
    assert [one for one in broken if not (late and one.rule == "extinf-real")] == []


@pytest.mark.parametrize("name", ["made/cenc.mp4", "piff-encrypted.ismv"])
def test_systems_of_the_file_are_passed_on(name):
    path = FIXTURES / name
    package = fragdex.package(fragdex.index(path, exact=True), segment_duration=1)
    _followed(path, package)


def _followed(path, package):
    boxes = parse(path.read_bytes())
    systems = find_all(boxes, "moov/pssh")
    (scheme,) = {one.keys.scheme for one in package.title.renditions}
    mpd = ET.fromstring(package["manifest.mpd"].read())
    named = {one.text for one in mpd.iter(f"{CENC}pssh")}
    assert len(named) == len({bytes(box["SystemID"]) for box in systems})
    master = package["master.m3u8"].read().decode()
    method = {"cenc": "SAMPLE-AES-CTR", "cbcs": "SAMPLE-AES"}[scheme]
    session = re.findall(r"#EXT-X-SESSION-KEY:METHOD=([^,]*)", master)
    assert session == [method] * len(systems)
    read = lambda name: package[name].read()  # noqa: E731
    assert check_hls(master, read=read) == []
    assert check_dash(package["manifest.mpd"].read(), read=read) == []
    for one in package.title.renditions:
        text = package[f"{one.name}.m3u8"].read().decode()
        assert text.count("#EXT-X-KEY:METHOD=" + method) == len(systems)
        init = read(f"{one.name}/init.mp4")
        segments = [read(f"{one.name}/{s.time}.m4s") for s in one.segments]
        source = fragdex.index(path, exact=True).track(one.track.id).samples
        data = path.read_bytes()
        whole = [data[a : a + n] for a, n in zip(source.offset, source.size, strict=True)]
        assert samples_of(init + b"".join(segments)) == [whole]
        assert [v for v in check_cmaf(init, segments) if v.rule != "sample-duration"] == []


@pytest.mark.corpus
@pytest.mark.parametrize("name", [
    "mp4ff__cbcs.mp4",
    "shaka-packager__bear-640x360-v_frag-cenc-aux.mp4",
    "shaka-packager__bear-640x360-v_frag-cenc-senc.mp4",
])  # fmt: skip
def test_files_of_other_makers(corpus, name):
    path = corpus / name
    _followed(path, fragdex.package(fragdex.index(path, exact=True), segment_duration=1))


def test_what_cannot_be_passed_on_is_refused():
    with pytest.raises(BuildError, match="seig"):
        fragdex.package(fragdex.index(FIXTURES / "made" / "cbcs.mp4", exact=True))
    with pytest.raises(BuildError, match="not as ISO/IEC 23001-7 says"):
        fragdex.package(fragdex.index(FIXTURES / "made" / "piff-encrypted.ismv", exact=True))


@pytest.mark.timeout(20)
def test_a_senc_of_nothing_that_claims_four_thousand_million_samples():
    """With a constant vector no sample has bytes of its own, so that no number of them is short."""
    tfhd = struct.pack(">I4sII", 16, b"tfhd", 0x020000, 1)
    trun = struct.pack(">I4sII", 16, b"trun", 0, 3)
    senc = struct.pack(">I4sII", 16, b"senc", 0, 2**32 - 1)
    traf = struct.pack(">I4s", 56, b"traf") + tfhd + trun + senc
    moof = parse_box(struct.pack(">I4s", 64, b"moof") + traf)
    _, sizes = protection._of_traf(moof.find("traf"), moof, 1, 0)
    assert len(sizes) <= 3
