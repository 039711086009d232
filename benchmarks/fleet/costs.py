"""What an object of each kind costs: python benchmarks/fleet/costs.py.

Rows and bytes of the database, bytes of the store and requests to it, of one kind after the other,
with one API and one worker over PostgreSQL and S3. Writes costs/results.json and costs/results.md;
docs/scale.md reckons with them. It takes some minutes.
"""

from __future__ import annotations

import argparse
import re
import sys
import tempfile
from collections import Counter
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(1, str(HERE.parent))
sys.path.append(str(HERE.parent / "service"))

import checking  # noqa: E402
import outcome  # noqa: E402
from members import Fleet, fleet  # noqa: E402
from orders import KINDS, SPEECH, Orders, first_seconds, make_files  # noqa: E402
from results import Report, Results, amount, head  # noqa: E402
from rounds import Measured  # noqa: E402
from rows import Row  # noqa: E402
from sqlalchemy import create_engine, pool, text  # noqa: E402

COMMAND = "python benchmarks/fleet/costs.py"
WORDS = {
    "image": "an image (PNG, 58 kB)",
    "caption": "a caption file (50 bytes)",
    "film": "a progressive film of two tracks (8 kB), processed by a worker",
    "recording": "a fragmented film of one track (3 MiB), indexed as it comes",
    "render": "a render of 2 s in two slices",
    "transcription": "a transcription of 20 s in two slices",
}
# Forgotten by and by: after `job_history_days`, and after `replay_hours`.
PASSING = (
    "workflow_status",
    "workflow_input",
    "workflow_output",
    "fragdex_jobs",
    "fragdex_replays",
)
TABLES = text(
    "SELECT relname AS name, n_live_tup AS rows, pg_total_relation_size(relid) AS bytes "
    "FROM pg_stat_user_tables"
)
STORED = text("SELECT coalesce(sum(stored_bytes), 0) FROM fragdex_blobs")
METHODS = re.compile(r"(GET|HEAD|PUT|POST|DELETE) (/\S*)")


def _counts(running: Fleet) -> Counter[str]:
    """Everything that grows, as one number each."""
    engine = create_engine(running.database_url, poolclass=pool.NullPool)
    counts: Counter[str] = Counter()
    with engine.connect() as connection:
        connection.execution_options(isolation_level="AUTOCOMMIT")
        connection.exec_driver_sql("VACUUM ANALYZE")
        for row in connection.execute(TABLES):
            passing = "passing " if row.name in PASSING else ""
            counts[f"{passing}rows"] += row.rows
            counts[f"{passing}bytes"] += row.bytes
        counts["stored bytes"] = int(connection.scalar(STORED) or 0)
    for method, path in METHODS.findall((running.folder / "s3.log").read_text()):
        if "list-type" not in path:
            counts[f"{method} requests"] += 1
    return counts


def _order(running: Fleet, orders: Orders, kind: str, count: int, folder: Path) -> None:
    if kind == "render":
        for n in range(count):
            orders.render(n, 2000, 1000)
    elif kind == "transcription":
        path = folder / "speech.mp4"
        path.write_bytes(first_seconds(SPEECH, 20))
        record = orders.insist(lambda client: client.push(path))
        for n in range(count):
            orders.transcribe(record.id, n, 10_000)
    else:
        for path in make_files(folder / kind, count * len(KINDS)):
            if KINDS.index(kind) == made_kind(path):
                orders.push(path)
    orders.acknowledged()
    checking.wait_for_all(orders)
    if orders.broken:
        raise SystemExit("; ".join(orders.broken))


def made_kind(path: Path) -> int:
    """The number of a file's kind, which its own number has."""
    return int(re.findall(r"\d+", path.stem)[0]) % len(KINDS)


def measure(running: Fleet, kind: str, count: int, folder: Path) -> Measured:
    """One kind: what grew, by the number of objects."""
    before = _counts(running)
    orders = Orders(running.urls, running.key)
    try:
        _order(running, orders, kind, count, folder)
    finally:
        orders.close()
    after = _counts(running)
    row = Row(kind, WORDS[kind])
    row.facts = {"objects": count}
    row.facts |= {name: round((after[name] - before[name]) / count, 2) for name in sorted(after)}
    print(f"    {row.facts}")
    return row, {}


def markdown(results: Results) -> str:
    """The whole report."""
    columns = {
        "rows": "rows", "bytes": "bytes of them", "passing rows": "rows for a while",
        "passing bytes": "bytes of them", "stored bytes": "bytes in the store",
        "PUT requests": "PUT", "POST requests": "POST", "GET requests": "GET",
        "HEAD requests": "HEAD", "DELETE requests": "DELETE",
    }  # fmt: skip
    body = [
        *head("What an object costs", results),
        "By object: rows of PostgreSQL and their bytes with indexes, those that are forgotten "
        "(jobs after `job_history_days`, replays after `replay_hours`) apart; bytes in the store; "
        "requests to it, without lists.",
        "",
        "| Object | Tried | " + " | ".join(columns.values()) + " |",
        "|---" * (len(columns) + 2) + "|",
    ]
    for row in results["rows"].values():
        cells = [row["work"], row["facts"]["objects"]]
        cells += [amount(row["facts"].get(name, 0), "") for name in columns]
        body.append("| " + " | ".join(map(str, cells)) + " |")
    return "\n".join(body) + "\n"


def main() -> int:
    """Measure every kind."""
    parser = argparse.ArgumentParser(description="What an object of each kind costs.")
    parser.add_argument("--objects", type=int, default=200, help="files of each kind (200)")
    parser.add_argument("--jobs", type=int, default=30, help="renders and transcriptions (30)")
    parser.add_argument(
        "--only", action="append", choices=WORDS, metavar="KIND", help=str([*WORDS])
    )
    asked = parser.parse_args()
    report = Report(HERE / "costs", COMMAND, outcome.surroundings(), list(WORDS), markdown)
    with tempfile.TemporaryDirectory(prefix="fragdex-costs-") as name:
        folder = Path(name)
        folder.chmod(0o755)
        with fleet(folder, apis=1, workers=1) as running:
            for kind in asked.only or WORDS:
                count = asked.objects if kind in KINDS else asked.jobs

                def work(kind: str = kind, count: int = count) -> Measured:
                    return measure(running, kind, count, folder)

                report.measure(kind, work)
    return report.end(0)


if __name__ == "__main__":
    sys.exit(main())
