"""What requests and records have of a render, made of the declarations of its fields.

A field is declared in `fragdex.rendering.spec` or `fragdex.rendering.outputs`; here each kind of
field becomes a type of the interface, and each container a kind of `output`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, Union

from pydantic import (
    BeforeValidator,
    ConfigDict,
    Field,
    GetJsonSchemaHandler,
    ValidationError,
    WithJsonSchema,
    create_model,
)
from pydantic_core import core_schema
from typing_extensions import TypeAliasType

from fragdex.rendering.browser.timing import Crop
from fragdex.rendering.fields import MAX_FPS, RATE, RenderField, declared_fields, rate_of
from fragdex.rendering.outputs import (
    CONTAINERS,
    Container,
    Film,
    Still,
    audio_codecs_of,
    video_codecs_of,
)
from fragdex.rendering.spec import MAX_SIDE
from fragdex.service.web.fields import (
    JSON_NUMBER,
    NO_NUL,
    ApiModel,
)

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


class RenderCrop(ApiModel):
    """A part of the page's window, in CSS pixels."""

    model_config = ConfigDict(extra="forbid")

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
    made: Any = create_model
    return made(name, __base__=base, __doc__=about or base.__doc__, __module__=__name__, **fields)


class Output(ApiModel):
    """A part of `output`; what it does not know is refused, not passed over."""

    model_config = ConfigDict(extra="forbid", strict=True)

    if TYPE_CHECKING:
        container: str


def _absent(value: Any) -> bool:
    """What nobody asked for is not said either."""
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
        no_effect = "as films are that are not fragmented; of no effect"
        fields["faststart"] = (bool, Field(False, description=no_effect, exclude_if=_absent))
    return model_of(container.schema, Output, fields, container.about)


def _models() -> dict[str, Any]:
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
