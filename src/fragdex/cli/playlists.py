"""HLS playlists and DASH manifests from the command line: what they name, and where they go."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from fragdex.cli.inputs import STDIN, is_url, stem

__all__ = ["addresses", "playback_notes", "playlists"]

SUFFIX = ".m3u8"


def addresses(name: str, made: Any, target: str | None, init: str | None) -> dict[str, str]:
    """How a playlist that is written to `target` names the media file and its init segment.

    Paths are seen from the folder of the playlist; on stdout the last part of the path alone.
    """
    from fragdex.cli.opening import saved_form

    found = {}
    media = made.source.name if saved_form(name) else name
    if target is not None and media and media != STDIN and not is_url(media):
        found["uri"] = _seen_from(target, media)
    if init is not None:
        local = _escaped(os.path.basename(init), "")
        seen = _seen_from(target, init) if target is not None else local
        found["init_uri"] = init if is_url(init) else seen
    return found


def _seen_from(target: str, path: str) -> str:
    folder = os.path.dirname(os.path.realpath(target))
    try:
        relative = os.path.relpath(os.path.realpath(path), folder)
    except ValueError:  # on another drive
        return _escaped(os.path.basename(path), "")
    return _escaped(relative.replace(os.sep, "/"), "/")


def _escaped(path: str, safe: str) -> str:
    from fragdex.formats.hls import bytes_of_name

    return quote(bytes_of_name(path), safe=safe)


def playlists(
    name: str, made: Any, target: str | None, asked: Mapping[str, Any]
) -> list[tuple[str | None, bytes]]:
    """The master playlist and, where all are asked for, those that it names: (place, text)."""
    from fragdex.formats import export, hls

    common = {key: asked[key] for key in ("track", "min_segment_ms") if key in asked}
    track = asked.get("track")
    base = stem(name) if target is None else os.path.splitext(target)[0]
    has_iframes = hls.has_iframes(made, track)
    places = {"media": f"{base}-media{SUFFIX}"}
    if has_iframes:
        places["iframes"] = f"{base}-iframes{SUFFIX}"
    uris = {f"{kind}_uri": _escaped(os.path.basename(place), "") for kind, place in places.items()}
    found: list[tuple[str | None, bytes]] = [
        (target, export(made, "hls", playlist="master", **common, **uris))
    ]
    if asked["playlist"] == "all":
        named = {key: asked[key] for key in ("uri", "init_uri") if key in asked}
        for kind, place in places.items():
            found.append((place, export(made, "hls", playlist=kind, **common, **named)))
    return found


def playback_notes(made: Any) -> list[str]:
    """What keeps players from playing it, beside what every index is told of."""
    from fragdex.formats.hls import playback_findings

    said = {finding.code for finding in made.findings}
    return [str(finding) for finding in playback_findings(made) if finding.code not in said]
