"""Plays the media of one page: what a stage wants of it, frame by frame."""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from fractions import Fraction
from importlib.resources import files
from typing import Any, Final

from fragdex.errors import PageFailed
from fragdex.rendering.page_media.answers import FAULTS, Answers, why
from fragdex.rendering.page_media.contract import ENDPOINT, MediaAnswer, Staged
from fragdex.rendering.page_media.opening import Opener
from fragdex.rendering.page_media.strips import SAMPLE_RATE, SoundStrip
from fragdex.rendering.page_media.takes import Takes

__all__ = ["Player"]

SCRIPTS: Final = ("clock", "loading", "player", "elements", "pictures", "webaudio")
MOST_SHOWN: Final = 24 << 20
"""Pixels (of 4 bytes) that a browser may keep of pictures that were shown."""
MOST_SECONDS: Final = 3600.0
_QUANTUM: Final = 128
_ROOM: Final = "globalThis[Symbol.for('fragdex.media')]"


class Player:
    """Plays the media of one page.

    A stage adds `scripts` to every frame before the page's own, answers requests below `ENDPOINT`
    by `answer`, and fails requests that the browser itself makes for media (resource type `Media`)
    without a note: their elements are played here. The page's own content security policy must not
    reach the scripts (Page.setBypassCSP).

    Args:
        fps: of the render.
        opener: opens what the page plays.
        seconds: how long a page's own graphs (WebAudio) may play at most.

    >>> from fragdex.rendering.site import Page
    >>> player = Player(Fraction(30), Opener(Page("<h1>")))
    >>> len(player.scripts()), player.settled(), player.longest_ms(), player.sound(0, 30)
    (6, True, None, [])
    """

    def __init__(self, fps: Fraction, opener: Opener, seconds: float = MOST_SECONDS) -> None:
        self._fps, self._opener, self._seconds = fps, opener, seconds
        self._answers = Answers(opener)
        self._stage: Staged | None = None
        self._takes = Takes()
        self._handed = False
        self._relieved = 0

    @property
    def reads(self) -> dict[str, str | None]:
        """Paths of the site that were played, each with its SHA-256."""
        return self._opener.reads

    def scripts(self) -> list[str]:
        """What is added to every frame, in this order."""
        settings = {
            "endpoint": ENDPOINT,
            "fps": [self._fps.numerator, self._fps.denominator],
            "seconds": self._seconds,
        }
        folder = files(__package__)
        found = []
        for name in SCRIPTS:
            source = (folder / f"{name}.js").read_text("utf-8")
            found.append(f"{source.rstrip()}({json.dumps(settings) if name == 'clock' else ''});")
        return found

    def bind(self, stage: Staged) -> None:
        """Take the stage that calls; before the page is loaded."""
        self._stage = stage

    def answer(self, url: str, body: bytes) -> MediaAnswer:
        """Answer a POST of the scripts; called whenever the page asks, also within `evaluate`."""
        return self._answers.answer(url, body)

    @property
    def listens(self) -> bool:
        """Whether the page plays graphs of its own."""
        return self._answers.listens

    def settled(self) -> bool:
        """Whether every element knows what it plays; asked while the page loads, clock stopped."""
        asked = self._answers.plays or self._answers.listens
        return not asked or bool(self._ask("loading === 0"))

    def started(self) -> None:
        """The page stands at frame 0: what it plays begins now."""
        self._ask("begin()")

    def stands(self) -> bool:
        """Whether the page's own graphs have come to where they were last led to."""
        return not self._answers.listens or bool(self._ask("stands()"))

    def hear(self, *, kept: bool) -> None:
        """Take what the page's own graphs play until now; or let it pass, with what was taken.

        Called when the page's clock reached a frame, before the page is told of it.
        """
        if self._handed or not kept:
            self._takes.clear()
            self._handed = False
        if self._answers.listens:
            self._hear(self._ask(f"listen({json.dumps(kept)})"))

    def before_frame(self, *, drawing: bool = True) -> bool:
        """Draw the pictures of a frame, unless nobody sees it; True where one changed.

        Called when the page's clock reached the frame, before it is drawn; the clock stands still.
        """
        self._answers.next_frame()
        return self._answers.shows and self._draw(drawing=drawing)

    def longest_ms(self) -> float | None:
        """When the last of the media that play now will have ended; None: there are none."""
        found = self._ask("longest()") if self._answers.plays else None
        return float(found) if isinstance(found, int | float) and 0 < found < 1e9 else None

    def sound(self, first: int, stop: int) -> list[SoundStrip]:
        """What is heard in frames first (inclusive) to stop (exclusive), all of them drawn.

        Of the page's own graphs it is what was taken (`hear`), in whole quanta of 128 samples.

        Raises:
            PageFailed: the page broke what plays its media.
        """
        start_s, stop_s = (float(frame / self._fps) for frame in (first, stop))
        found = []
        if self._answers.plays:
            try:
                strips = [_strip(told, stop_s) for told in self._ask("sounds()")]
            except FAULTS as error:
                raise _broken(error) from error
            found = [
                strip.within(start_s, stop_s)
                for strip in strips
                if strip.start < stop_s and strip.stop > start_s
            ]
        if self._answers.listens:
            # from the quantum in which the first frame begins
            found += self._takes.strips(start_s - _QUANTUM / SAMPLE_RATE)
            self._handed = True
        return found

    def kept(self, strips: Sequence[SoundStrip]) -> dict[str, bytes]:
        """What these strips name and nobody else has: bytes that the page handed over or made.

        They go with the slice; `Opener` finds them again by `kept`.
        """
        names = {strip.source for strip in strips}
        found = {name: self._opener.given[name] for name in names & self._opener.given.keys()}
        for name in names:
            data = self._takes.data(name)
            if data is not None:
                found[name] = data
        return found

    def refused(self) -> list[str]:
        """What the page wanted and cannot have, and media that cannot be played."""
        return list(self._answers.refused)

    def close(self) -> None:
        """Give decoders and files back."""
        self._answers.close()
        self._takes.clear()

    def _ask(self, expression: str) -> Any:
        if self._stage is None:
            raise RuntimeError("no stage is bound")
        return self._stage.evaluate(f"{_ROOM}.{expression}")

    def _draw(self, *, drawing: bool) -> bool:
        """Give the page the pictures that it wants, or tell it of them."""
        try:
            told = [
                self._told(wanted) for wanted in self._ask(f"wanted({json.dumps(drawing)})")[:1000]
            ]
        except FAULTS as error:
            raise _broken(error) from error
        if told:
            self._ask(f"draw({json.dumps(told)})")
            self._relieve()
        return any(one.get("picture") for one in told)

    def _told(self, wanted: dict[str, Any]) -> dict[str, Any]:
        one: dict[str, Any] = {"id": int(wanted["id"])}
        try:
            if wanted.get("present"):
                one["presented"] = self._answers.presented(wanted)
            if wanted.get("draw"):
                one |= self._answers.picture(wanted)
        except FAULTS as error:
            # It keeps the picture it has.
            self._answers.refuse(f"{str(wanted.get('source'))[:120]}: {why(error)}")
            one["name"] = wanted.get("held")
        return one

    def _hear(self, pieces: list[dict[str, Any]]) -> None:
        try:
            for piece in pieces:
                data = base64.b64decode(piece["data"])
                self._takes.add(int(piece["context"]), int(piece["first"]), data)
        except FAULTS as error:
            raise _broken(error) from error

    def _relieve(self) -> None:
        """Let the browser forget the pictures that were shown: it keeps hundreds of them."""
        if self._answers.pixels - self._relieved >= MOST_SHOWN and self._stage is not None:
            self._relieved = self._answers.pixels
            self._stage.relieve()


def _broken(error: BaseException) -> PageFailed:
    return PageFailed("the page broke what plays its media", found=why(error))


def _strip(told: dict[str, Any], end: float) -> SoundStrip:
    """A strip as the page tells it; one that is heard still ends where it is asked for."""
    return SoundStrip(
        source=str(told["source"]),
        start=told["start"] / 1000,
        stop=end if told["stop"] is None else told["stop"] / 1000,
        media_start=float(told["media"]),
        rate=float(told["rate"]),
        gains=tuple((at / 1000, float(gain)) for at, gain in told["gains"]),
        loop=bool(told["loop"]),
        preserves_pitch=bool(told["pitch"]),
        voice=str(told["voice"]),
    )
