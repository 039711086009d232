"""The media work is a process of its own: it is ended, it crashes, and the service lives."""

import multiprocessing
import os
import subprocess
import sys
from pathlib import Path

import av
import pytest

from fragdex.errors import Unprocessable
from fragdex.sandbox.child import ChildProcess
from fragdex.transcode import running


@pytest.mark.true_start
def test_tracks_come_out_of_the_child(fixture_file, tmp_path):
    seen = []
    tracks = running.run(fixture_file("faststart.mp4"), tmp_path, seen.append)
    assert {one.track_id: one.codec for one in tracks} == {1: "h264", 2: "aac", -1: "h264"}
    assert all(Path(one.path).stat().st_size == one.byte_size for one in tracks)
    assert seen == sorted(seen)
    assert seen[-1] == 1


def test_what_the_child_refuses_is_raised_here(tmp_path):
    path = tmp_path / "list.m3u8"
    path.write_text("#EXTM3U\n")
    with pytest.raises(Unprocessable, match="playlist"):
        running.run(path, tmp_path)


def test_who_is_not_wanted_any_more_ends_its_child(monkeypatch, fixture_file, tmp_path):
    started = []
    began = ChildProcess.__init__

    def noted(self, *args, **more):
        began(self, *args, **more)
        started.append(self.pid)

    class NotWanted(BaseException):
        pass

    def check():
        raise NotWanted

    monkeypatch.setattr(ChildProcess, "__init__", noted)
    with pytest.raises(NotWanted):
        running.run(fixture_file("faststart.mp4"), tmp_path, check=check)
    with pytest.raises(ProcessLookupError):
        os.kill(started[0], 0)


def test_what_a_broken_child_names_is_looked_for_in_its_folder_alone(
    monkeypatch, fixture_file, tmp_path
):
    """Whoever broke it could have it name, or link to, what the service alone may read."""
    secret = tmp_path / "secret"
    secret.write_text("x")
    folder = tmp_path / "made"
    folder.mkdir()
    record = {
        "track_id": 1, "type": "video", "codec": "h264", "byte_size": 1, "duration_ms": 1,
        "probe_info": {}, "path": str(secret), "index_path": "link",
    }  # fmt: skip
    monkeypatch.setattr(ChildProcess, "do", lambda *_, **__: {"made": [record]})
    with pytest.raises(FileNotFoundError):
        running.run(fixture_file("faststart.mp4"), folder)
    for link in (os.symlink, os.link):
        link(secret, folder / "secret")
        with pytest.raises(Unprocessable, match="not a file"):
            running.run(fixture_file("faststart.mp4"), folder)
    assert secret.read_text() == "x"


def repeated(source, target, times):
    """A film that shows the same again and again, so that a long one is quickly made."""
    with av.open(str(target), "w") as out:
        streams = None
        for turn in range(times):
            with av.open(str(source)) as film:
                own = film.streams.get(video=0, audio=0)
                streams = streams or [out.add_stream_from_template(s, opaque=True) for s in own]
                for packet in film.demux(own):
                    if packet.dts is None:
                        continue
                    shift = round(turn * 2.1 / packet.time_base)
                    packet.pts, packet.dts = packet.pts + shift, packet.dts + shift
                    packet.stream = streams[packet.stream_index]
                    out.mux(packet)
    return target


# In a process whose only child is the one to be measured.
MEASURED = """
import resource, sys
from pathlib import Path
from fragdex.transcode.running import run
made = run(Path(sys.argv[1]), Path(sys.argv[2]))
print(made[0].duration_ms, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
"""


@pytest.mark.slow
@pytest.mark.parametrize("codec", ["libx264", "mpeg4"])
def test_memory_does_not_grow_with_the_film(codec, made, tmp_path):
    """A minute of 1280 × 720, copied and encoded: far below the 400 MB of the promise."""
    short = made(
        "short.mp4", video=codec, audio="aac", seconds=2, width=1280, height=720,
        options={"preset": "ultrafast"} if codec == "libx264" else {"b": "4000000"},
    )  # fmt: skip
    seconds = 60 if codec == "libx264" else 12
    path = repeated(short, tmp_path / "long.mp4", seconds // 2)
    (tmp_path / "made").mkdir()
    process = subprocess.run(
        [sys.executable, "-c", MEASURED, str(path), str(tmp_path / "made")],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    duration_ms, kibibytes = map(int, process.stdout.split())
    assert duration_ms > 900 * seconds
    assert kibibytes < 400 * 1024


@pytest.fixture(scope="module")
def large(tmp_path_factory):
    """Ten large pictures."""
    from transcode.conftest import make

    path = tmp_path_factory.mktemp("large") / "large.mkv"
    # as many pictures as it looks ahead would be a gigabyte
    options = {"preset": "superfast", "rc-lookahead": "4", "threads": "1", "refs": "4", "bf": "3"}
    # in a process of its own: the encoder keeps 700 MB
    apart = multiprocessing.get_context("fork").Process(
        target=make,
        args=(path,),
        kwargs={
            "video": "libx264", "seconds": 0.4, "width": 4096, "height": 2048, "options": options
        },
    )  # fmt: skip
    apart.start()
    apart.join()
    assert apart.exitcode == 0
    return path


@pytest.mark.true_start  # a fork has the memory of all that is imported
@pytest.mark.parametrize("megabytes", [100, 140, 170, 260])
def test_what_finds_no_memory_in_the_libraries_needs_more_of_it(
    monkeypatch, tmp_path, large, megabytes
):
    """They say it is damaged, or blocked, or nothing: that is not a word about the file."""
    monkeypatch.setattr(running, "memory_of_one", lambda: megabytes << 20)
    with pytest.raises(Unprocessable, match="needs more memory"):
        running.run(large, tmp_path)
