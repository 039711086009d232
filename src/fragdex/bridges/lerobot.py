"""Sets of robot episodes in LeRobot's form (version 3), as they lie, decoded by fragdex.

A set is a folder, URL or bucket with `meta/info.json`, `meta/tasks.parquet`, `meta/episodes/…`,
`data/…` and `videos/…`; several episodes lie in one video, one after the other.
"""

from __future__ import annotations

import io
import json
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib import import_module
from string import Formatter
from typing import Any, Final, Literal, Unpack

import numpy as np
import numpy.typing as npt

from fragdex.data.film_listing import Connections
from fragdex.data.video_set import SharedFrames
from fragdex.data.windows import CACHE, OPEN_FILMS, OpenFilms
from fragdex.errors import DamagedIndex, MissingExtra, SourceError, SourceNotFound, UndecodableMedia
from fragdex.fragments.table import Int64
from fragdex.frames import Frames
from fragdex.sources import Source, SourceOptions, check_options, open_source
from fragdex.sources.names_in_files import SetPlace

VERSION: Final = "v3."
MOST_FILES: Final = 1 << 20
_PLACES: Final = {"video_key", "chunk_index", "file_index"}
_OF_EPISODES: Final = (
    "episode_index", "dataset_from_index", "dataset_to_index", "data/chunk_index",
    "data/file_index",
)  # fmt: skip
_OF_FRAMES: Final = ("index", "episode_index", "timestamp", "task_index")


class _Films:
    """The videos of a set by number; each is indexed when it is first opened."""

    def __init__(self, names: Sequence[str], address: Callable[[str], str], options: Any) -> None:
        self._names, self._address, self._options = names, address, options
        self._connections = Connections()

    def frames(self, number: int, **options: Any) -> Frames:
        """The frames of a video, newly opened."""
        name = self._address(self._names[number])
        return SharedFrames(self._connections, name, **{**self._options, **options})


class EpisodeFiles:
    """The files of a set, and what those in `meta` say.

    Args:
        root, follow, options: as of `LeRobotSet`.

    Attributes:
        info, fps, tasks, episodes: as of `LeRobotSet`.
        video_keys, image_keys: names of the features that are videos, and pictures.

    Raises: as `LeRobotSet`.
    """

    def __init__(self, root: str | os.PathLike[str], follow: bool, options: Any) -> None:
        self._root, self._options = os.fspath(root), options
        self._files = SetPlace(self._root, self._root, follow, all_relative=True)
        self._connections = Connections()
        self.info = self._read_info()
        self.fps = self.info["fps"]
        self.tasks = self._read_tasks()
        kinds = {name: one.get("dtype") for name, one in self.info["features"].items()}
        self.video_keys = [name for name, kind in kinds.items() if kind == "video"]
        self.image_keys = [name for name, kind in kinds.items() if kind == "image"]
        self.episodes = {one["episode_index"]: one for one in self._read_episodes()}

    def _read_info(self) -> dict[str, Any]:
        try:
            info = json.loads(self.read("meta/info.json"))
        except SourceNotFound as error:
            raise SourceNotFound(
                f"{self._root} is not a set of episodes: there is no meta/info.json"
            ) from error
        except ValueError as error:
            raise DamagedIndex(f"meta/info.json of {self._root} is not JSON") from error
        version = str(info.get("codebase_version", "")) if isinstance(info, dict) else ""
        if not version.startswith(VERSION) or not isinstance(info.get("features"), dict):
            raise DamagedIndex(
                f"{self._root} is a set of another version",
                expected="codebase_version v3.0, and its features",
                found=version or "nothing",
                advice="convert it with LeRobot",
            )
        if not isinstance(info.get("fps"), (int, float)) or info["fps"] <= 0:
            raise DamagedIndex(f"meta/info.json of {self._root} has no fps")
        for name in ("data_path", "video_path"):
            _check_template(info.get(name))
        return dict(info)

    def _read_tasks(self) -> list[str]:
        table = self.table("meta/tasks.parquet")
        texts = [c for c in table.column_names if "string" in str(table.schema.field(c).type)]
        if len(texts) != 1:
            raise DamagedIndex("meta/tasks.parquet has no column of sentences")
        return [str(one) for one in table[texts[0]].to_pylist()]

    def episode_tables(self) -> Iterator[Any]:
        """The tables of `meta/episodes` in their order.

        Raises:
            DamagedIndex: a column is missing, or they have other episodes than info.json says.
        """
        total, rows = self.info.get("total_episodes"), 0
        if not isinstance(total, int):
            raise DamagedIndex(f"meta/info.json of {self._root} says no total_episodes")
        chunk = file = 0
        while rows < total and chunk + file < MOST_FILES:
            try:
                table = self.table(f"meta/episodes/chunk-{chunk:03d}/file-{file:03d}.parquet")
            except SourceNotFound:
                if not file:
                    break
                chunk, file = chunk + 1, 0
                continue
            missing = {*_OF_EPISODES, *self._of_films()} - set(table.column_names)
            if missing:
                raise DamagedIndex(f"meta/episodes has no column {min(missing)}")
            yield table
            rows += len(table)
            file += 1
        if rows != total:
            raise DamagedIndex(
                f"meta/episodes of {self._root} has other episodes than info.json says",
                expected=total,
                found=rows,
            )

    def _read_episodes(self) -> Iterator[dict[str, Any]]:
        for table in self.episode_tables():
            kept = [name for name in table.column_names if not name.startswith("stats/")]
            yield from table.select(kept).to_pylist()

    def _of_films(self) -> list[str]:
        """Columns of meta/episodes that say where its videos are."""
        names = ("chunk_index", "file_index", "from_timestamp")
        return [f"videos/{key}/{name}" for key in self.video_keys for name in names]

    def data_name(self, number: int) -> str:
        """The file of rows that has those of an episode."""
        one = self.episodes[number]
        place = {"chunk_index": one["data/chunk_index"], "file_index": one["data/file_index"]}
        return self._name("data_path", **place)

    def video_name(self, number: int, key: str) -> str:
        """The video in which an episode is."""
        one = self.episodes[number]
        place = {name: one[f"videos/{key}/{name}"] for name in ("chunk_index", "file_index")}
        return self._name("video_path", video_key=key, **place)

    def _name(self, template: str, **place: Any) -> str:
        try:
            return str(self.info[template].format(**place))
        except (AttributeError, LookupError, TypeError, ValueError) as error:
            raise DamagedIndex(
                f"meta/info.json of {self._root} has no {template} that names a file",
                found=place,
            ) from error

    def address(self, name: str) -> str:
        """A name of the set as it is opened.

        Raises:
            SourceError: it lies outside of root, and is not followed.
        """
        return self._files.address(
            name, store=self._options.get("store"), filesystem=self._options.get("filesystem")
        )

    @property
    def folder(self) -> str | None:
        """The set's folder on this machine; None: it is elsewhere."""
        elsewhere = "://" in self._root or {"store", "filesystem"} & self._options.keys()
        return None if elsewhere else self._root

    def open(self, name: str) -> Source:
        """A file of the set; raises as `open_source`, and `address`."""
        address = self.address(name)
        return open_source(address, **self._connections.options(address, self._options))

    def read(self, name: str) -> bytes:
        """The bytes of a file of the set; raises as `open`."""
        with self.open(name) as source:
            return b"".join(bytes(piece) for piece in source.pieces())

    def table(self, name: str, columns: Sequence[str] | None = None) -> Any:
        """A Parquet file of the set, as a table of pyarrow; with all columns, or some.

        Raises:
            DamagedIndex: it is not a Parquet file.
            MissingExtra: pyarrow is not installed.
            And what `read` raises.
        """
        try:
            import pyarrow as pa
            from pyarrow import parquet
        except ImportError as error:
            raise MissingExtra(
                "a set has Parquet files, and needs pyarrow", extra="data"
            ) from error
        data = self.read(name)
        try:
            return parquet.read_table(pa.BufferReader(data), columns=columns)
        except (pa.ArrowInvalid, OSError) as error:
            raise DamagedIndex(f"{name} of {self._root} is not a Parquet file") from error


class LeRobotSet(EpisodeFiles, Sequence[dict[str, Any]]):
    """The frames of all episodes: a map-style data set that gives what LeRobot's own loader gives.

    Args:
        root: folder, URL or bucket of the set (`s3://bucket/set`,
            `https://huggingface.co/datasets/NAME/resolve/main`).
        delta_timestamps: feature → seconds before and after each frame, multiples of 1 / fps: the
            feature then has the values at all of these, and `NAME_is_pad` says which lie outside
            of the episode, where its first or last stand in their place.
        episodes: numbers of the episodes; None: all.
        tolerance_s: how far the time of a picture may lie from that of its frame, in seconds.
        transform: called with each sample, gives what is handed out in its place.
        output: `torch` or `numpy`.
        follow: open videos that the set names outside of its root, too.
        threads: that decode; 1 where several workers do.
        cache: bytes of pictures and samples that are held in each process.
        open_films: videos whose files are open in each process.
        options: passed on to `open_source`.

    Attributes:
        info: what `meta/info.json` says.
        episodes: of each episode, what `meta/episodes` says of it, without statistics.
        tasks: their sentences.

    A sample is a dict: pictures of each camera as float32 from 0 to 1, of shape (channels, height,
    width), or with several times (times, channels, height, width); the other features; `task`.
    `__getitems__`, which torch's loader calls, decodes what samples of a batch share once.

    Raises:
        DamagedIndex: it is not a set of this form, or contradicts itself.
        SourceError: it cannot be read; a video lies outside of root, and is not to be followed.
        MissingExtra: pyarrow is not installed (`pip install 'fragdex[data]'`).
        ValueError: delta_timestamps are not multiples of 1 / fps, or there is no such episode.
    """

    def __init__(
        self,
        root: str | os.PathLike[str],
        *,
        delta_timestamps: Mapping[str, Sequence[float]] | None = None,
        episodes: Sequence[int] | None = None,
        tolerance_s: float = 1e-4,
        transform: Callable[[dict[str, Any]], Any] | None = None,
        output: Literal["torch", "numpy"] = "torch",
        follow: bool = False,
        threads: int = 1,
        cache: int = CACHE,
        open_films: int = OPEN_FILMS,
        **options: Unpack[SourceOptions],
    ) -> None:
        check_options("LeRobotSet", options, ("root", "follow"))
        if output not in ("torch", "numpy"):
            raise ValueError(f"output is torch or numpy, not {output!r}")
        super().__init__(root, follow, options)
        self._transform, self._output, self._tolerance = transform, output, tolerance_s
        chosen = list(self.episodes) if episodes is None else list(episodes)
        for number in chosen:
            if number not in self.episodes:
                raise ValueError(f"there is no episode {number}: there are {len(self.episodes)}")
        self._columns = self._read_data(chosen)
        self._place = {int(at): n for n, at in enumerate(self._columns["index"])}
        self._deltas = self._delta_indices(delta_timestamps or {})
        self._names: list[str] = []
        self._films_of = self._films(chosen)
        self._open = OpenFilms(
            _Films(self._names, self.address, options).frames,
            cache,
            open_films,
            {"threads": threads},
        )

    def __len__(self) -> int:
        return len(self._columns["index"])

    def __getitem__(self, number: Any) -> Any:
        """One sample; negative from the end.

        Raises:
            IndexError: there is no such sample.
            UndecodableMedia: no picture lies at its time.
            And what opening and reading a video raise.
        """
        return self.__getitems__([number])[0]

    def __getitems__(self, numbers: Sequence[int]) -> list[Any]:
        """Several samples, in the order that is requested."""
        for number in numbers:
            if not -len(self) <= number < len(self):
                raise IndexError(f"there is no sample {number}: there are {len(self)}")
        samples = [self._sample(int(number) % len(self)) for number in numbers]
        self._add_pictures(samples)
        items = [self._finished(sample) for sample in samples]
        return items if self._transform is None else [self._transform(one) for one in items]

    # -- samples

    def _sample(self, number: int) -> dict[str, Any]:
        """All of a sample but its pictures, of which it has video and times."""
        row = {name: column[number] for name, column in self._columns.items()}
        episode = self.episodes[int(row["episode_index"])]
        first, stop = episode["dataset_from_index"], episode["dataset_to_index"]
        here, sample = int(row["index"]), dict(row)
        asked: dict[str, list[int]] = {}
        for name, deltas in self._deltas.items():
            places = [here + delta for delta in deltas]
            sample[f"{name}_is_pad"] = np.array([not first <= at < stop for at in places])
            inside = [min(max(at, first), stop - 1) for at in places]
            if not all(at in self._place for at in inside):
                raise DamagedIndex(f"episode {episode['episode_index']} has other frames than said")
            asked[name] = [self._place[at] for at in inside]
            if name not in self.video_keys:
                sample[name] = [self._columns[name][at] for at in asked[name]]
        pictures = {}
        for name in self.video_keys:
            rows = asked.get(name, [number])
            times = self._columns["timestamp"][rows].astype(np.float64)
            film, begin = self._films_of[int(row["episode_index"]), name]
            pictures[name] = (film, times + begin, name in asked)
        return {"": pictures, **sample}

    def _add_pictures(self, samples: list[dict[str, Any]]) -> None:
        for film, places in self._of_each_video(samples).items():
            frames, times = self._open.frames(film), [own for _, _, own in places]
            batch = frames[self._nearest(frames, np.concatenate(times))]
            at = 0
            for place, name, own in places:
                pixels = np.asarray(batch.data[at : at + len(own)])
                samples[place][name] = pixels if samples[place][""][name][2] else pixels[0]
                at += len(own)

    def _of_each_video(self, samples: list[dict[str, Any]]) -> dict[int, list[tuple[Any, ...]]]:
        """Place, camera and times of what samples have of each video, by its number."""
        wanted: dict[int, list[tuple[Any, ...]]] = {}
        for place, sample in enumerate(samples):
            for name, (film, times, _) in sample[""].items():
                wanted.setdefault(film, []).append((place, name, times))
        return wanted

    def _nearest(self, frames: Frames, times: npt.NDArray[np.float64]) -> Int64:
        shown = frames.times
        if not len(shown):
            raise UndecodableMedia(f"{frames.source.name} has no frames")
        numbers = nearest(shown, times)
        apart = np.abs(shown[numbers] - times)
        if (apart >= self._tolerance).any():
            worst = int(np.argmax(apart))
            raise UndecodableMedia(
                f"{frames.source.name} has no picture within {self._tolerance:g} s of "
                f"{times[worst]:.6f} s: the nearest is {apart[worst]:.6f} s away",
                advice="leave out the sample, or raise tolerance_s",
            )
        return numbers

    def _finished(self, sample: dict[str, Any]) -> dict[str, Any]:
        keys = sample.pop("")
        frames = {name: self._pixels(sample.pop(name)) for name in keys}
        for name, value in sample.items():
            if name in self.image_keys:
                several = value if isinstance(value, list) else [value]
                pixels = np.stack([self._picture(one) for one in several])
                frames[name] = self._pixels(pixels if isinstance(value, list) else pixels[0])
            elif isinstance(value, list):
                frames[name] = self._tensor(np.stack(value))
            else:
                frames[name] = value if isinstance(value, str) else self._tensor(np.asarray(value))
        frames["task"] = self.tasks[int(sample["task_index"])]
        return frames

    def _pixels(self, pixels: npt.NDArray[np.uint8]) -> Any:
        """Channels first, float32 from 0 to 1."""
        moved = np.moveaxis(pixels, -1, -3)
        if self._output == "numpy":
            return moved / np.float32(255)
        return self._tensor(np.ascontiguousarray(moved)) / 255.0

    def _tensor(self, array: npt.NDArray[Any]) -> Any:
        if self._output == "numpy":
            return array
        # No extra of this library brings torch: who calls this has it.
        torch: Any = import_module("torch")
        return torch.from_numpy(array) if array.ndim else torch.tensor(array.item())

    def _picture(self, value: Any) -> npt.NDArray[np.uint8]:
        data = (value or {}).get("bytes")
        if not data:
            raise SourceError("a picture of the set is a file of its own, which is not opened")
        try:
            from PIL import Image
        except ImportError as error:
            raise MissingExtra("pictures of a set need Pillow", extra="media") from error
        return np.asarray(Image.open(io.BytesIO(data)).convert("RGB"))

    # -- the set

    def _read_data(self, chosen: list[int]) -> dict[str, Any]:
        import pyarrow as pa

        tables = [self.table(name) for name in sorted({*map(self.data_name, chosen)})]
        if not tables:
            raise DamagedIndex(f"{self._root} has no episodes")
        table = pa.concat_tables(tables, promote_options="default")
        keep = np.isin(table["episode_index"].to_numpy(), chosen)
        table = table if keep.all() else table.filter(pa.array(keep))
        missing = set(_OF_FRAMES) - set(table.column_names)
        if missing:
            raise DamagedIndex(f"the data of {self._root} has no column {min(missing)}")
        return {name: values(table[name]) for name in table.column_names}

    def _films(self, chosen: list[int]) -> dict[tuple[int, str], tuple[int, float]]:
        """Episode and camera → number of the video, and the second at which the episode begins."""
        numbers: dict[str, int] = {}
        places = {}
        for episode in chosen:
            for key in self.video_keys:
                number = numbers.setdefault(self.video_name(episode, key), len(numbers))
                begin = self.episodes[episode][f"videos/{key}/from_timestamp"]
                places[episode, key] = number, float(begin)
        self._names += numbers
        return places

    def _delta_indices(self, deltas: Mapping[str, Sequence[float]]) -> dict[str, list[int]]:
        offsets = {}
        for name, seconds in deltas.items():
            if name not in self.info["features"]:
                raise ValueError(f"there is no feature {name!r}")
            frames = [float(one) * self.fps for one in seconds]
            offsets[name] = [round(one) for one in frames]
            if any(abs(one - round(one)) / self.fps > self._tolerance for one in frames):
                raise ValueError(f"delta_timestamps of {name} are no multiples of 1 / {self.fps} s")
        return offsets

    def close(self) -> None:
        """Close the videos that are open in this process."""
        self._open.close()

    def __iter__(self) -> Iterator[Any]:
        return (self[number] for number in range(len(self)))

    def __repr__(self) -> str:
        return (
            f"<LeRobotSet {self._root!r}: {len(self)} frames of {len(self.episodes)} episodes, "
            f"{len(self._names)} videos>"
        )


def nearest(shown: npt.NDArray[np.float64], times: npt.NDArray[np.float64]) -> Int64:
    """The numbers of the times that are next to some.

    Args:
        shown: at least one, in order.
    """
    later = np.clip(np.searchsorted(shown, times), 1, max(len(shown) - 1, 1))
    later = np.minimum(later, len(shown) - 1)
    earlier = np.maximum(later - 1, 0)
    is_later = np.abs(shown[later] - times) < np.abs(shown[earlier] - times)
    return np.where(is_later, later, earlier).astype(np.int64)


def _check_template(template: Any) -> None:
    """Refuse a template of names that would do more than put names and numbers into place."""
    if template is None:
        return
    try:
        parts = list(Formatter().parse(template))
    except (ValueError, TypeError) as error:
        raise DamagedIndex(f"info.json has an invalid path: {template!r}") from error
    for _, name, form, conversion in parts:
        if name is not None and (
            name not in _PLACES or conversion or not re.fullmatch(r"(0?\d?d)?", form or "")
        ):
            raise DamagedIndex(
                f"info.json has an invalid path: {template!r}",
                expected="{video_key}, {chunk_index:03d} and {file_index:03d}",
            )


def values(column: Any) -> Any:
    """A column as an array; what torch.tensor makes of it: float32, int64, bool."""
    import pyarrow as pa

    whole = column.combine_chunks()
    if isinstance(whole, pa.ChunkedArray):
        whole = pa.concat_arrays(whole.chunks) if whole.num_chunks else pa.array([], whole.type)
    if isinstance(whole, pa.ExtensionArray):
        whole = whole.storage
    shape = [len(whole)]
    while pa.types.is_list(whole.type) or pa.types.is_fixed_size_list(whole.type):
        lengths = np.array(whole.value_lengths().to_numpy(zero_copy_only=False))
        if not len(lengths) or (lengths != lengths[0]).any():
            return column.to_pylist()
        shape.append(int(lengths[0]))
        whole = whole.flatten()
    kind = whole.type
    if pa.types.is_floating(kind):
        array = whole.to_numpy(zero_copy_only=False).astype(np.float32)
    elif pa.types.is_integer(kind) and not whole.null_count:
        array = whole.to_numpy(zero_copy_only=False).astype(np.int64)
    elif pa.types.is_boolean(kind) and not whole.null_count:
        array = whole.to_numpy(zero_copy_only=False).astype(np.bool_)
    else:
        return column.to_pylist()
    return array.reshape(shape)
