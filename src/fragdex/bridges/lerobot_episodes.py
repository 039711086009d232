"""Episodes taken out of a set in LeRobot's form, without encoding: a new set with the others.

Videos of which all episodes stay are copied. Of the others, the samples of what stays are copied,
one episode after the other; rows, episodes, tasks and statistics follow. All is written into a
folder next to the new set, which gets its name when it is whole.
"""

from __future__ import annotations

import errno
import io
import json
import os
import secrets
import shutil
from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from itertools import pairwise
from math import inf
from typing import Any, Final, Unpack

import numpy as np

from fragdex.bridges.lerobot import EpisodeFiles, nearest
from fragdex.errors import BuildError, DamagedIndex
from fragdex.fragments.table import Int64
from fragdex.indexing.making import index_source
from fragdex.muxing.copies import ClipRequest, clip_view
from fragdex.muxing.spans import Reader, first_decoded
from fragdex.record import record
from fragdex.seeking.model import Track
from fragdex.seeking.numbering import Numbering
from fragdex.sources import Source, SourceOptions, check_options, open_source
from fragdex.sources.files import write_file
from fragdex.sources.names_in_files import SetPlace

_SUBTASKS: Final = "meta/subtasks.parquet"
_STATISTICS: Final = ("min", "max", "mean", "std", "count")
_FILES_IN_CHUNK: Final = 1000
_ROUNDING: Final = 1e-6
"""Seconds that floats alone add or take."""

_Span = tuple[int, int]
"""Numbers of pictures, the second exclusive."""


@record(frozen=True, slots=True)
class RemovedEpisodes:
    """A set without some episodes.

    Attributes:
        output: its folder.
        episodes: of each of its episodes, the number in the source.
        frames: rows of all of them.
        videos: that it has.
        encoded: pictures that were encoded again.
        findings: sentences on pictures of removed episodes that are left, and on files of the
            source that it does not have.
    """

    output: str
    episodes: tuple[int, ...]
    frames: int
    videos: int
    encoded: int
    findings: tuple[str, ...]


def remove_episodes(
    root: str | os.PathLike[str],
    episodes: Iterable[int],
    output: str | os.PathLike[str],
    *,
    smart: bool = False,
    keep_needed: bool = False,
    follow: bool = False,
    **options: Unpack[SourceOptions],
) -> RemovedEpisodes:
    """Write a set (version 3) without some episodes, as LeRobot's own tool does.

    The episodes that stay are numbered from 0, and their pictures copied bit for bit. No picture of
    the others is left. Where one would be needed, because an episode that stays begins inside a
    group of pictures, nothing is written, unless `smart` or `keep_needed` is set.

    Args:
        root: folder, URL or bucket of the set.
        episodes: numbers of those that are removed.
        output: a folder that is not there yet.
        smart: encode the pictures again that need some of a removed episode.
        keep_needed: keep pictures of removed episodes that others need, at times that belong to no
            episode; findings name them.
        follow: read files that the set names outside of its root, too.
        options: passed on to `open_source`.

    Raises:
        ValueError: no episode is named, there is no such episode, or none would be left.
        FileExistsError: output is there.
        DamagedIndex: it is not a set of this form, or contradicts itself.
        BuildError: pictures that stay need some that do not.
        MissingExtra: pyarrow is not installed (`pip install 'fragdex[data]'`).
        And what `fragdex.clip` raises.
    """
    check_options("remove_episodes", options, ("follow",))
    if smart and keep_needed:
        raise ValueError("with smart no picture is left that keep_needed could keep")
    files, gone = EpisodeFiles(root, follow, options), {*episodes}
    for known, one in files.episodes.items():
        length = one.get("length")
        if type(known) is not int or type(length) is not int or length < 1:
            raise DamagedIndex("meta/episodes has an episode without a number or a length")
    for number in gone - files.episodes.keys():
        raise ValueError(f"there is no episode {number}: there are {len(files.episodes)}")
    if not gone or gone == files.episodes.keys():
        raise ValueError("no episode would be left" if gone else "no episode is named")
    target = os.path.abspath(os.fspath(output))
    if os.path.lexists(target):
        raise FileExistsError(errno.EEXIST, "it is there already: name a new folder", target)
    parent, name = os.path.split(target)
    staging = os.path.join(parent, f".{name[:50]}.{secrets.token_hex(8)}.part")
    os.mkdir(staging)
    try:
        edit = _Edit(files, gone, staging, smart, keep_needed)
        edit.write()
        os.rename(staging, target)
    except BaseException:
        shutil.rmtree(staging, ignore_errors=True)
        raise
    return RemovedEpisodes(
        *(target, tuple(edit.kept), edit.frames, edit.videos, edit.encoded, tuple(edit.findings))
    )


class _Edit:
    """One removal: what stays, and what becomes of it."""

    def __init__(
        self, files: EpisodeFiles, gone: set[int], folder: str, smart: bool, keep_needed: bool
    ) -> None:
        self.files, self.smart, self.keep_needed = files, smart, keep_needed
        self.place = SetPlace(folder, folder, False, all_relative=True)
        self.kept = sorted(files.episodes.keys() - gone)
        # of each, the columns of meta/episodes that change
        self.changed: dict[int, dict[str, Any]] = {
            old: {"episode_index": new} for new, old in enumerate(self.kept)
        }
        self.read: set[str] = set()
        self.findings: list[str] = []
        self.frames = self.videos = self.encoded = 0

    def write(self) -> None:
        """Write all files of the new set."""
        tasks = self._write_rows()
        for key in self.files.video_keys:
            self._write_videos(key)
        self._write_tasks(tasks)
        self._write_episodes()
        count = len(self.kept)
        totals = {"total_episodes": count, "total_frames": self.frames, "total_tasks": len(tasks)}
        info = {**self.files.info, **totals, "splits": {"train": f"0:{count}"}}
        self._write_json("meta/info.json", info)
        if "subtask_index" in info["features"]:
            self._write(_SUBTASKS, [self.files.read(_SUBTASKS)])
            self.read.add(_SUBTASKS)
        self.findings += self._other_files()

    # -- rows and tasks

    def _write_rows(self) -> list[int]:
        """Write the rows of what stays; gives the tasks of the source that they name."""
        names: dict[str, list[int]] = {}
        for number in self.kept:
            names.setdefault(self.files.data_name(number), []).append(number)
        self.read |= {*map(self.files.data_name, self.files.episodes)}
        used: set[int] = set()
        for name, own in names.items():
            table = self.files.table(name, ["episode_index", "task_index"])
            used |= {*_ints(_chosen(table, own), "task_index").tolist()}
        tasks = sorted(used)
        if tasks and not 0 <= tasks[0] <= tasks[-1] < len(self.files.tasks):
            raise DamagedIndex(f"a row names task {tasks[-1]}: there are {len(self.files.tasks)}")
        for name in sorted(names):
            table = _chosen(self.files.table(name), names[name])
            episodes = _ints(table, "episode_index")
            self._place(episodes, names[name], name)
            new = [self.changed[number]["episode_index"] for number in names[name]]
            columns = {
                "episode_index": np.array(new)[np.searchsorted(names[name], episodes)],
                "index": np.arange(self.frames, self.frames + len(table)),
                "task_index": np.searchsorted(tasks, _ints(table, "task_index")),
            }
            self._write_table(name, _with_columns(table, columns))
            self.frames += len(table)
        return tasks

    def _place(self, episodes: Int64, own: Sequence[int], name: str) -> None:
        """Note where the rows of each episode of a file begin and end."""
        edges = [0, *(np.flatnonzero(np.diff(episodes)) + 1).tolist(), len(episodes)]
        runs = {int(episodes[low]): (low, high) for low, high in pairwise(edges) if low < high}
        for number in own:
            low, high = runs.get(number, (0, 0))
            length = self.files.episodes[number]["length"]
            if high - low != length or len(runs) != len(own):
                raise DamagedIndex(
                    f"episode {number} has other rows in {name} than meta/episodes says",
                    expected=f"{length}, one after the other",
                    found=int((episodes == number).sum()),
                )
            edges_of = (self.frames + low, self.frames + high)
            names = ("dataset_from_index", "dataset_to_index")
            self.changed[number] |= dict(zip(names, edges_of, strict=True))

    def _write_tasks(self, tasks: list[int]) -> None:
        name = "meta/tasks.parquet"
        table = self.files.table(name).take(tasks)
        columns = {"task_index": np.arange(len(tasks))}
        self._write_table(name, _with_columns(table, columns))

    # -- videos

    def _write_videos(self, key: str) -> None:
        names: dict[str, list[int]] = {}
        for number in self.files.episodes:
            names.setdefault(self.files.video_name(number, key), []).append(number)
        self.read |= names.keys()
        for name, numbers in names.items():
            own = [number for number in numbers if number in self.changed]
            if own:
                with self.files.open(name) as source:
                    if own == numbers:
                        self._write(name, source.pieces())
                    else:
                        self._cut(name, source, key, own)
                self.videos += 1

    def _cut(self, name: str, source: Source, key: str, own: Sequence[int]) -> None:
        """Write what episodes have of a video, and note their times in it."""
        index = index_source(source, exact=True)
        track = index.video
        if track is None:
            raise DamagedIndex(f"{name} has no pictures")
        begins = {number: self._begin(number, key) for number in own}
        shown = Numbering(track, track.samples, size=source.size)
        pictures = {number: self._pictures(name, number, shown, begins[number]) for number in own}
        spans = _merged(pictures.values())
        if sum(stop - first for first, stop in spans) != sum(
            self.files.episodes[number]["length"] for number in own
        ):
            raise DamagedIndex(f"two episodes have the same pictures of {name}")
        whole = _merged(_with_needed(track, shown, span, source) for span in spans)
        left = [f"{name}: {part}" for part in _left(shown, whole, spans)]
        if left and not self.smart and not self.keep_needed:
            raise BuildError(
                f"pictures that stay need some that are removed: {left[0]}"
                + (f", and {len(left) - 1} more spans" if left[1:] else ""),
                advice="smart (--smart) encodes those again that need them; keep_needed "
                "(--keep-needed) leaves what is needed in the video, at times of no episode",
            )
        if self.keep_needed:
            self.findings += [f"{one} of removed episodes are left" for one in left]
            spans = whole
        times = [Fraction(tick, shown.timescale) for tick in shown.ticks.tolist()]
        edges = [0, *(edge for span in spans for edge in span), len(times)]
        at: list[Fraction | float] = [-inf, *times[1:], inf]
        pairs = zip(edges[::2], edges[1::2], strict=True)
        removed = tuple((at[low], at[high]) for low, high in pairs if low < high)
        cut = ClipRequest(-inf, inf, removed=removed, smart=self.smart and bool(left))
        view, clip = clip_view(index, source, cut)
        self.encoded += clip.encoded
        self.findings += [f"{name}: {one}" for one in view.findings]
        self._write(name, view.chunks(source=source))
        with open_source(self.place.address(name)) as output:
            after = index_source(output, exact=True)
            assert after.video is not None
            now = Numbering(after.video, after.video.samples, size=output.size)
            for number in own:
                first = pictures[number][0]
                before = sum(min(stop, first) - start for start, stop in spans if start < first)
                # times that are a little off their pictures stay so
                apart = begins[number] - float(times[first])
                begin = int(now.ticks[before]) / now.timescale + (abs(apart) > _ROUNDING) * apart
                self._pictures(name, number, now, begin, before)
                names = (f"videos/{key}/from_timestamp", f"videos/{key}/to_timestamp")
                until = begin + self.files.episodes[number]["length"] / self.files.fps
                self.changed[number] |= dict(zip(names, (begin, until), strict=True))

    def _begin(self, number: int, key: str) -> float:
        begin = self.files.episodes[number][f"videos/{key}/from_timestamp"]
        if not isinstance(begin, (int, float)) or not -inf < begin < inf:
            raise DamagedIndex(f"episode {number} begins at {begin} s of its video")
        return float(begin)

    def _pictures(
        self, name: str, number: int, shown: Numbering, begin: float, first: int | None = None
    ) -> _Span:
        """Which pictures of a video an episode has: one for each row, from this one on if any."""
        length, step = self.files.episodes[number]["length"], 1 / self.files.fps
        if length <= len(shown):
            times = begin + np.arange(length) * step
            known = shown.ticks / shown.timescale
            numbers = nearest(known, times)
            apart = np.abs(known[numbers] - times).max()
            is_first = first is None or first == numbers[0]
            if is_first and (np.diff(numbers) == 1).all() and apart < step / 2:
                return int(numbers[0]), int(numbers[0]) + length
        raise DamagedIndex(
            f"{name} has no pictures for the {length} rows of episode {number}, which begins at "
            f"{begin:.6f} s of it"
        )

    # -- the rest of meta

    def _write_episodes(self) -> None:
        number, statistics = 0, dict[str, dict[str, list[Any]]]()
        chunk = self.files.info.get("chunks_size")
        chunk = chunk if type(chunk) is int and chunk > 0 else _FILES_IN_CHUNK
        for table in self.files.episode_tables():
            table = _chosen(table, self.kept)
            if not len(table):
                continue
            place = divmod(number, chunk)
            number += 1
            old = table.select([n for n in table.column_names if n[:6] != "stats/"]).to_pylist()
            rows = [one | self.changed[one["episode_index"]] for one in old]
            changing = {name for one in self.changed.values() for name in one}
            columns = {name: [row.get(name) for row in rows] for name in changing}
            for name, at in zip(("chunk_index", "file_index"), place, strict=True):
                columns[f"meta/episodes/{name}"] = [at] * len(table)
            name = "meta/episodes/chunk-{:03d}/file-{:03d}.parquet".format(*place)
            self._write_table(name, _with_columns(table, columns))
            for column in table.column_names:
                kind, _, of = column.partition("/")
                feature, mark, what = of.partition("/")
                if kind == "stats" and mark and feature in self.files.info["features"]:
                    values = table[column].to_pylist()
                    statistics.setdefault(feature, {}).setdefault(what, []).extend(values)
        whole = {name: of for name, of in statistics.items() if {*_STATISTICS} <= of.keys()}
        if whole:
            self._write_json("meta/stats.json", dict(map(_aggregated, whole.items())))

    def _other_files(self) -> Iterator[str]:
        """A sentence on files of a folder that are not of the form, and not copied."""
        root = self.files.folder
        if root is None:
            return
        names = [
            os.path.relpath(os.path.join(folder, file), root).replace(os.sep, "/")
            for folder, _, files in os.walk(root)
            for file in files
        ]
        others = sorted(
            name
            for name in names
            if name not in self.read and not name.startswith((".", "meta/episodes/"))
            and name not in ("meta/info.json", "meta/tasks.parquet", "meta/stats.json")
        )  # fmt: skip
        if others:
            more = f" and {len(others) - 5} more" if others[5:] else ""
            yield f"not in the new set: {', '.join(others[:5])}{more}"

    # -- files

    def _write(self, name: str, pieces: Iterable[Any]) -> None:
        path = self.place.address(name)
        if os.path.lexists(path):
            raise DamagedIndex(f"two files of the set have the name {name}")
        os.makedirs(os.path.dirname(path), exist_ok=True)
        write_file(path, pieces)

    def _write_json(self, name: str, value: Any) -> None:
        self._write(name, [json.dumps(value, indent=4, ensure_ascii=False).encode()])

    def _write_table(self, name: str, table: Any) -> None:
        from pyarrow import parquet

        data = io.BytesIO()
        parquet.write_table(table, data)
        self._write(name, [data.getbuffer()])


def _merged(spans: Iterable[_Span]) -> list[_Span]:
    """Spans in order, those that touch or overlap as one."""
    merged: list[_Span] = []
    for first, stop in sorted(spans):
        if merged and first <= merged[-1][1]:
            merged[-1] = merged[-1][0], max(merged[-1][1], stop)
        else:
            merged.append((first, stop))
    return merged


def _with_needed(track: Track, shown: Numbering, span: _Span, source: Source) -> _Span:
    """A span with the pictures around it that its own are decoded from, or between."""
    first, stop = span
    number = np.full(len(track.samples), -1)
    number[shown.sample] = np.arange(len(shown))
    if first:
        reader = Reader(source.read, source.size, source.remote)
        time = Fraction(int(shown.ticks[first]), shown.timescale)
        sample = first_decoded(track, time, reader).sample or 0
        first = min(first, max(int(number[sample]), 0))
    while True:
        decoded = number[int(shown.sample[first]) : int(shown.sample[first:stop].max()) + 1]
        reached = int(decoded[decoded >= first].max()) + 1
        if reached <= stop:
            return first, stop
        stop = reached


def _left(shown: Numbering, whole: Sequence[_Span], spans: Sequence[_Span]) -> Iterator[str]:
    """What is in some spans and not in those inside of them, in words."""
    for first, stop in whole:
        edges = [edge for span in spans for edge in span if first <= edge <= stop]
        around = [first, *edges, stop]
        for low, high in zip(around[::2], around[1::2], strict=True):
            if low < high:
                at, to = (int(shown.ticks[n]) / shown.timescale for n in (low, high - 1))
                yield f"{high - low} pictures at {at:.3f} – {to:.3f} s"


def _ints(table: Any, name: str) -> Int64:
    if name not in table.column_names:
        raise DamagedIndex(f"a table of the set has no column {name}")
    values = table[name].to_numpy()
    if values.dtype.kind not in "iu":
        raise DamagedIndex(f"the column {name} of a table of the set is not of whole numbers")
    return np.asarray(values, np.int64)


def _chosen(table: Any, episodes: Sequence[int]) -> Any:
    """The rows of some episodes."""
    import pyarrow as pa

    return table.filter(pa.array(np.isin(_ints(table, "episode_index"), episodes)))


def _with_columns(table: Any, columns: dict[str, Any]) -> Any:
    """A table with other values in those columns that it has, of the types that they have."""
    import pyarrow as pa

    for name, values in columns.items():
        place = table.schema.get_field_index(name)
        if place >= 0:
            field = table.schema.field(place)
            table = table.set_column(place, field, pa.array(values).cast(field.type))
    return table


def _aggregated(feature: tuple[str, dict[str, list[Any]]]) -> tuple[str, dict[str, Any]]:
    """The name of a feature, and its statistics over all episodes, from those of each.

    Raises:
        DamagedIndex: they are not numbers, or of several shapes.
    """
    try:
        return feature[0], _over_all(feature[1])
    except (TypeError, ValueError) as error:
        raise DamagedIndex(f"meta/episodes has no statistics of {feature[0]}: {error}") from error


def _over_all(statistics: dict[str, list[Any]]) -> dict[str, Any]:
    known = {name: np.array(values) for name, values in statistics.items()}
    mean, count = known["mean"], known["count"]
    weight = count.reshape(count.shape + (1,) * (mean.ndim - count.ndim))
    total = weight.sum(axis=0)
    average = (mean * weight).sum(axis=0) / total
    variance = ((known["std"] ** 2 + (mean - average) ** 2) * weight).sum(axis=0) / total
    made = {
        "min": known["min"].min(axis=0),
        "max": known["max"].max(axis=0),
        "mean": average,
        "std": np.sqrt(variance),
        "count": count.sum(axis=0),
    }
    quantiles = (name for name in known if name[:1] == "q" and name[1:].isdigit())
    made |= {name: (known[name] * weight).sum(axis=0) / total for name in quantiles}
    return {name: values.tolist() for name, values in made.items()}
