"""Values between a rendering process and its parent, as JSON and back."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import asdict
from fractions import Fraction
from typing import Any

from fragdex.service.renders.browser.timing import View
from fragdex.service.renders.outside import Answer, Blocked

__all__ = ["answer_as_json", "answer_of_json", "view_as_json", "view_of_json"]


def view_as_json(view: View) -> dict[str, Any]:
    """A view as plain values.

    >>> view_of_json(view_as_json(View(640, 360, Fraction(30000, 1001)))).fps
    Fraction(30000, 1001)
    """
    return asdict(view) | {"fps": str(view.fps)}


def view_of_json(plain: Mapping[str, Any]) -> View:
    """A view from plain values."""
    return View(**{**plain, "fps": Fraction(plain["fps"])})


def answer_as_json(answer: Answer | Blocked) -> dict[str, Any]:
    """An answer from outside, or why there is none.

    >>> answer_of_json(answer_as_json(Answer(206, {"content-range": "bytes 0-1/9"}, b"ab"))).body
    b'ab'
    """
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
