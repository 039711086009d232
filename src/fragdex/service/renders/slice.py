"""One slice: a stage that stands somewhere before it, its frames through the encoder.

A stage is kept between slices: the next one goes on where the last ended, without a new browser
and without replaying what was shown already.
"""

from __future__ import annotations

import hashlib
import struct
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from fragdex.service.errors import BrowserGone
from fragdex.service.renders.browser.model import Limits, PageFacts
from fragdex.service.renders.browser.stage import Stage
from fragdex.service.renders.browser.timing import View
from fragdex.service.renders.encode import Encoding
from fragdex.service.renders.films import Film
from fragdex.service.renders.messages import SliceMade
from fragdex.service.renders.outside import Outside
from fragdex.service.renders.seams import OneBrowserNeeded
from fragdex.service.renders.site import Site
from fragdex.service.renders.stills import Still, encode_still

if TYPE_CHECKING:
    from fragdex.service.renders.page_media.player import Player

__all__ = ["Slicer"]

Progress = Callable[[int], None]


class Slicer:
    """Makes slices of one site, on as few browsers as it can.

    Args:
        site: the page's files.
        outside: what the page may ask for beyond them.
        limits: how far the page may go.
        sandbox: whether Chromium's own sandbox is tried.
        missing: walls that do not stand around this process, as its renders say.
    """

    def __init__(
        self, site: Site, *, outside: Outside, limits: Limits, sandbox: bool,
        missing: Sequence[str],
    ) -> None:  # fmt: skip
        self._site, self._outside, self._limits = site, outside, limits
        self._sandbox, self._missing = sandbox, missing
        self._stage: Stage | None = None
        self._player: _Player | None = None
        self._view: View | None = None
        self._at = 0  # the next frame of the stage
        self._skipped = False  # whether frames of a film before that were not drawn
        self._shown: bytes | None = None  # the last picture of the stage

    def look(self, view: View) -> PageFacts:
        """What the page tells of itself, seen through a view."""
        return self._standing(view, 0).facts

    def draw(
        self,
        view: View,
        frames: range,
        path: Path,
        still: Still | None = None,
        progress: Progress = lambda _: None,
        film: Film = Film(),  # noqa: B008 — frozen
    ) -> SliceMade:
        """Render frames, or the still of the first one, into a file.

        Args:
            progress: told how many frames are done, replayed ones not counted.
            film: how frames are stored.

        Raises:
            PageFailed, BrowserGone, EngineUnavailable, TooLarge: as of `Stage`.
            OneBrowserNeeded: frames were skipped, and the page is one that needs them.
        """
        clock = _Clock()
        stage = self._standing(view, frames.start)
        clock.lap("start")
        if self._at < frames.start:
            # What a film shows before it is drawn as well, to be compared with who showed that.
            stop = frames.start - (still is None)
            self._skipped = still is None
            self._check(stage)

            def told(_: int) -> None:
                progress(0)
                self._check(stage)

            stage.skip(self._at, stop, told)
            self._at = stop
            if still is None:
                self._next(stage)
        clock.lap("replay")
        if still is not None:
            self._still(stage, path, still, clock)
            return self._made(stage, path, frames, clock.seconds, 0)
        before = self._digest() if frames.start else None
        unchanged = self._film(stage, view, frames, path, film, progress, clock)
        made = self._made(stage, path, frames, clock.seconds, unchanged)
        return self._with_sound(replace(made, begins_after=before, ends_with=self._digest()))

    def _next(self, stage: Stage) -> bytes | None:
        """Draw the next frame; its picture, None where it is that of the frame before."""
        picture = stage.frame(self._at)
        self._check(stage)
        self._at += 1
        if picture is None or picture == self._shown:
            return None
        self._shown = picture
        return picture

    def _check(self, stage: Stage) -> None:
        if self._skipped and stage.notes.keeps:
            raise OneBrowserNeeded(stage.notes.keeps[0])

    def _digest(self) -> str:
        """SHA-256 of the last picture."""
        return hashlib.sha256(self._shown or b"").hexdigest()

    def _film(
        self, stage: Stage, view: View, frames: range, path: Path, film: Film, progress: Progress,
        clock: _Clock,
    ) -> int:  # fmt: skip
        """Returns how many pictures were that of the frame before."""
        unchanged = 0
        with Encoding(path, view, film) as encoding:
            for i in frames:
                picture = self._next(stage)
                if picture is None:
                    unchanged += 1
                    # a file begins with a picture, though the stage has shown it already
                    picture = self._shown if i == frames.start else None
                encoding.frame(picture)
                progress(i + 1 - frames.start)
            clock.lap("capture")
            encoding.finish()
            clock.lap("finish")
            clock.seconds["encode"] = encoding.seconds
        return unchanged

    def _still(self, stage: Stage, path: Path, still: Still, clock: _Clock) -> None:
        picture = self._next(stage) or self._shown
        if picture is None:
            raise BrowserGone("the browser gave no picture")
        clock.lap("capture")
        path.write_bytes(encode_still(picture, still))
        clock.lap("encode")

    def close(self) -> None:
        """End the browser."""
        if self._stage is not None:
            self._stage.close()
        self._stage = self._player = self._shown = None

    def _standing(self, view: View, first: int) -> Stage:
        """A stage that stands at a frame or before it."""
        if self._stage is not None and self._view == view and self._at <= first:
            return self._stage
        self.close()
        self._player = _Player(view, self._site, self._outside)
        # it becomes one when the browser has been started
        media = cast("Player", self._player)
        self._stage = Stage(
            self._site, view, outside=self._outside, media=media, limits=self._limits,
            sandbox=self._sandbox,
        )  # fmt: skip
        for wall in self._missing:
            self._stage.notes.say("browser", wall)
        self._view, self._at, self._skipped = view, 0, False
        return self._stage

    def _with_sound(self, made: SliceMade) -> SliceMade:
        """A slice with what is heard in it; bytes that only the page had go into its file."""
        assert self._player is not None
        for line in self._player.refused():
            made.notes.say("refused", line)
        strips = self._player.sound(made.first, made.first + made.frames)
        if not strips:
            return made
        samples: dict[str, list[int]] = {}
        with Path(made.path).open("ab") as file:
            for name, data in sorted(self._player.kept(strips).items()):
                # a box that players pass over (ISO/IEC 14496-12 8.1.2)
                file.write(struct.pack(">I4sQ", 1, b"free", 16 + len(data)))
                samples[name] = [file.tell(), len(data)]
                file.write(data)
        return replace(made, sound=[strip.as_json() for strip in strips], samples=samples)

    def _made(
        self, stage: Stage, path: Path, frames: range, seconds: dict[str, float], unchanged: int
    ) -> SliceMade:
        return SliceMade(
            path=str(path),
            first=frames.start,
            frames=len(frames),
            seconds={name: round(value, 4) for name, value in seconds.items()},
            reads=stage.reads,
            notes=stage.notes,
            unchanged=unchanged,
        )


class _Player:
    """A `Player` that is made when it is asked for something: while the browser starts.

    FFmpeg's libraries take as long to load as the browser does.
    """

    def __init__(self, view: View, site: Site, outside: Outside) -> None:
        self._view, self._site, self._outside = view, site, outside

    @cached_property
    def _made(self) -> Player:
        from fragdex.service.renders.page_media.opening import Opener
        from fragdex.service.renders.page_media.player import Player

        return Player(self._view.fps, Opener(self._site, self._outside))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._made, name)


class _Clock:
    """Wall-clock seconds of one step after the other."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._last = time.monotonic()

    def lap(self, name: str) -> None:
        now = time.monotonic()
        self.seconds[name], self._last = now - self._last, now
