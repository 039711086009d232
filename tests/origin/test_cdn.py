"""The configuration of nginx in docs/cdn.md, with nginx."""

import re
import shutil
from contextlib import contextmanager
from pathlib import Path

import pytest

import fragdex

httpx = pytest.importorskip("httpx")
pytest.importorskip("uvicorn")

from fragdex.origin.titles import Titles  # noqa: E402
from fragdex.testing import movie  # noqa: E402
from origin.serving import NGINX, behind_nginx, serving  # noqa: E402
from origin.test_growing_films import FOR_EVER, append  # noqa: E402
from origin.test_waiting import LIST, STARTS, WHOLE, later, reached  # noqa: E402

ROOT = Path(__file__).parents[2]


@contextmanager
def behind(tmp_path, growing=0):
    """An origin of a folder, and nginx with the configuration of docs/cdn.md before it."""
    with (
        serving(Titles(tmp_path, segment_duration=1, growing=growing)) as origin,
        behind_nginx(tmp_path, ROOT / "docs/cdn.md", {8080: origin.base_url.port}) as front,
    ):
        yield origin, front


@NGINX
def test_nginx_holds_what_it_fetched_once(tmp_path):
    path = tmp_path / "film.mp4"
    path.write_bytes(movie(6, samples=5, fps=5))
    with behind(tmp_path) as (origin, front):
        segment = "/film.mp4/hls/v1/0.m4s"
        first, second = front.get(segment), front.get(segment)
        states = [one.headers["x-cache"] for one in (first, second)]
        assert states == ["MISS", "HIT"]
        assert second.content == origin.get(segment).content
        whole = fragdex.view(fragdex.index(path, exact=True), segment_duration=1).read()
        address = "/film.mp4/fragmented.mp4"
        part = front.get(address, headers={"range": "bytes=100-299"})
        assert (part.status_code, part.content) == (206, whole[100:300])
        assert front.get(address).content == whole
        assert front.get("/late.mp4/hls/master.m3u8").status_code == 404
        shutil.copy(path, tmp_path / "late.mp4")  # what is missing is asked for again
        assert front.get("/late.mp4/hls/master.m3u8").status_code == 200
        clips = {front.get(f"/film.mp4/clip.mp4?start={n}&end=5").content for n in (0, 2)}
        assert len(clips) == 2


@NGINX
def test_nginx_asks_once_for_all_who_wait_and_holds_no_part_back(tmp_path):
    path = tmp_path / "live.mp4"
    path.write_bytes(WHOLE[: STARTS[6]])
    with behind(tmp_path, FOR_EVER) as (origin, front):
        plain = front.get(LIST).text
        segment, part = reached(plain)
        wanted = f"{LIST}?_HLS_msn={segment}&_HLS_part={part}"
        waiting = [later(front.get, f"{wanted}&CMCD=sid%3D{n}") for n in range(3)]
        assert front.get("/live.mp4/dash/time.txt").headers["x-cache"] == "MISS"
        times = re.findall(r"^v1/(\d+)\.m4s$", plain, re.MULTILINE)
        lasts = int(times[-1]) - int(times[-2])
        begun = f"/live.mp4/dash/v1/{int(times[-1]) + lasts}.m4s"
        with front.stream("GET", begun) as answer:
            pieces = answer.iter_raw()
            first = next(pieces)  # before the rest of it is written
            append(path, WHOLE[STARTS[6] : STARTS[9]])
            data = first + b"".join(pieces)
        for thread, _ in waiting:
            thread.join()
        answers = [one for _, (one,) in waiting]
        assert {one.status_code for one in answers} == {200}
        assert len({one.text for one in answers}) == 1
        assert sorted(one.headers["x-cache"] for one in answers) == ["HIT", "HIT", "MISS"]
        again = front.get(begun)
        assert (again.headers["x-cache"], again.content) == ("HIT", data)
        assert origin.get(begun).content == data
