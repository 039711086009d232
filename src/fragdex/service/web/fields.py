"""Fields that many requests and answers share: one rule, one description.

Parameters of a path are looked at after the caller: who has no key learns nothing of them.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Annotated, Any, Final, Self

from fastapi import Path, Query
from pydantic import (
    AfterValidator,
    AliasChoices,
    AliasPath,
    AwareDatetime,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    GetCoreSchemaHandler,
    GetJsonSchemaHandler,
    PlainValidator,
    ValidationError,
    WithJsonSchema,
    model_validator,
)
from pydantic_core import core_schema
from typing_extensions import TypeAliasType

from fragdex.errors import RecordNotFound, did_you_mean
from fragdex.record import record
from fragdex.service.records.identifiers import md5_bytes, md5_text, rfc3339
from fragdex.service.records.pages import CURSOR, MAX_LIMIT

_ID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_MD5 = "[0-9A-Fa-f]{32}|[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}"
_INSTANT = (
    "[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt ][0-9]{2}:[0-9]{2}:[0-9]{2}"
    r"(?:\.[0-9]+)?(?:[Zz]|[+-][0-9]{2}:[0-9]{2})"
)


def _number(value: object) -> object:
    """JSON's own numbers alone: neither `"12"` nor `true`."""
    if isinstance(value, bool):
        raise ValueError(f"a number is expected, not {str(value).lower()}")
    if isinstance(value, str):
        raise ValueError("a number is expected, not as text")
    return value


def record_id(text: str) -> str:
    """An `id` of a path; one that the service never makes is of no record.

    No database gets texts that it might not even accept (NUL in PostgreSQL).

    Raises:
        RecordNotFound: as if it had been requested.
    """
    if not _ID.fullmatch(text):
        raise RecordNotFound("there is no such record")
    return text


RecordId = Annotated[str, Path(description="as the service gave it"), AfterValidator(record_id)]
Md5InPath = Annotated[
    bytes,
    Path(description="32 hex digits, or dashed; either case"),
    PlainValidator(lambda text: md5_bytes(text, "md5")),
    WithJsonSchema({"type": "string", "pattern": f"^(?:{_MD5})$"}),
]


@record(frozen=True, slots=True)
class written_as:  # noqa: N801
    """Metadata of a text that matches `pattern` from its beginning to its end.

    The document names the pattern, whoever breaks it reads the sentence.

    Args:
        pattern: without `^` and `$`, as JSON Schema and Python both read it.
        expected: what the text has to be, in words.
    """

    pattern: str
    expected: str

    def __get_pydantic_core_schema__(
        self, source: Any, handler: GetCoreSchemaHandler
    ) -> core_schema.CoreSchema:
        compiled = re.compile(self.pattern)

        def matching(text: str) -> str:
            if compiled.fullmatch(text) is None:
                raise ValueError(f"{self.expected} is expected")
            return text

        return core_schema.no_info_after_validator_function(matching, handler(source))

    def __get_pydantic_json_schema__(
        self, schema: core_schema.CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        return {**handler(schema), "pattern": f"^(?:{self.pattern})$"}


def media_type_of(expected: str, *types: str) -> written_as:
    """Metadata of a text that is one of `types`, in any case, parameters after it; or empty."""
    known = "|".join("".join(map(_any_case, one)) for one in dict.fromkeys(types))
    return written_as(rf"(?:[ \t]*(?:{known})[ \t]*(?:;[^\x00-\x1f]*)?)?", expected)


def _any_case(letter: str) -> str:
    # JSON Schema's patterns have no flags
    return f"[{letter.upper()}{letter}]" if letter.isalpha() else re.sub(r"([+.])", r"\\\1", letter)


def _rfc3339(value: object) -> object:
    if not isinstance(value, str) or re.fullmatch(_INSTANT, value, re.ASCII) is None:
        raise ValueError("an instant is expected, such as 2030-01-31T12:00:00Z (RFC 3339)")
    return value


class _NumberOrText:
    """Published clients write numbers of tracks as text, too."""

    TEXT: Final = "-1|[0-9]{1,10}"

    def __get_pydantic_core_schema__(
        self, source: Any, handler: GetCoreSchemaHandler
    ) -> core_schema.CoreSchema:
        def read(value: Any) -> Any:
            if isinstance(value, bool) or (
                isinstance(value, str) and re.fullmatch(self.TEXT, value, re.ASCII) is None
            ):
                raise ValueError("a whole number, or its digits as text, is expected")
            return value

        return core_schema.no_info_before_validator_function(read, handler(source))

    def __get_pydantic_json_schema__(
        self, schema: core_schema.CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        return {"anyOf": [handler(schema), {"type": "string", "pattern": f"^(?:{self.TEXT})$"}]}


def _in_utc(value: datetime) -> datetime:
    """The same instant in UTC, where all are compared and kept."""
    try:
        return value.astimezone(UTC)
    except OverflowError:
        raise ValueError("an instant of the years 1 to 9999 is expected") from None


# a name is kept and given back, never a path of ours; control characters would break headers
FileName = Annotated[
    str,
    Field(min_length=1, max_length=1024, examples=["holiday.jpg"]),
    written_as(
        r"(?!(?:.*[/\\])?\.\.(?:[/\\]|$))[^\x00-\x1f\x7f-\x9f]+",
        "a name without control characters, and without `..` among its folders,",
    ),
]
NO_NUL: Final = written_as(r"[^\x00]*", "a text without NUL (U+0000)")
Md5Text = Annotated[
    str,
    Field(
        description="32 hex digits, or dashed 8-4-4-4-12; either case",
        examples=["d41d8cd9-8f00-b204-e980-0998ecf8427e"],
    ),
    written_as(_MD5, "an md5 in hex, dashed or not,"),
]
JSON_NUMBER: Final = BeforeValidator(_number)
"""Metadata of a whole number that is not text; it stands after the bounds."""
NUMBER_OR_TEXT: Final = _NumberOrText()
"""Metadata of a whole number that may come as text; it stands after the bounds."""
ByteSize = Annotated[int, Field(ge=0, description="bytes in all", examples=[12345]), JSON_NUMBER]
SentByteSize = Annotated[
    int | None, Field(description="null while a sender has not said how many bytes there will be")
]
Instant = Annotated[
    AwareDatetime,
    AfterValidator(_in_utc),
    BeforeValidator(_rfc3339),
    WithJsonSchema({"type": "string", "format": "date-time", "pattern": f"^{_INSTANT}$"}),
]
"""An instant as RFC 3339 writes it."""

Limit = Annotated[int, Query(ge=1, le=MAX_LIMIT, description="records on a page")]
Cursor = Annotated[
    str | None, Query(description="`next_cursor` of the page before", pattern=f"^{CURSOR}$")
]


Seconds = TypeAliasType("Seconds", dict[str, float])
"""What took how long."""


VALIDATORS: Final = threading.RLock()
"""Held while one is made: what a thread adds to a model, another one may be reading."""


def _answered(value: Any) -> Any:
    if isinstance(value, datetime):
        return rfc3339(value)
    return md5_text(value) if isinstance(value, bytes) else value


class ApiModel(BaseModel):
    """What a request or an answer consists of; its validator is made when it is first needed.

    A process uses few of them. FastAPI's fields over a class would wait too, if they saw that it
    does, each for a thread of its own: theirs are made when a route is analysed.
    """

    def __init_subclass__(cls, **more: Any) -> None:
        super().__init_subclass__(**more)
        # pydantic asks between this and the next
        cls.model_config["defer_build"] = True

    @classmethod
    def __pydantic_init_subclass__(cls, **more: Any) -> None:
        super().__pydantic_init_subclass__(**more)
        cls.model_config["defer_build"] = False

    @classmethod
    def of_row(cls, row: Any, **others: Any) -> Self:
        """The record of a row: its members by their names, but for `others`.

        Args:
            row: instants and digests become the texts of answers, all else stays as it is.
        """
        known = {name: getattr(row, name) for name in cls.model_fields.keys() - others.keys()}
        return cls(**{name: _answered(value) for name, value in known.items()}, **others)

    @classmethod
    def model_rebuild(cls, *, _parent_namespace_depth: int = 2, **how: Any) -> bool | None:
        """Make the validator, as pydantic does when it is first needed, in whichever thread."""
        with VALIDATORS:
            return super().model_rebuild(
                _parent_namespace_depth=_parent_namespace_depth and _parent_namespace_depth + 1,
                **how,
            )


class RequestBody(ApiModel):
    """What a request consists of; a member that nobody knows is refused, not skipped.

    Skipped, a misspelt member that narrows would have the wider thing made.
    """

    model_config = ConfigDict(extra="forbid")

    @model_validator(mode="before")
    @classmethod
    def _need_known_members(cls, value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        known = cls.member_names()
        unknown = [name for name in value if name not in known][:MOST_UNKNOWN]
        twice = cls._said_twice(value)
        if not unknown and twice is None:
            return value
        if twice is not None:
            raise ValueError(f"{' and '.join(twice)} are the same field: send {twice[0]} alone")
        wrong: Any = [  # InitErrorDetails of pydantic's own core
            {
                "type": "value_error",
                "loc": (name,),
                "input": None,
                "ctx": {"error": ValueError(f"there is no such field{_instead(name, known)}")},
            }
            for name in unknown
        ]
        raise ValidationError.from_exception_data(cls.__name__, wrong)

    @classmethod
    def _said_twice(cls, value: Mapping[str, Any]) -> list[str] | None:
        for field in cls.model_fields.values():
            if field.validation_alias is not None:
                named = [one for one in _choices(field.validation_alias) if one in value]
                if len(named) > 1:
                    return named
        return None

    @classmethod
    def member_names(cls) -> list[str]:
        """The names of its members as requests write them, other spellings that are taken too."""
        names: list[str] = []
        for name, field in cls.model_fields.items():
            alias = field.validation_alias
            names += [name] if alias is None else _choices(alias)
        return names


MOST_UNKNOWN = 20
"""Members that an answer names as unknown."""
_MOST_LISTED = 12
_LONGEST_NAME = 80


def _choices(alias: str | AliasPath | AliasChoices) -> list[str]:
    every = alias.choices if isinstance(alias, AliasChoices) else [alias]
    return [one for one in every if isinstance(one, str)]


def _instead(name: str, known: Sequence[str]) -> str:
    """What was meant by an unknown name, or what there is, as the end of a sentence."""
    # the time that a comparison takes grows with the name
    near = did_you_mean(name[:_LONGEST_NAME], known)
    return near or (f"; there are {', '.join(known)}" if len(known) <= _MOST_LISTED else "")


class Listed(ApiModel):
    """A page of a list, newest first."""

    next_cursor: str | None = Field(description="returns the next page; null on the last")
