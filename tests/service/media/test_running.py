"""The media work is a process of its own: it is ended, it crashes, and the service lives."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import av
import pytest

from fragdex.service.errors import Unprocessable
from fragdex.service.media import child, running
from fragdex.service.processes import CRASHES


def spy(monkeypatch, script):
    """Have another program run in the place of the child."""
    real = subprocess.Popen

    def start(command, **more):
        return real([sys.executable, "-c", script, *command[3:]], **more)

    monkeypatch.setattr(subprocess, "Popen", start)


def test_tracks_come_out_of_the_child(fixture_file, tmp_path):
    seen = []
    made = running.run(fixture_file("faststart.mp4"), tmp_path, seen.append)
    assert {one.track_id: one.codec for one in made} == {1: "h264", 2: "aac", -1: "h264"}
    assert all(Path(one.path).stat().st_size == one.byte_size for one in made)
    assert seen == sorted(seen)
    assert seen[-1] == 1


def test_what_the_child_refuses_is_raised_here(tmp_path):
    path = tmp_path / "list.m3u8"
    path.write_text("#EXTM3U\n")
    with pytest.raises(Unprocessable, match="playlist"):
        running.run(path, tmp_path)


NOTES_ITS_PID = """
import os, sys, time
with open(sys.argv[2] + "/pid", "w") as file:
    file.write(str(os.getpid()))
time.sleep(600)
"""


def test_who_is_not_wanted_any_more_ends_its_child(monkeypatch, fixture_file, tmp_path):
    spy(monkeypatch, NOTES_ITS_PID)

    class NotWanted(BaseException):
        pass

    def check():
        if (tmp_path / "pid").exists() and (tmp_path / "pid").read_text():
            raise NotWanted

    with pytest.raises(NotWanted):
        running.run(fixture_file("faststart.mp4"), tmp_path, check=check)
    with pytest.raises(ProcessLookupError):
        os.kill(int((tmp_path / "pid").read_text()), 0)


@pytest.mark.parametrize("name", ["SIGSEGV", "SIGABRT", "SIGFPE"])
def test_a_crash_of_the_libraries_is_the_file_s_fault(monkeypatch, name, fixture_file, tmp_path):
    spy(monkeypatch, f"import os, signal; os.kill(os.getpid(), signal.{name})")
    with pytest.raises(Unprocessable, match="broke"):
        running.run(fixture_file("faststart.mp4"), tmp_path)


def test_a_child_that_was_killed_may_be_tried_again(monkeypatch, fixture_file, tmp_path):
    """By the system, short of memory, or by someone: nobody knows that the file is to blame."""
    spy(monkeypatch, "import os, signal; os.kill(os.getpid(), signal.SIGKILL)")
    with pytest.raises(RuntimeError, match="SIGKILL"):
        running.run(fixture_file("faststart.mp4"), tmp_path)


def test_a_child_that_hangs_is_ended(monkeypatch, fixture_file, tmp_path):
    spy(monkeypatch, "import time; time.sleep(600)")
    with pytest.raises(Unprocessable, match="hung"):
        running.run(fixture_file("faststart.mp4"), tmp_path, stall_seconds=0.5)


def test_the_child_knows_no_secret(monkeypatch, fixture_file, tmp_path):
    monkeypatch.setenv("FRAGDEX_DATABASE_URL", "postgresql://user:secret@host/db")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    spy(
        monkeypatch, "import os, sys; open(sys.argv[2] + '/env', 'w').write(repr(dict(os.environ)))"
    )
    with pytest.raises(RuntimeError):
        running.run(fixture_file("faststart.mp4"), tmp_path)
    assert "secret" not in (tmp_path / "env").read_text()


def test_the_child_ends_when_its_parent_is_gone(fixture_file, tmp_path):
    """Its input is closed by the system, however the parent ended."""
    fifo = tmp_path / "never.mp4"
    os.mkfifo(fifo)  # reading it waits for ever
    process = subprocess.Popen(
        [sys.executable, child.__file__, str(fifo), str(tmp_path)], stdin=subprocess.PIPE
    )
    time.sleep(0.5)
    assert process.poll() is None
    process.stdin.close()
    assert process.wait(60) == 3


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
from fragdex.service.media.running import run
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
    told = subprocess.run(
        [sys.executable, "-c", MEASURED, str(path), str(tmp_path / "made")],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    duration_ms, kibibytes = map(int, told.stdout.split())
    assert duration_ms > 900 * seconds
    assert kibibytes < 400 * 1024


def test_signals_that_crashes_send_have_names():
    assert all(hasattr(signal, name) for name in CRASHES)
