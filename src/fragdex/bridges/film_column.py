"""A column of videos of Hugging Face `datasets` that decodes to `fragdex.Frames`."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from fragdex.errors import SourceError
from fragdex.frames import Frames


def film(**options: Any) -> Any:
    """The feature of a column whose values become `fragdex.Frames`.

    `dataset.cast_column("video", film())` takes it.
    It is `datasets.Video` with another decoder: what is stored stays as it is, and without fragdex
    it is read as `Video`. Frames are decoded when they are indexed, and no others.

    Args:
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
            if isinstance(value, str):
                value = {"path": value, "bytes": None}
            if value.get("bytes") is not None:
                return Frames(value["bytes"], **options)
            if not value.get("path"):
                raise SourceError("a value of the column has neither bytes nor a path")
            return Frames(value["path"], **options)

    return FilmFeature()
