"""How files come into the page cache before they are measured, and instructions beside times.

How fast the same bytes are read depends on the pages that hold them: a file that a copy wrote lies
in other ones than one that was read in order. Every file is therefore written by a copy, and what
is read in order says so. Instructions do not depend on it, nor on the machine's other work.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

from inputs import Counts

Files = Mapping[str, tuple[Path, Counts]]
ALL = 1 << 24
WARM, COUNTED = 5, 4
"""Indexes that are made before, and those whose instructions are counted."""
PROGRAM = """
import sys
import fragdex
for _ in range(int(sys.argv[2])):
    fragdex.index(sys.argv[1])
"""


def copied(files: Files, folder: Path) -> Files:
    """The same files, written anew by a copy."""
    folder.mkdir(parents=True, exist_ok=True)
    copies = {}
    for key, (path, counts) in files.items():
        target = folder / path.name
        shutil.copyfile(path, target)
        copies[key] = target, counts
    return copies


def read_in_order(path: Path) -> None:
    """Drop a file from the page cache, and read it from its start to its end."""
    with path.open("rb", buffering=0) as file:
        os.fsync(file.fileno())
        if hasattr(os, "posix_fadvise"):
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        while file.read(ALL):
            pass


def instructions(path: Path) -> dict[str, int]:
    """Instructions of one index of a file, by valgrind's callgrind; nothing where it is not."""
    if shutil.which("valgrind") is None:
        return {}
    before, after = (_counted(path, times) for times in (WARM, WARM + COUNTED))
    return {"instructions": (after - before) // COUNTED}


def _counted(path: Path, times: int) -> int:
    with tempfile.TemporaryDirectory() as folder:
        command = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={folder}/counts"]
        # Threads of numpy's algebra wait in a loop, which would be counted.
        environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "PYTHONHASHSEED": "0"}
        done = subprocess.run(
            [*command, sys.executable, "-c", PROGRAM, str(path), str(times)],
            capture_output=True,
            check=True,
            env=environment,
            text=True,
        )
    match = re.search(r"Collected : (\d+)", done.stderr)
    if match is None:
        raise SystemExit(f"valgrind told no count: {done.stderr[-300:]}")
    return int(match[1])
