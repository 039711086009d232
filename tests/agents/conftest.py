"""The known video in a folder; all of it is skipped where the SDK is missing."""

import pytest

pytest.importorskip("mcp")
pytest.importorskip("av")

from agents import known_video


@pytest.fixture(scope="session")
def known_bytes():
    return known_video.made()


@pytest.fixture
def films(tmp_path, known_bytes):
    """A folder with the known video and its captions; and nothing else."""
    folder = tmp_path / "films"
    folder.mkdir()
    (folder / "known.mp4").write_bytes(known_bytes)
    (folder / "known.en.vtt").write_text(known_video.webvtt(), "utf-8")
    return folder
