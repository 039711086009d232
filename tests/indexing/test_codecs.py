"""Codec strings by vectors: the configuration bytes, the string, and where both are defined."""

from __future__ import annotations

import shutil
import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fragdex.boxes import Box
from fragdex.indexing.codecs import MAKERS, codec_string, original_format


def entry(code: str, *children: Box, data: bytes = bytes(8)) -> Box:
    return Box(code, {"data": data}, children)


def box(code: str, data: str | bytes, *children: Box) -> Box:
    return Box(code, {"data": bytes.fromhex(data) if isinstance(data, str) else data}, children)


def esds(object_type: int, specific: str = "", *, flags: str = "00", long: bool = False) -> Box:
    """An ES_Descriptor (ISO/IEC 14496-1, 7.2.6.5) with lengths of one byte, or of four."""

    def descriptor(tag: int, body: bytes) -> bytes:
        size = bytes([0x80, 0x80, 0x80, len(body)]) if long else bytes([len(body)])
        return bytes([tag]) + size + body

    inner = descriptor(5, bytes.fromhex(specific)) if specific else b""
    config = bytes([object_type, 0x15]) + bytes(11) + inner
    extra = bytes.fromhex(flags)
    return box("esds", bytes(4) + descriptor(3, b"\0\1" + extra + descriptor(4, config)))


def mime(codecs: str) -> Box:
    return box("mime", bytes(4) + f"application/ttml+xml;codecs={codecs}\0".encode())


AVC = box("avcC", "01640028 ffe1 0000")
HEVC_MAIN = box("hvcC", "01 01 60000000 900000000000 5d" + "00" * 10)
BT709 = box("colr", b"nclx" + bytes.fromhex("0001 0001 0001 00"))
UNSAID = box("colr", b"nclx" + bytes.fromhex("0002 0002 0002 00"))
NCLX = box("colr", b"nclx" + bytes.fromhex("0009 0010 0009 00"))

VECTORS = [
    # RFC 6381, 3.3
    ("avc1.640028", entry("avc1", AVC)),
    ("avc3.42E01E", entry("avc3", box("avcC", "0142e01e ffe1"))),
    # ISO/IEC 14496-15, E.3
    ("hvc1.1.6.L93.90", entry("hvc1", HEVC_MAIN)),
    ("hev1.1.6.L93.B0", entry("hev1", box("hvcC", "01 01 60000000 b00000000000 5d"))),
    # Main 10 at the high tier in profile space A, with a gap between its constraint bytes
    ("hvc1.A2.4.H153.B0.0.23", entry("hvc1", box("hvcC", "01 62 20000000 b00023000000 99"))),
    # ISO/IEC 14496-15, Annex E: profile 1 (Main 10), tier, level_idc
    ("vvc1.1.L51", entry("vvc1", box("vvcC", "00000000 ff 0010 00 01 02 33 00 00"))),
    ("vvc1.1.H51.CQA", entry("vvc1", box("vvcC", "00000000 ff 0010 00 01 03 33 80 00"))),
    # AV1 in ISOBMFF, 5
    ("av01.0.04M.10", entry("av01", box("av1C", "81 04 4c 00"))),
    ("av01.0.04M.10.0.110.09.16.09.0", entry("av01", box("av1C", "81 04 4c 00"), NCLX)),
    ("av01.0.04M.10", entry("av01", box("av1C", "81 04 4c 00"), BT709)),
    # said to be unspecified is not the default, which is BT.709
    ("av01.0.04M.10.0.110.02.02.02.0", entry("av01", box("av1C", "81 04 4c 00"), UNSAID)),
    ("av01.0.15H.08.0.112.02.02.02.0", entry("av01", box("av1C", "81 0f 8e 00"))),
    ("av01.2.08M.12", entry("av01", box("av1C", "81 48 6c 00"))),
    ("av01.0.01M.08.1.110.02.02.02.0", entry("av01", box("av1C", "81 01 1c 00"))),
    ("av01.1.05M.08.0.000.02.02.02.0", entry("av01", box("av1C", "81 25 00 00"))),
    # VP codec ISO media file format binding
    ("vp09.00.10.08.01.01.01.01.00", entry("vp09", box("vpcC", "01000000 00 0a 82 010101 0000"))),
    # Reserved primaries, chroma or transfer, and RGB that is not 4:4:4, cannot be written
    ("vp09.00.10.08", entry("vp09", box("vpcC", "01000000 00 0a 82 000202 0000"))),
    ("vp09.00.10.08", entry("vp09", box("vpcC", "01000000 00 0a 8a 010101 0000"))),
    ("vp09.00.10.08", entry("vp09", box("vpcC", "01000000 00 0a 82 017801 0000"))),
    ("vp09.00.10.08", entry("vp09", box("vpcC", "01000000 00 0a 82 010100 0000"))),
    ("vp09.01.10.08.03.01.13.00.00", entry("vp09", box("vpcC", "01000000 01 0a 86 010d00 0000"))),
    ("vp09.02.10.10.01.09.16.09.01", entry("vp09", box("vpcC", "01000000 02 0a a3 09 10 09 0000"))),
    ("vp08.00.10.08.01.02.02.02.00", entry("vp08", box("vpcC", "01000000 00 0a 82 020202 0000"))),
    ("vp09.00.10.08", entry("vp09", box("vpcC", "00000000 00 0a 82 00 0000"))),
    # RFC 6381, 3.3, and ISO/IEC 14496-3, 1.6.2.1
    ("mp4a.40.2", entry("mp4a", esds(0x40, "1210"))),
    ("mp4a.40.2", entry("mp4a", esds(0x40, "1210", long=True))),
    ("mp4a.40.2", entry("mp4a", esds(0x40, "1210", flags="e0 0007 03 616263 0009"))),
    ("mp4a.40.2", entry("mp4a", box("wave", b"", esds(0x40, "1210")))),
    ("mp4a.40.5", entry("mp4a", esds(0x40, "2b920800"))),
    ("mp4a.40.29", entry("mp4a", esds(0x40, "eb8a0800"))),
    # SBR said at the end, then PS too; then a sync word that says there is none
    ("mp4a.40.5", entry("mp4a", esds(0x40, "139056e5a0"))),
    ("mp4a.40.29", entry("mp4a", esds(0x40, "139056e5a54880"))),
    ("mp4a.40.2", entry("mp4a", esds(0x40, "119056e500"))),
    # A frequency of its own, SBR at another; channels told by an element; layers; a core coder
    ("mp4a.40.2", entry("mp4a", esds(0x40, "17800ac44210"))),
    ("mp4a.40.2", entry("mp4a", esds(0x40, "1200"))),
    ("mp4a.40.6", entry("mp4a", esds(0x40, "3210"))),
    ("mp4a.40.2", entry("mp4a", esds(0x40, "12120000"))),
    (None, entry("mp4a", esds(0x40))),
    (None, entry("mp4a", box("esds", "00000000 04 02 4015 00"))),
    (None, entry("mp4a", box("esds", "00000000 03 05 000100 04 00"))),
    (None, entry("avc1", box("avcC", "0242e01e ffe1"))),
    (None, entry("av01", box("av1C", "82 04 4c 00"))),
    (None, entry("vvc1", box("vvcC", "00000000 fe 0010 00"))),
    (
        "vvc1.1.L51.S1234+56",
        entry("vvc1", box("vvcC", "00000000 ff 0020 00 01 02 33 00 80 33 02 00001234 00000056")),
    ),
    ("av01.0.04M.10", entry("av01", box("av1C", "81 04 4c 00"), box("colr", b"prof1234"))),
    (None, entry("ac-4", box("dac4", "40a00100 0000"))),
    (None, entry("ac-4", box("dac4", "20a00000 0000000000000000"))),
    ("ac-4.02.01.00", entry("ac-4", box("dac4", "20a00100 0000000000000000 01 ff 0003 30"))),
    ("mp4a.40.42", entry("mp4a", esds(0x40, "f94a4000"))),
    ("mp4a.40.34", entry("mp4a", esds(0x40, "f8440000"))),
    ("mp4a.6B", entry("mp4a", esds(0x6B))),
    ("mp4a.69", entry("mp4a", esds(0x69))),
    ("mp4a.67", entry("mp4a", esds(0x67, "1210"))),
    ("mp4a.A5", entry("mp4a", esds(0xA5))),
    ("mp4v.20.9", entry("mp4v", esds(0x20, "000001b009000001b5"))),
    ("mp4v.6C", entry("mp4v", esds(0x6C))),
    ("mp3", entry(".mp3")),
    # Encapsulation of Opus and FLAC in ISOBMFF
    ("Opus", entry("Opus", box("dOps", "00"))),
    ("fLaC", entry("fLaC")),
    # ETSI TS 102 366, Annex F; ETSI TS 103 190-2, E.13
    ("ac-3", entry("ac-3", box("dac3", "10 3d 00"))),
    ("ec-3", entry("ec-3")),
    ("ac-4.02.01.03", entry("ac-4", box("dac4", "20a00100 0000000000000000 01 10 0b00"))),
    # Dolby Vision streams within ISOBMFF
    ("dvh1.05.06", entry("dvh1", HEVC_MAIN, box("dvcC", "01 00 0a 37 00"))),
    ("dvhe.08.09", entry("dvhe", box("dvvC", "01 00 10 4d 00"))),
    ("dav1.10.01", entry("dav1", box("dvvC", "01 00 14 0d 00"))),
    # ISO/IEC 23008-3, 20.6
    ("mhm1.0x0D", entry("mhm1", box("mhaC", "01 0d 00"))),
    # ISO/IEC 14496-30
    ("wvtt", entry("wvtt", box("vttC", b"WEBVTT"))),
    ("stpp", entry("stpp", data=bytes(8) + b"http://www.w3.org/ns/ttml\0\0\0")),
    (
        "stpp.ttml.im1t",
        entry("stpp", data=bytes(8) + b"http://www.w3.org/ns/ttml/profile/imsc1/text\0\0\0"),
    ),
    (
        "stpp.ttml.im2t|etd1",
        entry("stpp", box("mime", bytes(4) + b'application/ttml+xml;codecs="im2t|etd1"\0')),
    ),
    # The codecs parameter of the mime box is that of the document, or that of the track
    ("stpp.ttml.im1i", entry("stpp", mime("stpp.ttml.im1i"))),
    ("stpp.ttml.im1i", entry("stpp", mime("ttml.im1i"))),
    ("stpp.ttml.im1i", entry("stpp", mime("im1i"))),
    ("stpp.ttml.im1t|etd1", entry("stpp", mime("stpp.ttml.im1t|etd1"))),
    ("stpp", entry("stpp", mime("stpp"))),
    ("tx3g", entry("tx3g")),
    ("c608", entry("c608")),
    ("alac", entry("alac")),
    (None, entry("raw ")),
    # Behind protection (ISO/IEC 14496-12, 8.12)
    ("avc1.640028", entry("encv", AVC, box("sinf", b"", box("frma", b"avc1")))),
    ("mp4a.40.2", entry("enca", esds(0x40, "1210"), box("sinf", b"", box("frma", b"mp4a")))),
    ("hvc1.1.6.L93.90", entry("resv", HEVC_MAIN, box("rinf", b"", box("frma", b"hvc1")))),
]


@pytest.mark.parametrize(("expected", "sample_entry"), VECTORS, ids=lambda v: str(v)[:40])
def test_the_string_is_what_the_standards_say(expected: str | None, sample_entry: Box) -> None:
    assert codec_string(sample_entry) == expected


@pytest.mark.parametrize("code", sorted(MAKERS.keys() - {".mp3", "stpp"}))
def test_without_its_configuration_there_is_no_string(code: str) -> None:
    assert codec_string(entry(code)) is None


def test_a_protected_entry_without_frma_keeps_its_own_code() -> None:
    assert original_format(entry("encv")) == "encv"
    assert original_format(entry("encv", box("sinf", b"", box("frma", b"av")))) == "encv"
    assert original_format(entry("encv", box("sinf", b"", box("frma", b"avc1")))) == "avc1"


CONFIGS = ("avcC", "hvcC", "vvcC", "av1C", "vpcC", "esds", "dac4", "mhaC", "dvcC", "colr", "mime")


@given(
    st.sampled_from(sorted(MAKERS)),
    st.lists(st.tuples(st.sampled_from(CONFIGS), st.binary(max_size=80)), max_size=4),
    st.binary(max_size=40),
)
def test_damaged_configurations_give_none_or_a_string_that_can_be_quoted(
    code: str, configs: list[tuple[str, bytes]], data: bytes
) -> None:
    children = [box(name, body) for name, body in configs]
    string = codec_string(entry(code, *children, data=data))
    assert string is None or (string.isprintable() and '"' not in string and "," not in string)


@given(st.sampled_from([v for v in VECTORS if v[0] and v[1].children]), st.data())
def test_a_truncated_configuration_never_raises(
    vector: tuple[str, Box], data: st.DataObject
) -> None:
    _, sample_entry = vector
    config = sample_entry.children[0]
    body = config["data"]
    cut = data.draw(st.integers(0, len(body)))
    codec_string(entry(sample_entry.type, box(config.type, body[:cut], *config.children)))


PLAYED = (
    "avc1.640028",
    "avc3.42E01E",
    "vp09.00.10.08.01.01.01.01.00",
    "mp4a.40.2",
    "mp4a.40.5",
    "mp4a.40.29",
)
PLAYED += ("mp4a.67", "Opus", "fLaC", "av01.0.04M.10", "av01.0.04M.10.0.110.09.16.09.0")
PLAYED += ("av01.0.04M.10.0.110.02.02.02.0", "vp09.00.10.08", "vp09.01.10.08.03.01.13.00.00")
PLAYED += ("av01.0.01M.08.1.110.02.02.02.0", "vp09.02.10.10.01.09.16.09.01")


@pytest.mark.slow
def test_the_browser_takes_what_it_can_play(tmp_path) -> None:
    browser = shutil.which("chromium-headless-shell")
    if browser is None:
        pytest.skip("needs chromium-headless-shell")
    assert set(PLAYED) <= {expected for expected, _ in VECTORS}
    page = tmp_path / "page.html"
    asked = ",".join(f"'{string}'" for string in PLAYED)
    page.write_text(
        f"<pre id=said></pre><script>said.textContent = [{asked}].filter(c => "
        "!MediaSource.isTypeSupported(`video/mp4; codecs=\"${c}\"`)).join(' ') || 'all'</script>"
    )
    document = subprocess.run(
        [
            browser,
            "--no-sandbox",
            "--dump-dom",
            f"--user-data-dir={tmp_path}/profile",
            page.as_uri(),
        ],
        check=True,
        capture_output=True,
        text=True,
        timeout=60,
    ).stdout
    assert '<pre id="said">all</pre>' in document
