"""Try a small fleet while its processes are killed: python benchmarks/fleet/run.py.

PostgreSQL, an S3 server, two APIs, three workers and nginx run on loopback, in a folder that is
removed at the end. Files are pushed, pages rendered and speech is transcribed, while each process
is killed (kill -9) and started again, one after the other. Then everything that was acknowledged is
looked at. Writes results.json, results.md and fleet.svg. It takes some minutes; --quick about one.
"""

from __future__ import annotations

import argparse
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
# The machine, the words of the rows, the films and nginx are those of the other benchmarks.
sys.path.insert(1, str(HERE.parent))
sys.path.append(str(HERE.parent / "service"))

import checking  # noqa: E402
import drawn  # noqa: E402
import outcome  # noqa: E402
from members import (  # noqa: E402
    API,
    DATABASE,
    PROXY,
    STORE,
    WORKER,
    Fleet,
    Member,
    NotReady,
    fleet,
    until,
)
from orders import SPEECH, Orders, first_seconds, make_files  # noqa: E402
from results import Report  # noqa: E402
from rounds import Measured  # noqa: E402
from watching import SLICES, Watch  # noqa: E402

from fragdex.speech.transcribe import transcribe  # noqa: E402

ROW = "killed in turn"
ORDER = (PROXY, API, WORKER, STORE, DATABASE)
RENDER_MS, RENDER_SLICE_MS = 2000, 1000
SPEECH_S, SPEECH_SLICE_MS = 20, 10_000
WORKERS_SLOTS = {"job_workers": "2", "slice_workers": "1"}
QUICK = {"files": 24, "renders": 3, "transcriptions": 2, "idle_kills": 1}


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--files", type=int, default=200, help="files that are pushed (200)")
    parser.add_argument("--renders", type=int, default=20, help="of two seconds each (20)")
    parser.add_argument("--transcriptions", type=int, default=10, help="of 20 seconds (10)")
    parser.add_argument(
        "--idle-kills", type=int, default=3,
        help="kills of a worker afterwards, when all slots but one are free (3)",
    )  # fmt: skip
    parser.add_argument("--down", type=float, default=1.0, help="seconds until a restart (1)")
    parser.add_argument("--quick", action="store_true", help="little of everything; to build/")
    parser.add_argument("--output", type=Path, help="folder of the results")
    parser.add_argument("--keep-logs", type=Path, metavar="DIR", help="copy all logs there")
    asked = parser.parse_args()
    if asked.quick:
        vars(asked).update(QUICK)
    return asked


class Trial:
    """One run: a fleet, what is asked of it, and what is seen meanwhile."""

    def __init__(self, asked: argparse.Namespace, fleet: Fleet, watch: Watch) -> None:
        self.asked, self.fleet, self.watch = asked, fleet, watch
        self.orders = Orders(fleet.urls, fleet.key)
        self.kills: list[dict[str, Any]] = []
        self.shares: list[list[Callable[[], None]]] = []

    def prepare(self, folder: Path, parts: int) -> bytes:
        """Make the files and share all orders out; gives the speech."""
        speech = first_seconds(SPEECH, SPEECH_S)
        path = folder / "speech.mp4"
        path.write_bytes(speech)
        record = self.orders.insist(lambda client: client.push(path))
        self.orders.files[record.id] = path
        files = make_files(folder / "files", self.asked.files)
        orders = self.orders
        every: list[tuple[float, Callable[[], None]]] = [
            (n / len(files), lambda path=path: orders.push(path)) for n, path in enumerate(files)
        ]
        for n in range(self.asked.renders):
            at = n / self.asked.renders
            every.append((at, lambda n=n: orders.render(n, RENDER_MS, RENDER_SLICE_MS)))
        for n in range(self.asked.transcriptions):
            at = n / self.asked.transcriptions
            every.append((at, lambda n=n: orders.transcribe(record.id, n, SPEECH_SLICE_MS)))
        self.shares = [[] for _ in range(parts)]
        for at, order in sorted(every, key=lambda one: one[0]):
            self.shares[int(at * parts)].append(order)
        return speech

    def kill(self, member: Member, down: float) -> None:
        """Kill -9, and start it again."""
        at = self.watch.at()
        row: dict[str, Any] = {"name": member.name, "at": round(at, 2), "slices": 0, "jobs": 0}
        if member.kind == WORKER:
            executor = member.executor
            until(lambda: self._at_work(executor), "slices to run", 15) if self._waits() else None
            member.freeze()
            mine = self.watch.running(executor)
            row["at"] = round(self.watch.at(), 2)
            self.watch.lost(executor, mine)
            row["slices"] = sum(queue == SLICES for _, queue, _ in mine)
            row["jobs"] = len(mine) - row["slices"]
        member.kill()
        print(f"    {row['at']:6.1f} s  kill -9 {member.name}, "
              f"{row['slices']} slices and {row['jobs']} jobs running", flush=True)  # fmt: skip
        time.sleep(down)
        member.start()
        row["again"] = round(self.watch.at(), 2)
        if member.kind == WORKER:
            self.watch.live.add(member.executor)
        self.kills.append(row)

    def _waits(self) -> bool:
        """Whether any slice is in the queue, or runs."""
        last = self.watch.samples[-1] if self.watch.samples else {}
        return any(name.startswith(SLICES) for name in last)

    def _at_work(self, executor: str) -> bool:
        running = self.watch.running(executor)
        return not self._waits() or any(queue == SLICES for _, queue, _ in running)

    def under_load(self) -> None:
        """Every process dies once, in the midst of a share of the orders."""
        victims = [one for kind in ORDER for one in self.fleet.of(kind)]
        for victim, share in zip(victims, self.shares, strict=False):
            for order in share:
                order()
            # not before it has something to do
            time.sleep(1)
            self.kill(victim, self.asked.down)
        for share in self.shares[len(victims) :]:
            for order in share:
                order()
        self.orders.acknowledged()

    def idle(self, number: int, file_id: str) -> None:
        """A worker dies that alone has something to do: slots are free everywhere."""
        self.orders.transcribe(file_id, 1000 + number, 1000 * SPEECH_S)
        self.orders.acknowledged()

        def busy() -> Member | None:
            for worker in self.fleet.of(WORKER):
                running = self.watch.running(worker.executor)
                if any(queue == SLICES for _, queue, _ in running):
                    return worker
            return None

        self.kill(until(busy, "no worker takes the slice"), self.asked.down)
        checking.wait_for_all(self.orders)


def measure(asked: argparse.Namespace, folder: Path) -> tuple[Measured, dict[str, Any]]:
    """The whole trial; the row, and what was sampled."""
    with fleet(folder, settings=WORKERS_SLOTS) as running:
        slots = {name: int(WORKERS_SLOTS[f"{one}_workers"]) for name, one in outcome.QUEUES.items()}
        watch = Watch(running.database_url, slots)
        watch.live = {one.executor for one in running.of(WORKER)}
        trial = Trial(asked, running, watch)
        try:
            watch.start()
            # after the last kill all workers go on for a share
            speech = trial.prepare(folder, parts=len(running.members) + 1)
            words = [(w.text, w.start_ms, w.end_ms) for w in transcribe(speech).words]
            by = "by nginx" if running.of(PROXY) else "without nginx, which is not installed"
            print(f"    {watch.at():6.1f} s  {len(running.members)} processes, clients {by}")
            trial.under_load()
            checking.wait_for_all(trial.orders)
            print(f"    {watch.at():6.1f} s  all done", flush=True)
            (speech_id,) = (id for id, p in trial.orders.files.items() if p.name == "speech.mp4")
            for number in range(asked.idle_kills):
                trial.idle(number, speech_id)
            row = outcome.Outcome(
                asked, running, trial.orders, watch, trial.kills,
                files=checking.files(trial.orders),
                renders=checking.renders(trial.orders, RENDER_MS),
                transcriptions=checking.transcriptions(trial.orders, words),
                store=checking.store(running),
            ).row()  # fmt: skip
        finally:
            trial.orders.close()
            watch.stop()
            if asked.keep_logs:
                asked.keep_logs.mkdir(parents=True, exist_ok=True)
                for log in (*folder.glob("*.log"), *folder.glob("nginx/*.log")):
                    shutil.copy(log, asked.keep_logs)
        return (row, {}), {"kills": trial.kills, "samples": row.facts["samples"]}


def main() -> int:
    """Run it; 0 where nothing was missed, else 1."""
    asked = _arguments()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    output = asked.output or (HERE.parent / "build" / "fleet" if asked.quick else HERE)
    report = Report(output, outcome.COMMAND, outcome.surroundings(), [ROW], outcome.markdown)
    sampled: dict[str, Any] = {}

    def work() -> Measured:
        # of a user of its own, who has to reach it
        with tempfile.TemporaryDirectory(prefix="fragdex-fleet-") as name:
            Path(name).chmod(0o755)
            measured, samples = measure(asked, Path(name))
        sampled.update(samples)
        return measured

    try:
        missed = report.measure(ROW, work)
    except KeyboardInterrupt:
        print("ended, with all that it had started", file=sys.stderr)
        return 130
    except NotReady as error:
        raise SystemExit(f"the fleet did not run: {error}") from error
    drawn.draw(output, sampled)
    return report.end(missed)


if __name__ == "__main__":
    sys.exit(main())
