"""A small set of episodes in LeRobot's form, written without it."""

import json

import numpy as np
import pyarrow as pa
from pyarrow import parquet

CAMERA = "observation.images.top"


def statistics(actions):
    """Of an episode, as meta/episodes has them."""
    values = np.array(actions)
    made = {name: getattr(values, name)(axis=0) for name in ("min", "max", "mean", "std")}
    made |= {"count": np.array([len(values)]), "q50": np.quantile(values, 0.5, axis=0)}
    return {f"stats/action/{name}": value.tolist() for name, value in made.items()}


def write_episodes(root, film, lengths=(20, 13, 17), *, fps=25, files=1, **info):
    """Episodes of these lengths, one behind the other in `files` films (equal ones).

    Returns the rows of `data`.
    """
    features = {
        CAMERA: {"dtype": "video", "shape": [64, 96, 3], "names": None},
        "action": {"dtype": "float32", "shape": [2], "names": None},
        **{
            name: {"dtype": kind, "shape": [1], "names": None}
            for name, kind in (
                ("timestamp", "float32"), ("frame_index", "int64"), ("episode_index", "int64"),
                ("index", "int64"), ("task_index", "int64"),
            )
        },
    }  # fmt: skip
    rows, episodes = [], []
    begins = [0] * files
    for number, length in enumerate(lengths):
        file = number % files
        first = len(rows)
        for place in range(length):
            rows += [
                {
                    "action": [float(number), place / 7],
                    "timestamp": place / fps,
                    "frame_index": place,
                    "episode_index": number,
                    "index": first + place,
                    "task_index": number % 2,
                }
            ]
        episodes.append(
            {
                "episode_index": number,
                "length": length,
                "dataset_from_index": first,
                "dataset_to_index": len(rows),
                "data/chunk_index": 0,
                "data/file_index": 0,
                f"videos/{CAMERA}/chunk_index": 0,
                f"videos/{CAMERA}/file_index": file,
                f"videos/{CAMERA}/from_timestamp": begins[file] / fps,
                f"videos/{CAMERA}/to_timestamp": (begins[file] + length) / fps,
                **statistics([row["action"] for row in rows[first:]]),
            }
        )
        begins[file] += length
    description = {
        "codebase_version": "v3.0",
        "fps": fps,
        "total_episodes": len(lengths),
        "data_path": "data/chunk-{chunk_index:03d}/file-{file_index:03d}.parquet",
        "video_path": "videos/{video_key}/chunk-{chunk_index:03d}/file-{file_index:03d}.mp4",
        "features": features,
        **info,
    }
    schema = pa.schema(
        [("action", pa.list_(pa.float32(), 2)), ("timestamp", pa.float32())]
        + [(one, pa.int64()) for one in ("frame_index", "episode_index", "index", "task_index")]
    )
    tables = {
        "data": pa.Table.from_pylist(rows, schema),
        "meta/episodes": pa.Table.from_pylist(episodes),
    }
    for folder, table in tables.items():
        (root / folder / "chunk-000").mkdir(parents=True)
        parquet.write_table(table, root / folder / "chunk-000" / "file-000.parquet")
    tasks = pa.table({"task_index": [0, 1], "__index_level_0__": ["pick", "place"]})
    parquet.write_table(tasks, root / "meta" / "tasks.parquet")
    (root / "meta" / "info.json").write_text(json.dumps(description))
    folder = root / "videos" / CAMERA / "chunk-000"
    folder.mkdir(parents=True)
    for file in range(files):
        (folder / f"file-{file:03d}.mp4").write_bytes(film)
    return {name: np.array([row[name] for row in rows]) for name in rows[0]}
