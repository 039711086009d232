"""The readers of the binary index that share no code with ours, run as programs: fidx.h, fidx.js.

Each takes many files at once, and answers as `fragdex.testing.check_fidx` has it.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from fragdex.formats import fidx

HERE = Path(__file__).parent
HEADER = Path(fidx.__file__).with_suffix(".h")
MODULE = Path(fidx.__file__).with_name("fidx-js") / "fidx.js"
WARNINGS = ("-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Wsign-conversion", "-Wshadow",
            "-Werror")  # fmt: skip
# Nothing is optimized away before it is looked at, and they are compiled in a tenth of the time.
SANITIZED = ("-g1", "-O0", "-fno-omit-frame-pointer", "-fsanitize=address,undefined",
             "-fno-sanitize-recover=all")  # fmt: skip
Asked = Sequence[tuple[bytes, Sequence[dict[str, Any]]]]


def compiler() -> str | None:
    """A C compiler that has the sanitizers; of Windows none has all of them."""
    return None if sys.platform == "win32" else shutil.which("gcc") or shutil.which("clang")


def compiled(source: Path, target: Path, *options: str) -> Path:
    """A program of one C file and fidx.h; warnings are errors."""
    command = [
        compiler(),
        "-std=c99",
        *WARNINGS,
        *options,
        f"-I{HEADER.parent}",
        source,
        "-o",
        target,
    ]
    subprocess.run(command, check=True)
    return target


def runs(program: Path) -> bool:
    """Whether a sanitized program starts here; some containers do not let it."""
    done = subprocess.run([program], input=b"", capture_output=True, check=False)
    return done.returncode == 0


def answered_by_c(program: Path, asked: Asked) -> list[Any]:
    """What fidx_answers.c says, a list of answers for each file; None where it refuses it."""
    lines = []
    for data, questions in asked:
        lines += [b"%d %d\n" % (len(data), len(questions)), data]
        lines += [f"{_line(one)}\n".encode() for one in questions]
    environment = os.environ | {"ASAN_OPTIONS": "detect_leaks=1"}
    done = subprocess.run(
        [program], input=b"".join(lines), capture_output=True, check=False, env=environment
    )
    assert done.returncode == 0, done.stderr.decode()[-3000:]
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    return [None if isinstance(one, int) else one for one in answers]


def _line(question: dict[str, Any]) -> str:
    words = [value.hex() if isinstance(value, float) else str(value) for value in question.values()]
    return " ".join(words)


def answered_by_js(folder: Path, asked: Asked) -> list[Any]:
    """What fidx_answers.mjs says, in node."""
    plan = []
    for number, (data, questions) in enumerate(asked):
        (folder / f"{number}.fidx").write_bytes(data)
        plan.append({"file": f"{number}.fidx", "questions": questions})
    (folder / "questions.json").write_text(json.dumps(plan))
    command = ["node", HERE / "fidx_answers.mjs", MODULE, folder]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    answers: list[Any] = json.loads(done.stdout)
    return answers
