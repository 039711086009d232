"""`./dev fuzz`: hostile input for ten minutes; exit code 1 if anything but our errors comes out.

    ./dev fuzz                           all targets, ten minutes together
    ./dev fuzz --seconds 60 parse index  two targets, a minute together
    ./dev fuzz --replay FILE parse       one input again, with the traceback

Inputs that were interesting stay in out/fuzz/corpus for the next time; what broke something lies
in out/fuzz/found, a folder for each run. Needs the extra `fuzz` (atheris); ./dev installs it.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import time
from pathlib import Path

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
}
"""Target → its share of the time."""
RECYCLED = 77
"""Exit code of a worker that wants to be started anew."""
MOST_RESTARTS = 50


def main() -> int:
    """Read the command line; run every target in a process of its own."""
    parser = argparse.ArgumentParser(prog="./dev fuzz", description="Hostile input, for a while.")
    parser.add_argument("targets", nargs="*", metavar="TARGET", help=", ".join(TARGETS))
    parser.add_argument("--seconds", type=int, default=600, help="all together (default: 600)")
    parser.add_argument("--out", type=Path, default=ROOT / "out" / "fuzz", help="corpus, findings")
    parser.add_argument("--seed", type=int, default=0, help="0: another one each time")
    parser.add_argument("--replay", type=Path, metavar="FILE", help="run one input, then stop")
    given = parser.parse_args()
    unknown = [name for name in given.targets if name not in TARGETS]
    if unknown:
        parser.error(f"no target is called {unknown[0]}: {', '.join(TARGETS)}")
    names = given.targets or list(TARGETS)
    if given.replay is not None:
        return replay(names, given.replay)
    return run_all(names, given.seconds, given.out.resolve(), given.seed)


def replay(names: list[str], path: Path) -> int:
    """One input, without the fuzzer; an error shows itself."""
    import targets

    for name in names:
        targets.TARGETS[name](path.read_bytes())
    print(f"{path}: nothing but our errors from {', '.join(names)}")
    return 0


def run_all(names: list[str], seconds: int, out: Path, seed: int) -> int:
    """One target after the other; what one finds does not end the others."""
    total = sum(TARGETS[name] for name in names)
    found = out / "found" / time.strftime("%Y%m%d-%H%M%S")
    found.mkdir(parents=True, exist_ok=True)
    failed = []
    for name in names:
        share = max(1, seconds * TARGETS[name] // total)
        print(f"{name}: {share} s", flush=True)
        log = out / f"{name}.log"
        run_one(name, share, out, found, seed, log)
        text = log.read_text("utf-8", "replace")
        print(f"  {summary(text)}")
        inputs = sorted(found.glob(f"{name}-*"))
        if inputs:
            failed.append(name)
            print("\n".join(f"    {line}" for line in what_happened(text)))
            print(f"  FAILED, see {log} and:")
            print("\n".join(f"    {path}" for path in inputs), flush=True)
    if not failed:
        found.rmdir()
        print("nothing found")
        return 0
    print(f"failed: {', '.join(failed)}; one input again: ./dev fuzz --replay FILE TARGET")
    return 1


def run_one(name: str, seconds: int, out: Path, found: Path, seed: int, log: Path) -> None:
    """Workers of one target, one at a time, until the time is over."""
    end = time.monotonic() + seconds
    with log.open("wb") as stream:
        for turn in range(MOST_RESTARTS):
            left = round(end - time.monotonic())
            if left <= 0:
                return
            command = [sys.executable, str(WORKER), name, str(left), str(out), str(found)]
            command.append(str(seed + turn if seed else 0))
            done = subprocess.run(command, stdout=stream, stderr=subprocess.STDOUT, check=False)
            if done.returncode == 0:
                return
            if done.returncode != RECYCLED and not any(found.glob(f"{name}-*")):
                # It died by itself: nothing that was fuzzed is to blame, but nothing was tested.
                (found / f"{name}-worker-failed").write_text(f"exit code {done.returncode}\n")
                return


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
