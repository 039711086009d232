"""A request to the service as a value: what is sent, and what its response becomes.

Nothing here does IO. `Client` and `AsyncClient` send the same requests.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final, Generic, TypeVar
from urllib.parse import quote

import msgspec

from fragdex.byterange import ByteRange

__all__ = ["Request", "segment"]

T_co = TypeVar("T_co", covariant=True)

JSON: Final = "application/json"


def segment(value: object) -> str:
    """A value as one segment of a path.

    >>> segment("a/b"), segment(-1)
    ('a%2Fb', '-1')
    """
    return quote(str(value), safe="")


@dataclass(frozen=True, slots=True)
class Request(Generic[T_co]):
    """What is asked of the service.

    Attributes:
        method: of HTTP.
        path: absolute, as the OpenAPI document writes it.
        query, headers, body: by their names; what is None is left out. The body is sent as JSON.
        content: bytes that are sent as they are; None: none.
        result: the type of the record in the response; `bytes`, or None for no content. A response
            without content is None.
        binary: whether the response may be bytes where its type is not JSON.
    """

    method: str
    path: str
    query: Mapping[str, Any] = field(default_factory=dict)
    headers: Mapping[str, Any] = field(default_factory=dict)
    body: Mapping[str, Any] | None = None
    content: bytes | None = None
    result: Any = None
    binary: bool = False

    @property
    def safe_to_repeat(self) -> bool:
        """Whether sending it twice does no more than once (RFC 9110, 9.2.2).

        A POST is, where it has an Idempotency-Key or sends bytes of an upload that had begun.
        """
        return (
            self.method != "POST"
            or (self.content is not None and "Upload-Complete" not in self.headers)
            or self.headers.get("Idempotency-Key") is not None
        )

    def parameters(self) -> dict[str, str]:
        """The query as text."""
        return {name: _text(value) for name, value in self.query.items() if value is not None}

    def fields(self) -> dict[str, str]:
        """The headers as text; what is accepted among them."""
        found = {name: _text(value) for name, value in self.headers.items() if value is not None}
        if self.body is not None:
            found["Content-Type"] = JSON
        elif self.content is not None:
            found.setdefault("Content-Type", "application/octet-stream")
        if self.result is not bytes and not self.binary:
            found.setdefault("Accept", JSON)
        return found

    def payload(self) -> bytes | None:
        """The body as bytes; None without one."""
        if self.body is None:
            return self.content
        return msgspec.json.encode({k: v for k, v in self.body.items() if v is not None})

    def read(self, media_type: str, content: bytes) -> T_co:
        """The result that a response of success becomes.

        Raises:
            msgspec.ValidationError: it is not what the document says.
        """
        if self.result is None or (not content and self.result is not bytes):
            return None  # type: ignore[return-value]
        if self.result is bytes or (self.binary and media_type != JSON):
            return content  # type: ignore[return-value]
        return msgspec.json.decode(content, type=self.result)  # type: ignore[no-any-return]


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, ByteRange):
        return value.header
    if isinstance(value, datetime):
        return value.isoformat()
    return str(value)
