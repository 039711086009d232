"""Folders that a process works in are there as long as it lives, and no longer."""

import os
import subprocess
import sys
import time
from pathlib import Path

from fragdex.sandbox.folders import sweep
from fragdex.service.config import Settings
from fragdex.service.context import ServiceContext

MAKER = """
import sys, time
from pathlib import Path
from fragdex.service.config import Settings
from fragdex.service.context import ServiceContext
context = ServiceContext(Settings(data=Path(sys.argv[1])), None, None, None)
print(context.work_folder("record.1"), flush=True)
time.sleep(600)
"""


def test_folders_of_work_go_when_their_process_is_killed_and_not_before(tmp_path):
    context = ServiceContext(Settings(data=tmp_path), None, None, None)
    command = [sys.executable, "-c", MAKER, str(tmp_path)]
    with subprocess.Popen(command, text=True, stdout=subprocess.PIPE) as maker:
        folder = Path(maker.stdout.readline().strip())
        (folder / "film.mp4").write_bytes(b"film")
        own = context.work_folder("record.2")
        context.sweep_work()
        assert sorted((tmp_path / "work").iterdir()) == [folder, own]
        maker.kill()
        maker.wait()
    context.sweep_work()
    assert list((tmp_path / "work").iterdir()) == [own]
    # made again, it is empty and still ours
    (own / "film.mp4").write_bytes(b"film")
    assert list(context.work_folder("record.2").iterdir()) == []
    context.close_parts()
    context.sweep_work()
    assert list((tmp_path / "work").iterdir()) == []


def test_what_was_never_locked_goes_after_a_while(tmp_path):
    new, old = tmp_path / "fragdex-new-1", tmp_path / "fragdex-new-2"
    new.mkdir()
    old.mkdir()
    os.utime(old, (time.time() - 3600,) * 2)
    sweep(tmp_path)
    assert list(tmp_path.iterdir()) == [new]
