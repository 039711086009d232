"""Where a page stands that somebody names: a file, a folder, a URL."""

from __future__ import annotations

from pathlib import Path, PurePosixPath

from fragdex.errors import InvalidRequest
from fragdex.rendering.outside import NOTHING, Outside
from fragdex.rendering.site import Folder, OpenAsset, Site


class Beside(Folder):
    """The folder that a page stands in, the page in the place of its index.html.

    Names that begin with a dot are not there: the folder may be somebody's home.
    """

    def __init__(self, folder: Path | str, index: str) -> None:
        super().__init__(folder)
        self.index = index

    def open(self, path: str) -> OpenAsset | None:
        """As `Site.open`."""
        path = path or self.index
        hidden = any(part.startswith(".") for part in PurePosixPath(path).parts)
        return None if hidden else super().open(path)


def site_at(place: str, key: str | None = None) -> tuple[Site, Outside]:
    """The site that somebody names, and what its page may ask for beyond it.

    Args:
        place: an HTML file, a folder with an index.html, an http(s) URL.
        key: for the origin of a URL.

    Raises:
        InvalidRequest: there is no page at that place.
    """
    if place.startswith(("http://", "https://")):
        from fragdex.rendering.web import Web

        web = Web(place, key)
        if web.read("") is None:
            raise InvalidRequest(
                "there is no page at that URL", found=place,
                expected="an answer 200 with HTML",
                advice="if the service needs a key: --key or FRAGDEX_KEY",
            )  # fmt: skip
        return web, web
    path = Path(place)
    site: Folder = Folder(path) if path.is_dir() else Beside(path.parent, path.name)
    asset = site.read("")
    if asset is None:
        raise InvalidRequest(
            "there is no page to render", expected="an HTML file, or a folder with an index.html",
            found=place,
        )  # fmt: skip
    return site, NOTHING
