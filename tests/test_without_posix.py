"""The library where the system has no POSIX calls, as on Windows: the same indexes and bytes."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import fragdex
from test_fixtures import FIXTURES

PARTS = ("file", "periods", "findings", "complete", "resume_offset")
MADE = sorted((FIXTURES / "made").glob("*.mp4"))

# What Windows does not have is taken away before the library is imported.
WITHOUT = """
import mmap, os, sys
from contextlib import suppress
from importlib import import_module

for module in ("fcntl", "grp", "posix", "pwd", "resource", "termios"):
    sys.modules[module] = None
for name in ("pread", "preadv", "RWF_NOWAIT", "O_NONBLOCK", "sched_getaffinity", "fork"):
    if hasattr(os, name):
        delattr(os, name)
for name in [name for name in dir(mmap) if name.startswith("MADV")]:
    delattr(mmap, name)
with suppress(ImportError):
    del import_module("fragdex._native").walk_file

import fragdex
"""


def told(script: str, *arguments: object) -> object:
    command = [sys.executable, "-c", WITHOUT + script, *map(str, arguments)]
    ended = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(ended.stdout)


def outcome(path: Path, out: Path) -> str:
    try:
        fragdex.index(path).save(out)
    except fragdex.FragdexError as error:
        return type(error).__name__
    return "saved"


def test_files_are_indexed_as_elsewhere(tmp_path: Path) -> None:
    script = """
import json
from pathlib import Path

def outcome(path, out):
    try:
        fragdex.index(path).save(out)
    except fragdex.FragdexError as error:
        return type(error).__name__
    return "saved"

out = Path(sys.argv[1])
print(json.dumps({p.name: outcome(p, out / p.name) for p in map(Path, sys.argv[2:])}))
"""
    here, there = tmp_path / "here", tmp_path / "there"
    here.mkdir()
    there.mkdir()
    expected = {path.name: outcome(path, here / path.name) for path in MADE}
    assert "saved" in expected.values()
    assert told(script, there, *MADE) == expected
    for name, word in expected.items():
        if word == "saved":
            one, other = fragdex.open_index(there / name), fragdex.open_index(here / name)
            # In another number of reads, for the file is mapped.
            for part in PARTS:
                assert getattr(one, part) == getattr(other, part), (name, part)


def test_threads_read_one_file_at_once_and_its_owner_keeps_the_position(tmp_path: Path) -> None:
    """Without pread a read moves a position, which duplicates of the descriptor share."""
    script = """
import json, random
from concurrent.futures import ThreadPoolExecutor

sys.setswitchinterval(1e-6)
path = sys.argv[1]
with open(path, "rb") as film:
    content = film.read()
    film.seek(5)
    with fragdex.open_source(film) as source:
        twins = [source, source.twin(), source.twin()]
        def wrong(number):
            chance, twin = random.Random(number), twins[number % 3]
            count = 0
            for _ in range(300):
                start = chance.randrange(len(content))
                stop = min(len(content), start + chance.randrange(1, 200))
                count += twin.read(fragdex.ByteRange(start, stop)) != content[start:stop]
            pieces = b"".join(map(bytes, twin.pieces(size=1000)))
            return count + (pieces != content)
        with ThreadPoolExecutor(8) as pool:
            print(json.dumps([sum(pool.map(wrong, range(24))), film.tell()]))
"""
    film = tmp_path / "film.mp4"
    film.write_bytes(bytes(range(256)) * 400)
    assert told(script, film) == [0, 5]
