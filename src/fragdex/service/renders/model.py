"""What requests and answers about renders say."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from enum import StrEnum
from fractions import Fraction
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, Union

from pydantic import (
    AfterValidator,
    BeforeValidator,
    ConfigDict,
    Field,
    GetJsonSchemaHandler,
    JsonValue,
    TypeAdapter,
    ValidationError,
    WithJsonSchema,
    create_model,
)
from pydantic_core import core_schema
from typing_extensions import TypeAliasType

from fragdex.errors import InvalidRequest, TooLarge
from fragdex.rendering.browser.model import Crop
from fragdex.rendering.fields import MAX_FPS, RATE, RenderField, declared_fields, rate_of
from fragdex.rendering.outputs import (
    CONTAINERS,
    Container,
    Film,
    Still,
    audio_codecs_of,
    validate_containers,
    video_codecs_of,
)
from fragdex.rendering.spec import MAX_SIDE, RenderSpec, spec_of
from fragdex.service.config import Settings
from fragdex.service.unprocessed.model import Problem
from fragdex.service.web.fields import (
    JSON_NUMBER,
    NO_NUL,
    ApiModel,
    Listed,
    Md5Text,
    RequestBody,
    Seconds,
)

# What requests and records have of a render, made of the declarations of its fields.
#
# A field is declared in `fragdex.rendering.spec` or `fragdex.rendering.outputs`; here each kind of
# field becomes a type of the interface, and each container a kind of `output`.


_LONGEST_NAME: Final = 32


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


class RenderCrop(RequestBody):
    """A part of the page's window, in CSS pixels."""

    x: Annotated[int, Field(ge=0, le=MAX_SIDE), JSON_NUMBER] = 0
    y: Annotated[int, Field(ge=0, le=MAX_SIDE), JSON_NUMBER] = 0
    width: Annotated[int, Field(ge=1, le=MAX_SIDE), JSON_NUMBER]
    height: Annotated[int, Field(ge=1, le=MAX_SIDE), JSON_NUMBER]

    @classmethod
    def of(cls, crop: Crop | None) -> RenderCrop | None:
        """The same of left, top, width and height."""
        if crop is None:
            return None
        return cls(x=crop[0], y=crop[1], width=crop[2], height=crop[3])


def request_type(one: RenderField, container: Container | None = None) -> Any:
    """The type of a field in requests, with its bounds."""
    least, most = one.least, one.most
    if container is not None:
        least, most = container.bounds.get(one.name, (least, most))
    match one.kind:
        case "flag" | "absence":
            return bool
        case "count" | "bits" | "time":
            least = None if least is None else int(least)
            return Annotated[int, Field(ge=least or 0, le=most), JSON_NUMBER]
        case "number":
            return Annotated[float, Field(ge=least, le=most), JSON_NUMBER]
        case "scale":
            return Annotated[float, Field(ge=least, le=most, multiple_of=one.step), JSON_NUMBER]
        case "name":
            return Annotated[str, Field(max_length=_LONGEST_NAME), NO_NUL]
        case "choice":
            *_, part, name = one.json.split("/")
            return _choice(f"{part.capitalize()}{name.capitalize()}", one.choices)
        case "rate":
            return Fps
        case "crop":
            return RenderCrop


def _choice(name: str, choices: Sequence[str]) -> Any:
    literal = Literal[tuple(choices)]  # type: ignore[valid-type]
    return TypeAliasType(name, literal) if len(choices) > 1 else literal


def model_of(name: str, base: type[ApiModel], fields: dict[str, Any], about: str = "") -> Any:
    """A model that has these fields besides those of its base."""
    create: Any = create_model
    return create(name, __base__=base, __doc__=about or base.__doc__, __module__=__name__, **fields)


class Output(RequestBody):
    """A part of `output`; what it does not know is refused, not skipped."""

    model_config = ConfigDict(strict=True)

    if TYPE_CHECKING:
        container: str


def _absent(value: Any) -> bool:
    """What was not requested is left out as well."""
    return value is None or value is False


def _setting(one: RenderField, container: Container) -> Any:
    """The type and default of a field that one container has, as `create_model` takes them."""
    kind = request_type(one, container)
    if one.name in container.usual:
        return kind, Field(container.usual[one.name], description=one.request)
    if one.kind in ("flag", "absence"):
        return kind, Field(False, description=one.request, exclude_if=_absent)
    return kind | None, Field(None, description=one.request, exclude_if=_absent)


def _stream(section: str, names: Sequence[str]) -> Any:
    """The model of `video` or `audio` of containers."""
    name, container = names[0], CONTAINERS[names[0]]
    codecs = video_codecs_of(name) if section == "video" else audio_codecs_of(name)
    title = f"{container.schema}{section.capitalize()}"
    fields = {}
    for one in declared_fields(Film).values():
        top, *rest = one.json.split("/")[1:]
        if top != section:
            continue
        if rest != ["codec"]:
            fields[rest[0]] = _setting(one, container)
        elif container.group != "sound":  # there it is that of the container
            fields["codec"] = (_choice(f"{title}Codec", codecs), codecs[0])
    return model_of(title, Output, fields, f"The {section} of {', '.join(names)}.")


def _model(names: Sequence[str]) -> Any:
    """The model of the containers that share one."""
    container = CONTAINERS[names[0]]
    is_usual = names[0] == Film().container
    kind = _choice(f"{container.schema}Container", names)
    fields: dict[str, Any] = {"container": (kind, names[0] if is_usual else ...)}
    for section in ("video", "audio"):
        if getattr(container, section):
            stream = _stream(section, names)
            fields[section] = (stream, stream.model_construct())
    declared = declared_fields(Still if container.group == "still" else Film)
    for name in container.settings:
        fields[declared[name].json.split("/")[-1]] = _setting(declared[name], container)
    if is_usual:
        no_effect = "videos that are not fragmented have it; no effect"
        fields["faststart"] = (bool, Field(False, description=no_effect, exclude_if=_absent))
    return model_of(container.schema, Output, fields, container.about)


def _models() -> dict[str, Any]:
    validate_containers()
    alike: dict[str, list[str]] = {}
    for name, container in CONTAINERS.items():
        alike.setdefault(container.schema, []).append(name)
    return {name: model for names in alike.values() for model in [_model(names)] for name in names}


OUTPUTS: Final[dict[str, Any]] = _models()
"""The model of each container."""


def _output(value: Any) -> Any:
    """The kind that is meant; a container that is not named is MP4.

    Its own errors then name its own fields, where a union's would name its members.
    """
    if isinstance(value, Output):
        return value
    wrong: Any  # InitErrorDetails of pydantic's own core
    if not isinstance(value, dict):
        wrong = {"type": "dict_type", "input": value}
        raise ValidationError.from_exception_data("output", [wrong])
    named = value.get("container", Film().container)
    model = OUTPUTS.get(named) if isinstance(named, str) else None
    if model is None:
        wrong = {
            "type": "literal_error",
            "loc": ("container",),
            "input": named,
            "ctx": {"expected": ", ".join(OUTPUTS)},
        }
        raise ValidationError.from_exception_data("output", [wrong])
    return model.model_validate(value)


class _ByContainer:
    """Says in the OpenAPI document how the kinds of output are told apart."""

    def __get_pydantic_json_schema__(
        self, schema: core_schema.CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        places = {name: f"#/components/schemas/{kind.__name__}" for name, kind in OUTPUTS.items()}
        discriminator = {"propertyName": "container", "mapping": places}
        return {"oneOf": handler(schema)["anyOf"], "discriminator": discriminator}


if TYPE_CHECKING:
    RenderOutput = Output
else:
    _KINDS = tuple(dict.fromkeys(OUTPUTS.values()))
    RenderOutput = TypeAliasType(
        "RenderOutput",
        Annotated[Union[_KINDS], BeforeValidator(_output), _ByContainer()],  # noqa: UP007
    )


DEFAULT_SLICE_MS: Final = 4000


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


MAX_BATCH: Final = 500


def _request_field(one: RenderField) -> Any:
    default = f"; default: {one.request_default.replace('`', '')}" if one.request_default else ""
    return request_type(one) | None, Field(
        None,
        description=f"{one.request}{default}",
        examples=None if one.example is None else [one.example],
    )


if TYPE_CHECKING:
    _RequestFields = RequestBody
else:
    _RequestFields = model_of(
        "RequestFields",
        RequestBody,
        {one.json: _request_field(one) for one in declared_fields(RenderSpec).values()},
    )


class NewRender(_RequestFields):
    """A render to create; the page decides omitted fields."""

    html: Annotated[str, NO_NUL] | None = Field(
        None, description="the page; without it, a site has to be uploaded", examples=["<h1>Hi"]
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

    @property
    def stored(self) -> Output:
        """The result of the page."""
        return self.output or OUTPUTS[Film().container]()

    @property
    def container(self) -> str:
        """The container of the result."""
        return self.stored.container

    @property
    def is_video(self) -> bool:
        """Whether it has many frames."""
        return CONTAINERS[self.container].group != "still"

    @property
    def to_spec(self) -> RenderSpec:
        """The same, as it is rendered."""
        return spec_of(self.model_dump(include={*declared_fields(RenderSpec), "output"}))


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


def validate_budget(settings: Settings, pixels: int, frames: int) -> None:
    """Refuse a video of more pixels than a render may have, all frames together.

    Args:
        pixels: of a frame.

    Raises:
        InvalidRequest: with the limit, and what the video comes to.
    """
    limit = settings.max_render_pixel_frames
    if pixels * frames > limit:
        raise InvalidRequest(
            f"width × height × frames: {pixels} × {frames} = {pixels * frames} is over the limit "
            f"of {limit}",
            pointer="/duration_ms",
            more={"limit": limit},
            advice="make the video shorter or smaller, or request fewer frames a second",
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
    spec = new.to_spec
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
        if getattr(new, name) is None:
            continue
        value = getattr(spec, name)
        if name in ("width", "height"):
            value = math.ceil(value * spec.scale)
        if value > limit:
            raise InvalidRequest(
                f"{name}: {value} is over the limit of {limit}",
                pointer=f"/{name}",
                more={"limit": limit},
            )
    pixels = math.ceil((spec.width or 0) * spec.scale) * math.ceil((spec.height or 0) * spec.scale)
    if pixels > settings.max_render_pixels:
        raise InvalidRequest(
            f"width × height: {pixels} is over the limit of {settings.max_render_pixels} pixels",
            pointer="/width",
            more={"limit": settings.max_render_pixels},
        )
    _need_crop_and_rates(spec)
    for name, one in declared_fields(RenderSpec).items():
        # the duration of a still was never refused
        if name == "duration_ms" or one.of in ("", "film" if new.is_video else "still"):
            continue
        if getattr(new, name) is not None:
            why = f"{name} applies only to {'video' if one.of == 'film' else 'stills'}"
            raise InvalidRequest(why, pointer=f"/{name}")
    if not new.is_video:
        return
    if spec.end_ms is not None:
        frames = _need_range(spec, spec.end_ms)
        if pixels and not spec.film.is_sound:
            validate_budget(settings, pixels, frames)
    _validate_film(spec.film, spec.fps)
    for name, value in (("width", spec.width), ("height", spec.height)):
        if value is not None and value * spec.scale % 2 and not spec.film.is_sound:
            raise InvalidRequest(
                f"{name}: H.264 has even sides", pointer=f"/{name}", found=f"{value * spec.scale:g}"
            )


def _need_crop_and_rates(spec: RenderSpec) -> None:
    try:
        spec.check_crop(spec.width, spec.height)
    except ValueError as error:
        why = f"fields do not go together: crop: {error}"
        raise InvalidRequest(why, pointer="/crop") from None
    try:
        spec.check_page_fps()
    except ValueError as error:
        why = f"fields do not go together: page_fps: {error}"
        raise InvalidRequest(why, pointer="/page_fps") from None


def _need_range(spec: RenderSpec, duration_ms: int) -> int:
    """How many frames it has."""
    try:
        return len(spec.frames(duration_ms))
    except ValueError as error:
        why = f"fields do not go together: {error}"
        raise InvalidRequest(why, pointer="/from_ms") from None


def _validate_film(film: Film, fps: Fraction) -> None:
    try:
        film.check(fps)
    except ValueError as error:
        name = str(error).partition(":")[0]
        declared = {**declared_fields(RenderSpec), **declared_fields(Film)}
        pointer = f"/{declared[name].json}"
        raise InvalidRequest(f"fields do not go together: {error}", pointer=pointer) from None


def _record_field(one: RenderField, usual: Any) -> Any:
    kinds: dict[str, Any] = {"rate": float, "scale": float, "number": float, "crop": RenderCrop}
    kind = kinds.get(one.kind, int)
    may_be_null = one.kind != "rate" and (usual is None or one.of)
    return kind | None if may_be_null else kind, Field(description=one.record)


def record_fields() -> dict[str, Any]:
    """The declared fields that records have, as `create_model` takes them."""
    usual = RenderSpec()
    return {
        name: _record_field(one, getattr(usual, name))
        for name, one in declared_fields(RenderSpec).items()
        if one.record
    }


def recorded(spec: RenderSpec) -> dict[str, Any]:
    """The values of those fields."""
    values: dict[str, Any] = {}
    for name, one in declared_fields(RenderSpec).items():
        if not one.record:
            continue
        value = getattr(spec, name)
        if one.kind == "rate":
            value = _plain(spec.fps if value is None else value)
        elif one.kind == "crop":
            value = RenderCrop.of(value)
        elif one.of == "still" and spec.still is None:
            value = None
        values[name] = value
    return values


def _plain(rate: Fraction) -> float:
    return rate.numerator if rate.denominator == 1 else round(float(rate), 6)


TYPES: Final = {name: one.media_type for name, one in CONTAINERS.items()}
"""The media type of each container."""


def suffix_of(container: str) -> str:
    """What the name of its files ends in."""
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


if TYPE_CHECKING:
    _RecordFields = ApiModel
else:
    _RecordFields = model_of("RecordFields", ApiModel, record_fields())


class RenderRecord(_RecordFields):
    """A page that is, or was, rendered."""

    id: str
    md5: str | None = Field(description="the client's own identifier, dashed")
    metadata: RenderMetadata
    status: RenderStatus
    strategy: str
    output: RenderOutput
    frame_rate: str = Field(description="fps, exactly: 30 or 30000/1001")
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
    next_byte: int | None = Field(description="of a running upload")
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
    loudness: RenderLoudness | None = Field(description="null if none was requested")
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
