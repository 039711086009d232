"""The results of the service in words, and what they were measured with."""

from __future__ import annotations

import shutil
import sqlite3
import subprocess
from importlib.metadata import version
from typing import Any

import machine
from results import Results, head, spread, wanted

COMMAND = "python benchmarks/service/run.py"
PACKAGES = ("fastapi", "starlette", "uvicorn", "uvloop", "httptools", "pydantic", "SQLAlchemy")


def surroundings() -> dict[str, Any]:
    """The machine, and the versions of who takes part."""
    described = machine.describe()
    versions = {name: version(name) for name in ("fragdex", *PACKAGES)}
    versions["python"] = described["versions"]["python"]
    versions["SQLite"] = sqlite3.sqlite_version
    for program, flag in (("nginx", "-v"), ("wrk", "-v")):
        if shutil.which(program):
            done = subprocess.run([program, flag], capture_output=True, text=True, check=False)
            words = (done.stdout + done.stderr).replace("/", " ").split()
            versions[program] = next((w for w in words if w[0].isdigit()), "?")
    return {**described, "versions": versions}


def markdown(results: Results) -> str:
    """The whole report."""
    body = [
        *head("Benchmarks of the service", results),
        "Each server is one process on loopback, and so is who asks, on the same cores. Runs "
        "alternate; a ratio is the median of the ratios within each round.",
        "",
        *wanted(results),
        *spread(results),
    ]
    return "\n".join(body) + "\n"
