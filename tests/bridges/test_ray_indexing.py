"""A set that machines of Ray index, some of which end before they are done."""

from __future__ import annotations

import os
import signal
from collections import Counter
from pathlib import Path

import pytest

from fragdex.testing import Faults, RangeServer

WHY = "it is tried beside the library by ./dev bridges"
pytest.importorskip("pyarrow")
ray = pytest.importorskip("ray", reason=WHY)

from fragdex.bridges.ray_executor import RayExecutor  # noqa: E402
from fragdex.data import VideoSet, write_set  # noqa: E402
from fragdex.data.set_file import SetFile  # noqa: E402

FILM = (Path(__file__).parents[2] / "fixtures" / "open-gop.mp4").read_bytes()
FILMS = 48


@pytest.fixture
def cluster():
    from ray.cluster_utils import Cluster

    options = {"num_cpus": 1, "include_dashboard": False}
    nodes = Cluster(initialize_head=True, head_node_args=options)
    try:
        nodes.other = nodes.add_node(**options)
        ray.init(address=nodes.address, log_to_driver=False)
        yield nodes
    finally:
        ray.shutdown()
        nodes.shutdown()


def test_a_killed_worker_and_machine_lose_nothing(cluster, tmp_path):
    names = [f"{number:02}.mp4" for number in range(FILMS)]
    films = {**dict.fromkeys(names, FILM), "broken.mp4": b"no film"}
    seen = Counter()
    with RangeServer(films, faults=Faults(latency_s=0.05)) as server:
        urls = [server.at(name) for name in films]
        executor = RayExecutor()
        workers = {executor.submit(os.getpid).result() for _ in range(8)}

        def each(name, error):
            seen[name.rpartition("/")[2]] += 1
            if seen.total() == 8:
                os.kill(workers.pop(), signal.SIGKILL)
            elif seen.total() == 24:
                cluster.remove_node(cluster.other)

        path = tmp_path / "set.parquet"
        summary = write_set(urls, path, jobs=4, executor=executor, each=each)
        assert (summary.films, summary.indexed) == (FILMS + 1, FILMS)
        assert list(summary.broken) == [server.at("broken.mp4")]
        assert seen == Counter(list(films))  # each once
        rows = SetFile(str(path)).read(0, ["path"])["path"].to_pylist()
        assert rows == sorted(urls)
        plain = tmp_path / "plain.parquet"
        write_set(urls, plain)
        assert VideoSet(path).broken == VideoSet(plain).broken
        assert SetFile(str(path)).read(0).equals(SetFile(str(plain)).read(0))


def test_a_video_that_ends_each_worker_is_broken(cluster):
    executor = RayExecutor(retries=1)
    ended = executor.submit(os.kill, 0, 0)  # no signal: only whether it may
    assert ended.result() is None
    ends = executor.submit(os._exit, 1)
    with pytest.raises(OSError, match="ended 2 times"):
        ends.result(timeout=120)
    with pytest.raises(ZeroDivisionError):
        executor.submit(divmod, 1, 0).result(timeout=120)
