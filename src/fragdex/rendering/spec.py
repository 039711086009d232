"""What is to be made of a page: size, rate, times, and how it is stored.

`RenderSpec` is the one form of a render's request: the command line makes it of options, the
service of JSON (`spec_of`), and `as_request` gives the JSON again.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any, Final, NamedTuple

from fragdex.errors import PageFailed
from fragdex.record import record
from fragdex.rendering.browser.model import (
    DEFAULT_HEIGHT,
    DEFAULT_WIDTH,
    SCALE_STEP,
    SCALES,
    Crop,
    Limits,
    PageFacts,
    PageView,
)
from fragdex.rendering.fields import MAX_FPS, declared, declared_fields, of_json, to_json
from fragdex.rendering.outputs import CONTAINERS, Film, Still

KEY_SECONDS: Final = 2
"""Between two key frames, and so the length of a fragment."""

MAX_SIDE: Final = 7680
MAX_DURATION_MS: Final = 3_600_000
"""What a request may ask for: CSS pixels of a side, and the longest video."""


def key_interval(fps: Fraction) -> int:
    """Frames from one key frame to the next."""
    return max(1, round(KEY_SECONDS * fps))


def frame_count(duration_ms: int, fps: Fraction) -> int:
    """How many frames a duration has, at least one; half a frame counts."""
    return max(1, _frame_near(duration_ms, fps))


def _frame_near(time_ms: int, fps: Fraction) -> int:
    return math.floor(Fraction(time_ms, 1000) * fps + Fraction(1, 2))


def frame_at(time_ms: int, fps: Fraction) -> int:
    """The frame that is shown at a time."""
    return math.floor(Fraction(time_ms, 1000) * fps)


@record(frozen=True, slots=True)
class RenderSpec:
    """What is to be made; what is None is asked of the page.

    Attributes:
        width, height: pixels; the size of the page's root element, else 1280 × 720.
        fps: frames a second.
        duration_ms: of the page's longest finite animation or medium.
        still: one picture of `time_ms` instead of a video.
        film: how a video is stored.
        scale: pixels for each CSS pixel of a side, as `PageView.scale`.
        from_ms, to_ms: of the video only the frames of this range, the first inclusive, the second
            exclusive; without a `duration_ms`, the video ends where the range does.
        crop: of the window only this, as `PageView.crop`.
        page_fps: as `PageView.page_fps`.
    """

    width: int | None = declared(
        None, "count", option="--size", metavar="WxH", sets=("width", "height"),
        help="Size of the page's window, in pixels.",
        usual=f"the page's own size, or {DEFAULT_WIDTH}x{DEFAULT_HEIGHT}",
        docs="the page's window, in pixels; a video has even sides, so odd ones grow by a pixel",
        least=2, most=MAX_SIDE, request="in CSS pixels; times scale, it is even for mp4",
        request_docs="of the page's window, 2 to 7680 pixels; times `scale`, even for MP4",
        request_default=f"the page's root element, or {DEFAULT_WIDTH}",
        record="CSS pixels; null until the page has reported it",
    )  # fmt: skip
    height: int | None = declared(
        None, "count", least=2, most=MAX_SIDE, request="as width",
        request_default=f"the page's root element, or {DEFAULT_HEIGHT}", record="as width",
    )  # fmt: skip
    fps: Fraction = declared(
        Fraction(30), "rate", option="--fps", metavar="RATE", usual="30",
        help="Frames a second: 30, 29.97, 30000/1001.",
        docs="frames a second, 1 to 120: `30`, `29.97` (which means 30000/1001), `30000/1001`",
        request="1 to 120 frames a second; 29.97 means 30000/1001, which may be written out",
        request_default="30", example=30, record="frames a second",
    )  # fmt: skip
    duration_ms: int | None = declared(
        None, "time", option="--duration", metavar="TIME", of="film",
        help="Duration: seconds, or 1:02.5.", usual="the page's longest animation or media",
        docs="how long: seconds, or a clock", least=1, most=MAX_DURATION_MS,
        request="of a video",
        request_docs="1 ms to one hour; the pixels of all frames are limited by "
        "`max_render_pixel_frames`",
        request_default="`window.fragdex.duration`, or the longest animation or media of the page "
        "that ends", record="of the whole video; null until it is known, and for pictures",
    )  # fmt: skip
    scale: float = declared(
        1.0, "scale", option="--scale", metavar="N", usual="1",
        help="Pixels for each pixel of the page: 2 draws 1280x720 as 2560x1440.",
        docs="pixels of the result for each pixel of the window, 0.5 to 4 in steps of 0.25; "
        "`devicePixelRatio` tells the page: `--size 1280x720 --scale 2` makes 2560 × 1440",
        least=SCALES[0], most=SCALES[-1], step=SCALE_STEP, example=2,
        request="pixels for each CSS pixel of a side, the page's devicePixelRatio",
        request_docs="0.5 to 4 in steps of 0.25: pixels of the result for each pixel of the page's "
        "window, its `devicePixelRatio`; with 2, 1280 × 720 is drawn as 2560 × 1440",
        request_default="1", record="pixels of the result for each CSS pixel of a side",
    )  # fmt: skip
    page_fps: Fraction | None = declared(
        None, "rate", option="--page-fps", metavar="RATE", usual="as --fps",
        help="Calls of the page a second: a multiple of --fps, for pages that count frames.",
        docs="how often a second `requestAnimationFrame` calls the page: a whole multiple of "
        "`--fps`, for pages that [count frames](pages.md#libraries)",
        request="how often a second requestAnimationFrame calls the page, 1 to 120: a whole "
        "multiple of fps, for pages that count frames",
        request_docs="how often a second `requestAnimationFrame` calls the page: a whole multiple "
        "of `fps`, up to 120. For pages that count frames, or wait for the next ones",
        request_default="`fps`", example=60,
        record="calls of the page by requestAnimationFrame a second",
    )  # fmt: skip
    crop: Crop | None = declared(
        None, "crop", option="--crop", metavar="X,Y,W,H",
        help="Draw only this part of the page's window, in its pixels.",
        docs="draw only this part of the window, in its pixels; the page does not notice",
        least=0, most=MAX_SIDE, request="the part of the window that is drawn",
        request_docs='`{"x": 0, "y": 90, "width": 640, "height": 360}`: the part of the '
        "window that is drawn, in its pixels; times `scale`, whole pixels, even ones in a video",
        request_default="all of it", record="the part of the window that is drawn; null: all",
    )  # fmt: skip
    from_ms: int | None = declared(
        None, "time", option="--start", metavar="TIME", of="film",
        help="Begin there, in the video.", usual="0", docs="begin there, with the sound: the "
        "frames and samples are those of the whole video", most=MAX_DURATION_MS,
        request="of a video: begin with the frame at this time",
        request_docs="of a video: begin with the frame at this time, to the nearest millisecond; "
        "the page runs from its beginning, and the sound is cut as well",
        request_default="0", record="of a video: the time at which it begins",
    )  # fmt: skip
    to_ms: int | None = declared(
        None, "time", option="--stop", metavar="TIME", of="film", help="End there, in the video.",
        usual="the end", docs="end there; without `--duration` the video ends there",
        least=1, most=MAX_DURATION_MS, request="of a video: end before the frame at this time",
        request_default="the end; without `duration_ms` the video ends here",
        record="of a video: the time at which it ends, exclusive",
    )  # fmt: skip
    time_ms: int = declared(
        0, "time", option="--at", metavar="TIME", of="still", help="The time, of a picture.",
        usual="0", most=MAX_DURATION_MS, request="of a still: when", request_default="0",
        record="of a still: the moment it shows",
    )  # fmt: skip
    still: Still | None = None
    film: Film = Film()

    def as_request(self) -> dict[str, Any]:
        """The JSON that asks a service for it: what is as usual is left out."""
        stored = self.output
        request: dict[str, Any] = {"output": {"container": stored.container}}
        for owner in (self, stored):
            usual = type(owner)()
            for name, declaration in declared_fields(type(owner)).items():
                value = getattr(owner, name)
                if value == getattr(usual, name):
                    continue
                *steps, last = declaration.json.split("/")
                place = request
                for step in steps:
                    place = place.setdefault(step, {})
                place[last] = to_json(value, declaration.kind)
        return request

    @property
    def output(self) -> Film | Still:
        """How it is stored."""
        return self.film if self.still is None else self.still

    @property
    def end_ms(self) -> int | None:
        """How long the video is, as far as that is said: its duration, or the end of the range."""
        return self.to_ms if self.duration_ms is None else self.duration_ms

    def frames(self, duration_ms: int) -> range:
        """The frames that are to be made of a video.

        A frame belongs to a range where its nearest millisecond does, so that ranges that follow
        each other have every frame once.

        Raises:
            ValueError: the range begins where the video has ended.
        """
        stop = frame_count(duration_ms, self.fps)
        if self.to_ms is not None:
            stop = min(stop, _frame_near(self.to_ms, self.fps))
        first = _frame_near(self.from_ms or 0, self.fps)
        if first >= stop:
            end_ms = duration_ms if self.to_ms is None else self.to_ms
            raise ValueError(f"no frame is between {self.from_ms or 0} and {end_ms} ms")
        return range(first, stop)

    def view(self, facts: PageFacts | None = None) -> PageView:
        """How the page is seen, by what it says of itself where that is known."""
        width = self.width or (facts.width if facts else None) or DEFAULT_WIDTH
        height = self.height or (facts.height if facts else None) or DEFAULT_HEIGHT
        width, height = (self._side(side) for side in (width, height))
        clear = self.film.transparency if self.still is None else self.still.is_clear
        return PageView(width, height, self.fps, clear, self.scale, self.crop, self.page_fps)

    def check_page_fps(self) -> None:
        """Refuse a rate of the page that is not a whole multiple of that of the video.

        Raises:
            ValueError: it is invalid.
        """
        if self.page_fps is None or (self.page_fps / self.fps).denominator == 1:
            return
        times = max(1, math.floor(self.page_fps / self.fps))
        near = [n * self.fps for n in (times, times + 1) if n * self.fps <= MAX_FPS]
        raise ValueError(
            f"{float(self.page_fps):g} is not a whole multiple of {float(self.fps):g} frames a "
            f"second, such as {', '.join(f'{float(rate):g}' for rate in near)}"
        )

    def check_crop(self, width: int | None, height: int | None) -> None:
        """Refuse a crop that is not of whole pixels, or goes beyond a window.

        Args:
            width, height: of the window, as far as they are known.

        Raises:
            ValueError: it says why.
        """
        if self.crop is None:
            return
        if self.film.is_sound:
            raise ValueError(f".{self.film.container} has no pictures")
        text = ",".join(map(str, self.crop))
        scaled = [length * self.scale for length in self.crop]
        pixels = ",".join(f"{length:g}" for length in scaled)
        if any(length % 1 for length in scaled):
            raise ValueError(f"{text} times {self.scale:g} is not whole: {pixels} pixels")
        if self.still is None and (scaled[2] % 2 or scaled[3] % 2):
            raise ValueError(f"a video has even sides, not {scaled[2]:g} × {scaled[3]:g} pixels")
        left, top, wide, high = self.crop
        if (width is not None and left + wide > width) or (
            height is not None and top + high > height
        ):
            window = f"{width or 'any'} × {height or 'any'}"
            raise ValueError(f"{text} goes beyond the window of {window}")

    def _side(self, side: int) -> int:
        """A side that comes to whole pixels; to even ones in a video, as H.264 has them.

        A pixel more rather than one less.
        """
        side, step = max(side, 2), 1 if self.still is not None else 2
        while side * self.scale % step:
            side += 1
        return side


def spec_of(request: Mapping[str, Any]) -> RenderSpec:
    """The fields of a request, in JSON; fields that are not declared are skipped.

    >>> spec = RenderSpec(64, 32, Fraction(25), film=Film("webm", crf=9), crop=(0, 0, 8, 8))
    >>> spec_of(spec.as_request()) == spec
    True

    Raises:
        ValueError: a rate is invalid.
        KeyError: no such container.
    """
    container = (request.get("output") or {}).get("container", Film().container)
    values = _values(RenderSpec, request)
    if CONTAINERS[container].group == "still":
        return RenderSpec(**values, still=Still(container, **_values(Still, request)))
    stored = _values(Film, request)
    if not stored.get("sound", True):
        # codecs of no sound are what requests have where nobody asks
        stored = {name: value for name, value in stored.items() if not name.startswith("audio")}
        stored.pop("loudness", None)
    return RenderSpec(**values, film=Film(container, **stored))


def _values(owner: type, request: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of one of the dataclasses that a request has."""
    values = {}
    for name, declaration in declared_fields(owner).items():
        value: Any = request
        for step in declaration.json.split("/"):
            value = value.get(step) if isinstance(value, Mapping) else None
        if value is not None:
            values[name] = of_json(value, declaration.kind)
    return values


class Settled(NamedTuple):
    """How a video is made.

    Args:
        view: how the page is seen.
        duration_ms: of the video, also where only a range of it is wanted; None for stills, and
            where the page does not say either.
        failed: what scripts of the page threw until then, where it was looked at.
    """

    view: PageView
    duration_ms: int | None
    failed: tuple[str, ...] = ()

    @property
    def because(self) -> str:
        """What a failure says of scripts that failed before it."""
        return f" (a script of it failed: {self.failed[0]})" if self.failed else ""


def frames_of(spec: RenderSpec, duration_ms: int | None, because: str = "") -> range:
    """The frames that are to be made of a video, of the duration that `settled` gives.

    Args:
        because: as of `Settled`.

    Raises:
        PageFailed: none, as the range begins where the video has ended; or nobody said how long it
            is.
    """
    if duration_ms is None:
        raise PageFailed(
            "the page does not say how long it lasts: nothing in it is animated for a finite time"
            f"{because}",
            advice="set a duration (--duration), or window.fragdex.duration in the page",
        )
    try:
        return spec.frames(duration_ms)
    except ValueError as error:
        raise PageFailed(
            f"{error}: the video is {duration_ms} ms long",
            advice="begin the range before that, or set a longer duration",
        ) from None


def _need_crop(spec: RenderSpec, view: PageView) -> None:
    try:
        spec.check_crop(view.width, view.height)
    except ValueError as error:
        raise PageFailed(f"crop: {error}", advice="crop within the page's window") from None


def settled(spec: RenderSpec, limits: Limits, look: Callable[[PageView], PageFacts]) -> Settled:
    """Size and duration (ms); the page is looked at only where something is left open.

    Raises:
        TooLarge: more pixels than the limits allow; and as `look`.
    """
    view = spec.view()
    limits.check(view)
    if spec.width and spec.height:
        _need_crop(spec, view)
    is_film = spec.still is None
    if spec.width and spec.height and not (is_film and spec.end_ms is None):
        return Settled(view, spec.end_ms)
    facts = look(view)
    view = spec.view(facts)
    limits.check(view)
    _need_crop(spec, view)
    if not is_film:
        return Settled(view, None)
    duration_ms = facts.duration_ms if spec.end_ms is None else spec.end_ms
    return Settled(view, duration_ms, tuple(facts.failed))
