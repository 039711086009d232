"""The fixtures are what their manifest says, and FFmpeg reads them."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

FIXTURES = Path(__file__).resolve().parent.parent / "fixtures"

# Nothing in them can be demuxed by FFmpeg: why, for each.
UNREADABLE = {
    "cut-in-moof.mp4": "FFmpeg gives up where a moof is cut",
    "cut-moov-last.mp4": "no moov",
    "smooth-fragment-info.m4s": "no moov, and its mdat lies elsewhere",
    "smooth-fragment.m4s": "no moov, and Smooth Streaming writes none",
}
NO_PACKETS = {"cut-in-moov.mp4", "hls-init.mp4", "dash-init.mp4", "lldash-init.mp4"}
# Segments without a moov, and whose header they need.
INIT = {
    "dash-segment-1.m4s": "dash-init.mp4",
    "dash-segment-2.m4s": "dash-init.mp4",
    "hls-segment-0.m4s": "hls-init.mp4",
    "hls-segment-1.m4s": "hls-init.mp4",
    "lldash-segment-1.m4s": "lldash-init.mp4",
    "no-moov.mp4": "frag-default-base.mp4",
}


def script(name: str) -> ModuleType:
    """A module of fixtures/, which is a folder of scripts and no package."""
    spec = importlib.util.spec_from_file_location(name, FIXTURES / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    path, sys.path[:] = list(sys.path), [str(FIXTURES), *sys.path]
    try:
        spec.loader.exec_module(module)
    finally:
        sys.path[:] = path
    return module


make = script("make")
ROWS: list[dict[str, Any]] = make.read_manifest()


def packets_of(name: str) -> dict[int, list[Any]]:
    oracle = pytest.importorskip("oracle.ffmpeg_packets", exc_type=ImportError)
    init = b""
    if name in INIT:
        data = (FIXTURES / INIT[name]).read_bytes()
        moofs = [box.start for box in make.boxes(data) if box.path == "moof"]
        init = data[: moofs[0]] if moofs else data
    packets: dict[int, list[Any]] = oracle.packets(FIXTURES / name, init=init)
    return packets


def test_the_files_agree_with_the_manifest() -> None:
    assert make.check() == []


def test_check_tells_what_does_not_agree(tmp_path: Path) -> None:
    for name in ("one-frame.mp4", make.MANIFEST):
        (tmp_path / name).write_bytes((FIXTURES / name).read_bytes())
    (tmp_path / "one-frame.mp4").write_bytes(b"\0\0\0\x08free")
    (tmp_path / "stray.mp4").touch()
    wrong = make.check(tmp_path)
    assert any(line.startswith("one-frame.mp4: sha256") for line in wrong)
    assert "stray.mp4: not in the manifest" in wrong
    assert "moov-last.mp4: missing" in wrong


def test_the_whole_folder_stays_under_3_mb() -> None:
    files = [path for path in FIXTURES.rglob("*") if "__pycache__" not in path.parts]
    assert sum(path.stat().st_size for path in files if path.is_file()) < 3_000_000


def test_the_variety_is_there() -> None:
    shown = {feature for row in ROWS for feature in row["features"]}
    codecs = {codec.partition(":")[2] for row in ROWS for codec in row["codecs"]}
    assert shown >= {
        "base_data_offset",
        "base_implicit",
        "default_base_is_moof",
        "several_trafs",
        "several_truns",
        "first_sample_flags",
        "trun_v1",
        "sidx",
        "several_sidx",
        "mfra",
        "tfxd",
        "tfrf",
        "senc",
        "prft",
        "styp",
        "elst_empty",
        "ctts_v1",
        "stsz_constant",
        "moov_first",
        "moov_last",
        "samples_in_moov_and_fragments",
        "truncated",
        "tfdt_over_32_bits",
    }
    assert codecs >= {
        *("avc1", "avc3", "hev1", "hvc1", "av01", "vp09", "mp4v", "mp4a", "Opus", "fLaC"),
        *("alac", "ac-3", "ec-3", "ipcm", "tx3g", "stpp", "c608", "encv", "enca"),
    }


@pytest.mark.parametrize("name", sorted({row["file"] for row in ROWS} - UNREADABLE.keys()))
def test_ffmpeg_opens_it_and_its_packets_lie_in_the_file(name: str) -> None:
    size = (FIXTURES / name).stat().st_size
    rows = [row for track in packets_of(name).values() for row in track]
    assert bool(rows) == (name not in NO_PACKETS)
    for row in rows:
        assert row.pos is not None
        assert 0 <= row.pos <= row.pos + row.size <= size
        assert row.dts is not None


@pytest.mark.parametrize("name", sorted(UNREADABLE))
def test_ffmpeg_refuses_it(name: str) -> None:
    av = pytest.importorskip("av", exc_type=ImportError)
    with pytest.raises(av.error.InvalidDataError):
        packets_of(name)


def test_an_edit_list_moves_all_times_of_a_track_by_one_shift() -> None:
    oracle = pytest.importorskip("oracle.ffmpeg_packets", exc_type=ImportError)
    name = FIXTURES / "start-7s.mp4"
    media, shown = oracle.packets(name), oracle.packets(name, oracle.PRESENTATION)
    # 7 s less the two frames' B-frame delay at 12,800 ticks; 7.25 s less 1,024 samples of priming
    for track, shift in {1: 7 * 12800 - 1024, 2: 116000 - 1024}.items():
        assert [row.pts + shift for row in media[track]] == [row.pts for row in shown[track]]
        assert [row.dts + shift for row in media[track]] == [row.dts for row in shown[track]]
