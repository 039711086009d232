"""The floor and the peers, each if it is installed; what is missing is told, not hidden."""

from __future__ import annotations

import functools
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import av
from clock import Contender, PeerFailed, in_process, process, worker

HERE = Path(__file__).parent
BUILD = HERE / "build"
NODE = HERE / "node"
PYMP4 = HERE.parent / ".venv-pymp4" / "bin" / "python"

FLOORS = {
    "floor, mapping": "mapping_ns",
    "floor, exact reads": "exact_ns",
    "floor, guessed reads": "guessed_ns",
    "floor, chunks": "chunks_ns",
}
"""Each way of the floor, and what floor.c calls its times."""
OPEN, DEMUX = "libavformat open", "PyAV demux"
PROBE = "ffprobe -show_packets"


FORMATS = HERE.parent / "src" / "fragdex" / "formats"


@functools.cache
def c_program(name: str) -> Path | None:
    """Compile a C file that is here, where a compiler is; return the program."""
    compiler = os.environ.get("CC") or shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        return None
    BUILD.mkdir(exist_ok=True)
    program, text = BUILD / name, HERE / f"{name}.c"
    newest = max(one.stat().st_mtime for one in (text, FORMATS / "fidx.h"))
    if not program.exists() or program.stat().st_mtime < newest:
        options = ["-O2", f"-I{FORMATS}", "-o", str(program)]
        subprocess.run([compiler, *options, str(text)], check=True)
    return program


def floor(path: Path) -> Contender | None:
    """The C program that hops over the boxes and reads every moof byte once, in four ways."""
    program = c_program("floor")
    if program is None:
        return None

    def once() -> Mapping[str, int]:
        done = subprocess.run(
            [str(program), str(path), "3"], capture_output=True, check=False, text=True
        )
        if done.returncode:
            raise PeerFailed(done.stderr.strip())
        answer = json.loads(done.stdout)
        return {name: answer[times][-1] for name, times in FLOORS.items()}

    return Contender("floor", once, note="floor.c; the last of three runs in a fresh process")


def libavformat_open(path: Path) -> Contender:
    """av.open and close: libavformat reads every moof and probes the codecs."""

    def work() -> None:
        with av.open(str(path)):
            pass

    return in_process(OPEN, work, note="av.open and close")


def demux(path: Path, samples: int, rounds: int) -> Contender:
    """Every packet through PyAV."""

    def work() -> None:
        with av.open(str(path)) as container:
            seen = sum(packet.size > 0 for packet in container.demux())
        if seen != samples:
            raise PeerFailed(f"it saw {seen} packets, there are {samples} samples")

    return in_process(DEMUX, work, rounds=rounds, note="av.open and demux of every packet")


def pymp4(path: Path, samples: int, rounds: int) -> Contender | None:
    """The pure-Python parser, in its own environment."""
    if not PYMP4.exists():
        return None
    command = [str(PYMP4), str(HERE / "peer_pymp4.py"), str(path)]
    note = "moov and every moof parsed; clock inside a process that stays"
    return worker("pymp4", command, samples=samples, rounds=rounds, note=note)


@functools.cache
def _node() -> str | None:
    """The node interpreter with both packages in place; npm fetches them where it can."""
    node, npm = shutil.which("node"), shutil.which("npm")
    if node and npm and not (NODE / "node_modules").exists():
        command = [npm, "ci", "--silent", "--no-audit", "--no-fund"]
        subprocess.run(command, cwd=NODE, check=False, stdout=subprocess.DEVNULL)
    return node if (NODE / "node_modules").exists() else None


def javascript(name: str, path: Path, samples: int, rounds: int) -> Contender | None:
    """mp4box or mediabunny under node."""
    node = _node()
    if node is None:
        return None
    notes = {
        "mp4box": "appendBuffer in pieces of 64 KiB, sample lists built",
        "mediabunny": "all packets of all tracks listed, metadata only",
    }
    label = {"mp4box": "mp4box.js", "mediabunny": "mediabunny"}[name]
    command = [node, str(NODE / "peer.mjs"), name, str(path)]
    note = notes[name] + "; clock inside a process that stays"
    return worker(label, command, samples=samples, rounds=rounds, note=note, warm=True)


def pure_python(path: Path, samples: int) -> Contender:
    """Fragdex without its C extension."""
    return worker(
        "fragdex, pure Python",
        [sys.executable, str(HERE / "peer_fragdex.py"), str(path)],
        samples=samples,
        note="fragdex.index with FRAGDEX_PURE_PYTHON=1; clock inside a process that stays",
        environment={"FRAGDEX_PURE_PYTHON": "1"},
    )


def probe(path: Path, rounds: int) -> Contender | None:
    """Ffprobe's packet listing, a process."""
    program = shutil.which("ffprobe")
    if program is None:
        return None
    command = [program, "-v", "error", "-show_packets", "-of", "csv", str(path)]
    return process(PROBE, command, rounds=rounds, note="a process, CSV to nowhere")


def all_readers(path: Path, samples: int, *, slow: int, slowest: int) -> list[Contender | None]:
    """Floor and peers that read the whole structure of a file."""
    return [
        floor(path),
        libavformat_open(path),
        demux(path, samples, slow),
        javascript("mp4box", path, samples, slow),
        javascript("mediabunny", path, samples, slowest),
        pymp4(path, samples, slowest),
    ]
