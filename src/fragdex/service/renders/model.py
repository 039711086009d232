"""What requests and answers about renders say."""

from __future__ import annotations

import json
import math
from enum import StrEnum
from fractions import Fraction
from typing import Annotated, Any, Final, Literal

from pydantic import (
    AfterValidator,
    BeforeValidator,
    ConfigDict,
    Field,
    GetJsonSchemaHandler,
    JsonValue,
    TypeAdapter,
    WithJsonSchema,
)
from pydantic_core import core_schema
from typing_extensions import TypeAliasType

from fragdex.errors import InvalidRequest, TooLarge
from fragdex.rendering.browser.timing import SCALE_STEP, SCALES, Crop
from fragdex.rendering.films import CONTAINERS, MAX_FPS, RATE, Film, rate_of
from fragdex.rendering.plan import RenderSpec
from fragdex.service.config import Settings
from fragdex.service.renders.outputs import Mp4, Output, RenderOutput, film_of, still_of
from fragdex.service.unprocessed.model import Problem
from fragdex.service.web.fields import JSON_NUMBER, NO_NUL, ApiModel, Listed, Md5Text, Seconds

DEFAULT_FPS: Final = Fraction(30)
DEFAULT_SLICE_MS: Final = 4000
MAX_SIDE: Final = 7680
MAX_DURATION_MS: Final = 3_600_000


def _rate(value: Any) -> Any:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise ValueError("a number, or a fraction such as 30000/1001, is expected")
    if isinstance(value, float) and not 0 < value <= MAX_FPS:
        raise ValueError(f"frames a second are 1 to {MAX_FPS}")
    rate_of(value)
    return value


Fps = Annotated[
    int | float | str,
    BeforeValidator(_rate),
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "number", "minimum": 1, "maximum": MAX_FPS},
                {"type": "string", "pattern": f"^{RATE}$"},
            ]
        }
    ),
]
Side = Annotated[
    int,
    Field(ge=2, le=MAX_SIDE, description="in CSS pixels; times scale, it is even for mp4"),
    JSON_NUMBER,
]
Moment = Annotated[int, Field(ge=0, le=MAX_DURATION_MS), JSON_NUMBER]
Scale = Annotated[float, Field(ge=SCALES[0], le=SCALES[-1], multiple_of=SCALE_STEP), JSON_NUMBER]
Word = Annotated[str, Field(max_length=256), NO_NUL]
Text = Annotated[str, Field(max_length=16_384), NO_NUL]
RenderMetadata = TypeAliasType("RenderMetadata", dict[str, str])


def _as_json(value: Any) -> Any:
    try:
        json.dumps(value, allow_nan=False, ensure_ascii=False).encode()
    except (ValueError, RecursionError):
        raise ValueError(
            "finite numbers and Unicode text are expected, nested not too deep"
        ) from None
    return value


RenderData = TypeAliasType("RenderData", Annotated[dict[str, JsonValue], AfterValidator(_as_json)])
Backend = TypeAliasType("Backend", Literal["cpu", "gpu"])


class _WordsOfTexts:
    """Says in the OpenAPI document what names and texts of metadata may be.

    pydantic would write the pattern of the names as one of properties, and refuse no others.
    """

    def __get_pydantic_json_schema__(
        self, schema: core_schema.CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        return {
            "type": "object",
            "maxProperties": 100,
            "propertyNames": TypeAdapter(Word).json_schema(),
            "additionalProperties": TypeAdapter(Text).json_schema(),
        }


_Metadata = Annotated[dict[Word, Text], Field(max_length=100), _WordsOfTexts()]
NewRenderMetadata = TypeAliasType("NewRenderMetadata", _Metadata)


class RenderCrop(ApiModel):
    """A part of the page's window, in CSS pixels."""

    model_config = ConfigDict(extra="forbid")

    x: Annotated[int, Field(ge=0, le=MAX_SIDE), JSON_NUMBER] = 0
    y: Annotated[int, Field(ge=0, le=MAX_SIDE), JSON_NUMBER] = 0
    width: Annotated[int, Field(ge=1, le=MAX_SIDE), JSON_NUMBER]
    height: Annotated[int, Field(ge=1, le=MAX_SIDE), JSON_NUMBER]

    @property
    def as_tuple(self) -> Crop:
        """Left, top, width, height."""
        return self.x, self.y, self.width, self.height


MAX_BATCH: Final = 500


class NewRender(ApiModel):
    """A render to come; what is left out, the page decides."""

    html: Annotated[str, NO_NUL] | None = Field(
        None, description="the page; without it, a site has to be uploaded", examples=["<h1>Hi"]
    )
    width: Side | None = None
    height: Side | None = None
    scale: Scale | None = Field(
        None,
        description="pixels for each CSS pixel of a side, the page's devicePixelRatio; default 1",
        examples=[2],
    )
    fps: Fps | None = Field(
        None,
        description="1 to 120 frames a second; 29.97 means 30000/1001, which may be written out",
        examples=[30],
    )
    page_fps: Fps | None = Field(
        None,
        description="how often a second requestAnimationFrame calls the page, 1 to 120: a whole "
        "multiple of fps, for pages that count frames; default: fps",
        examples=[60],
    )
    duration_ms: Annotated[int, Field(ge=1, le=MAX_DURATION_MS), JSON_NUMBER] | None = Field(
        None, description="default: what the page says, or its longest animation or media"
    )
    crop: RenderCrop | None = Field(None, description="what is kept of the window; default: all")
    from_ms: Moment | None = Field(
        None, description="of a film: begin with the frame of this moment; default 0"
    )
    to_ms: Moment | None = Field(
        None, description="of a film: end before the frame of this moment; default: with the film"
    )
    work_slice_ms: Annotated[int, Field(ge=1000, le=10_000), JSON_NUMBER] | None = Field(
        None, description=f"the page is rendered in slices of so long; default {DEFAULT_SLICE_MS}"
    )
    md5: Md5Text | None = Field(
        None, description="the client's own identifier, to find the render by"
    )
    metadata: NewRenderMetadata | None = Field(
        None, description="the client's own words, given back"
    )
    strategy: Literal["v1"] | None = None
    backend: Backend | None = Field(None, description="tolerated, without effect")
    output: RenderOutput | None = None
    data: RenderData | None = Field(
        None, description="given to the page, as `window.fragdex.data`", examples=[{"title": "Hi"}]
    )
    time_ms: Moment | None = Field(None, description="of a still: when; default 0")

    @property
    def wanted(self) -> Output:
        """What is made of the page."""
        return self.output or Mp4()

    @property
    def is_video(self) -> bool:
        """Whether it has many frames."""
        return still_of(self.wanted) is None

    @property
    def to_spec(self) -> RenderSpec:
        """The same, as it is rendered."""
        return RenderSpec(
            self.width, self.height, self.rate, self.duration_ms, still_of(self.wanted),
            self.time_ms or 0, film_of(self.wanted), self.scale or 1.0, self.from_ms, self.to_ms,
            None if self.crop is None else self.crop.as_tuple, self.page_rate,
        )  # fmt: skip

    @property
    def page_rate(self) -> Fraction | None:
        """Calls of the page a second, exactly; None: as many as frames."""
        return None if self.page_fps is None else rate_of(self.page_fps)

    @property
    def rate(self) -> Fraction:
        """Frames a second, exactly."""
        return DEFAULT_FPS if self.fps is None else rate_of(self.fps)


class NewRenderBatch(NewRender):
    """Renders of one page, each with data of its own."""

    html: Annotated[str, NO_NUL] = Field(description="the page", examples=["<h1>Hi"])
    data: None = Field(None, description="each row has its own")
    rows: Annotated[list[RenderData], Field(min_length=1, max_length=MAX_BATCH)] = Field(
        description="the data of each render"
    )

    @property
    def renders(self) -> list[NewRender]:
        """One for each row, in their order."""
        one = self.model_dump(exclude={"rows", "data"}, exclude_unset=True)
        return [NewRender.model_validate({**one, "data": row}) for row in self.rows]


def need_budget(settings: Settings, pixels: int, frames: int) -> None:
    """Refuse a film of more pixels than a render may have, all frames together.

    Args:
        pixels: of a frame.

    Raises:
        InvalidRequest: with the limit, and what the film comes to.
    """
    limit = settings.max_render_pixel_frames
    if pixels * frames > limit:
        raise InvalidRequest(
            f"width × height × frames: {pixels} × {frames} = {pixels * frames} is over the limit "
            f"of {limit}",
            pointer="/duration_ms",
            more={"limit": limit},
            advice="make the film shorter or smaller, or ask for fewer frames a second",
        )


def validate_combination(new: NewRender, settings: Settings) -> None:
    """Refuse what this service does not take, and fields that do not go together.

    Raises:
        InvalidRequest: naming the field.
        TooLarge: too much html.
    """
    if new.html is not None and len(new.html.encode()) > settings.max_html_bytes:
        raise TooLarge(
            f"html is over the limit of {settings.max_html_bytes} bytes",
            pointer="/html",
            more={"limit": int(settings.max_html_bytes)},
        )
    if new.data is not None and len(json.dumps(new.data)) > settings.max_html_bytes:
        raise TooLarge(
            f"data are over the limit of {settings.max_html_bytes} bytes",
            pointer="/data",
            more={"limit": int(settings.max_html_bytes)},
        )
    scale = new.scale or 1.0
    limits: dict[str, float] = {
        "width": settings.max_render_side,
        "height": settings.max_render_side,
        "fps": settings.max_render_fps,
        "page_fps": settings.max_render_fps,
        "duration_ms": settings.max_render_ms,
        "time_ms": settings.max_render_ms,
        "from_ms": settings.max_render_ms,
        "to_ms": settings.max_render_ms,
    }
    for name, limit in limits.items():
        value = getattr(new, name)
        if name == "fps" and value is not None:
            value = new.rate
        elif name == "page_fps":
            value = new.page_rate
        elif name in ("width", "height") and value is not None:
            value = math.ceil(value * scale)
        if value is not None and value > limit:
            raise InvalidRequest(
                f"{name}: {value} is over the limit of {limit}",
                pointer=f"/{name}",
                more={"limit": limit},
            )
    pixels = math.ceil((new.width or 0) * scale) * math.ceil((new.height or 0) * scale)
    if pixels > settings.max_render_pixels:
        raise InvalidRequest(
            f"width × height: {pixels} is over the limit of {settings.max_render_pixels} pixels",
            pointer="/width",
            more={"limit": settings.max_render_pixels},
        )
    wanted = new.to_spec
    try:
        wanted.check_crop(new.width, new.height)
    except ValueError as error:
        why = f"fields do not go together: crop: {error}"
        raise InvalidRequest(why, pointer="/crop") from None
    try:
        wanted.check_page_fps()
    except ValueError as error:
        why = f"fields do not go together: page_fps: {error}"
        raise InvalidRequest(why, pointer="/page_fps") from None
    if not new.is_video:
        for name in ("from_ms", "to_ms"):
            if getattr(new, name) is not None:
                why = f"{name} applies only to video"
                raise InvalidRequest(why, pointer=f"/{name}")
        return
    if wanted.end_ms is not None:
        frames = _need_range(wanted, wanted.end_ms)
        if pixels and not wanted.film.is_sound:
            need_budget(settings, pixels, frames)
    _validate_film(film_of(new.wanted), new.rate)
    for name, value in (("width", new.width), ("height", new.height)):
        if value is not None and value * scale % 2 and not wanted.film.is_sound:
            raise InvalidRequest(
                f"{name}: H.264 has even sides", pointer=f"/{name}", found=f"{value * scale:g}"
            )
    if new.time_ms is not None:
        raise InvalidRequest(
            "time_ms applies only to stills; a video begins at 0", pointer="/time_ms"
        )


def _need_range(wanted: RenderSpec, duration_ms: int) -> int:
    """How many frames it has."""
    try:
        return len(wanted.frames(duration_ms))
    except ValueError as error:
        why = f"fields do not go together: {error}"
        raise InvalidRequest(why, pointer="/from_ms") from None


_POINTERS: Final = {
    "audio": "audio/codec",
    "audio_bit_rate": "audio/bit_rate",
    "loudness": "audio/loudness",
    "transparency": "transparency",
    "fragmented": "fragmented",
    "image": "image",
    "quality": "quality",
}


def _validate_film(film: Film, fps: Fraction) -> None:
    try:
        film.check(fps)
    except ValueError as error:
        name = str(error).partition(":")[0]
        pointer = "/fps" if name == "fps" else f"/output/{_POINTERS.get(name, f'video/{name}')}"
        raise InvalidRequest(f"fields do not go together: {error}", pointer=pointer) from None


TYPES: Final = {
    "mp4": "video/mp4",
    "jpeg": "image/jpeg",
    "png": "image/png",
    "webp": "image/webp",
    **CONTAINERS,
}
"""The media type of each container."""


def suffix_of(container: str) -> str:
    """What the name of its files ends in.

    >>> suffix_of("animated-webp")
    'webp'
    """
    return container.rpartition("-")[2]


class RenderStatus(StrEnum):
    """How far a render is."""

    CREATED = "created"
    PENDING = "pending"
    RENDERING = "rendering"
    COMPLETE = "complete"
    FAILED = "failed"
    CANCELLED = "cancelled"


class RenderSlice(ApiModel):
    """A part of a render, rendered by itself."""

    first_frame: int
    frames: int
    frames_done: int
    reused: bool = Field(description="taken from an earlier render that made the same frames")
    attempts: int = Field(description="how often it was begun")
    seconds: Seconds = Field(description="what it cost: replay, capture, encode …")


class BlockedRequest(ApiModel):
    """A request of the page that was not made."""

    url: str
    reason: str


class RenderLoudness(ApiModel):
    """How loud the sound was, and what was done about it."""

    integrated: float | None = Field(
        description="LUFS of the mix (ITU-R BS.1770-4); null: silent, or shorter than 400 ms"
    )
    true_peak: float | None = Field(description="dBTP of the mix; null: silent")
    gain: float = Field(description="dB that it was changed by")


class RenderRecord(ApiModel):
    """A page that is, or was, rendered."""

    id: str
    md5: str | None = Field(description="the client's own identifier, dashed")
    metadata: RenderMetadata
    status: RenderStatus
    strategy: str
    output: RenderOutput
    width: int | None = Field(description="CSS pixels; null until the page has said")
    height: int | None
    scale: float = Field(description="pixels of the result for each CSS pixel of a side")
    crop: RenderCrop | None = Field(description="what is kept of the window; null: all")
    fps: float
    frame_rate: str = Field(description="the same, exactly: 30 or 30000/1001")
    page_fps: float = Field(description="calls of the page by requestAnimationFrame a second")
    duration_ms: int | None
    from_ms: int | None = Field(description="of a film: the moment that it begins with")
    to_ms: int | None = Field(description="of a film: the moment before which it ends")
    time_ms: int | None = Field(description="of a still: the moment it shows")
    work_slice_ms: int
    frames: int | None = Field(description="null until it is known how many there are")
    frames_done: int
    slices: list[RenderSlice]
    seconds: Seconds = Field(
        description="wait (for a worker) and whole; plan, slices and join as they passed; start, "
        "replay, capture, finish, encode: what all slices cost together; discarded: slices that "
        "were drawn again by one browser"
    )
    media_type: str = Field(description="of the result")
    byte_size: int | None = Field(description="of the result")
    next_byte: int | None = Field(description="of an upload that is going on")
    problem: Problem | None
    data: RenderData | None = Field(description="that the page was given; null where it is long")
    data_sha256: str | None = Field(description="of the data, as the page read them: JSON")
    incomplete: list[str] = Field(
        description="scripts of the page that failed, were blocked or are not there: it may not "
        "show what it should"
    )
    console: list[str] = Field(description="what the page wrote and threw, the first lines of it")
    blocked: list[BlockedRequest] = Field(description="requests that were not made, and why")
    refused: list[str] = Field(description="what the page tried to use and was refused")
    loudness: RenderLoudness | None = Field(description="null where none was asked for")
    browser: list[str] = Field(description="how it ran, where it was not as it should be")
    browser_versions: list[str] = Field(
        description="of the browsers that drew it; one, unless workers have different ones"
    )
    created_at: str
    queued_at: str | None
    started_at: str | None
    completed_at: str | None
    failed_at: str | None


class RenderBatch(ApiModel):
    """Renders of one page, in the order of their rows."""

    renders: list[RenderRecord]


class RenderList(Listed):
    """Renders, newest first."""

    renders: list[RenderRecord]
