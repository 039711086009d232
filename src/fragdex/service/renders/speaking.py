"""The words between a rendering process and whoever started it: values as JSON and back."""

from __future__ import annotations

import base64
import io
from collections.abc import Callable, Mapping
from dataclasses import asdict, fields
from fractions import Fraction
from pathlib import Path
from typing import Any, BinaryIO, Final

from fragdex.service import errors
from fragdex.service.errors import EngineUnavailable, ServiceError
from fragdex.service.renders.browser.finding import find_engine
from fragdex.service.renders.browser.timing import View
from fragdex.service.renders.browser.walls import Walls, take_over, walls_for
from fragdex.service.renders.outside import Answer, Blocked
from fragdex.service.renders.places import Beside
from fragdex.service.renders.site import Asset, Folder, Page, Site

__all__ = [
    "SCRATCH",
    "answer_as_json",
    "answer_of_json",
    "asset_as_json",
    "asset_of_json",
    "error_as_json",
    "error_of_json",
    "site_as_json",
    "site_of_json",
    "view_as_json",
    "view_of_json",
    "walls_as_json",
    "walls_of_json",
]

SCRATCH: Final = "fragdex-render-"
"""How the folders of rendering processes begin."""


def view_as_json(view: View) -> dict[str, Any]:
    """A view as plain values.

    >>> view_of_json(view_as_json(View(640, 360, Fraction(30000, 1001)))).fps
    Fraction(30000, 1001)
    """
    return asdict(view) | {"fps": str(view.fps)}


def view_of_json(plain: Mapping[str, Any]) -> View:
    """A view from plain values."""
    return View(**{**plain, "fps": Fraction(plain["fps"])})


def walls_as_json() -> dict[str, Any]:
    """The walls for the browser of this machine; {}: there is no browser."""
    try:
        program = find_engine().path
    except EngineUnavailable:
        return {}
    return {"program": str(program), **asdict(walls_for(program))}


def walls_of_json(plain: Mapping[str, Any]) -> None:
    """Take over what another process found out."""
    if plain:
        before, user, sandbox, missing = (plain[field.name] for field in fields(Walls))
        take_over(Path(plain["program"]), Walls(tuple(before), user, sandbox, tuple(missing)))


def site_as_json(site: Site) -> dict[str, Any]:
    """Where another process of this machine finds a site; {}: it has to ask for each file."""
    if type(site) is Beside:
        return {"folder": str(site.path), "index": site.index}
    if type(site) is Folder:
        return {"folder": str(site.path)}
    if type(site) is Page:
        asset = site.read("")
        return {"page": "" if asset is None else asset.data.decode()}
    return {}


def site_of_json(plain: Mapping[str, Any], asked: Callable[[str], Asset | None]) -> Site:
    """A site from plain values.

    Args:
        asked: reads a file of a site that has to be asked for.
    """
    if "index" in plain:
        return Beside(plain["folder"], plain["index"])
    if "folder" in plain:
        return Folder(plain["folder"])
    return Page(plain["page"]) if "page" in plain else _Asked(asked)


class _Asked:
    """A site whose files another process reads."""

    def __init__(self, asked: Callable[[str], Asset | None]) -> None:
        self._asked = asked
        self.digest = b""

    def read(self, path: str) -> Asset | None:
        return self._asked(path)

    def open(self, path: str) -> BinaryIO | None:
        asset = self._asked(path)
        return None if asset is None else io.BytesIO(asset.data)


def asset_as_json(asset: Asset | None) -> dict[str, Any]:
    """A file of a site; {} where there is none.

    >>> page = Page("<p>").read("")
    >>> asset_of_json(asset_as_json(page)) == page, asset_of_json(asset_as_json(None))
    (True, None)
    """
    if asset is None:
        return {}
    data = base64.b64encode(asset.data).decode()
    return {"data": data, "media_type": asset.media_type, "sha256": asset.sha256.hex()}


def asset_of_json(plain: Mapping[str, Any]) -> Asset | None:
    """The same file again."""
    if "data" not in plain:
        return None
    sha256 = bytes.fromhex(plain["sha256"])
    return Asset(base64.b64decode(plain["data"]), plain["media_type"], sha256)


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


def error_as_json(error: ServiceError) -> dict[str, Any]:
    """An error of the service as plain values."""
    place = {name: getattr(error, name) for name in ("path", "offset", "expected", "found")}
    return {
        "kind": type(error).__name__,
        "message": error.message,
        "more": error.more,
        "advice": error.advice,
        **{name: str(value) for name, value in place.items() if value is not None},
    }


def error_of_json(plain: Mapping[str, Any]) -> ServiceError:
    """The same error again.

    >>> error_of_json(error_as_json(errors.PageFailed("it hangs", more={"console": ["a"]})))
    PageFailed('it hangs')
    """
    more = dict(plain)
    kind: type[ServiceError] = getattr(errors, more.pop("kind"), ServiceError)
    return kind(more.pop("message"), **more)
