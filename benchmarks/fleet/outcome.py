"""What came of a fleet whose processes were killed: a row of the results, and its words."""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any

import machine
from members import Fleet, Member
from orders import Orders
from results import Results, head, wanted
from rows import Row, Want
from watching import JOBS, SLICES, Watch

COMMAND = "./dev fleet"
PACKAGES = ("fragdex", "dbos", "psycopg", "SQLAlchemy", "obstore", "moto", "uvicorn", "httpx")
PICK_UP_S = 10
# Samples of the queues that are kept, for the picture.
POINTS = 300
QUEUES = {SLICES: "slice", JOBS: "job"}
Found = tuple[list[str], list[str]]


def surroundings() -> dict[str, Any]:
    """The machine, and the versions of who takes part."""
    described = machine.describe()
    versions = {name: version(name) for name in PACKAGES}
    versions["python"] = described["versions"]["python"]
    nginx = None
    if shutil.which("nginx"):
        done = subprocess.run(["nginx", "-v"], capture_output=True, text=True, check=False)
        nginx = done.stderr.strip().rpartition("/")[2]
    return {**described, "versions": {**versions, "nginx": nginx}}


@dataclass
class Outcome:
    """What was asked, what was seen, and what the checks found: lost and wrong of each kind."""

    asked: argparse.Namespace
    fleet: Fleet
    orders: Orders
    watch: Watch
    kills: list[dict[str, Any]]
    files: Found
    renders: Found
    transcriptions: Found
    store: list[str]

    def row(self) -> Row:
        """As a row of the results."""
        orders = self.orders
        counts = {
            "files": len(orders.files),
            "renders": len(orders.renders),
            "transcriptions": len(orders.transcriptions),
        }
        parts = (self.files, self.renders, self.transcriptions)
        lost = [one for part, _ in parts for one in part]
        wrong = [one for _, part in parts for one in part]
        attempts = self.watch.attempts()
        is_slice = _slices_of(attempts)
        twice = sum(one.attempt - 1 for one in attempts if one.attempt > 1 and is_slice(one.id))
        other = sum(one.attempt - 1 for one in attempts if one.attempt > 1 and not is_slice(one.id))
        picked = [one.pick_up for one in self.watch.losses if one.pick_up is not None]
        never = [one.id for one in self.watch.losses if one.begun is None]
        row = Row("killed in turn", _work(counts, self.fleet))
        row.wants = [
            Want("acknowledged records that are lost", len(lost), 0, True, ""),
            Want("with other bytes, frames or words", len(wrong), 0, True, ""),
            Want("orders that nobody acknowledged", len(orders.broken), 0, True, ""),
            Want("objects that the store lacks", len(self.store), 0, True, ""),
            Want(
                "slices begun again, of those running when killed", twice,
                sum(kill["slices"] for kill in self.kills), True, "",
            ),
            Want(
                "other jobs begun again, of those running when killed", other,
                sum(kill["jobs"] for kill in self.kills), True, "",
            ),
            Want("pick-up with a slot free, the longest", max(picked, default=None), PICK_UP_S,
                 True, "s"),
        ]  # fmt: skip
        row.facts = {
            **counts,
            "seconds": round(self.watch.at(), 1),
            "asked again by users": orders.again,
            "broken": orders.broken,
            "lost": lost,
            "wrong": wrong,
            "store": self.store,
            "nginx": bool(self.fleet.of("nginx")),
            "kills": self.kills,
            "losses": [one.as_dict() for one in self.watch.losses],
            "never begun again": never,
            "connections of the database, most": self.watch.connections,
            "memory_mb": {one.name: round(_memory(one)) for one in self.fleet.members.values()},
            "queues": queues(self.watch.samples),
            "samples": self.watch.samples[:: max(1, len(self.watch.samples) // POINTS)],
            "tables": self.watch.tables(),
            "requests to the store": requests((self.fleet.folder / "s3.log").read_text()),
        }
        return row


def _memory(one: Member) -> float:
    return one.memory_mb()


def _slices_of(attempts: Sequence[Any]) -> Any:
    """Whether a job is a slice: its name begins with that of its job."""
    ids = {one.id for one in attempts}

    def is_slice(id: str) -> bool:
        return id.rpartition("-")[0] in ids

    return is_slice


def _work(counts: dict[str, int], fleet: Fleet) -> str:
    kinds = Counter(one.kind for one in fleet.members.values())
    text = ", ".join(f"{n} {kind}" + ("s" if n > 1 else "") for kind, n in kinds.items())
    return ", ".join(f"{n} {what}" for what, n in counts.items()) + f"; {text}"


def queues(samples: Sequence[dict[str, Any]]) -> dict[str, int]:
    """The most that was in each queue, waiting and running."""
    most: Counter[str] = Counter()
    for sample in samples:
        for name, count in sample.items():
            if name != "at":
                most[name] = max(most[name], count)
    return dict(sorted(most.items()))


def requests(log: str) -> dict[str, int]:
    """How often the S3 server was asked, by method."""
    methods = re.findall(r"(GET|HEAD|PUT|POST|DELETE) /", log)
    return dict(sorted(Counter(methods).items()))


def _kills(facts: dict[str, Any]) -> list[str]:
    lines = [
        "| Second | Killed | Running then: slices | other jobs | Back at |",
        "|---|---|---|---|---|",
    ]
    for one in facts["kills"]:
        cells = (one["at"], one["name"], one["slices"], one["jobs"], one["again"])
        lines.append("| " + " | ".join(map(str, cells)) + " |")
    return lines


def _losses(facts: dict[str, Any]) -> list[str]:
    lines = [
        "| Queue | Back in the queue after | Begun again after | Of it without a free slot |",
        "|---|---|---|---|",
    ]
    for one in facts["losses"]:
        cells = [one["queue"]]
        cells += ["–" if one[n] is None else f"{one[n]:.1f} s" for n in ("queued", "begun", "full")]
        lines.append("| " + " | ".join(cells) + " |")
    return lines


def _listed(counts: dict[str, int]) -> str:
    return ", ".join(f"{count:,} × {name}" for name, count in counts.items())


def markdown(results: Results) -> str:
    """The whole report."""
    body = head("A small fleet whose processes are killed", results)
    body += [
        "All on loopback, on the cores of one machine. Each process is killed by `kill -9` and "
        "started a second later, while files are pushed, pages rendered and speech is transcribed; "
        "at the end a worker is killed a few times that alone has something to do. The S3 server "
        "keeps its objects in memory: what is killed of it is the relay before it. Pick-up is the "
        "time from the kill of a worker until another run of its slice or job begins, without the "
        "time in which no worker had a free slot.",
        "",
        *wanted(results, limits=True),
    ]
    for row in results["rows"].values():
        facts = row["facts"]
        most = ", ".join(f"{name.lower()} {n}" for name, n in facts["queues"].items())
        memory = ", ".join(f"{name} {mb}" for name, mb in facts["memory_mb"].items())
        body += [
            "",
            f"{facts['seconds']:.0f} seconds; clients gave up {facts['asked again by users']} "
            "times, and were asked again. "
            + ("" if facts["nginx"] else "nginx was not installed: clients asked the APIs. ")
            + f"The most in the queues: {most}. At most "
            f"{facts['connections of the database, most']} connections to PostgreSQL. Resident "
            f"memory at the end, in MB, without children: {memory}.",
            "",
            f"The store was asked {_listed(facts['requests to the store'])}, for everything "
            "above and for the checks.",
            "",
            "![Queues, and kills](fleet.svg)",
            "",
            *_kills(facts),
            "",
            "What the killed workers had begun:",
            "",
            *_losses(facts),
        ]
    return "\n".join(body) + "\n"
