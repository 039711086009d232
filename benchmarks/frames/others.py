"""Work beside LeRobot and Ray, and sets with many names: tasks of child.py."""

from __future__ import annotations

import os
import time
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Executor, Future
from contextlib import suppress
from functools import partial
from itertools import islice, pairwise
from pathlib import Path
from typing import Any

import numpy as np

Job = dict[str, Any]
Answer = dict[str, Any]
ROOT = Path(__file__).parents[2]
FILM = (ROOT / "fixtures" / "open-gop.mp4").read_bytes()


def episodes(job: Job) -> Answer:
    """Shuffled batches of a set of episodes; checksums of their pictures and numbers."""
    import torch

    who, root = job["who"], job["root"]
    clock, used = time.perf_counter(), time.process_time()
    data = _OWNERS[who](root, job["address"])
    opened = time.perf_counter() - clock
    chance = np.random.default_rng(job["seed"])
    order = chance.permutation(len(data))[: job["batches"] * job["batch"]].tolist()
    sums = []
    for batch in torch.utils.data.DataLoader(data, batch_size=job["batch"], sampler=order):
        checksum = 0
        for name in sorted(batch):
            if isinstance(batch[name], torch.Tensor):
                checksum = zlib.crc32(np.ascontiguousarray(batch[name].numpy()), checksum)
        sums.append(checksum)
    return {
        "seconds": time.perf_counter() - clock, "open": opened,
        "cpu": time.process_time() - used, "sums": sums,
    }  # fmt: skip


def removed(job: Job) -> Answer:
    """Take episodes out of a set; of 61 frames of ours one is compared with the source's."""
    who, root, gone = job["who"], job["root"], job["gone"]
    if who == "LeRobot":
        from lerobot.datasets.dataset_tools import delete_episodes
        from lerobot.datasets.lerobot_dataset import LeRobotDataset

        data = LeRobotDataset("some/set", root=root)
    else:
        from fragdex.bridges.lerobot import LeRobotSet
        from fragdex.bridges.lerobot_episodes import remove_episodes
    clock, used = time.perf_counter(), time.process_time()
    if who == "LeRobot":
        delete_episodes(data, gone, job["output"], "some/other")
    else:
        made = remove_episodes(root, gone, job["output"])
    answer = {"seconds": time.perf_counter() - clock, "cpu": time.process_time() - used, "apart": 0}
    if who != "LeRobot":
        old, new = LeRobotSet(root, episodes=made.episodes), LeRobotSet(job["output"])
        assert len(old) == len(new) == made.frames
        camera = old.video_keys[0]
        some = list(range(0, len(old), 61))
        for one, other in zip(old.__getitems__(some), new.__getitems__(some), strict=True):
            answer["apart"] += not bool((one[camera] == other[camera]).all())
    return answer


def _lerobot(root: str, address: str) -> Any:
    from lerobot.datasets.lerobot_dataset import LeRobotDataset
    from lerobot.datasets.video_utils import decode_video_frames

    class FromAddress(LeRobotDataset):
        """Opens videos as its StreamingLeRobotDataset does: by a URL, through fsspec."""

        def _query_videos(self, times: dict[str, list[float]], episode: int) -> dict[str, Any]:
            rows, videos = self.meta.episodes[episode], {}
            for key, asked in times.items():
                begin = rows[f"videos/{key}/from_timestamp"]
                path = f"{address}/{self.meta.get_video_file_path(episode, key)}"
                shifted = [begin + one for one in asked]
                pictures = decode_video_frames(path, shifted, self.tolerance_s, self.video_backend)
                videos[key] = pictures.squeeze(0)
            return videos

    owner = FromAddress if address else LeRobotDataset
    return owner("some/set", root=root, video_backend="torchcodec")


def _ours(root: str, address: str) -> Any:
    from fragdex.bridges.lerobot import LeRobotSet

    return LeRobotSet(address or root, threads=2)


_OWNERS: dict[str, Callable[[str, str], Any]] = {"LeRobot": _lerobot, "fragdex": _ours}


def lance_table(job: Job) -> Answer:
    """Write the films of a folder to a table of Lance, and their set."""
    import lance
    import pyarrow as pa

    from fragdex.bridges.lance_videos import LanceVideos
    from fragdex.data import write_set

    paths = sorted(Path(job["folder"]).glob("*.mp4"))
    pieces = (
        pa.table({"film": lance.blob_array([path.read_bytes() for path in paths[at : at + 50]])})
        for at in range(0, len(paths), 50)
    )
    for number, piece in enumerate(pieces):
        lance.write_dataset(
            piece, job["uri"], mode="append" if number else "create",
            data_storage_version="2.2", storage_options=job["storage"],
        )  # fmt: skip
    films = LanceVideos(job["uri"], "film", storage_options=job["storage"])
    return {"films": write_set("", job["set"], filesystem=films).indexed}


def lance_windows(job: Job) -> Answer:
    """Batches of random windows of the films of a table; a checksum of each batch."""
    from fragdex.bridges.lance_videos import LanceVideos
    from fragdex.data import VideoSet, Windows

    films = LanceVideos(job["uri"], "film", storage_options=job["storage"])
    windows = Windows(VideoSet(job["set"], root="", filesystem=films), frames=job["frames"])
    chance = np.random.default_rng(job["seed"])
    order = chance.permutation(len(windows))[: job["batches"] * job["batch"]]
    decode: Callable[[list[int]], Any] = {
        "fragdex": lambda numbers: films.batch(windows, numbers)["frames"],
        "PyAV": partial(_by_blob_files, windows, job),
    }[job["who"]]
    clock, used = time.perf_counter(), time.process_time()
    sums = [
        zlib.crc32(np.ascontiguousarray(decode(numbers)))
        for numbers in order.reshape(job["batches"], job["batch"]).tolist()
    ]
    return {
        "seconds": (time.perf_counter() - clock) / len(sums),
        "cpu": (time.process_time() - used) / len(sums), "sums": sums,
    }  # fmt: skip


def _by_blob_files(windows: Any, job: Job, numbers: list[int]) -> Any:
    """Windows by PyAV, which seeks in the files that Lance gives."""
    import av
    import lance

    videos = windows.videos
    table = _TABLES.setdefault(
        job["uri"], lance.dataset(job["uri"], storage_options=job["storage"])
    )
    rows = [int(videos[windows.video_of(number)].path.removesuffix(".mp4")) for number in numbers]
    pixels = []
    for number, file in zip(numbers, table.take_blobs("film", indices=rows), strict=True):
        first = windows.first_frame(number)
        with av.open(file) as film:
            stream = film.streams.video[0]
            start = (stream.start_time or 0) + int(first / stream.average_rate / stream.time_base)
            film.seek(start, stream=stream)
            shown = (one for one in film.decode(stream) if one.pts is not None and one.pts >= start)
            pixels.append([one.to_ndarray(format="rgb24") for one in islice(shown, windows.length)])
    return np.array(pixels)


_TABLES: dict[str, Any] = {}


class _Ready(Executor):
    """Answers each video of `write_set` with a copy of one row."""

    def __init__(self, row: Mapping[str, Any]) -> None:
        self._row = row

    def submit(self, _: Any, /, films: Any, options: Any) -> Future[Any]:  # type: ignore[override]
        """Rows without reading anything."""
        done: Future[Any] = Future()
        rows = [{**self._row, "path": name, "etag": film.etag} for film, _, name in films]
        done.set_result([(row, None) for row in rows])
        return done


def names(job: Job) -> Answer:
    """A set of so many names in a bucket, written and resumed; what this process had at most."""
    import obstore.store

    from fragdex.data import write_set
    from fragdex.data.set_file import SetFile

    path, count = job["path"], job["count"]
    store = obstore.store.MemoryStore()
    store.put("film.mp4", FILM)
    write_set(["film.mp4"], path, store=store)
    row = SetFile(path).read(0).to_pylist()[0]
    os.unlink(path)

    def films() -> Iterator[str]:
        for number in range(count):
            yield f"s3://a-bucket/of/many/folders/{number // 1000:06}/{number:09}.mp4"

    before = peak()
    clock = time.perf_counter(), time.process_time()
    summary = write_set(films(), path, executor=_Ready(row))
    seconds, cpu = time.perf_counter() - clock[0], time.process_time() - clock[1]
    assert summary.indexed == count
    return {"before": before, "peak": peak(), "seconds": seconds, "cpu": cpu}


def peak() -> int:
    """Bytes that this process had in memory at most.

    Not ru_maxrss: it outlives exec, so that a child begins with the peak of who started it.
    """
    status = Path("/proc/self/status").read_text(encoding="ascii", errors="replace")
    return next(int(line.split()[1]) for line in status.splitlines() if "VmHWM" in line) << 10


def nodes(job: Job) -> Answer:
    """Index the videos of a server on two local nodes of Ray, one of which is killed on the way.

    Videos a second with both nodes, and with the one that is left, are of the same run.
    """
    import ray
    from ray.cluster_utils import Cluster

    from fragdex.bridges.ray_executor import RayExecutor
    from fragdex.data import VideoSet, write_set
    from fragdex.data.set_file import SetFile

    folder = Path(job["folder"])
    sizes = {f"{job['url']}/{one.name}": one.stat().st_size for one in sorted(folder.iterdir())}
    # A node keeps as many idle workers as it has processors.
    options = {"num_cpus": job["tasks"], "include_dashboard": False}
    cluster = Cluster(initialize_head=True, head_node_args=options)
    seen: Counter[str] = Counter()
    ends: list[float] = []
    killed = 0.0
    try:
        other = cluster.add_node(**options)
        ray.init(address=cluster.address, log_to_driver=False)
        executor = RayExecutor()
        jobs = 2 * job["tasks"]
        stay = "__import__('time').sleep(2) or __import__('os').getpid()"
        workers: set[int] = set()
        for _ in range(30):  # until all have started
            workers |= {one.result() for one in [executor.submit(eval, stay) for _ in range(jobs)]}
            if len(workers) >= jobs:
                break
        spent: dict[int, float] = dict.fromkeys(workers, 0.0)
        before, used = _processor_seconds(spent), time.process_time()

        def each(name: str, error: str | None) -> None:
            nonlocal killed
            seen[name] += 1
            ends.append(time.monotonic())
            assert error is None, (name, error)
            if len(ends) % 50 == 0:
                spent.update(_processor_seconds(spent))
            if len(ends) == len(sizes) * 6 // 10:
                killed = time.monotonic()
                cluster.remove_node(other, allow_graceful=False)

        begun = time.monotonic()
        summary = write_set(sizes, job["path"], jobs=jobs, executor=executor, each=each)
        spent.update(_processor_seconds(spent))
        used = time.process_time() - used
    finally:
        ray.shutdown()
        cluster.shutdown()
    both = [one for one in ends if begun + job["settle"] < one < killed]
    alone = [one for one in ends if one > killed + job["settle"]]
    file = SetFile(job["path"])
    rows = [row for _, table in file.pieces(["path", "size"]) for row in table.to_pylist()]
    return {
        "indexed": summary.indexed, "rows": len(rows),
        "lost": len(sizes.keys() - {row["path"] for row in rows}),
        "twice": len(rows) - len({row["path"] for row in rows})
        + sum(times - 1 for times in seen.values()),
        "wrong": sum(sizes.get(row["path"]) != row["size"] for row in rows),
        "playable": len(VideoSet(job["path"], follow=True)),
        "both": (len(both) - 1) / (both[-1] - both[0]),
        "alone": (len(alone) - 1) / (alone[-1] - alone[0]),
        "stood": max(later - one for one, later in pairwise(ends)),
        "seconds": ends[-1] - begun, "workers": len(workers),
        "driver_cpu": used / len(ends),
        "worker_cpu": sum(spent[one] - before[one] for one in before) / len(ends),
    }  # fmt: skip


def _processor_seconds(processes: Iterable[int]) -> dict[int, float]:
    """What these processes have used, without those that have ended."""
    seconds, tick = {}, os.sysconf("SC_CLK_TCK")
    for one in processes:
        with suppress(OSError):
            fields = Path(f"/proc/{one}/stat").read_text().rpartition(")")[2].split()
            seconds[one] = (int(fields[11]) + int(fields[12])) / tick
    return seconds


TASKS: dict[str, Callable[[Job], Answer]] = {
    "episodes": episodes, "removed": removed, "lance_table": lance_table,
    "lance_windows": lance_windows, "names": names, "nodes": nodes,
}  # fmt: skip
