"""Digests, and what a user of the command line waits for."""

from __future__ import annotations

import compileall
import io
import shutil
import sys
import zipfile
from concurrent.futures import Executor, Future
from pathlib import Path
from typing import Any

import peers
from clock import in_process, process
from rows import Row, Setting, Want, median, ratio, run

import fragdex
from fragdex.testing import movie

MD5, BOTH = "fragdex.sources.md5", "fragdex.index, md5=True"
OPENSSL, EMPTY = "openssl md5", "openssl md5 of nothing"
INDEX = "fragdex index"


def digest(setting: Setting) -> Row:
    """One pass that hashes and indexes; hashing against openssl."""
    path, counts = setting.files["2h"]
    name = str(path)
    openssl = shutil.which("openssl")
    contenders = [
        in_process(MD5, lambda: fragdex.sources.md5(name)),
        in_process(BOTH, lambda: fragdex.index(name, md5=True)),
    ]
    if openssl:
        contenders.append(process(OPENSSL, [openssl, "md5", name], note="a process"))
        contenders.append(process(EMPTY, [openssl, "md5", "/dev/null"], note="its start alone"))
    f = run(contenders, setting.rounds)
    whole, start = median(f, OPENSSL), median(f, EMPTY)
    # Held to the stricter form: without the start of openssl's process.
    theirs = whole - start if whole and start else None
    return Row(
        "md5",
        f"md5 and index in one pass, {counts.bytes / 1e6:.0f} MB",
        f,
        [
            Want("≤ 1.05 × md5 alone", ratio(median(f, BOTH), median(f, MD5)), 1.05, at_most=True),
            Want(
                "md5 ≥ 0.97 × openssl md5 (its start taken off)",
                ratio(theirs, median(f, MD5)),
                0.97,
                at_most=False,
            ),
        ],
        {"bytes": counts.bytes},
    )


def _fragdex() -> list[str]:
    """The command as installed; the module where no script stands beside the interpreter."""
    script = Path(sys.executable).with_name("fragdex")
    return [str(script)] if script.exists() else [sys.executable, "-m", "fragdex"]


def command_line(setting: Setting) -> Row:
    """A whole process that leaves an index file behind."""
    path, counts = setting.files["2h"]
    out = peers.BUILD / "cli.fidx"
    peers.BUILD.mkdir(exist_ok=True)
    command = [*_fragdex(), "index", str(path), "-o", str(out)]
    f = run(
        [
            process(INDEX, command, note="a process; writes the index file"),
            peers.probe(path, setting.slow),
        ],
        setting.rounds,
    )
    ours, theirs = median(f, INDEX), median(f, peers.PROBE)
    return Row(
        "command-line",
        f"`fragdex index` as a process, 2 h, {counts.samples:,} samples",
        f,
        [
            Want("< 0.5 s", ours and ours / 1e9, 0.5, at_most=True, unit="s"),
            Want("≤ 1/5 of ffprobe's packet listing", ratio(ours, theirs), 0.2, at_most=True),
        ],
    )


CLIPS = 100
CLIPS_ALONE, CLIPS_SET = f"fragdex.index of {CLIPS} clips", f"write_set of {CLIPS} clips"


class _AtOnce(Executor):
    """Does what it is given at once: one processor, no message to another process."""

    def submit(self, work: Any, /, *args: Any, **options: Any) -> Future[Any]:
        done: Future[Any] = Future()
        done.set_result(work(*args, **options))
        return done


def clips(setting: Setting) -> Row:
    """A set of short clips: index, row and Parquet, beside the indexes alone."""
    folder = peers.BUILD / "clips"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    movies = [
        movie(seconds, samples=25, fps=25, tracks=2, fragmented=fragmented)
        for seconds in (8, 12, 16, 20)
        for fragmented in (True, False)
    ]
    paths = [folder / f"{number:03}.mp4" for number in range(CLIPS)]
    for number, path in enumerate(paths):
        path.write_bytes(movies[number % len(movies)])
    written = peers.BUILD / "clips.parquet"

    def alone() -> None:
        for path in paths:
            fragdex.index(path, exact=True)

    def as_set() -> None:
        written.unlink(missing_ok=True)
        fragdex.data.write_set(folder, written, executor=_AtOnce())

    contenders = [in_process(CLIPS_ALONE, alone), in_process(CLIPS_SET, as_set)]
    f = run(contenders, setting.rounds)
    whole = median(f, CLIPS_SET)
    each = whole and whole / 1e6 / CLIPS
    return Row(
        "clips",
        f"a set of {CLIPS} clips of 8 to 20 s, with their samples, on one processor",
        f,
        [
            Want("≤ 1 ms a clip", each, 1, at_most=True, unit="ms"),
            Want(
                "≤ 2.5 × their indexes alone",
                ratio(whole, median(f, CLIPS_ALONE)),
                2.5,
                at_most=True,
            ),
        ],
    )


def start(setting: Setting) -> Row:
    """What importing costs, and the help."""
    python = sys.executable
    imports = {
        "python": "pass",
        "import numpy": "import numpy",
        "import fragdex": "import fragdex",
        "import fragdex, fragdex.index": "import fragdex; fragdex.index",
    }
    contenders = [process(name, [python, "-c", code]) for name, code in imports.items()]
    contenders.append(process("fragdex --help", [*_fragdex(), "--help"]))
    f = run(contenders, setting.rounds)
    ours, numpy = median(f, "import fragdex"), median(f, "import numpy")
    helped = median(f, "fragdex --help")
    over = (ours - numpy) / 1e6 if ours is not None and numpy is not None else None
    packed = _packed_size()
    return Row(
        "start",
        "import and help, each a process with its interpreter",
        f,
        [
            Want("import ≤ numpy's own + 50 ms", over, 50, at_most=True, unit="ms"),
            Want("--help < 0.3 s", helped and helped / 1e9, 0.3, at_most=True, unit="s"),
            Want("the package, packed as in a wheel", packed / 1e6, 2.5, at_most=True, unit="MB"),
        ],
        {"packed_bytes": packed},
    )


def _packed_size() -> int:
    """Bytes of the package as a wheel packs it."""
    folder, packed = Path(fragdex.__file__).parent, io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in folder.rglob("*"):
            if path.is_file() and "__pycache__" not in path.parts:
                archive.write(path)
    return packed.tell()


def first_call(setting: Setting) -> Row:
    """What the first call costs in a fresh process, beyond the interpreter and numpy."""
    # As pip leaves an installation; an editable one may have no compiled modules.
    compileall.compile_dir(Path(fragdex.__file__).parent, quiet=2)
    movie = Path(__file__).parents[1] / "fixtures" / "frag-cmaf.mp4"
    saved = peers.BUILD / "first-call.fidx"
    peers.BUILD.mkdir(exist_ok=True)
    fragdex.index(movie).save(saved)
    numpy, indexed, opened = "import numpy", "fragdex.index", "open_index and seek"
    programs = {
        numpy: "import numpy",
        indexed: f"import fragdex; fragdex.index({str(movie)!r})",
        opened: f"import fragdex; fragdex.open_index({str(saved)!r}).track(1).seek(1)",
    }
    f = run(
        [process(name, [sys.executable, "-c", code]) for name, code in programs.items()],
        setting.rounds,
    )

    def beyond(name: str) -> float | None:
        ours, theirs = median(f, name), median(f, numpy)
        return (ours - theirs) / 1e6 if ours is not None and theirs is not None else None

    return Row(
        "first-call",
        f"the first call of a process, {movie.stat().st_size / 1024:.0f} KiB of MP4",
        f,
        [
            Want("index ≤ numpy's import + 100 ms", beyond(indexed), 100, at_most=True, unit="ms"),
            Want("open and seek ≤ + 100 ms", beyond(opened), 100, at_most=True, unit="ms"),
        ],
    )
