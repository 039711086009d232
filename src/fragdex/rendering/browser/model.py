"""What a page and its browser may do, what was found out, and what a stage and the player share."""

from __future__ import annotations

import math
import os
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, field, fields
from fractions import Fraction
from typing import Any, Final, Protocol

from fragdex.errors import ConfigError, TooLarge
from fragdex.record import record
from fragdex.rendering.site import ORIGIN

DEFAULT_WIDTH: Final = 1280
DEFAULT_HEIGHT: Final = 720

SCALE_STEP: Final = 0.25
SCALES: Final = tuple(step * SCALE_STEP for step in range(2, 17))
"""Values of `PageView.scale`: Chromium goes no lower; any side is whole with a few pixels more."""

GRID_US: Final = 100
"""The browser rounds its clocks to tenths of a millisecond; instants between would by chance."""


def instant_us(i: int, fps: Fraction) -> int:
    """When frame i is, in µs after frame 0.

    Rounded up to the grid of the browser's clocks, so that what it moves itself, by
    `floor(t * fps)` of them, shows i. Rates that are no whole numbers are rounded in the page, too:
    there an instant on the grid itself would be a hair too early. What a script reads is exact
    (`sources.js`).
    """
    if i and fps.denominator != 1:
        return (i * 1_000_000 * fps.denominator // (fps.numerator * GRID_US) + 1) * GRID_US
    return -(-i * 1_000_000 * fps.denominator // (fps.numerator * GRID_US)) * GRID_US


def protocol_ms(us: int) -> float:
    """Microseconds as the milliseconds of the DevTools protocol.

    Chromium multiplies by 1000 and, in some releases (150), cuts off the decimals: of
    one in a hundred instants that lost a whole microsecond, and with it a step of the page's
    clocks. A quarter of a microsecond more does no harm where it is rounded.
    """
    return (us + 0.25) / 1000


Crop = tuple[int, int, int, int]
"""Left, top, width, height."""


@record(frozen=True, slots=True)
class PageView:
    """The window that a page is seen through, and how often it is looked at.

    Args:
        width: CSS pixels.
        height: the same.
        fps: frames a second; 29.97 means 30000/1001.
        transparent: whether the page's own background stays transparent.
        scale: pixels of a frame for each CSS pixel of a side, the page's `devicePixelRatio`; a
            multiple of 1/4.
        crop: left, top, width and height of what frames show of the window, in CSS pixels that come
            to whole pixels; None: all of it.
        page_fps: times a second that the page is called for a frame, a multiple of `fps`; None:
            as often as it is looked at.
    """

    width: int = DEFAULT_WIDTH
    height: int = DEFAULT_HEIGHT
    fps: Fraction = Fraction(30)
    transparent: bool = False
    scale: float = 1.0
    crop: Crop | None = None
    page_fps: Fraction | None = None

    @property
    def pixels(self) -> tuple[int, int]:
        """Width and height of what the browser draws."""
        return math.ceil(self.width * self.scale), math.ceil(self.height * self.scale)

    @property
    def crop_pixels(self) -> Crop | None:
        """The crop in pixels."""
        if self.crop is None:
            return None
        left, top, width, height = (round(length * self.scale) for length in self.crop)
        return left, top, width, height

    @property
    def frame(self) -> tuple[int, int]:
        """Width and height of a frame, in pixels."""
        crop = self.crop_pixels
        return self.pixels if crop is None else crop[2:]


def between_us(i: int, view: PageView) -> list[int]:
    """When the page is called for frames that nobody sees, after frame i - 1 and before frame i."""
    if view.page_fps is None or i == 0:
        return []
    times = int(view.page_fps / view.fps)
    return [instant_us(k, view.page_fps) for k in range((i - 1) * times + 1, i * times)]


LOAD_SECONDS: Final = "FRAGDEX_LOAD_SECONDS"
"""Names the variable that says how long a page may take to load."""

_USUAL_LOAD_SECONDS: Final = 18.0


def _load_seconds() -> float:
    given = os.environ.get(LOAD_SECONDS, "")
    try:
        return float(given) if given else _USUAL_LOAD_SECONDS
    except ValueError:
        raise ConfigError(f"{LOAD_SECONDS} is not a number of seconds", found=given) from None


@record(frozen=True, slots=True)
class Limits:
    """How far a page may go before it is stopped.

    Args:
        script_seconds: how long a single step of the page's scripts may take: of the processor's
            time, so that a busy machine does not make pages fail.
        beside_seconds: how much of the processor's time a step may take on the whole, with what
            workers and decoders of pictures do next to the scripts: one picture of 16,384 pixels a
            side takes 2 to 5 s.
        load_seconds: until the page is loaded and ready, or has answered a call; where others keep
            the machine from working for it, so much longer. FRAGDEX_LOAD_SECONDS is the default.
        ready_ms: of the page's own time, until `window.fragdex.ready` is settled, or one call of
            `window.fragdex.seek`.
        memory_bytes: of all processes of the browser together.
        storage_bytes: on the disk, of all that the page keeps: files, databases, caches.
        side: pixels of a side.
        pixels: of the whole picture.
        asset_bytes: the largest file that the page itself is given (media go another way).
    """

    script_seconds: float = 5.0
    beside_seconds: float = 18.0
    load_seconds: float = field(default_factory=_load_seconds)
    ready_ms: int = 30_000
    memory_bytes: int = 2 << 30
    storage_bytes: int = 256 << 20
    side: int = 7680
    pixels: int = 7680 * 4320
    asset_bytes: int = 256 << 20

    def check(self, view: PageView) -> None:
        """Raise TooLarge where a view has more pixels than these limits allow."""
        width, height = view.pixels
        if max(width, height) > self.side:
            raise TooLarge(
                f"a page may be {self.side} pixels wide and high",
                found=f"{width}x{height}",
                more={"limit": self.side},
            )
        if width * height > self.pixels:
            raise TooLarge(
                f"a page may have {self.pixels} pixels",
                found=f"{width}x{height}",
                more={"limit": self.pixels},
            )


@record(frozen=True, slots=True)
class BlockedRequest:
    """A request that was not made, and why."""

    url: str
    reason: str


@record(slots=True)
class Notes:
    """What happened on the page that its author should know; each list is bounded.

    Args:
        console: what the page wrote to the console as errors and warnings, and what it threw.
        blocked: requests that were not made.
        refused: other things that a rendered page cannot do (dialogs, windows, live input …).
        incomplete: scripts of the page that failed, were blocked or are not there: without them it
            may not show what it should.
        browser: how the browser ran, where it was not as it should be (no sandbox, no beginFrame).
        browser_versions: of the browsers that drew it, such as `HeadlessChrome/156.0.8078.108`.
        keeps: what it used that skipped frames would change: all of them have to be drawn.
        glyphs: characters that it showed and no font has.
        late: files, and other work, that came after the frame that requested them was taken.
        uses: what may come out otherwise in another run; of pages that are watched for it.
    """

    console: list[str] = field(default_factory=list)
    blocked: list[BlockedRequest] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    incomplete: list[str] = field(default_factory=list)
    browser: list[str] = field(default_factory=list)
    browser_versions: list[str] = field(default_factory=list)
    keeps: list[str] = field(default_factory=list)
    glyphs: list[str] = field(default_factory=list)
    late: list[str] = field(default_factory=list)
    uses: list[str] = field(default_factory=list)

    _LINES = ("console", "refused", "incomplete", "browser", "browser_versions", "keeps", "glyphs",
              "late", "uses")  # fmt: skip
    MOST = 200
    LONGEST = 1000

    def say(self, kind: str, text: str) -> None:
        """Add a line to a list of lines; the same line once."""
        lines: list[str] = getattr(self, kind)
        text = text[: self.LONGEST]
        if len(lines) < self.MOST and text not in lines:
            lines.append(text)

    def block(self, url: str, reason: str) -> None:
        """Add a blocked request, once."""
        one = BlockedRequest(url[: self.LONGEST], reason[: self.LONGEST])
        if len(self.blocked) < self.MOST and one not in self.blocked:
            self.blocked.append(one)

    def add(self, other: Notes) -> None:
        """Add what happened elsewhere on the page."""
        for kind in self._LINES:
            for line in getattr(other, kind):
                self.say(kind, line)
        for one in other.blocked:
            self.block(one.url, one.reason)

    def as_json(self) -> dict[str, list[Any]]:
        """As plain values."""
        return asdict(self)

    @classmethod
    def of_json(cls, plain: Mapping[str, Any]) -> Notes:
        """From plain values, of which some may be missing."""
        kinds = {field.name: list(plain.get(field.name, ())) for field in fields(cls)}
        return cls(**{**kinds, "blocked": [BlockedRequest(**one) for one in kinds["blocked"]]})


@record(frozen=True, slots=True)
class PageFacts:
    """What the page and its browser are.

    Args:
        width: of the page's own root element, in pixels; None where it fits any window.
        height: the same.
        duration_ms: of its longest finite animation or medium; None where nothing ends.
        seekable: whether the page says that it can be jumped into.
        browser_version: as the browser tells it.
        has_begin_frame: whether frames come on request; else the page has a clock of ours.
        is_asked: whether the page renders each frame on request (`Bridge`).
        failed: what its scripts threw until time 0.
    """

    width: int | None
    height: int | None
    duration_ms: int | None
    seekable: bool
    browser_version: str
    has_begin_frame: bool
    is_asked: bool = False
    failed: Sequence[str] = ()


# The first word of a character's name in Unicode → the writing, and the package of Debian.
_CJK: Final = "fonts-noto-cjk"
_PACKAGES: Final = {
    "CJK": ("Han", _CJK),
    "IDEOGRAPHIC": ("Han", _CJK),
    "KANGXI": ("Han", _CJK),
    "BOPOMOFO": ("Bopomofo", _CJK),
    "HIRAGANA": ("Hiragana", _CJK),
    "KATAKANA": ("Katakana", _CJK),
    "HANGUL": ("Hangul", _CJK),
    "FULLWIDTH": ("Fullwidth", _CJK),
    "HALFWIDTH": ("Halfwidth", _CJK),
}
_OTHER: Final = "fonts-noto-core"
_EMOJI: Final = ("emoji", "fonts-noto-color-emoji")
_FIRST_EMOJI: Final = 0x1F000
_SYMBOLS: Final = ("symbols", "fonts-noto-core, fonts-symbola")
_SHOWN: Final = 8


def missing_fonts(glyphs: Iterable[str]) -> list[str]:
    """What to say of characters that no font has: a line for each writing."""
    by_writing: dict[tuple[str, str | None], list[str]] = {}
    for one in glyphs:
        by_writing.setdefault(_writing(one), []).append(one)
    lines = []
    for (writing, package), members in by_writing.items():
        many = "1 character" if len(members) == 1 else f"{len(members)} characters"
        sample, code = "".join(members[:_SHOWN]), f"U+{ord(members[0]):04X}"
        if package is None:
            # They have no picture anywhere but in the page's own font.
            advice = f"({code}): was the page's icon font loaded?"
        else:
            advice = f"such as {sample} ({code}): on Debian, install {package}"
        comma = "" if package is None else ","
        lines.append(f"no font has {many} of {writing}{comma} {advice}")
    return lines


def _writing(one: str) -> tuple[str, str | None]:
    if unicodedata.category(one) == "Co":
        return "private use", None
    if ord(one) >= _FIRST_EMOJI and unicodedata.category(one) in ("So", "Sk"):
        return _EMOJI
    if unicodedata.category(one).startswith("S"):
        return _SYMBOLS
    word = unicodedata.name(one, "UNKNOWN").split()[0].split("-")[0]
    return _PACKAGES.get(word, (word.capitalize(), _OTHER))


ENDPOINT: Final = f"{ORIGIN}/.fragdex/media/"
"""Requests below this URL are the scripts' own. They are requested while the page waits (a
synchronous request), so that no time passes and every run asks at the same moment."""


@record(frozen=True, slots=True)
class MediaAnswer:
    """The answer to a request of the scripts."""

    status: int
    media_type: str
    body: bytes
    headers: dict[str, str] = field(default_factory=lambda: {"Access-Control-Allow-Origin": "*"})


class Staged(Protocol):
    """Settings of a stage."""

    def evaluate(self, expression: str) -> Any:
        """The value of an expression in the page's main frame."""

    def relieve(self) -> None:
        """Let the browser give back memory that it could do without."""
