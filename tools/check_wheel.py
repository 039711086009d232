"""Try an installed fragdex: check_wheel.py [--pure] FOLDER.

Run by cibuildwheel on each platform, with the interpreter that the wheel was installed into and
without any extra: the compiled loops have to be there (with --pure: have to be absent), and every
film of the folder has to be indexed as the walk in Python does it.
"""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

LIST = """
import sys, fragdex
for path in sys.argv[1:]:
    try:
        index = fragdex.index(path)
    except fragdex.FragdexError as error:
        print(path, type(error).__name__)
    else:
        for t in index.tracks:
            print(path, t.id, t.start, t.stop, t.sample_count, t.fragments.offset.tolist())
"""


def listed(paths: list[Path], **environment: str) -> str:
    """What the library says of some films."""
    return subprocess.run(
        [sys.executable, "-c", LIST, *paths],
        stdout=subprocess.PIPE,
        text=True,
        check=True,
        env=os.environ | environment,
    ).stdout


def main() -> int:
    *options, folder = sys.argv[1:]
    compiled = find_spec("fragdex._native") is not None
    if compiled == ("--pure" in options):
        print(f"fragdex._native is {'there' if compiled else 'missing'}", file=sys.stderr)
        return 1
    films = sorted(Path(folder).glob("*.mp4"))
    if not films:
        print(f"no films in {folder}", file=sys.stderr)
        return 1
    told = listed(films)
    if told != listed(films, FRAGDEX_PURE_PYTHON="1"):
        print("the compiled loops and those in Python differ", file=sys.stderr)
        return 1
    print(f"{len(films)} films indexed, {'compiled' if compiled else 'in pure Python'}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
