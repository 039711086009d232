"""Beside LeRobot, Lance and Ray, in the environment of ./dev bridges; and sets with many names."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import films
import numpy as np
import pandas as pd
import pyarrow as pa
from asking import BRIDGES, HERE, ROOT, Setting, ask
from pyarrow import parquet
from rounds import Amount, Amounts, Measured, compared, in_turns
from rows import Row, Want
from served import RANGES, Server

__all__ = ["BESIDE", "episodes", "lance", "names", "nodes", "removed"]

BESIDE = ("episodes", "episodes-remote", "episodes-removed", "lance", "lance-remote", "nodes")
"""The rows that need LeRobot, Lance and Ray."""
LATE = 0.03
BATCH = 32
CAMERA = "observation.images.top"
FIXTURE = ROOT / "fixtures" / "open-gop.mp4"


def episodes(setting: Setting, *, remote: bool = False) -> Measured:
    """Shuffled batches of a set in LeRobot's form: a film of 10 min in groups of 2, 50 episodes."""
    film = films.Film(640, 360, 2, 80 if setting.quick else 600)
    root = setting.folder / "set"
    _write_episodes(root, films.made(film), film)
    batches = 3 if setting.quick else max(20 // setting.part, 1)
    where = "HTTP, 30 ms late" if remote else "a folder"
    row = Row("episodes-remote" if remote else "episodes",
              f"{batches} shuffled batches of {BATCH} of a LeRobot set, from {where}")  # fmt: skip
    names = ("fragdex", "LeRobot")
    amounts: Amounts = {}
    for name in names:
        amounts[name], amounts[f"{name}, processor"] = Amount("s"), Amount("s")
        if remote:
            amounts[f"{name}, requests"] = Amount("a batch")
            amounts[f"{name}, bytes"] = Amount("MB a batch")
    sums: dict[int, list[int]] = {}
    apart = 0
    faults = json.dumps({"latency_s": LATE})
    with Server(RANGES, str(root), "0", faults) as server:
        server.counted()

        def run(name: str, number: int) -> None:
            nonlocal apart
            answer = ask(
                "episodes", python=BRIDGES, who=name, root=str(root), seed=number, batch=BATCH,
                batches=batches, address=server.url if remote else "",
            )  # fmt: skip
            requests, size, _ = server.counted()
            amounts[name].runs.append(answer["seconds"])
            amounts[name].note = f"opening {answer['open']:.2f} s"
            amounts[f"{name}, processor"].runs.append(answer["cpu"])
            if remote:
                amounts[f"{name}, requests"].runs.append(requests / batches)
                amounts[f"{name}, bytes"].runs.append(size / batches / 1e6)
            apart += sums.setdefault(number, answer["sums"]) != answer["sums"]

        in_turns(setting, setting.rounds, list(names), run)
    least = 5 if remote else 1.3
    row.wants += [
        Want(f"≥ {least} × LeRobot's loader", compared(amounts, *reversed(names)), least, False),
        Want("rounds whose tensors differ: 0", apart, 0, True, ""),
    ]
    return row, amounts


def removed(setting: Setting) -> Measured:
    """Five of a hundred episodes taken out of a set: a film of 10 min in groups of 2."""
    film = films.Film(640, 360, 2, 80 if setting.quick else 600)
    root, gone = setting.folder / "set", [3, 20, 21, 55, 90]
    count = _write_episodes(root, films.made(film), film, 20 if setting.quick else 150)
    row = Row("episodes-removed", f"{len(gone)} of {count} episodes taken out of a LeRobot set")
    names = ("fragdex", "LeRobot")
    amounts: Amounts = {}
    for name in names:
        amounts[name], amounts[f"{name}, processor"] = Amount("s"), Amount("s")
    apart = 0

    def run(name: str, number: int) -> None:
        nonlocal apart
        output = setting.folder / f"{name}-{number}"
        job = {"who": name, "root": str(root), "gone": gone, "output": str(output)}
        answer = ask("removed", python=BRIDGES, **job)
        amounts[name].runs.append(answer["seconds"])
        amounts[f"{name}, processor"].runs.append(answer["cpu"])
        apart += answer["apart"]

    in_turns(setting, setting.rounds, list(names), run)
    row.wants += [
        Want("≥ 20 × LeRobot's own tool", compared(amounts, *reversed(names)), 20, False),
        Want("frames that are not the source's: 0", apart, 0, True, ""),
    ]
    return row, amounts


def lance(setting: Setting, *, remote: bool = False) -> Measured:
    """Batches of random windows of a thousand films that lie in a table of Lance."""
    count, batches, windows = (100 if setting.quick else 1000), (2 if setting.quick else 5), 64
    folder = films.made_set(count)
    where = "a bucket, 30 ms late" if remote else "a folder"
    row = Row("lance-remote" if remote else "lance",
              f"{batches} batches of {windows} windows of 16 of {count} films in a table of Lance, "
              f"from {where}")  # fmt: skip
    names = ("fragdex", "PyAV")
    amounts: Amounts = {}
    for name in names:
        amounts[name], amounts[f"{name}, processor"] = Amount("s a batch"), Amount("s a batch")
        if remote:
            amounts[f"{name}, requests"] = Amount("a batch")
    apart = 0
    with Server(HERE / "bucket.py", str(LATE)) as server:
        storage = {
            "aws_endpoint": server.url, "allow_http": "true", "aws_region": "us-east-1",
            "aws_access_key_id": "testing", "aws_secret_access_key": "testing",
        }  # fmt: skip
        table = {
            "uri": "s3://films/table.lance" if remote else str(setting.folder / "table.lance"),
            "storage": storage if remote else None, "set": str(setting.folder / "lance.parquet"),
        }  # fmt: skip
        ask("lance_table", python=BRIDGES, folder=str(folder), **table)
        sums: dict[int, list[int]] = {}

        def run(name: str, number: int) -> None:
            nonlocal apart
            server.counted()
            answer = ask(
                "lance_windows", python=BRIDGES, who=name, seed=number, batch=windows,
                batches=batches, frames=16, **table,
            )  # fmt: skip
            amounts[name].runs.append(answer["seconds"])
            amounts[f"{name}, processor"].runs.append(answer["cpu"])
            if remote:
                amounts[f"{name}, requests"].runs.append(server.counted()[0] / batches)
            apart += sums.setdefault(number, answer["sums"]) != answer["sums"]

        in_turns(setting, setting.rounds, list(names), run)
    least = 4 if remote else 1.3
    row.wants += [
        Want(
            f"≥ {least} × PyAV over Lance's files",
            compared(amounts, *reversed(names)),
            least,
            False,
        ),
        Want("rounds whose tensors differ: 0", apart, 0, True, ""),
    ]
    return row, amounts


def _write_episodes(root: Path, film: Path, what: films.Film, each: int = 300) -> int:
    """A set whose episodes lie in one film, of so many frames each; gives how many there are."""
    count = what.frames // each
    features = {CAMERA: {"dtype": "video", "shape": [what.height, what.width, 3], "names": None}}
    features["action"] = {"dtype": "float32", "shape": [6], "names": None}
    for name, kind in (
        ("timestamp", "float32"), ("frame_index", "int64"), ("episode_index", "int64"),
        ("index", "int64"), ("task_index", "int64"),
    ):  # fmt: skip
        features[name] = {"dtype": kind, "shape": [1], "names": None}
    index = np.arange(each * count)
    action = pa.FixedSizeListArray.from_arrays(
        pa.array(np.random.default_rng(1).random(6 * len(index), np.float32)), 6
    )
    data = pa.table({
        "action": action,
        "timestamp": pa.array((index % each / films.RATE).astype(np.float32)),
        "frame_index": index % each, "episode_index": index // each, "index": index,
        "task_index": np.zeros_like(index),
    })  # fmt: skip
    number = np.arange(count)
    zero = np.zeros_like(number)
    table = pa.table({
        "episode_index": number, "length": np.full(count, each), "tasks": [["move"]] * count,
        "dataset_from_index": each * number, "dataset_to_index": each * (number + 1),
        "data/chunk_index": zero, "data/file_index": zero,
        "meta/episodes/chunk_index": zero, "meta/episodes/file_index": zero,
        f"videos/{CAMERA}/chunk_index": zero, f"videos/{CAMERA}/file_index": zero,
        f"videos/{CAMERA}/from_timestamp": each * number / films.RATE,
        f"videos/{CAMERA}/to_timestamp": each * (number + 1) / films.RATE,
    })  # fmt: skip
    for folder, rows in (("data", data), ("meta/episodes", table)):
        (root / folder / "chunk-000").mkdir(parents=True)
        parquet.write_table(rows, root / folder / "chunk-000" / "file-000.parquet")
    pd.DataFrame({"task_index": [0]}, index=["move"]).to_parquet(root / "meta" / "tasks.parquet")
    info: dict[str, Any] = {
        "codebase_version": "v3.0", "robot_type": None, "total_episodes": count,
        "total_frames": each * count, "total_tasks": 1, "chunks_size": 1000, "fps": films.RATE,
        "splits": {"train": f"0:{count}"}, "features": features,
        "data_files_size_in_mb": 100, "video_files_size_in_mb": 200,
        "data_path": "data/chunk-{chunk_index:03d}/file-{file_index:03d}.parquet",
        "video_path": "videos/{video_key}/chunk-{chunk_index:03d}/file-{file_index:03d}.mp4",
    }  # fmt: skip
    (root / "meta" / "info.json").write_text(json.dumps(info))
    folder = root / "videos" / CAMERA / "chunk-000"
    folder.mkdir(parents=True)
    (folder / "file-000.mp4").hardlink_to(film)
    return count


def names(setting: Setting) -> Measured:
    """Memory of `write_set` for a thousand to a million names of a bucket.

    Each video is answered with the row of a fixture, so that nothing but the set costs anything.
    """
    counts = (1000, 10_000) if setting.quick else (1000, 10_000, 100_000, 1_000_000)
    row = Row("names", f"sets of {counts[0]:,} to {counts[-1]:,} videos are written")
    amounts: Amounts = {}
    peaks = []
    for count in counts:
        path = setting.folder / f"{count}.parquet"
        answer = ask("names", path=str(path), count=count)
        peaks.append(answer["peak"] / 1e6)
        size = path.stat().st_size / 1e6
        note = f"{size:.0f} MB; {1e3 * answer['cpu'] / count:.2f} ms of processor time each"
        amounts[f"{count:,} videos"] = Amount("MB", note, [peaks[-1]])
        path.unlink()
    row.wants.append(
        Want("peak of the largest ≤ 1.1 × that of the smallest", peaks[-1] / peaks[0], 1.1, True)
    )
    return row, amounts


def nodes(setting: Setting) -> Measured:
    """Small videos of a slow server on two local nodes of Ray, one of which is killed."""
    count = 400 if setting.quick else 10_000 // setting.part
    late, tasks = 0.5, 5
    row = Row("nodes", f"{count:,} videos, 500 ms late, on two nodes of Ray, one of them killed")
    folder = setting.folder / "films"
    folder.mkdir()
    film = FIXTURE.read_bytes()
    for number in range(count):
        body = number.to_bytes(4, "big") + bytes(number % 97)
        (folder / f"{number:06}.mp4").write_bytes(
            film + (8 + len(body)).to_bytes(4, "big") + b"free" + body
        )
    with Server(RANGES, str(folder), "0", json.dumps({"latency_s": late})) as server:
        answer = ask(
            "nodes", python=BRIDGES, variables={"RAY_worker_niceness": "0"},
            url=server.url, folder=str(folder), tasks=tasks,
            path=str(setting.folder / "set.parquet"), settle=2 if setting.quick else 20,
        )  # fmt: skip
        requests, _, at_once = server.counted()
    amounts: Amounts = {
        "both nodes": Amount("videos a second", f"{tasks} tasks at once each",
                             [answer["both"]]),
        "the node that is left": Amount("videos a second", "", [answer["alone"]]),
        "longest pause": Amount("s", "while the node's tasks are run again", [answer["stood"]]),
        "the writer, processor": Amount("ms a video", "", [1e3 * answer["driver_cpu"]]),
        "tasks, processor": Amount("ms a video", f"{answer['workers']} workers",
                                   [1e3 * answer["worker_cpu"]]),
        "requests": Amount("a video", f"at most {at_once} at once", [requests / count]),
    }  # fmt: skip
    row.wants += [
        Want("lost: 0", answer["lost"], 0, True, ""),
        Want("twice: 0", answer["twice"], 0, True, ""),
        Want("of other bytes: 0", answer["wrong"] + count - answer["playable"], 0, True, ""),
        Want("both nodes ≥ 1.7 × one", answer["both"] / answer["alone"], 1.7, False),
    ]
    return row, amounts
