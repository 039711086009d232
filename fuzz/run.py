"""`./dev fuzz`: hostile input for ten minutes; exit code 1 if anything but our errors comes out.

    ./dev fuzz                            all targets, ten minutes together
    ./dev fuzz --hours 8 --jobs 4         all targets for a night, four at a time
    ./dev fuzz --minutes 1 parse index    two targets, a minute together
    ./dev fuzz --merge --pack             keep of the corpus what reaches more code, and stop
    ./dev fuzz --replay FILE parse        one input again, with the traceback

Inputs that were interesting stay in out/fuzz/corpus, and the next run goes on with them; --pack
puts the smallest of them into fuzz/corpus.zip, with which every run begins. What broke something
lies in out/fuzz/found, a folder for each run. Ctrl-C and SIGTERM end the workers too. Needs the
group `fuzz` (atheris); ./dev installs it.
"""

from __future__ import annotations

import argparse
import hashlib
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
import zipfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import IO

ROOT = Path(__file__).resolve().parent.parent
WORKER = Path(__file__).with_name("worker.py")
TARGETS = {
    "index": 4,
    "parse": 3,
    "forms": 2,
    "open_index": 2,
    "indexer": 2,
    "extend": 2,
    "extract": 2,
    "embed": 2,
    "json": 1,
    "text": 1,
    "large": 4,
    "dump": 1,
    "verify": 1,
    "pure": 2,
    "repair": 3,
    "captions": 1,
    "images": 1,
    "archives": 1,
}
"""Target → its share of the time."""
RECYCLED = 77
"""Exit code of a worker that wants to be started anew."""
MOST_RESTARTS = 50
PACKED = Path(__file__).with_name("corpus.zip")
MOST_PACKED = 12_000
"""Bytes of the inputs of one target, before they are compressed."""
ROUND_S = 1200
"""A longer run gives each target several turns."""


def main() -> int:
    """Read the command line; run every target in a process of its own."""
    parser = argparse.ArgumentParser(prog="./dev fuzz", description="Hostile input, for a while.")
    parser.add_argument("targets", nargs="*", metavar="TARGET", help=", ".join(TARGETS))
    parser.add_argument("--hours", type=float, default=0, help="all together")
    parser.add_argument("--minutes", type=float, default=0, help="all together (default: 10)")
    parser.add_argument("--seconds", type=float, default=0, help="all together")
    parser.add_argument("--jobs", type=int, default=1, help="targets at a time (default: 1)")
    parser.add_argument("--merge", action="store_true", help="make the corpus smaller, then stop")
    parser.add_argument("--out", type=Path, default=ROOT / "out" / "fuzz", help="corpus, findings")
    parser.add_argument("--seed", type=int, default=0, help="0: another one each time")
    parser.add_argument("--replay", type=Path, metavar="FILE", help="run one input, then stop")
    parser.add_argument("--pack", action="store_true", help="write fuzz/corpus.zip, then stop")
    given = parser.parse_args()
    unknown = [name for name in given.targets if name not in TARGETS]
    if unknown:
        parser.error(f"no target is called {unknown[0]}: {', '.join(TARGETS)}")
    names = given.targets or list(TARGETS)
    if given.replay is not None:
        return replay(names, given.replay)
    # A signal ends this process as an error does, so that no worker is left behind.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    out = given.out.resolve()
    if given.merge:
        merge(names, out)
    if given.pack:
        pack(out)
    if given.merge or given.pack:
        return 0
    seconds = given.hours * 3600 + given.minutes * 60 + given.seconds or 600
    return run_all(names, seconds, out, given.seed, given.jobs)


def replay(names: list[str], path: Path) -> int:
    """One input, without the fuzzer; an error shows itself."""
    import targets

    for name in names:
        targets.TARGETS[name](path.read_bytes())
    print(f"{path}: nothing but our errors from {', '.join(names)}")
    return 0


def run_all(names: list[str], seconds: float, out: Path, seed: int, jobs: int) -> int:
    """Every target for its share of the time; what one finds does not end the others.

    A long run goes through the targets in several rounds, so that each has had a turn early.
    """
    total = sum(TARGETS[name] for name in names)
    rounds = max(1, round(seconds / ROUND_S))
    found = out / "found" / time.strftime("%Y%m%d-%H%M%S")
    found.mkdir(parents=True, exist_ok=True)
    failed: dict[str, None] = {}
    turns = [(number, name) for number in range(rounds) for name in names]
    workers = Workers()

    def turn(number: int, name: str) -> None:
        share = max(1.0, jobs * seconds * TARGETS[name] / total / rounds)
        before = set(found.glob(f"{name}-*"))
        log = out / f"{name}.log"
        run_one(workers, name, share, out, found, seed + number if seed else 0, log)
        text = log.read_text("utf-8", "replace")
        lines = [f"{time.strftime('%H:%M:%S')} {name}: {share:.0f} s, {summary(text)}"]
        inputs = sorted(set(found.glob(f"{name}-*")) - before)
        if inputs:
            failed[name] = None
            lines += [f"    {line}" for line in what_happened(text)]
            lines += [f"  FAILED, see {log} and:", *(f"    {path}" for path in inputs)]
        print("\n".join(lines), flush=True)

    with ThreadPoolExecutor(max(1, jobs)) as pool:
        try:
            for done in [pool.submit(turn, *one) for one in turns]:
                done.result()
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            workers.end()
            raise
    if not failed:
        found.rmdir()
        print("nothing found")
        return 0
    print(f"failed: {', '.join(failed)}; one input again: ./dev fuzz --replay FILE TARGET")
    return 1


def run_one(
    workers: Workers, name: str, seconds: float, out: Path, found: Path, seed: int, log: Path
) -> None:
    """Workers of one target, one at a time, until the time is over."""
    end = time.monotonic() + seconds
    with log.open("wb") as stream:
        for turn in range(MOST_RESTARTS):
            left = round(end - time.monotonic())
            if left <= 0 and turn:
                return
            command = [sys.executable, str(WORKER), name, str(max(1, left)), str(out), str(found)]
            command.append(str(seed + turn if seed else 0))
            code = workers.run(command, stream)
            if code == 0 or workers.ended:
                return
            if code != RECYCLED and not any(found.glob(f"{name}-*")):
                # It died by itself: nothing that was fuzzed is to blame, but nothing was tested.
                (found / f"{name}-worker-failed").write_text(f"exit code {code}\n")
                return


class Workers:
    """The worker processes of this run; no other process is ever ended."""

    def __init__(self) -> None:
        self.ended = False
        self._running: set[subprocess.Popen[bytes]] = set()
        self._lock = threading.Lock()

    def run(self, command: list[str], stream: IO[bytes]) -> int:
        """Run one to its end; its exit code."""
        with self._lock:
            if self.ended:
                return 0
            worker = subprocess.Popen(command, stdout=stream, stderr=subprocess.STDOUT)
            self._running.add(worker)
        try:
            return worker.wait()
        finally:
            with self._lock:
                self._running.discard(worker)

    def end(self) -> None:
        """End those that run, and start no more."""
        with self._lock:
            self.ended = True
            for worker in self._running:
                worker.terminate()


def pack(out: Path) -> None:
    """Put the smallest inputs of every corpus into one small archive, the same each time."""
    with zipfile.ZipFile(PACKED, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in TARGETS:
            room = MOST_PACKED
            inputs = [path.read_bytes() for path in (out / "corpus" / name).glob("*")]
            for data in sorted(inputs, key=lambda data: (len(data), data)):
                room -= len(data)
                if room < 0:
                    break
                digest = hashlib.sha256(data).hexdigest()[:12]
                archive.writestr(zipfile.ZipInfo(f"{name}/{digest}"), data, zipfile.ZIP_DEFLATED)
    print(f"{PACKED}: {PACKED.stat().st_size:,} bytes")


def merge(names: list[str], out: Path) -> None:
    """Keep of each corpus the inputs that reach code which smaller ones do not."""
    workers = Workers()
    try:
        for name in names:
            corpus, smaller = out / "corpus" / name, out / "merged" / name
            if not corpus.is_dir():
                continue
            shutil.rmtree(smaller, ignore_errors=True)
            smaller.mkdir(parents=True)
            before = sum(1 for _ in corpus.iterdir())
            log = out / f"{name}.merge.log"
            with log.open("wb") as stream:
                code = workers.run(
                    [sys.executable, str(WORKER), name, "merge", str(out), str(smaller), "0"],
                    stream,
                )
            after = sum(1 for _ in smaller.iterdir())
            if code or not after:
                print(f"{name}: not merged, see {log}")
                continue
            shutil.rmtree(corpus)
            smaller.rename(corpus)
            print(f"{name}: {before} inputs, {after} kept", flush=True)
    finally:
        workers.end()


def summary(text: str) -> str:
    """What the workers of one target did, in a line."""
    runs = sum(map(int, re.findall(r"^== (\d+) inputs", text, re.MULTILINE)))
    rises = [int(rise) for rise in re.findall(r"at most (\d+) MB", text)]
    slowest = [float(time) for time in re.findall(r"slowest ([\d.]+) s", text)]
    return (
        f"{runs:,} inputs, at most {max(rises, default=0)} MB and {max(slowest, default=0)} s each"
    )


def what_happened(text: str) -> list[str]:
    """Every fault with its traceback, and what libFuzzer itself stopped at."""
    shown, left = [], 0
    for line in text.splitlines():
        if line.startswith(("== FAULT", "Traceback")) or (line[:2] == "==" and "ERROR" in line):
            left = max(left, 40)
        elif line.startswith(("#", "NEW_FUNC", "== ")):
            left = 0
        if left and line.strip():
            shown.append(line)
            left -= 1
    return shown


if __name__ == "__main__":
    sys.exit(main())
