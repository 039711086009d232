"""What will be wrong with the video of a page, found by drawing a few of its frames twice."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from dataclasses import field, replace
from typing import Final

from fragdex.errors import PageFailed
from fragdex.record import record
from fragdex.rendering.browser.model import Notes, PageFacts, PageView, missing_fonts
from fragdex.rendering.browser.process import NO_BEGIN_FRAMES
from fragdex.rendering.messages import SliceMade
from fragdex.rendering.pool import ChildPool, PageSource, drawn, evenly
from fragdex.rendering.site import DATA, ORIGIN, Site
from fragdex.rendering.spec import RenderSpec, frames_of, settled

SAMPLES: Final = 12
"""Frames that are drawn, at most."""
ENDLESS_MS: Final = 10_000
"""So much is looked at of a page that does not say how long it lasts."""

# A page that renders itself begins again for each sample.
_ASKED_SAMPLES: Final = 3
_PLACE: Final = re.compile(r"\s*\((https?://[^\s()]+?)(?::(\d+))?\)$")
_MEDIA: Final = re.compile(r"(?:https?|blob|data):\S*: ")
_TEXTS: Final = (".html", ".htm", ".css", ".js", ".mjs", ".json", ".svg", "")
_MOST_TEXT: Final = 4 << 20
# What `Notes.refused` says of things that have no clock or no seed of ours.
_UNSTEADY: Final = re.compile(r"a clock for|a seed for|the page's clock for|a frame for")
_CAUSES: Final = 3
_UNLOADED: Final = "error: Failed to load resource"


@record(frozen=True, slots=True)
class PageFinding:
    """Something that will be wrong.

    Attributes:
        kind: `failed`, `endless`, `script`, `not loaded`, `not heard`, `refused`, `fonts`,
            `browser` (one whose frames depend on the machine), `late` (a file that came after its
            frame), `varies` (what may differ from run to run) or `differs` (what did, where, and
            what is known that causes it).
        text: for people.
        file: of the site, "" for its page; None: not known.
        line: of the file, from 1; None: not known.
    """

    kind: str
    text: str
    file: str | None = None
    line: int | None = None


@record(slots=True)
class Linted:
    """A page that was looked at.

    Attributes:
        view: as it was drawn; None: it failed before.
        duration_ms: of its video; None: it does not say.
        frames: of the video; of an endless page those of its first seconds.
        drawn: those that were drawn, twice each.
    """

    view: PageView | None = None
    duration_ms: int | None = None
    frames: range = range(0)
    drawn: tuple[int, ...] = ()
    findings: list[PageFinding] = field(default_factory=list)


def lint(
    page: PageSource, spec: RenderSpec, progress: Callable[[int, int], object] = lambda *_: None
) -> Linted:
    """Draw a few frames of a page in two browsers, and say what will be wrong with its video.

    Scripts and requests between those frames happen as they do in the video.

    Args:
        spec: the video.
        progress: called from any thread with frames drawn and frames to draw.

    Raises:
        BrowserGone: the browser ended by no fault of the page's.
        EngineUnavailable: no Chromium.
        TooLarge: more pixels than the limits allow.
    """
    page = replace(page, watched=True)
    linted = Linted()
    notes, reads = Notes(), dict[str, str | None]()
    try:
        facts = _settle(page, spec, linted)
        most = _ASKED_SAMPLES if facts is not None and facts.is_asked else SAMPLES
        assert linted.view is not None
        linted.drawn = evenly(linted.frames, most)
        differing, slices = _twice(page, linted.view, linted.drawn, progress)
        for one in slices:
            notes.add(one.notes)
            reads |= one.reads
        if differing:
            linted.findings.append(_differs(differing, notes))
    except PageFailed as error:
        linted.findings.append(PageFinding("failed", str(error)))
        notes.add(Notes.of_json(error.more))
    linted.findings += _placed(page.site, reads, _of_notes(notes, reads))
    return linted


def _settle(page: PageSource, spec: RenderSpec, linted: Linted) -> PageFacts | None:
    facts = None
    with closing(ChildPool(most=1)) as pool:

        def look(view: PageView) -> PageFacts:
            nonlocal facts
            facts = pool.look(page, view)
            return facts

        # it is always checked: whether it renders itself decides how many are drawn
        look(spec.view())
        linted.view, linted.duration_ms, _ = settled(spec, page.limits, look)
    if linted.duration_ms is None:
        linted.findings.append(PageFinding(
            "endless", "the page does not say how long it lasts: nothing in it is animated for a "
            "finite time; set --duration, or window.fragdex.duration in the page",
        ))  # fmt: skip
    linted.frames = frames_of(spec, linted.duration_ms or ENDLESS_MS)
    return facts


def _twice(
    page: PageSource, view: PageView, samples: tuple[int, ...],
    progress: Callable[[int, int], object],
) -> tuple[dict[int, tuple[bytes, bytes]], list[SliceMade]]:  # fmt: skip
    """Draw frames in two browsers side by side.

    Returns: the pictures of the frames that are not equal to the bit, and the last slice of each
        browser, which tells what happened.
    """
    lock, stop = threading.Lock(), threading.Event()
    done = 0

    def check() -> None:
        if stop.is_set():
            raise _Stopped

    def draw(_: int) -> tuple[list[bytes], SliceMade]:
        nonlocal done
        pictures, last = [], None
        for picture, drawn_slice in drawn(page, view, samples, check=check):
            pictures.append(picture)
            last = drawn_slice
            with lock:
                done += 1
                progress(done, 2 * len(samples))
        assert last is not None
        return pictures, last

    with ThreadPoolExecutor(2, "lint") as threads:
        tasks = [threads.submit(draw, number) for number in range(2)]
        try:
            (first, one), (second, other) = (task.result() for task in tasks)
        finally:
            stop.set()
    pairs = zip(samples, first, second, strict=True)
    return {i: (a, b) for i, a, b in pairs if a != b}, [one, other]


def _differs(differing: Mapping[int, tuple[bytes, bytes]], notes: Notes) -> PageFinding:
    """Which frames differ, by how much and where, and what is known that may be why."""
    import io

    import numpy as np
    from PIL import Image

    several = ", ".join(map(str, differing))
    frames = f"frame {several} differs" if len(differing) == 1 else f"frames {several} differ"
    i, pictures = next(iter(differing.items()))
    a, b = (np.asarray(Image.open(io.BytesIO(one)).convert("RGBA"), np.int16) for one in pictures)
    channels = np.abs(a - b)
    rows, columns = (np.flatnonzero(channels.any(axis=(axis, 2))) for axis in (1, 0))
    where = (
        f"in frame {i} by up to {channels.max()} of 255, within "
        f"{columns[-1] - columns[0] + 1}x{rows[-1] - rows[0] + 1} pixels at "
        f"{columns[0]},{rows[0]}"
    )
    causes = [
        *(line for line in notes.browser if line == NO_BEGIN_FRAMES),
        *(line for line in notes.refused if _UNSTEADY.match(line)),
        *notes.uses,
        *(f"{what}: arrived after the frame that requested it" for what in notes.late),
    ]
    more = f" (and {len(causes) - _CAUSES} more)" if len(causes) > _CAUSES else ""
    cause = "; ".join(causes[:_CAUSES]) + more
    why = f"perhaps by {cause}" if causes else "nothing that the page uses is known to cause it"
    return PageFinding("differs", f"{frames} between two runs, {where}: {why}")


class _Stopped(Exception):
    """The other browser failed."""


def _of_notes(notes: Notes, reads: Mapping[str, str | None]) -> Iterator[PageFinding]:
    for line in notes.incomplete:
        # those that were blocked or are not there are not loaded, as other files
        if not line.startswith("a script "):
            yield PageFinding("script", line)
    scripts = {line.removeprefix("error: ") for line in notes.incomplete}
    for line in notes.console:
        words = line.removeprefix("error: ")
        if line.startswith("error: ") and words not in scripts and not line.startswith(_UNLOADED):
            yield PageFinding("script", words)
    for one in notes.blocked:
        yield PageFinding("not loaded", f"{one.url}: {one.reason}")
    silent = [line.partition(": ")[0] for line in notes.refused if _MEDIA.match(line)]
    for path, digest in reads.items():
        if digest is None and path != DATA and f"{ORIGIN}/{path}" not in silent:
            yield PageFinding("not loaded", f"{ORIGIN}/{path}: no such file in this site")
    for line in notes.browser:
        if line == NO_BEGIN_FRAMES:
            yield PageFinding("browser", line)
    for line in notes.refused:
        yield PageFinding("not heard" if _MEDIA.match(line) else "refused", line)
    for line in missing_fonts(notes.glyphs):
        yield PageFinding("fonts", line)
    for what in notes.late:
        yield PageFinding("late", f"{what}: arrived after the frame that requested it")
    for line in notes.uses:
        yield PageFinding("varies", line)


def _placed(
    site: Site, reads: Mapping[str, str | None], findings: Iterator[PageFinding]
) -> list[PageFinding]:
    """Findings with the file and line that they name, or where what they name is written."""
    texts: dict[str, str] = {}
    for path, digest in {"": "", **reads}.items():
        suffix = "." + path.rpartition(".")[2] if "." in path else ""
        asset = site.read(path) if digest is not None and suffix in _TEXTS else None
        if asset is not None:
            texts[path] = asset.data[:_MOST_TEXT].decode("utf-8", "replace")
    places = []
    for one in findings:
        named = _PLACE.search(one.text)
        if named is not None and named[1].startswith(f"{ORIGIN}/"):
            path = named[1].removeprefix(f"{ORIGIN}/").partition("?")[0]
            line = int(named[2]) if named[2] else None
            places.append(replace(one, text=one.text[: named.start()], file=path, line=line))
            continue
        file, line = None, None
        if one.kind in ("not loaded", "not heard", "late"):
            file, line = _written(texts, one.text.partition(": ")[0])
        elif one.kind == "refused":
            file, line = _written(texts, re.split(r"(?<=\()", one.text)[0])
        elif one.kind == "fonts" and (sample := re.search(r"\(U\+([0-9A-F]+)\)", one.text)):
            file, line = _written(texts, chr(int(sample[1], 16)))
        # Elsewhere the page knows a URL by its path.
        text = one.text.replace(f"{ORIGIN}/", "")
        places.append(replace(one, text=text, file=file, line=line))
    return places


def _written(texts: Mapping[str, str], what: str) -> tuple[str | None, int | None]:
    """Where a URL, or its path, or its last part, or a character is written first."""
    names = [what]
    if what.startswith(f"{ORIGIN}/"):
        path = what.removeprefix(f"{ORIGIN}/")
        names = [path, path.rpartition("/")[2]]
    for name in filter(None, names):
        for file, text in texts.items():
            with suppress(ValueError):
                return file, text.count("\n", 0, text.index(name)) + 1
    return None, None
