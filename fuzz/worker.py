"""One target under atheris: `worker.py TARGET SECONDS OUT FOUND SEED`, started by run.py.

With `merge` for SECONDS the smallest inputs of the corpus that reach all of its code go to FOUND.

Time and memory are measured for each input alone: atheris keeps a little of every comparison that
it watches, so the memory of the whole process rises without the library's doing. A process that
has grown too large ends, and run.py starts another one on the corpus that it left.
"""

from __future__ import annotations

import hashlib
import importlib
import os
import pkgutil
import random
import shlex
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import atheris

RISE_MB = 240
"""Memory for one input, besides the 60 MB of a process that has only loaded the library: 300 MB
together, as the library promises."""
TIMEOUT_S = 10
"""One input; every real one takes milliseconds."""
BESIDE = {
    "dump": ("cli.box_tree",),
    "captions": ("formats.captions",),
    "images": ("service.images.probe",),
    "archives": ("service.renders.archives",),
}
"""Modules that one target alone needs; the others start faster without."""
SLOW = ("large",)
LONG_TIMEOUT_S = 60
"""Files of a quarter of a megabyte, under instrumentation; their growth is measured besides."""
LONGEST = 32_768
TOO_LARGE_MB = 700
RECYCLED = 77  # what run.py expects
PAGE = os.sysconf("SC_PAGE_SIZE")


def main() -> int:
    """Set the target up and run it; libFuzzer ends the process."""
    name, seconds, out, found, seed, *inner = sys.argv[1:]
    # Only what is imported in here reports where it has been.
    with atheris.instrument_imports(include=["fragdex"]):
        import targets

        import fragdex

        for module in BESIDE.get(name, ()):
            importlib.import_module(f"fragdex.{module}")
        for room in ("boxes", "formats", "fragments", "indexing", "seeking", "sources"):
            for module in pkgutil.iter_modules([f"{fragdex.__path__[0]}/{room}"]):
                importlib.import_module(f"fragdex.{room}.{module.name}")
    from mutation import CODES
    from seeds import seeds

    start, corpus = Path(out, "seeds", name), Path(out, "corpus", name)
    for folder in (start, corpus):
        folder.mkdir(parents=True, exist_ok=True)
    for called, data in seeds(name):
        (start / called).write_bytes(data)
    words = Path(out, "codes.dict")
    words.write_text("".join(f'"{code.decode()}"\n' for code in CODES), "utf-8")
    program, folders = sys.argv[0], [str(corpus), str(start)]
    ending = f"-max_total_time={seconds}"
    if seconds == "merge":  # `found` is where what is kept goes
        program, folders, ending = _restarted(out, found), [found, str(corpus)], "-merge=1"
    arguments = [
        program,
        *folders,
        ending,
        f"-rss_limit_mb={TOO_LARGE_MB + RISE_MB}",
        f"-timeout={LONG_TIMEOUT_S if name in SLOW else TIMEOUT_S}",
        f"-max_len={LONGEST}",
        f"-dict={words}",
        f"-artifact_prefix={found}{os.sep}{name}-",
        "-reload=0",
        f"-seed={seed}",
    ]
    if inner:
        arguments = [program, *inner]
    watch = Watch(name, targets.TARGETS[name], Path(found))
    atheris.Setup(arguments, watch.run, **mutator(name))
    atheris.Fuzz()
    return 0


def _restarted(out: str, found: str) -> str:
    """A program that libFuzzer can start once more with other options, as merging does."""
    script = Path(out, f"{Path(found).name}.merge.sh")
    again = shlex.join([sys.executable, *sys.argv[:6]])
    script.write_text(f'#!/bin/sh\nexec {again} "$@"\n', "utf-8")
    script.chmod(0o700)
    return str(script)


def mutator(name: str) -> dict[str, Any]:
    """What changes inputs of a target, where it is not libFuzzer alone."""
    from mutation import mutate_boxes, mutate_fidx, scramble

    if name in ("json", "text", "large", "captions", "images", "archives"):
        return {}
    mutate = mutate_fidx if name == "open_index" else mutate_boxes

    def custom(data: bytes, most: int, number: int) -> bytes:
        dice = random.Random(number)

        def base(part: bytes, largest: int) -> bytes:
            if dice.randrange(2):
                return scramble(part, dice)[:largest]
            return bytes(atheris.Mutate(part, min(largest, max(len(part) * 2, 16))))

        return mutate(data, most, dice, base)

    return {"custom_mutator": custom}


class Watch:
    """A target that goes on after a fault, and tells each place of the code once.

    What libFuzzer watches itself (time, signals) still ends the run.
    """

    def __init__(self, name: str, target: Callable[[bytes], None], found: Path) -> None:
        self.name, self.target, self.found = name, target, found
        self.inputs, self.highest, self.slowest, self.told_at = 0, 0, 0.0, 0.0

    def run(self, data: bytes) -> None:
        """One input."""
        self.inputs += 1
        before = self._reset_peak()
        began = time.monotonic()
        try:
            self.target(data)
        except Exception as error:  # noqa: BLE001 - whatever it is, it is what we look for
            self._fault(error, data)
        now = time.monotonic()
        self.slowest = max(self.slowest, now - began)
        rise = (_peak() - before) >> 20
        self.highest = max(self.highest, rise)
        if rise > RISE_MB:
            path = self._keep("memory", hashlib.sha256(data).hexdigest(), data)
            print(f"== FAULT: {rise} MB for {path}", file=sys.stderr)
        if now - self.told_at > 1:
            self.told_at = now
            self._tell()
            if _resident() >> 20 > TOO_LARGE_MB:
                sys.stderr.flush()
                os._exit(RECYCLED)

    def _tell(self) -> None:
        """Add to the log what was done since the last time."""
        measured = f"at most {self.highest} MB, slowest {self.slowest:.2f} s"
        print(f"== {self.inputs} inputs, {measured}", file=sys.stderr, flush=True)
        self.inputs = 0

    def _fault(self, error: Exception, data: bytes) -> None:
        frames = traceback.extract_tb(error.__traceback__)
        ours = [frame for frame in frames if "fragdex" in frame.filename] or frames
        key = f"{type(error).__name__} {ours[-1].filename}:{ours[-1].lineno}"
        if isinstance(error, AssertionError):
            key = str(error)
        place = hashlib.sha256(key.encode()).hexdigest()
        if any(self.found.glob(f"{self.name}-fault-{place[:12]}*")):
            return
        print(f"== FAULT: {self._keep('fault', place, data)}", file=sys.stderr)
        traceback.print_exception(error)
        sys.stderr.flush()

    def _keep(self, kind: str, key: str, data: bytes) -> Path:
        path = self.found / f"{self.name}-{kind}-{key[:12]}"
        path.write_bytes(data)
        return path

    def _reset_peak(self) -> int:
        """Let the peak begin anew (Linux), and give what is resident now, in bytes."""
        try:
            with open("/proc/self/clear_refs", "w") as file:
                file.write("5")
        except OSError:
            return _peak()
        return _resident()


def _resident() -> int:
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * PAGE


def _peak() -> int:
    with open("/proc/self/status") as file:
        for line in file:
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    return 0


if __name__ == "__main__":
    sys.exit(main())
