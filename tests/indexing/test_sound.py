"""Channels and rates by vectors: what the entry says, what the decoder's configuration says."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import fragdex
from fragdex.boxes import Box
from fragdex.indexing.codecs import READERS, Sound, aac_config, sound_of

FIXTURES = Path(__file__).resolve().parents[2] / "fixtures"


def entry(code: str, *children: Box, channels: int = 2, rate: int = 48000) -> Box:
    """A sample entry with the values that many writers put there, whatever the sound is."""
    fields = {"channelcount": channels, "samplesize": 16, "samplerate": rate << 16}
    return Box(code, fields, children)


def box(code: str, data: str) -> Box:
    return Box(code, {"data": bytes.fromhex(data)})


def esds(object_type: int, specific: str) -> Box:
    inner = bytes.fromhex(specific)
    config = bytes([object_type, 0x15]) + bytes(11) + bytes([5, len(inner)]) + inner
    return Box(
        "esds",
        {"data": bytes(4) + bytes([3, len(config) + 5, 0, 1, 0, 4, len(config)]) + config},
    )


def aac(specific: str) -> Box:
    return entry("mp4a", esds(0x40, specific))


COMMENTS = "00000000 84000022" + "00" * 34
STREAMINFO = "00000000 80000022 1000 1000 00000e 000f10"

VECTORS = [
    # ISO/IEC 14496-3, 1.6.2.1: 5 bits of object type, 4 of rate, 4 of channels
    ("mono", aac("1208"), Sound(1, 44100, 16)),
    ("stereo", aac("1210"), Sound(2, 44100, 16)),
    ("5.1", aac("11b0"), Sound(6, 48000, 16)),
    ("7.1", aac("11b8"), Sound(8, 48000, 16)),
    ("7.1 with height", aac("11f0"), Sound(8, 48000, 16)),
    ("96 kHz, which the entry has no room for", aac("1010"), Sound(2, 96000, 16)),
    ("a rate of its own", aac("1780158888"), Sound(1, 11025, 16)),
    ("a reserved channel configuration", aac("1248"), Sound(2, 44100, 16)),
    ("a reserved rate", aac("1690"), Sound(2, 48000, 16)),
    ("MPEG-2 AAC", entry("mp4a", esds(0x67, "1208")), Sound(1, 44100, 16)),
    # SBR said at the beginning and at the end: twice the rate comes out
    ("HE-AAC, explicit", aac("2b8a0800"), Sound(1, 44100, 16)),
    ("HE-AAC, at the end", aac("138856e5a0"), Sound(1, 44100, 16)),
    ("HE-AAC, none after all", aac("138856e500"), Sound(1, 22050, 16)),
    # parametric stereo: two come out of one
    ("HE-AAC v2, explicit", aac("eb8a0800"), Sound(2, 44100, 16)),
    ("HE-AAC v2, at the end", aac("138856e5a54880"), Sound(2, 44100, 16)),
    ("no configuration", aac(""), Sound(2, 48000, 16)),
    ("MP3", entry("mp4a", esds(0x6B, ""), channels=1), Sound(1, 48000, 16)),
    ("cut short", aac("12"), Sound(2, 48000, 16)),
    # Apple Lossless magic cookie
    (
        "ALAC",
        entry("alac", box("alac", "00000000 00001000 0018280a0e01 00ff0000 00000000 000000017700")),
        Sound(1, 96000, 24),
    ),
    # RFC 9639, 8.2
    ("FLAC", entry("fLaC", box("dfLa", STREAMINFO + "0bb80170 00000000")), Sound(1, 48000, 24)),
    ("FLAC, comments first", entry("fLaC", box("dfLa", COMMENTS)), Sound(2, 48000, 16)),
    ("Opus", entry("Opus", box("dOps", "0001013800005dc0000000"), rate=2400), Sound(1, 48000, 16)),
    # ETSI TS 102 366, F.4 and F.6
    ("AC-3, mono", entry("ac-3", box("dac3", "10 08 00")), Sound(1, 48000, 16)),
    ("AC-3, 5.1", entry("ac-3", box("dac3", "50 3c 00")), Sound(6, 44100, 16)),
    ("E-AC-3, 5.1", entry("ec-3", box("dec3", "0c00 20 0f 00")), Sound(6, 48000, 16)),
    ("E-AC-3, 7.1", entry("ec-3", box("dec3", "0c00 20 0f 02 80")), Sound(8, 48000, 16)),
    # 3GPP TS 26.244, 6.5
    ("AMR", entry("samr", rate=8000), Sound(1, 8000, 16)),
    ("AMR wideband", entry("sawb", rate=16000), Sound(1, 16000, 16)),
    # ISO/IEC 23003-5, 5.2
    ("PCM", entry("ipcm", box("pcmC", "00000000 01 18"), channels=6), Sound(6, 48000, 24)),
    ("no configuration known", entry("ulaw", channels=1, rate=8000), Sound(1, 8000, 16)),
]  # fmt: skip


@pytest.mark.parametrize(
    ("sample_entry", "expected"), [v[1:] for v in VECTORS], ids=[v[0] for v in VECTORS]
)
def test_the_configuration_of_the_decoder_goes_before_the_entry(
    sample_entry: Box, expected: Sound
) -> None:
    assert sound_of(sample_entry, sample_entry.type) == expected


def program(front: str, side: str, back: str, effects: int, comment: bytes) -> bytes:
    """An AudioSpecificConfig with channel configuration 0; s: a single channel, p: a pair."""

    def places(kinds: str) -> str:
        return "".join(("1" if kind == "p" else "0") + "0000" for kind in kinds)

    bits = "00010" + "0100" + "0000" + "000"
    bits += "0000" + "01" + "0100" + "".join(f"{len(kinds):04b}" for kinds in (front, side, back))
    bits += f"{effects:02b}" + "000" + "0000" + "000" + places(front) + places(side) + places(back)
    bits += "0000" * effects
    bits += "0" * (-len(bits) % 8)
    data = int(bits, 2).to_bytes(len(bits) // 8, "big")
    return data + bytes([len(comment)]) + comment


@given(
    st.text("sp", max_size=4), st.text("sp", max_size=4), st.text("sp", max_size=4),
    st.integers(0, 3), st.binary(max_size=20), st.booleans(),
)  # fmt: skip
def test_channels_that_elements_name_are_counted(
    front: str, side: str, back: str, effects: int, comment: bytes, sbr: bool
) -> None:
    data = program(front, side, back, effects, comment) + (bytes.fromhex("56e598") if sbr else b"")
    config = aac_config(data)
    every = front + side + back
    channels = len(every) + every.count("p") + effects
    assert config.channel_count == (channels or None)
    # Behind the comment stands whether there is SBR: 48 kHz, index 3.
    assert (config.object_type, config.sample_rate) == ((5, 48000) if sbr else (2, 44100))


def test_version_2_of_quicktime_says_it_elsewhere() -> None:
    second = {
        "audioSampleRate": 0x40F7700000000000,
        "numAudioChannels": 6,
        "constBitsPerChannel": 24,
    }
    lpcm = Box(
        "lpcm",
        {
            "channelcount": 3,
            "samplesize": 16,
            "samplerate": 1 << 16,
            "sound_description_v2": second,
        },
    )
    assert sound_of(lpcm, "lpcm") == Sound(6, 96000, 24)


@given(st.sampled_from(sorted(READERS)), st.binary(max_size=60))
def test_damage_falls_back_on_the_entry(code: str, data: bytes) -> None:
    children = [
        Box(name, {"data": data})
        for name in ("esds", "dfLa", "dOps", "dac3", "dec3", "alac", "pcmC")
    ]
    sound = sound_of(entry(code, *children), code)
    assert sound.channel_count
    assert sound.sample_rate
    assert sound.sample_size


def test_a_mono_track_whose_entry_says_two() -> None:
    data = bytearray(FIXTURES.joinpath("aac.m4a").read_bytes())
    place = data.index(b"mp4a") + 4 + 16
    assert data[place : place + 2] == b"\0\1"
    data[place : place + 2] = b"\0\2"
    assert fragdex.index(bytes(data)).track(1).info.channel_count == 1
