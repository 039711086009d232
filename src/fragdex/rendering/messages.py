"""Values between a rendering process and its parent, as JSON and back.

A slice may be made on one machine and joined on another.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import asdict, field, fields
from fractions import Fraction
from typing import Any, get_args, get_type_hints

from fragdex.record import record
from fragdex.rendering.browser.model import Notes, PageView
from fragdex.rendering.site import Answer, Blocked


@record(frozen=True, slots=True)
class Joined:
    """A render that is complete: its file, frames, seconds, whether there is sound.

    `failed` tells what should be heard and could not be decoded; `loudness` (`Loudness` as plain
    values) how loud the mix was, where that was asked.
    """

    path: str
    frames: int
    seconds: float
    sound: bool
    failed: list[str] = field(default_factory=list)
    loudness: dict[str, Any] | None = None


@record(frozen=True, slots=True)
class SliceMade:
    """A slice, or a still, that was made.

    Attributes:
        path: of its file.
        first, frames: which frames of the whole are in it.
        seconds: what it cost: `start` (the browser, the page; 0 where one continues), `replay`
            (frames before it that had to pass), `capture` (waiting for the browser), `encode`
            (processor time in parallel).
        reads: the paths of the site that were requested until its last frame, each with the
            SHA-256 of what was there, None where nothing was: what its pixels depend on.
        notes: what happened on the page.
        sound: what can be heard in it (`SoundStrip`s as plain values).
        samples: where samples that strips name stand in its file: name → [offset, size].
        unchanged: frames that were the same picture as the one before.
        begins_after: SHA-256 of the picture that its browser saw before its first frame; None at
            frame 0, and for stills.
        ends_with: of its last picture.
        is_asked: whether the page renders each frame on request.
    """

    path: str
    first: int
    frames: int
    seconds: dict[str, float]
    reads: dict[str, str | None]
    notes: Notes
    sound: list[dict[str, Any]] = field(default_factory=list)
    samples: dict[str, list[int]] = field(default_factory=dict)
    unchanged: int = 0
    begins_after: str | None = None
    ends_with: str | None = None
    is_asked: bool = False

    def as_json(self) -> dict[str, Any]:
        """As plain values."""
        return asdict(self)

    @classmethod
    def of_json(cls, plain: Mapping[str, Any]) -> SliceMade:
        """The same again from plain values; what an older version told besides is left out."""
        known = {field.name: plain[field.name] for field in fields(cls) if field.name in plain}
        return cls(**{**known, "notes": Notes.of_json(plain["notes"])})


def view_as_json(view: PageView) -> dict[str, Any]:
    """A view as plain values."""
    return {
        name: str(value) if isinstance(value, Fraction) else value
        for name, value in asdict(view).items()
    }


def view_of_json(plain: Mapping[str, Any]) -> PageView:
    """A view from plain values."""
    types = get_type_hints(PageView)
    return PageView(**{name: _restored(value, types[name]) for name, value in plain.items()})


def _restored(value: Any, kind: Any) -> Any:
    """A value of a view as its type has it: JSON has neither fractions nor tuples."""
    kinds = (kind, *get_args(kind))
    if isinstance(value, str) and Fraction in kinds:
        return Fraction(value)
    return tuple(value) if isinstance(value, list) else value


def answer_as_json(answer: Answer | Blocked) -> dict[str, Any]:
    """An answer from outside, or why there is none."""
    if isinstance(answer, Blocked):
        return {"blocked": answer.reason}
    body = base64.b64encode(answer.body).decode()
    return {"status": answer.status, "headers": answer.headers, "body": body}


def answer_of_json(plain: Mapping[str, Any]) -> Answer:
    """An answer from outside.

    Raises:
        Blocked: there is none.
    """
    if "blocked" in plain:
        raise Blocked(plain["blocked"])
    return Answer(plain["status"], plain["headers"], base64.b64decode(plain["body"]))
