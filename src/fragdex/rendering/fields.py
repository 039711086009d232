"""One declaration for each field of a render, and how its values are written.

The fields of `RenderSpec`, `Film` and `Still` are `declared`: once, with all that the command line,
the service, its records and the docs need to know of one. These are made of the declarations:
options in `cli/render_fields.py`, requests and records in `service/renders/model.py`, tables in
`docs/make_service.py`. The client is made of the service's OpenAPI document.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import field, fields, replace
from fractions import Fraction
from typing import Any, Final, Literal

from fragdex.record import record

MAX_FPS: Final = 120
RATE: Final = "[0-9]{1,6}(?:/[1-9][0-9]{0,4})?"
"""What a rate looks like that is written out."""

Kind = Literal[
    "flag", "absence", "count", "number", "name", "choice", "bits", "rate", "time", "scale", "crop",
]  # fmt: skip
"""How values are written. An `absence` is true where the flag of the request is not set."""

CROP_SIDES: Final = ("x", "y", "width", "height")
_FIELD: Final = "render"
_RATE: Final = re.compile(RATE)
_UNITS: Final = {"": 1, "k": 1000, "M": 1_000_000}
_LONGEST_SECONDS: Final = 10**9
# Rates that are written with two or three digits and mean a thousandth less than whole (SMPTE).
_NTSC: Final = {round(1000 * n / 1.001): Fraction(1000 * n, 1001) for n in (24, 30, 48, 60, 120)}


@record(frozen=True, slots=True, kw_only=True)
class RenderField:
    """What is to be known of a field.

    Attributes:
        kind: how its values are written.
        name: of the attribute that has it.
        option: of `fragdex render`; "": none of its own. metavar: what it takes.
        help: of the option, one line; usual: what is so without it; docs: more about it than
            `help`, in Markdown, for docs/cli.md.
        sets: the fields that the option sets; this one alone where it is empty.
        json: where requests have it, such as `output/video/crf`; its name where it is "".
        request: what it is there; requests_docs: more about it, in Markdown, for docs/renders.md.
        request_default: what is so without it, in words. example: of a value there.
        least, most: of values in requests, inclusive; step: between them.
        choices: of values.
        of: what it is for; "" for both.
        record: what it is in records; "": they do not have it.
        in_slices: whether it decides the bytes of slices, and so the key of those that are kept.
    """

    kind: Kind
    name: str = ""
    option: str = ""
    metavar: str | None = None
    help: str = ""
    usual: str | bool = False
    docs: str = ""
    sets: tuple[str, ...] = ()
    json: str = ""
    request: str = ""
    request_docs: str = ""
    request_default: str = ""
    example: Any = None
    least: float | None = None
    most: float | None = None
    step: float | None = None
    choices: tuple[str, ...] = ()
    of: Literal["", "film", "still"] = ""
    record: str = ""
    in_slices: bool = False


def declared(default: Any, kind: Kind, **more: Any) -> Any:
    """A field of a dataclass, declared: its default, and the attributes of `RenderField`."""
    return field(default=default, metadata={_FIELD: RenderField(kind=kind, **more)})


def declared_fields(owner: type) -> Mapping[str, RenderField]:
    """The declared fields of a dataclass, by name, in their order."""
    return {
        one.name: replace(declaration, name=one.name, json=declaration.json or one.name)
        for one in fields(owner)
        if (declaration := one.metadata.get(_FIELD)) is not None
    }


def read_text(text: str, declaration: RenderField) -> Any:
    """The value that the text of an option means; a pair for one that sets width and height.

    >>> read_text("2.5M", RenderField(kind="bits")), read_text("1:02", RenderField(kind="time"))
    (2500000, 62000)

    Raises:
        ValueError: it means none.
    """
    match "size" if declaration.sets else declaration.kind:
        case "bits":
            match = re.fullmatch(r"(\d+(?:\.\d+)?)([kM]?)", text)
            if match is None:
                raise ValueError("bits a second are expected, such as 800k, 5M")
            return round(float(match[1]) * _UNITS[match[2]])
        case "rate":
            return rate_of(float(text) if re.fullmatch(r"\d*\.\d+", text) else text)
        case "time":
            return _milliseconds(text, int(declaration.least or 0))
        case "size":
            match = re.fullmatch(r"([1-9]\d{0,5})[xX×]([1-9]\d{0,5})", text)
            if match is None:
                raise ValueError("pixels are expected, such as 1280x720")
            return int(match[1]), int(match[2])
        case "crop":
            match = re.fullmatch(r"(\d{1,5}),(\d{1,5}),([1-9]\d{0,4}),([1-9]\d{0,4})", text)
            if match is None:
                raise ValueError("X,Y,WIDTH,HEIGHT are expected, such as 0,90,640,360")
            return tuple(map(int, match.groups()))
        case "scale":
            return _scale(text, declaration)
    return text


def _milliseconds(text: str, least: int) -> int:
    from fragdex.seeking.time_texts import parse_time

    seconds = _LONGEST_SECONDS if text == "end" else parse_time(text)
    if not Fraction(least, 1000) <= seconds < _LONGEST_SECONDS:
        raise ValueError(f"a time of at least {least} ms is expected")
    return round(1000 * seconds)


def _scale(text: str, declaration: RenderField) -> float:
    least, most, step = declaration.least, declaration.most, declaration.step
    if least is None or most is None or step is None:
        raise TypeError(f"{declaration.option}: a scale has bounds and a step")
    try:
        scale = float(text)
    except ValueError:
        scale = 0
    if least <= scale <= most and not scale % step:
        return scale
    raise ValueError(f"{least:g} to {most:g} are expected, in steps of {step:g}")


def to_json(value: Any, kind: Kind) -> Any:
    """A value as requests write it."""
    match kind:
        case "absence":
            return not value
        case "rate":
            return value.numerator if value.denominator == 1 else str(value)
        case "crop":
            return dict(zip(CROP_SIDES, value, strict=True))
    return value


def of_json(value: Any, kind: Kind) -> Any:
    """The value that a request means."""
    match kind:
        case "absence":
            return not value
        case "rate":
            return rate_of(value)
        case "crop":
            return tuple(value.get(side, 0) for side in CROP_SIDES)
    return value


def rate_of(value: float | str) -> Fraction:
    """Frames a second, exactly.

    >>> rate_of(29.97), rate_of("30000/1001"), rate_of(25), rate_of(12.5)
    (Fraction(30000, 1001), Fraction(30000, 1001), Fraction(25, 1), Fraction(25, 2))

    Raises:
        ValueError: no rate, or none between 1 and 120.
    """
    if isinstance(value, str):
        if not _RATE.fullmatch(value):
            raise ValueError("a number, or a fraction such as 30000/1001, is expected")
        rate = Fraction(value)
    elif isinstance(value, int):
        rate = Fraction(value)
    else:
        near = min(_NTSC, key=lambda thousandths: abs(thousandths - 1000 * value))
        rate = _NTSC[near] if abs(near - 1000 * value) < 6 else Fraction(str(value))
        rate = rate.limit_denominator(1001)
    if not 1 <= rate <= MAX_FPS:
        raise ValueError(f"frames a second are 1 to {MAX_FPS}")
    return rate
