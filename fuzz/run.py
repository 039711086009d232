"""`./dev fuzz`: hostile input for ten minutes; exit code 1 if anything but our errors comes out.

    ./dev fuzz                           all targets, ten minutes together
    ./dev fuzz --seconds 60 parse index  two targets, a minute together
    ./dev fuzz --replay FILE parse       one input again, with the traceback

Inputs that were interesting stay in out/fuzz/corpus for the next time; what broke something lies
in out/fuzz/found. Needs the extra `fuzz` (atheris); ./dev installs it.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib
import os
import pkgutil
import random
import resource
import subprocess
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TARGETS = {
    "index": 4,
    "parse": 3,
    "forms": 2,
    "open_index": 2,
    "indexer": 2,
    "extend": 2,
    "json": 1,
    "text": 1,
}
"""Target → its share of the time."""
MEMORY_MB = 300
GREEDY_MB = 64
"""More than one input may add to the peak: its own bytes are a few KiB."""
TIMEOUT_S = 10
"""One input; every real one takes milliseconds."""
LONGEST = 32_768


def main() -> int:
    """Read the command line; run every target in a process of its own."""
    parser = argparse.ArgumentParser(prog="./dev fuzz", description="Hostile input, for a while.")
    parser.add_argument("targets", nargs="*", metavar="TARGET", help=", ".join(TARGETS))
    parser.add_argument("--seconds", type=int, default=600, help="all together (default: 600)")
    parser.add_argument("--out", type=Path, default=ROOT / "out" / "fuzz", help="corpus, findings")
    parser.add_argument("--seed", type=int, default=0, help="0: another one each time")
    parser.add_argument("--replay", type=Path, metavar="FILE", help="run one input, then stop")
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    unknown = [name for name in given.targets if name not in TARGETS]
    if unknown:
        parser.error(f"no target is called {unknown[0]}: {', '.join(TARGETS)}")
    if given.worker:
        return work(given.targets[0], given.seconds, given.out, given.seed)
    names = given.targets or list(TARGETS)
    if given.replay is not None:
        import targets

        for name in names:
            targets.TARGETS[name](given.replay.read_bytes())
        print(f"{given.replay}: nothing but our errors from {', '.join(names)}")
        return 0
    return run_all(names, given.seconds, given.out.resolve(), given.seed)


def run_all(names: list[str], seconds: int, out: Path, seed: int) -> int:
    """One process a target, one after the other; what one finds does not end the others."""
    total = sum(TARGETS[name] for name in names)
    for folder in ("found", "corpus", "seeds"):
        (out / folder).mkdir(parents=True, exist_ok=True)
    dictionary(out / "codes.dict")
    failed = []
    for name in names:
        share = max(1, seconds * TARGETS[name] // total)
        print(f"{name}: {share} s", flush=True)
        log = out / f"{name}.log"
        command = [sys.executable, __file__, name, "--worker"]
        command += ["--seconds", str(share), "--out", str(out), "--seed", str(seed)]
        started = time.monotonic()
        before = set((out / "found").iterdir())
        with log.open("wb") as stream:
            done = subprocess.run(command, stdout=stream, stderr=subprocess.STDOUT, check=False)
        text = log.read_text("utf-8", "replace")
        for line in summary(text):
            print(f"  {line}")
        found = sorted(set((out / "found").iterdir()) - before)
        if done.returncode or found:
            failed.append(name)
            print(f"  FAILED within {time.monotonic() - started:.0f} s, see {log}")
            for path in found:
                print(f"    {path.name}")
            print("\n".join(f"    {line}" for line in what_happened(text)))
    print(f"failed: {', '.join(failed)}; inputs in {out / 'found'}" if failed else "nothing found")
    return 1 if failed else 0


def peak_mb() -> int:
    """The most memory that this process has had."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024


def kept_going(name: str, target: Callable[[bytes], None], found: Path) -> Callable[[bytes], None]:
    """The target, which goes on after a fault: each place of the code is told once.

    What libFuzzer watches itself (time, memory, signals) still ends the run.
    """
    known: set[str] = set()

    def keep(kind: str, data: bytes) -> Path:
        path = found / f"{name}-{kind}-{hashlib.sha256(data).hexdigest()[:12]}"
        path.write_bytes(data)
        return path

    def run(data: bytes) -> None:
        before = peak_mb()
        try:
            target(data)
            if peak_mb() - before > GREEDY_MB:
                path = keep("memory", data)
                print(
                    f"== FAULT {peak_mb() - before} MB more in {path}", file=sys.stderr, flush=True
                )
        except Exception as error:  # noqa: BLE001 - whatever it is, it is what we look for
            last = traceback.extract_tb(error.__traceback__)[-1]
            ours = [f for f in traceback.extract_tb(error.__traceback__) if "fragdex" in f.filename]
            place = ours[-1] if ours else last
            key = f"{type(error).__name__} {place.filename}:{place.lineno}"
            if isinstance(error, AssertionError):
                key = str(error)
            if key in known:
                return
            known.add(key)
            print(f"== FAULT in {keep('fault', data)}", file=sys.stderr)
            traceback.print_exc()
            sys.stderr.flush()

    return run


def summary(text: str) -> list[str]:
    """The figures that libFuzzer ends with."""
    kept = ("stat::number_of_executed_units", "stat::peak_rss_mb", "stat::slowest_unit_time_sec")
    return [line.removeprefix("stat::") for line in text.splitlines() if line.startswith(kept)]


def what_happened(text: str) -> list[str]:
    """Every fault with its traceback, and what libFuzzer itself stopped at."""
    shown, left = [], 0
    for line in text.splitlines():
        if line.startswith("== FAULT") or (line.startswith("==") and "ERROR" in line):
            left = 40
        elif line.startswith(("#", "NEW_FUNC")):
            left = 0
        if left and line.strip():
            shown.append(line)
            left -= 1
    return shown


def dictionary(path: Path) -> None:
    """Four-letter codes in libFuzzer's form."""
    from mutation import CODES

    path.write_text("".join(f'"{code.decode()}"\n' for code in CODES), "utf-8")


def work(name: str, seconds: int, out: Path, seed: int) -> int:
    """One target under atheris; never returns but through libFuzzer's exit."""
    import atheris

    # Only what is imported in here reports where it has been.
    with atheris.instrument_imports(include=["fragdex"]):
        import targets

        import fragdex

        for room in ("boxes", "build", "byterange", "formats", "fragments", "seeking", "sources"):
            for module in pkgutil.iter_modules([f"{fragdex.__path__[0]}/{room}"]):
                importlib.import_module(f"fragdex.{room}.{module.name}")
    from mutation import mutate_boxes, mutate_fidx, scramble
    from seeds import seeds

    start, corpus = out / "seeds" / name, out / "corpus" / name
    for folder in (start, corpus):
        folder.mkdir(parents=True, exist_ok=True)
    for called, data in seeds(name):
        (start / called).write_bytes(data)
    target = kept_going(name, targets.TARGETS[name], out / "found")
    arguments = [
        sys.argv[0],
        str(corpus),
        str(start),
        f"-max_total_time={seconds}",
        f"-rss_limit_mb={MEMORY_MB}",
        f"-timeout={TIMEOUT_S}",
        f"-max_len={LONGEST}",
        f"-dict={out / 'codes.dict'}",
        f"-artifact_prefix={out / 'found'}{os.sep}{name}-",
        "-print_final_stats=1",
        "-reload=0",
        f"-seed={seed}",
    ]
    options = {}
    if name not in ("json", "text"):
        mutate = mutate_fidx if name == "open_index" else mutate_boxes

        def custom(data: bytes, most: int, number: int) -> bytes:
            dice = random.Random(number)

            def base(part: bytes, largest: int) -> bytes:
                if dice.randrange(2):
                    return scramble(part, dice)[:largest]
                return bytes(atheris.Mutate(part, min(largest, max(len(part) * 2, 16))))

            return mutate(data, most, dice, base)

        options["custom_mutator"] = custom
    atheris.Setup(arguments, target, **options)
    atheris.Fuzz()
    return 0


if __name__ == "__main__":
    sys.exit(main())
