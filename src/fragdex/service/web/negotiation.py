"""Which form the caller takes (RFC 9110, 12.5.1), and whether it has it already (13.1.2)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from fragdex.errors import NotAcceptable

__all__ = ["chosen", "etag_of", "has_already"]


def etag_of(md5: bytes, form: str = "") -> str:
    """The strong entity tag of stored bytes, or of one form of what is negotiated.

    >>> etag_of(bytes(16), "hls")
    '"00000000-0000-0000-0000-000000000000-hls"'
    """
    digits = md5.hex()
    dashed = "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))
    return f'"{dashed}-{form}"' if form else f'"{dashed}"'


def has_already(headers: Mapping[str, str], etag: str) -> bool:
    """Whether If-None-Match names `etag`: answer 304. The comparison is the weak one.

    >>> has_already({"if-none-match": 'W/"a", "b"'}, '"a"')
    True
    """
    named = headers.get("if-none-match")
    if named is None:
        return False
    tags = [tag.strip().removeprefix("W/") for tag in named.split(",")]
    return tags == ["*"] or etag in tags


def chosen(accept: str | None, forms: Sequence[str]) -> str:
    """The media type of `forms` that `accept` prefers; the first of equals, and by default.

    Raises:
        NotAcceptable: `accept` rules all of them out.

    >>> chosen("text/html;q=0.5, application/*", ["text/html", "application/json"])
    'application/json'
    """
    if not accept or not accept.strip():
        return forms[0]
    weights: dict[str, float] = {}
    for part in accept.split(","):
        name, *parameters = (piece.strip().lower() for piece in part.split(";"))
        weight = 1.0
        for parameter in parameters:
            if parameter.startswith("q="):
                try:
                    weight = min(1.0, max(0.0, float(parameter[2:])))
                except ValueError:
                    weight = 0.0
        if name:
            weights[name] = weight

    def weight_of(form: str) -> float:
        # the most specific range decides, also where it weighs less
        for name in (form, f"{form.partition('/')[0]}/*", "*/*"):
            if name in weights:
                return weights[name]
        return 0.0

    best = max(forms, key=weight_of)
    if weight_of(best) <= 0:
        raise NotAcceptable("none of the requested formats is available", more={"forms": [*forms]})
    return best
