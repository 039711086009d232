"""What an agent may read and write: decided once, when the server starts.

Whatever an agent names is looked up here, and nothing else opens a name: neither a link, nor a
redirect, nor a reference in a video leads further.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote, urlsplit

from fragdex.byterange import ByteRange
from fragdex.errors import Forbidden, InvalidRequest, SourceNotFound
from fragdex.origin.film_list import SUFFIXES, film_list, is_name
from fragdex.sandbox.channel import opened
from fragdex.sources import Source, open_source

if TYPE_CHECKING:
    from fragdex.client import Client

CAPTIONS: Final = (".vtt", ".srt")
"""How caption files end that stand next to a video and begin with its name."""
PAGES: Final = (".html", ".htm")
MOST_LISTED: Final = 100
MOST_CAPTIONS: Final = 20
_SERVICE: Final = "service:"
_TIMEOUT: Final = 30.0
_ID: Final = re.compile(r"[A-Za-z0-9_-]+")


class Allowed:
    """The folders, URLs and service that may be read, and the folder that may be written to.

    Args:
        folders: of this machine. A name below one begins with the folder's own.
        prefixes: URLs (http, https, s3, gs, az); what begins with one, as a folder or file, is
            allowed, wherever its server would redirect to is not.
        service: a client of a running service, whose videos are `service:ID`.
        output: where results are written, and can be read again; None: nowhere.
        max_bytes, max_requests: that one answer may read of each video.

    Raises:
        SourceNotFound: there is no such folder.
        InvalidRequest: a prefix is not a URL that can be read.
    """

    def __init__(
        self,
        folders: Sequence[str] = (),
        prefixes: Sequence[str] = (),
        service: Client | None = None,
        output: str | None = None,
        *,
        max_bytes: int | None = None,
        max_requests: int | None = None,
    ) -> None:
        self.roots: dict[str, str] = {}
        for folder in (*folders, *([] if output is None else [output])):
            root = os.path.realpath(folder)
            if not os.path.isdir(root):
                raise SourceNotFound(f"there is no folder {folder}", advice="make it first")
            if root in self.roots.values():
                continue
            label = own = os.path.basename(root) or "root"
            number = 2
            while label in self.roots:
                label, number = f"{own}-{number}", number + 1
            self.roots[label] = root
        self.output = None if output is None else Path(os.path.realpath(output))
        for prefix in prefixes:
            if not _is_prefix(prefix):
                raise InvalidRequest(
                    f"{prefix} cannot be allowed", expected="a URL with http, https, s3, gs or az"
                )
        self.prefixes, self._service = tuple(prefixes), service
        self._budget: dict[str, Any] = {"max_bytes": max_bytes, "max_requests": max_requests}

    def listed(self, after: str = "") -> tuple[list[dict[str, Any]], str | None]:
        """Some videos, their names and sizes, and after what the next page begins; None: no more.

        Args:
            after: what the page before gave as next.

        Raises: as `film_list`, and what the service answers.
        """
        labels = [*self.roots, *(["service"] if self._service is not None else [])]
        label, _, rest = (after or "/".join([*labels[:1], ""])).partition("/")
        if label not in labels:
            return [], None
        following = labels[labels.index(label) + 1 :]
        end = f"{following[0]}/" if following else None
        if label in self.roots:
            page = film_list(self.roots[label], False, rest, MOST_LISTED, {})
            videos = [{"video": f"{label}/{one.name}", "size": one.size} for one in page.films]
            return videos, end if page.next is None else f"{label}/{page.next}"
        from fragdex.client import api

        assert self._service is not None
        request = api.list_files(type="video", limit=MOST_LISTED, cursor=rest or None)
        answer = self._service.send(request)
        videos = [
            {"video": f"{_SERVICE}{one.id}", "size": one.byte_size, "title": one.filename}
            for one in answer.files
        ]
        return videos, f"{label}/{answer.next_cursor}" if answer.next_cursor else None

    @contextmanager
    def open(self, name: str) -> Iterator[Source]:
        """A video, open; of a remote one, size and ETag are known.

        Raises:
            Forbidden: it lies outside of what is allowed.
            SourceNotFound: there is no such file.
        """
        if "://" in name or name.startswith(_SERVICE):
            with self._remote(name) as source:
                source.read_up_to(ByteRange(0, 1))
                yield source
            return
        label, _, rest = name.partition("/")
        if label not in self.roots:
            raise self._outside(name)
        with self._in_folder(self.roots[label], rest, name) as source:
            yield source

    def captions(self, name: str) -> list[str]:
        """Names of the caption files next to a video of a folder that begin as it does; 20 at most.

        Those that are links out of the folder are left out.
        """
        folder, _, own = name.rpartition("/")
        label, _, rest = folder.partition("/")
        stem = own.rpartition(".")[0] or own
        if "://" in name or label not in self.roots or not is_name(own):
            return []
        path = os.path.realpath(os.path.join(self.roots[label], rest))
        if not _is_in(path, self.roots[label]):
            return []
        with suppress(OSError):
            beside = [
                one
                for one in sorted(os.listdir(path))
                if one.startswith(f"{stem}.") and one.lower().endswith(CAPTIONS) and is_name(one)
                if _is_in(os.path.realpath(os.path.join(path, one)), self.roots[label])
            ]
            return [f"{folder}/{one}" for one in beside[:MOST_CAPTIONS]]
        return []

    def page(self, name: str) -> Path:
        """An HTML file, or a folder with an index.html, of an allowed folder.

        Raises: as `open`.
        """
        label, _, rest = name.partition("/")
        if label not in self.roots or not (not rest or is_name(rest)):
            raise self._outside(name)
        path = os.path.realpath(os.path.join(self.roots[label], rest))
        if not _is_in(path, self.roots[label]):
            raise self._outside(name)
        is_page = os.path.isfile(path) and path.lower().endswith(PAGES)
        if not is_page and not os.path.isfile(os.path.join(path, "index.html")):
            raise SourceNotFound(
                f"there is no page {name!r}", expected="an HTML file, or a folder with index.html"
            )
        return Path(path)

    def target(self, name: str) -> Path:
        """Where a result is written: a new file or folder of `output`.

        Raises:
            Forbidden: nothing may be written, or the name leads elsewhere.
            InvalidRequest: there is one of this name; nothing is ever replaced.
        """
        if self.output is None:
            raise Forbidden("nothing may be written", advice="start the server with --output DIR")
        if not is_name(name) or "/" in name or len(os.fsencode(name)) > 255:
            raise Forbidden(
                f"{name!r} cannot be written", expected="a plain file name, without a folder"
            )
        place = self.output / name
        if os.path.lexists(place):
            raise InvalidRequest(f"{name} is there already", advice="give another name")
        return place

    def shown(self, place: Path) -> str:
        """What the tools call something that was written."""
        label = next(label for label, root in self.roots.items() if root == str(place.parent))
        return f"{label}/{place.name}"

    def _in_folder(self, root: str, rest: str, name: str) -> Source:
        if not is_name(rest):
            raise self._outside(name)
        path = os.path.realpath(os.path.join(root, *rest.split("/")))
        if not _is_in(path, root):
            raise self._outside(name)
        if not path.lower().endswith(SUFFIXES + CAPTIONS):
            raise Forbidden(f"{name} is not a video", expected=", ".join(SUFFIXES))
        try:
            number = _opened_below(root, os.path.relpath(path, root).split(os.sep))
        except OSError as error:
            raise SourceNotFound(
                f"{name} cannot be opened: {error.strerror}", advice="list_videos has the names"
            ) from error
        with opened(number, name) as file:
            return open_source(file, **self._budget)

    @contextmanager
    def _remote(self, name: str) -> Iterator[Source]:
        url, prefixes, headers = name, self.prefixes, None
        if name.startswith(_SERVICE):
            id = name.removeprefix(_SERVICE)
            if self._service is None or not _ID.fullmatch(id):
                raise self._outside(name)
            base = f"{self._service.options['base_url']}/api/v1/files/{id}"
            url, prefixes = f"{base}/faststart.mp4", (base,)
            headers = self._service.options["headers"]
        elif not _is_allowed(url, prefixes):
            raise self._outside(name)
        if not url.lower().startswith(("http://", "https://")):
            with open_source(url, timeout=_TIMEOUT, **self._budget) as source:
                yield source
            return
        from fragdex.sources.http import client_for

        def look(request: Any) -> None:
            # of each request, redirects among them
            if not _is_allowed(str(request.url), prefixes):
                raise self._outside(str(request.url))

        with client_for(_TIMEOUT) as client:
            client.event_hooks = {"request": [look]}
            with open_source(url, client=client, headers=headers, **self._budget) as source:
                yield source

    def _outside(self, name: str) -> Forbidden:
        return Forbidden(
            f"{name!r} may not be read",
            expected="a name that list_videos gives"
            + (f", or a URL below {', '.join(self.prefixes)}" if self.prefixes else ""),
        )


def _is_in(path: str, root: str) -> bool:
    return path == root or path.startswith(root.rstrip(os.sep) + os.sep)


def _is_prefix(text: str) -> bool:
    try:
        parts = urlsplit(text)
    except ValueError:
        return False
    known = parts.scheme.lower() in ("http", "https", "s3", "gs", "az")
    return known and bool(parts.hostname) and _is_allowed(text, [text])


def _steps_out(url: str) -> bool:
    """Whether a server could take a path for another one, however it is written."""
    path = urlsplit(url).path
    for _ in range(4):
        steps = path.replace("\\", "/").split("/")
        if ".." in steps or "." in steps or any(ord(letter) < 32 for letter in path):
            return True
        path, before = unquote(path), path
        if path == before:
            return False
    return True


def _is_allowed(url: str, prefixes: Sequence[str]) -> bool:
    try:
        return not _steps_out(url) and any(_begins_with(url, prefix) for prefix in prefixes)
    except ValueError:  # such as half of an IPv6 address
        return False


def _begins_with(url: str, prefix: str) -> bool:
    """Whether a URL is that of an allowed folder or file, or of something below it."""
    one, other = urlsplit(url), urlsplit(prefix)
    same = (one.scheme, one.hostname, one.port) == (other.scheme, other.hostname, other.port)
    folder = other.path.rstrip("/")
    below = one.path == other.path or one.path.startswith(f"{folder}/")
    return same and below and one.username is None and one.password is None


def _opened_below(root: str, steps: Sequence[str]) -> int:
    """A regular file below a folder, each step taken from the one before, and through no link.

    Raises:
        OSError: a step is a link by now, or it is not a regular file.
    """
    folder = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        for step in steps[:-1]:
            how = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
            below = os.open(step, how, dir_fd=folder)
            os.close(folder)
            folder = below
        how = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        file = os.open(steps[-1], how, dir_fd=folder)
    finally:
        os.close(folder)
    if not stat.S_ISREG(os.fstat(file).st_mode):
        os.close(file)
        raise OSError(0, "it is not a regular file")
    return file
