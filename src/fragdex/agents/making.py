"""Videos made of others, written into the folder of the child; the parent takes them out."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import fragdex
from fragdex.agents.listening import language_in
from fragdex.agents.looking import seconds_of
from fragdex.agents.work import Report, Video
from fragdex.errors import InvalidRequest
from fragdex.muxing.copies import ClipRequest, clip_view
from fragdex.muxing.view import View
from fragdex.packaging.subtitles import captions_of

RESULT: Final = "result-0"
"""The file that a job leaves; of several, each has its number."""
_TRACK: Final = ("id", "kind", "codec", "samples", "proved", "seconds")
"""Facts about a track of a repaired video."""


def cut(videos: Sequence[Video], report: Report, parts: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """A span of a video, or several parts one after the other.

    Args:
        parts: of each of `videos`: `start` and `stop`; None: all of it.
    """
    shown, pieces = [], []
    findings: list[str] = []
    for number, (video, part) in enumerate(zip(videos, parts, strict=True)):
        start, stop = part.get("start"), part.get("stop")
        if start is None and stop is None and len(parts) > 1:
            pieces.append((video.index, video.source))
            shown.append({"start": 0.0, "stop": video.index.duration})
            continue
        low = seconds_of(0 if start is None else start)
        high = math.inf if stop is None else seconds_of(stop)
        if low >= high:
            raise InvalidRequest("a part ends before it starts", expected="start before stop")
        view, clip = clip_view(video.index, video.source, ClipRequest(low, high))
        path = RESULT if len(parts) == 1 else f"part-{number}.mp4"
        view.save(path, source=video.source)
        findings += view.findings
        shown.append({"start": float(clip.start), "stop": float(clip.stop), "exact": clip.exact})
        if len(parts) > 1:
            file = fragdex.open_source(path)
            pieces.append((fragdex.index(file, exact=True), file))
        report((number + 1) / (len(parts) + 1), "cutting")
    if len(parts) > 1:
        indexes, sources = zip(*pieces, strict=True)
        joined: View = fragdex.join(indexes, source=sources)
        joined.save(RESULT, source=sources)
        findings += joined.findings
    return {"parts": shown, "size": Path(RESULT).stat().st_size, "findings": findings[:50]}


def package(videos: Sequence[Video], report: Report, captions: int) -> dict[str, Any]:
    """HLS and DASH of renditions of one title.

    Args:
        captions: how many of `videos`, the last ones, are caption files.
    """
    media = videos[: len(videos) - captions]
    texts = []
    for file in videos[len(media) :]:
        data = b"".join(bytes(piece) for piece in file.source.pieces())
        kind = f".{file.name.rpartition('.')[2].lower()}"
        texts.append(captions_of(data, kind, language=language_in(file.name)))
    sources = [one.source for one in media]
    made = fragdex.package([one.index for one in media], source=sources, captions=texts)
    files = sorted(made)
    size = 0
    for number, name in enumerate(files):
        view = made[name]
        own = [sources[made.sources.index(known)] for known in view.sources]
        # flat: the parent follows no folder of a child
        view.save(f"result-{number}", source=own)
        size += view.size
        report((number + 1) / len(files), "files")
    return {
        "files": files, "size": size,
        "renditions": [one.name for one in made.title.renditions],
        "findings": list(made.findings)[:50],
    }  # fmt: skip


def repair(videos: Sequence[Video], report: Report) -> dict[str, Any]:
    """The first video with its index made again; a second one shows what its tracks are like."""
    broken, *good = videos
    mended = fragdex.repair(
        broken.source,
        *(one.source for one in good),
        progress=lambda done, size: report(done / size if size else 1.0, "looking for samples"),
    )
    mended.view.save(RESULT, source=broken.source)
    return {
        "size": mended.view.size, "lost_bytes": mended.lost,
        "tracks": [
            {name: getattr(one, name) for name in _TRACK} for one in mended.tracks
        ],
        "findings": list(mended.findings)[:50],
    }  # fmt: skip
