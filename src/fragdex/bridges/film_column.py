"""A column of videos of Hugging Face `datasets` that decodes to `fragdex.Frames`."""

from __future__ import annotations

import os
from importlib import import_module
from typing import Any

from fragdex.errors import SourceError
from fragdex.frames import Frames
from fragdex.sources.names_in_files import SetPlace


def film(
    *, root: str | os.PathLike[str] | None = None, follow: bool = False, **options: Any
) -> Any:
    """The feature of a column whose values become `fragdex.Frames`.

    `dataset.cast_column("video", film(root="videos/"))` takes it.
    It is `datasets.Video` with another decoder: what is stored stays as it is, and without fragdex
    it is read as `Video`. Frames are decoded when they are indexed, and no others. Bytes are always
    decoded; a path or URL in the column could name any file, so it is opened only below `root`.

    Args:
        root: folder or URL below which the files of the column are; relative names are seen from
            it, and links count as what they lead to. None: no path is opened.
        follow: open every path and URL of the column; for data that you trust.
        options: of `fragdex.Frames`.

    Raises:
        ImportError: `datasets` is not installed.
    """
    base: Any = import_module("datasets").Video

    class FilmFeature(base):  # type: ignore[misc]
        """Videos that fragdex decodes."""

        def decode_example(self, value: Any, token_per_repo_id: Any = None) -> Frames:
            """The frames of a value: a path or URL, or bytes."""
            if not self.decode:
                raise RuntimeError("decoding is switched off: use `film` without decode=False")
            return frames_of(value, root=root, follow=follow, **options)

    return FilmFeature()


def frames_of(
    value: Any, *, root: str | os.PathLike[str] | None = None, follow: bool = False, **options: Any
) -> Frames:
    """The frames of one value of a column.

    Args:
        value: a path or URL; or a dict of `bytes` and `path`, of which one may be None.
        root, follow, options: as of `film`.

    Raises:
        SourceError: it has neither bytes nor a path, or the path is not below `root` and not
            followed; and what `fragdex.Frames` raises.
    """
    if isinstance(value, str):
        value = {"path": value, "bytes": None}
    if value.get("bytes") is not None:
        return Frames(value["bytes"], **options)
    path = value.get("path")
    if not path:
        raise SourceError("a value of the column has neither bytes nor a path")
    if root is None and not follow:
        raise SourceError(
            f"the column names {path}, and nothing says which folder its files are in",
            expected="root=, the folder or URL of the files",
            advice="root=… opens what is below it; if you trust the data, follow=True opens every "
            "file that the column names",
        )
    place = SetPlace("", None if root is None else os.fspath(root), follow)
    return Frames(place.address(path), **options)
