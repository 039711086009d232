"""One slice: a stage that stands somewhere before it, its frames through the encoder.

A stage is kept between slices: the next one continues where the last ended, without a new browser
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
from typing import TYPE_CHECKING, Any, Final, cast

from fragdex.errors import BrowserGone
from fragdex.rendering.browser.canvas import CanvasDiffers, CanvasPicture
from fragdex.rendering.browser.model import Limits, PageFacts, PageView
from fragdex.rendering.browser.stage import Stage
from fragdex.rendering.encode import Encoding
from fragdex.rendering.messages import SliceMade
from fragdex.rendering.outputs import Film, Still
from fragdex.rendering.page_media.strips import SoundStrip
from fragdex.rendering.pictures import Pictures, encode_still, rows_of_line, shows_canvas
from fragdex.rendering.plan import OneBrowserNeeded
from fragdex.rendering.site import Outside, Site

if TYPE_CHECKING:
    import numpy as np

    from fragdex.rendering.page_media.player import Player

Progress = Callable[[int], None]

# So often it is looked for characters that no font has, and chance that has no seed.
_LOOK_SECONDS: Final = 2
# Frames that a page draws on the way to a still: fewer than another browser is worth.
_NEAR: Final = 15


class Slicer:
    """Makes slices of one site, on as few browsers as it can.

    Args:
        site: the page's files.
        outside: what the page may ask for beyond them.
        limits: how far the page may go.
        sandbox: whether Chromium's own sandbox is tried.
        missing: walls that do not stand around this process, as its renders say.
        watched: as of `Stage`.
        reads_canvas: whether pages of one canvas are read instead of pictured; they look the same.
    """

    def __init__(
        self, site: Site, *, outside: Outside, limits: Limits, sandbox: bool,
        missing: Sequence[str], watched: bool = False, reads_canvas: bool = True,
    ) -> None:  # fmt: skip
        self._site, self._outside, self._limits = site, outside, limits
        self._sandbox, self._missing, self._watched = sandbox, missing, watched
        self._stage: Stage | None = None
        self._player: _Player | None = None
        self._view: PageView | None = None
        self._at = 0  # the next frame of the stage
        self._skipped = False  # whether earlier frames of the video were not drawn
        self._shown: bytes | CanvasPicture | None = None  # the last picture of the stage
        self._reads_canvas = reads_canvas

    def look(self, view: PageView) -> PageFacts:
        """The page's description of itself, seen through a view."""
        return self._stage_at(view, 0).measure()

    def draw(
        self,
        view: PageView,
        frames: range,
        path: Path,
        still: Still | None = None,
        progress: Progress = lambda _: None,
        film: Film = Film(),  # noqa: B008 — frozen
        *,
        all_drawn: bool = False,
        ahead: int = 0,
    ) -> SliceMade:
        """Render frames, or the still of the first one, into a file.

        Args:
            progress: told how many frames are done, replayed ones not counted.
            film: how frames are stored.
            all_drawn: the frames before the first are drawn, too, and none was skipped.
            ahead: stills of so many later frames may follow: a page that renders on request
                knows of them in advance.

        Raises:
            PageFailed, BrowserGone, EngineUnavailable, TooLarge: as of `Stage`.
            OneBrowserNeeded: frames were skipped, and the page is one that needs them.
        """
        try:
            return self._draw(view, frames, path, still, progress, film, all_drawn, ahead)
        except CanvasDiffers:
            self.close()
            self._reads_canvas = False
            return self._draw(view, frames, path, still, progress, film, all_drawn, ahead)

    def _draw(
        self, view: PageView, frames: range, path: Path, still: Still | None, progress: Progress,
        film: Film, all_drawn: bool, ahead: int,
    ) -> SliceMade:  # fmt: skip
        clock = _Clock()
        if film.is_sound:
            return self._sound_alone(view, frames, path, progress, clock)
        stage = self._started(view, frames, clock, still, ahead, all_drawn=all_drawn)
        while all_drawn and stage.begun is None and self._at < frames.start:
            self._next(stage)
            progress(0)
        if stage.begun is not None:
            while self._at < frames.start:
                self._next(stage)
        elif self._at < frames.start:
            # The frame before is drawn as well, to compare it with the slice that has it.
            stop = frames.start - (still is None)
            self._skipped |= stop > self._at
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
        before = self._digest(stage) if frames.start else None
        stage.hear_until(frames.start, kept=False)
        unchanged = self._film(stage, view, frames, path, film, progress, clock)
        drawn = self._made(stage, path, frames, clock.seconds, unchanged)
        drawn = replace(drawn, begins_after=before, ends_with=self._digest(stage))
        stage.hear_until(frames.stop, kept=True)
        return self._with_sound(stage, drawn)

    def _sound_alone(
        self, view: PageView, frames: range, path: Path, progress: Progress, clock: _Clock
    ) -> SliceMade:
        """What is heard in frames, without pictures."""
        stage = self._started(view, frames, clock)
        # a page that is asked draws the frame before as well
        begin = frames.start if stage.begun is None else self._at
        stage.skip(self._at, begin, lambda _: progress(0))
        stage.hear_until(begin, kept=False)
        clock.lap("replay")
        for i in range(begin, frames.stop):
            if stage.begun is None:
                stage.pass_by(i)
            else:
                stage.frame(i)
            progress(max(0, i + 1 - frames.start))
        stage.hear_until(frames.stop, kept=True)
        self._at, self._skipped = frames.stop, True
        clock.lap("capture")
        path.write_bytes(b"")
        drawn = self._made(stage, path, frames, clock.seconds, 0)
        return self._with_sound(stage, drawn)

    def _started(
        self, view: PageView, frames: range, clock: _Clock, still: Still | None = None,
        ahead: int = 0, *, all_drawn: bool = False,
    ) -> Stage:  # fmt: skip
        """The stage that draws these frames; its start takes nothing where one continues."""
        previous = self._stage
        stage = self._stage_at(view, frames.start, all_drawn=all_drawn)
        if stage.facts.is_asked:
            stage = self._begun(view, frames, still, ahead)
        clock.lap("start", counts=stage is not previous)
        return stage

    def _begun(self, view: PageView, frames: range, still: Still | None, ahead: int) -> Stage:
        """A stage whose page knows which frames will be requested.

        The frame before is among them, to be compared with the previous slice.
        """
        stage = self._stage_at(view, frames.start if still is not None else 0)
        if stage.begun is not None:
            near = frames.start - self._at < _NEAR
            if still is not None and near and frames.stop <= stage.begun.stop:
                return stage
            self.close()
            stage = self._stage_at(view, 0)
        self._at = frames.start if still is not None else max(0, frames.start - 1)
        stage.begin(range(self._at, frames.stop + ahead), frames)
        return stage

    def _next(self, stage: Stage, *, pixels: bool = False) -> bytes | CanvasPicture | None:
        """Draw the next frame; its picture, None where it is that of the frame before.

        Args:
            pixels: as of `Stage.frame`.
        """
        picture = stage.picture(self._at, pixels=pixels and self._reads_canvas)
        self._check(stage)
        self._at += 1
        if picture is None or picture == self._shown:
            return None
        before, self._shown = self._shown, picture
        return None if _is_same(stage.view, before, picture) else picture

    def _check(self, stage: Stage) -> None:
        if self._skipped and stage.notes.keeps:
            raise OneBrowserNeeded(stage.notes.keeps[0])

    def _digest(self, stage: Stage) -> str:
        """SHA-256 of the last picture."""
        if stage.begun is None:
            # where slices meet, none is that of a canvas
            assert not isinstance(self._shown, CanvasPicture)
            return hashlib.sha256(self._shown or b"").hexdigest()
        # the line below it is another one in each slice
        return hashlib.sha256(self._pixels(stage).tobytes()).hexdigest()

    def _pixels(self, stage: Stage) -> np.ndarray[Any, Any]:
        """What the view keeps of the last picture; of a page that is asked, without its line."""
        view, begun = stage.view, stage.begun
        pictures = Pictures(view, lines=0 if begun is None else rows_of_line(view))
        number = 0 if begun is None else self._at - 1 - begun.start
        pixels: np.ndarray[Any, Any] = pictures.decoded(self._shown or b"", number).to_ndarray()
        return pixels

    def _film(
        self, stage: Stage, view: PageView, frames: range, path: Path, film: Film,
        progress: Progress, clock: _Clock,
    ) -> int:  # fmt: skip
        """Returns how many pictures were that of the frame before."""
        unchanged = 0
        begun = stage.begun
        number = None if begun is None else frames.start - begun.start
        looks = max(1, round(_LOOK_SECONDS * view.fps))
        with Encoding(path, view, film, number) as encoding:
            for i in frames:
                # pictures are compared where slices meet
                picture = self._next(stage, pixels=i != frames.stop - 1)
                if picture is None:
                    unchanged += 1
                    # a file begins with a picture, though the stage has shown it already
                    picture = self._shown if i == frames.start else None
                encoding.frame(picture)
                if (i - frames.start) % looks == 0 or i == frames.stop - 1:
                    stage.note_looks()
                progress(i + 1 - frames.start)
            clock.lap("capture")
            encoding.finish()
            clock.lap("finish")
            clock.seconds["encode"] = encoding.seconds
        return unchanged

    def _still(self, stage: Stage, path: Path, still: Still, clock: _Clock) -> None:
        picture = self._next(stage) or self._shown
        if not isinstance(picture, bytes):
            raise BrowserGone("the browser gave no picture")
        stage.note_looks()
        clock.lap("capture")
        is_whole = stage.begun is None and stage.view.crop is None
        shown = picture if is_whole else self._pixels(stage)
        path.write_bytes(encode_still(shown, still))
        clock.lap("encode")

    def close(self) -> None:
        """End the browser."""
        if self._stage is not None:
            self._stage.close()
        self._stage = self._player = self._shown = None

    def _stage_at(self, view: PageView, first: int, *, all_drawn: bool = False) -> Stage:
        """A stage that stands at a frame or before it."""
        fits = self._view == view and self._at <= first and not (all_drawn and self._skipped)
        if self._stage is not None and fits and self._stage.is_alive():
            return self._stage
        self.close()
        self._player = _Player(view, self._site, self._outside)
        # it becomes one when the browser has been started
        media = cast("Player", self._player)
        self._stage = Stage(
            self._site, view, outside=self._outside, media=media, limits=self._limits,
            sandbox=self._sandbox, watched=self._watched,
        )  # fmt: skip
        for wall in self._missing:
            self._stage.notes.say("browser", wall)
        self._view, self._at, self._skipped = view, 0, False
        return self._stage

    def _with_sound(self, stage: Stage, drawn: SliceMade) -> SliceMade:
        """A slice with what is heard in it; bytes that only the page had go into its file."""
        assert self._player is not None
        for line in self._player.refused():
            drawn.notes.say("refused", line)
        stop = drawn.first + drawn.frames
        strips = self._player.sound(drawn.first, stop)
        own_samples = self._player.own_samples(strips)
        if stage.begun is not None and (data := stage.sound()):
            name = f"samples:{hashlib.sha256(data).hexdigest()}"
            own_samples[name] = data
            start, end = (float(frame / stage.view.fps) for frame in (drawn.first, stop))
            strips.append(SoundStrip(name, start, end, kind="samples", voice="page"))
        if not strips:
            return drawn
        samples: dict[str, list[int]] = {}
        with Path(drawn.path).open("ab") as file:
            for name, data in sorted(own_samples.items()):
                # a box that players pass over (ISO/IEC 14496-12 8.1.2)
                file.write(struct.pack(">I4sQ", 1, b"free", 16 + len(data)))
                samples[name] = [file.tell(), len(data)]
                file.write(data)
        return replace(drawn, sound=[strip.as_json() for strip in strips], samples=samples)

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
            is_asked=stage.facts.is_asked,
        )


def _is_same(
    view: PageView, before: bytes | CanvasPicture | None, picture: bytes | CanvasPicture
) -> bool:
    """Whether a picture and the pixels of a canvas are the same."""
    if isinstance(picture, CanvasPicture) and isinstance(before, bytes):
        return shows_canvas(view, before, picture)
    if isinstance(before, CanvasPicture) and isinstance(picture, bytes):
        return shows_canvas(view, picture, before)
    return False


class _Player:
    """A `Player` that is made on first use: while the browser starts.

    FFmpeg's libraries take as long to load as the browser does.
    """

    def __init__(self, view: PageView, site: Site, outside: Outside) -> None:
        self._view, self._site, self._outside = view, site, outside

    @cached_property
    def _made(self) -> Player:
        from fragdex.rendering.page_media.opening import Opener
        from fragdex.rendering.page_media.player import Player

        return Player(self._view.fps, Opener(self._site, self._outside))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._made, name)


class _Clock:
    """Wall-clock seconds of one step after the other."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._last = time.monotonic()

    def lap(self, name: str, *, counts: bool = True) -> None:
        now = time.monotonic()
        self.seconds[name], self._last = (now - self._last if counts else 0), now
