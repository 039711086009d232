"""A small server: a folder, bucket or URL of MP4s as HLS, DASH, clips and pictures, nothing stored.

`make_app` makes it, for an ASGI server of its own or below a mount of another application.

titles       names to indexes and packages, a few of them in memory; where indexes are kept
rotated      patterns of names: files that follow each other as one title
writes       which files are being written
film_list    which files there are, and the pages that show them
addresses    what a path and its query ask for, and until when a signature allows it
previews     thumbnails, storyboards, waveforms and loudness, made few at a time
application  `Origin`: all of it as an ASGI application; segments that wait for nothing
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Unpack

from fragdex.errors import MissingExtra
from fragdex.seeking.times import TimeLike
from fragdex.sources import SourceOptions, check_options

if TYPE_CHECKING:
    from fragdex.origin.application import Origin

__all__ = ["make_app"]


def make_app(
    films: str | os.PathLike[str],
    *,
    prefix: str = "",
    segment_duration: TimeLike | None = 4,
    growing: float = 10,
    cache: str | os.PathLike[str] | None = None,
    beside: bool = False,
    in_memory: int = 16,
    max_bytes: int | None = None,
    trust: float = 60,
    max_age: int = 3600,
    playlist_max_age: int = 60,
    secret: str | None = None,
    listed: bool = True,
    log: Callable[[str], None] | None = None,
    **options: Unpack[SourceOptions],
) -> Origin:
    """The files of a folder, or below a URL, as an ASGI application (docs/origin.md).

    It works by itself, below a mount (ASGI's `root_path`) and behind a proxy that takes a prefix
    away: all addresses that it gives are relative, so that it looks at no `X-Forwarded-` header.

    Args:
        films: path of a folder, or a URL (https, s3, gs, az) that names are put after.
        prefix: a path such as `/films` before all requested addresses, which neither a mount
            nor a proxy has taken away.
        segment_duration: wanted length of segments in seconds; None: one a file.
        growing: seconds after its last write for which a local fragmented file counts as one that
            grows; 0: none does.
        cache: folder that indexes are kept in; None: they are made again.
        beside: keep indexes of local files next to them, as `film.mp4.fidx`.
        in_memory: files that stay open.
        max_bytes: that may be read of a remote file to index it; None: no bound.
        trust: seconds for which a remote file is taken to be the same without asking.
        max_age, playlist_max_age: seconds for which caches may keep media, and playlists.
        secret: serve signed addresses only (`fragdex.origin.addresses.signed`).
        listed: whether `/` lists the files.
        log: called with a line for each request.
        options: for `fragdex.open_source`.

    Returns: the application. A framework that mounts it calls its `close()` at the end, since
        mounts pass no lifespan messages on.

    Raises:
        SourceNotFound: there is no such folder.
        MissingExtra: Starlette is not installed.
        ValueError: the prefix does not begin with a slash, or ends with one.

    >>> make_app("fixtures", prefix="/films").close()
    """
    check_options("make_app", options, tuple(make_app.__kwdefaults__ or ()))
    if prefix and (not prefix.startswith("/") or prefix.endswith("/")):
        raise ValueError(f"a prefix begins with a slash and ends without one, not {prefix!r}")
    try:
        from fragdex.origin.application import Origin, OriginSettings
    except ImportError as error:
        raise MissingExtra("an origin needs more packages", extra="service") from error
    from fragdex.origin.titles import IndexFiles, Titles

    indexes = IndexFiles(None if cache is None else Path(os.path.realpath(cache)), beside=beside)
    titles = Titles(
        films, segment_duration=segment_duration, in_memory=in_memory, indexes=indexes,
        max_bytes=max_bytes, trust=trust, growing=growing, **options,
    )  # fmt: skip
    settings = OriginSettings(
        max_age=max_age, playlist_max_age=playlist_max_age, secret=secret, listed=listed,
        prefix=prefix, log=log,
    )  # fmt: skip
    return Origin(titles, settings)


def __dir__() -> list[str]:
    return sorted(__all__)
