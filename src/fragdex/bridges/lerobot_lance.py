"""Sets of robot episodes that are stored as tables of Lance, decoded by fragdex.

The layout is LeRobot's own: `frames.lance` has a row for each frame, `videos.lance` one for each
video, with its bytes as a blob, and `meta.lance` one for each file of `meta/`, which may also be
there as a folder.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from importlib import import_module
from typing import Any, Final

import numpy as np

from fragdex.bridges.lance_videos import LanceVideos
from fragdex.bridges.lerobot import LeRobotSet, values
from fragdex.errors import DamagedIndex, SourceNotFound
from fragdex.sources import open_source

_META: Final = "meta/"
_PLACE: Final = ("video_key", "chunk_index", "file_index")
_BLOB: Final = "video_bytes"


class LeRobotLanceSet(LeRobotSet):
    """A `LeRobotSet` in tables of Lance: the same tensors, and what a batch needs in one read.

    Args:
        root: folder or URI with the tables (`s3://bucket/set`).
        storage_options: as `lance.dataset` takes them.
        how: what `LeRobotSet` takes, but `follow` and options of sources.

    Attributes:
        videos: the file system of its videos; all others are those of `LeRobotSet`.

    Raises: as `LeRobotSet`; ImportError: Lance (pylance) is not installed; ValueError: there is no
        such table.
    """

    def __init__(
        self,
        root: str | os.PathLike[str],
        *,
        storage_options: Mapping[str, str] | None = None,
        **how: Any,
    ) -> None:
        self._uri = os.fspath(root).rstrip("/")
        self._storage = None if storage_options is None else dict(storage_options)
        self.videos = LanceVideos(f"{self._uri}/videos.lance", _BLOB, storage_options=self._storage)
        table = self._lance("videos", self.videos.storage_options["version"])
        places = table.to_table(columns=list(_PLACE)).to_pylist()
        self._rows = {tuple(row.values()): number for number, row in enumerate(places)}
        super().__init__(root, filesystem=self.videos, **how)

    def address(self, name: str) -> str:
        """The name itself: videos are named by their rows."""
        return name

    def read(self, name: str) -> bytes:
        """The bytes of a file of `meta/`.

        Raises:
            SourceNotFound: there is no such file.
        """
        try:
            table = self._lance("meta")
        except ValueError:  # converted without it
            with open_source(f"{self._uri}/{name}") as source:
                return b"".join(bytes(piece) for piece in source.pieces())
        path = name.removeprefix(_META)
        rows = table.to_table(columns=["data"], filter=f"path = '{path}'")
        if not len(rows):
            raise SourceNotFound(f"meta.lance of {self._uri} has no row {path}")
        return bytes(rows["data"][0].as_py())

    def video_name(self, number: int, key: str) -> str:
        """The row of `videos.lance` with the video in which an episode is, as a name."""
        one = self.episodes[number]
        place = (key, *(one[f"videos/{key}/{name}"] for name in _PLACE[1:]))
        if place not in self._rows:
            raise DamagedIndex(f"videos.lance of {self._uri} has no video {place}")
        return f"{self._rows[place]}.mp4"

    def _lance(self, name: str, version: int | None = None) -> Any:
        lance: Any = import_module("lance")
        address = f"{self._uri}/{name}.lance"
        return lance.dataset(address, version=version, storage_options=self._storage)

    def _read_data(self, chosen: list[int]) -> dict[str, Any]:
        names = {name.replace(".", "_"): name for name in self.info["features"]}
        table = self._lance("frames")
        columns = [name for name in table.schema.names if name in names]
        missing = {"index", "episode_index", "timestamp", "task_index"} - {*columns}
        if missing:
            raise DamagedIndex(f"frames.lance of {self._uri} has no column {min(missing)}")
        only = ", ".join(map(str, map(int, chosen)))
        some = None if len(chosen) == len(self.episodes) else f"episode_index IN ({only})"
        rows = table.to_table(columns=columns, filter=some)
        return {names[name]: values(rows[name]) for name in columns}

    def _add_pictures(self, samples: list[dict[str, Any]]) -> None:
        reads = {}
        for film, places in self._of_each_video(samples).items():
            frames = self._open.frames(film)
            numbers = self._nearest(frames, np.concatenate([times for _, _, times in places]))
            reads[self._names[film]] = frames.plan(numbers).reads
        with self.videos.fetched(reads):
            super()._add_pictures(samples)
