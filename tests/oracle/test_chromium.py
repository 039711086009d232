"""Chromium takes the codec strings of the fixtures, wherever it knows the codec at all."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import fragdex
from oracle.chromium import browser, supported
from oracle.media_files import fixture_files

pytestmark = pytest.mark.slow

# One string of each family that is right beyond doubt: what is said to it must be said to ours.
KNOWN = {
    "avc1": "avc1.42E01E",
    "avc3": "avc3.42E01E",
    "hvc1": "hvc1.1.6.L93.B0",
    "hev1": "hev1.1.6.L93.B0",
    "av01": "av01.0.04M.08",
    "vp09": "vp09.00.10.08",
    "mp4a.40": "mp4a.40.2",
    "mp4a.69": "mp4a.69",
    "Opus": "opus",
    "fLaC": "flac",
    "ac-3": "ac-3",
    "ec-3": "ec-3",
}
# What every Chromium plays, with or without licensed codecs.
ALWAYS = {"av01", "vp09", "Opus", "fLaC"}
# High-efficiency AAC, by its object types; no encoder at hand makes it (tests/indexing has ours).
HE_AAC = ("mp4a.40.5", "mp4a.40.29")
WRONG = ("avc1.ZZZZZZ", "av01.0.99X.08", "vp09.99.10.08", "mp4a.40", "nonsense.1")


def family(codec: str) -> str | None:
    return next((one for one in KNOWN if codec == one or codec.startswith(one + ".")), None)


def media_type(codec: str, kind: str = "") -> str:
    if not kind:
        kind = "audio" if re.match("mp4a|opus|flac|.c-3", codec, re.IGNORECASE) else "video"
    return f'{kind}/mp4; codecs="{codec}"'


@pytest.fixture(scope="module")
def said(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bool]:
    """Codec string → whether this Chromium takes it: ours, the known ones and the wrong ones."""
    program = browser()
    if program is None:
        pytest.skip("no Chromium: install one, or name it in FRAGDEX_CHROMIUM")
    types = {codec: media_type(codec, kind) for codec, kind in ours().items()}
    types |= {codec: media_type(codec) for codec in (*KNOWN.values(), *HE_AAC, *WRONG)}
    answers = supported(program, list(types.values()), tmp_path_factory.mktemp("chromium"))
    return dict(zip(types, answers, strict=True))


def ours() -> dict[str, str]:
    """Codec string of each track of sound or pictures in the fixtures → its kind."""
    kinds = {}
    for path in fixture_files().values():
        try:
            index = fragdex.index(path)
        except fragdex.FragdexError:
            continue
        for track in index.tracks:
            if track.codec and track.kind in ("audio", "video"):
                kinds[track.codec] = track.kind
    return kinds


def test_it_can_say_no(said: dict[str, bool]) -> None:
    assert [said[codec] for codec in WRONG] == [False] * len(WRONG)


def test_it_says_yes_to_what_every_build_has(said: dict[str, bool]) -> None:
    assert all(said[KNOWN[name]] for name in ALWAYS)


def test_our_strings_are_taken_wherever_the_codec_is_known(said: dict[str, bool]) -> None:
    families = {codec: family(codec) for codec in ours()}
    assert set(families.values()) >= KNOWN.keys() - {"mp4a.69"}
    answers = {codec: said[codec] for codec, name in families.items() if name}
    known = {codec: said[KNOWN[name]] for codec, name in families.items() if name}
    assert answers == known
    assert [said[codec] for codec in HE_AAC] == [said[KNOWN["mp4a.40"]]] * len(HE_AAC)


def test_several_codecs_in_one_type(tmp_path: Path) -> None:
    program = browser()
    if program is None:
        pytest.skip("no Chromium: install one, or name it in FRAGDEX_CHROMIUM")
    index = fragdex.index(fixture_files()["frag-vp9-opus.mp4"])
    both = ",".join(track.codec or "" for track in index.tracks)
    assert supported(program, [media_type(both, "video")], tmp_path) == [True]
