"""Children that work in the peers' environment, and what is made of their answers."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import films
from rounds import Amount, Amounts, Polite, in_turns

__all__ = ["BRIDGES", "PYTHON", "Setting", "ask", "raced", "run_examples", "truth_of", "wrong_of"]

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
PYTHON = ROOT / ".venv-frames" / "bin" / "python"
"""Where the peers are; ./dev bench-frames makes it."""
BRIDGES = ROOT / ".venv-bridges" / "bin" / "python"
"""Where LeRobot and Ray are; ./dev bridges makes it."""

Contenders = Mapping[str, dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Setting(Polite):
    """How much and how long: rounds, whether films are short, one of how many parts of the work."""

    folder: Path
    rounds: int
    quick: bool
    part: int = 1


@cache
def _plain_names(python: Path) -> str:
    """Folders for LD_LIBRARY_PATH: PyAV's own FFmpeg under the names that torchcodec asks for.

    So both decode with the same libraries.
    """
    environment = python.parents[1]
    libraries = next((environment / "lib").glob("python*/site-packages/av.libs"))
    folder = environment / "plain-names"
    folder.mkdir(exist_ok=True)
    for path in libraries.iterdir():
        match = re.fullmatch(r"(lib(?:av|sw)\w+)-\w+(\.so\.\d+)[\d.]*", path.name)
        if match:
            name = folder / (match[1] + match[2])
            name.unlink(missing_ok=True)
            name.symlink_to(path)
    return f"{folder}:{libraries}"


def surroundings_of_peers(python: Path = PYTHON) -> dict[str, str]:
    """The environment of a child."""
    return {**os.environ, "LD_LIBRARY_PATH": _plain_names(python), "PYTHONNOUSERSITE": "1"}


def ask(
    task: str, *, variables: Mapping[str, str] | None = None, python: Path = PYTHON, **job: Any
) -> dict[str, Any]:
    """Let a child work."""
    done = subprocess.run(
        [str(python), str(HERE / "child.py")], input=json.dumps({"task": task, **job}),
        capture_output=True, text=True, env={**surroundings_of_peers(python), **(variables or {})},
        timeout=3600, check=False,
    )  # fmt: skip
    if done.returncode:
        print(done.stderr[-3000:], file=sys.stderr)
        raise SystemExit(f"{task} of {job.get('who')} ended with {done.returncode}")
    answer: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return answer


def run_examples(page: str) -> int:
    """Run the examples of a page of the documentation; its exit code."""
    command = [str(PYTHON), str(HERE / "examples.py"), str(ROOT / "docs" / page)]
    return subprocess.run(command, env=surroundings_of_peers(), check=False).returncode


def truth_of(film: Path) -> list[int]:
    """Checksums of the frames of the loop, in order of presentation, by linear decode."""
    kept = film.with_suffix(".sums.json")
    if not kept.exists():
        kept.write_text(json.dumps(ask("truth", what=str(film), frames=films.LOOP)["sums"]))
    sums: list[int] = json.loads(kept.read_text())
    return sums


def wrong_of(answer: Mapping[str, Any], truth: Sequence[int]) -> int:
    """Frames whose pixels or times are not those of linear decode."""
    wrong = len(answer["numbers"]) - len(answer["sums"])
    for number, checksum, shown in zip(
        answer["numbers"], answer["sums"], answer["times"], strict=False
    ):
        right = checksum == truth[number % len(truth)]
        wrong += not (right and abs(shown - number / films.RATE) < 0.5 / films.RATE)
    return wrong


def raced(
    setting: Setting, task: str, contenders: Contenders, jobs: Sequence[dict[str, Any]],
    truth: Sequence[int],
) -> tuple[Amounts, dict[str, int]]:  # fmt: skip
    """Every contender in every round; each round has a job of its own.

    Returns: seconds, opening of the film included, and processor time; wrong frames.
    """
    amounts: Amounts = {}
    wrong = dict.fromkeys(contenders, 0)
    for name in contenders:
        amounts[name], amounts[f"{name}, processor"] = Amount("s"), Amount("s")
    opens: dict[str, list[float]] = {name: [] for name in contenders}

    def run(name: str, number: int) -> None:
        answer = ask(task, **{**jobs[number % len(jobs)], **contenders[name]})
        amounts[name].runs.append(answer["seconds"])
        amounts[f"{name}, processor"].runs.append(answer["cpu"])
        opens[name].append(answer["open"])
        wrong[name] += wrong_of(answer, truth)

    in_turns(setting, setting.rounds, list(contenders), run)
    for name, runs in opens.items():
        amounts[name].note = f"opening {sorted(runs)[len(runs) // 2]:.2f} s; {wrong[name]} wrong"
    return amounts, wrong
