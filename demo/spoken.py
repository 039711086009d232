"""A spoken film becomes captions; the truth is known, since a machine spoke."""

from __future__ import annotations

import importlib.util
import json
import shutil
from collections.abc import Callable
from pathlib import Path

import fragdex

SPEECH = Path(__file__).resolve().parent.parent / "fixtures" / "speech"
NAME = "pauses-flac.mp4"


def missing() -> str | None:
    """The package that this chapter needs and that is not installed."""
    for package in ("av", "moonshine_voice"):
        if importlib.util.find_spec(package) is None:
            return package
    return None


def story(command: Callable[..., None], expect: Callable[[bool, str], None]) -> None:
    """Transcribe, show the captions, hold them to what was said."""
    shutil.copy(SPEECH / NAME, "speech.mp4")
    command("transcribe", "speech.mp4", "-o", "speech.vtt")
    for line in Path("speech.vtt").read_text("utf-8").splitlines():
        print(f"  {line}")
    command("transcribe", "speech.mp4", "-o", "captioned.mp4", "--json")
    command("info", "captioned.mp4")
    rows = json.loads((SPEECH / "MANIFEST.json").read_text("utf-8"))["files"]
    said = [word for row in rows if row["file"] == NAME for word, *_ in row["words"]]
    heard = set(Path("speech.vtt").read_text("utf-8").split())
    share = sum(word in heard for word in said) / len(said)
    expect(share > 0.5, f"{share:.0%} of the words that were said stand in the captions")
    track = fragdex.index("captioned.mp4", exact=True).tracks[-1]
    expect(track.info.format == "wvtt", "the copy has a track of captions")
