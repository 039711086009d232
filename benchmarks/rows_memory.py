"""Peak memory while building, each build in a fresh process.

Three figures, since none is the truth alone. Peak resident memory counts pages of the file that a
mapping touched, and the kernel maps up to 16 neighbours of each; they are the page cache's and
cost nothing more. Peak anonymous memory is what the process itself asked for; the kernel keeps no
peak of it, so it is sampled from outside while the build runs. The difference of ru_maxrss to a
process that builds nothing is the plainest.
"""

from __future__ import annotations

import json
import select
import statistics
import subprocess
import sys
from pathlib import Path

from inputs import Counts
from peers import HERE
from rows import Row, Setting, Want

ROUNDS = 5
SPARE = 16 * 10**6


def _child(work: str, path: Path, like: Path) -> dict[str, int]:
    """Run one child and return its figures with the sampled peak of anonymous memory."""
    # ru_maxrss outlives exec: a child started from here would carry this process's own peak. The
    # shell forks once more from its small self, because something follows its command.
    small = ["sh", "-c", '"$@"; exit $?', "sh"]
    command = [*small, sys.executable, str(HERE / "memory_child.py"), work, str(path), str(like)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as child:
        assert child.stdin
        assert child.stdout
        pid = child.stdout.readline().strip()
        if not pid:
            raise SystemExit(f"memory: the child for {path.name} did not get ready")
        child.stdin.write("\n")
        child.stdin.flush()
        peak = samples = 0
        # /proc is Linux; elsewhere the sampled figure stays 0 and ru_maxrss speaks.
        status = Path(f"/proc/{pid}/status")
        while not select.select([child.stdout], [], [], 0)[0]:
            if not status.exists():
                select.select([child.stdout], [], [])
                break
            line = next((x for x in status.read_text().splitlines() if x.startswith("RssAnon")), "")
            peak = max(peak, int(line.split()[1]) << 10 if line else 0)
            samples += 1
        answer: dict[str, int] = json.loads(child.stdout.readline())
        answer["anon_peak"] = max(peak, answer["anon_after"])
        answer["anon_samples"] = samples
    return answer


def _measure(work: str, path: Path, like: Path, counts: Counts) -> dict[str, int]:
    """Median over fresh processes of what a build adds, in bytes."""
    runs = [_child(work, path, like) for _ in range(ROUNDS)]
    idle = statistics.median(_child("nothing", path, like)["maxrss"] for _ in range(ROUNDS))
    middle = {key: round(statistics.median(run[key] for run in runs)) for key in runs[0]}
    tables = middle["tables"]
    moof_bytes = counts.moof_bytes or counts.moov_bytes
    return {
        "moof_bytes": moof_bytes,
        "table_bytes": tables,
        "limit": moof_bytes + 3 * tables + SPARE,
        "maxrss_over_idle": round(middle["maxrss"] - idle),
        "peak_rss_added": middle["peak_rss"] - middle["rss_before"] if middle["reset"] else 0,
        "peak_anon_added": middle["anon_peak"] - middle["anon_before"],
        "anon_samples": middle["anon_samples"],
        "mdat_bytes_read": middle["mdat_bytes_read"],
        "bytes_read": middle["bytes_read"],
        "rounds": ROUNDS,
    }


def memory(setting: Setting) -> Row:
    """Peak against moof bytes, finished tables and 16 MB; media bytes read."""
    short = setting.files["short"][0]
    row = Row("memory", "peak memory while building")
    for key, words in (
        ("2h", "2 h"),
        ("frames", "one frame a fragment"),
        ("progressive", "progressive"),
    ):
        path, counts = setting.files[key]
        for work, also in (("build", ""), ("samples", " + samples")):
            if key == "progressive" and work == "build":
                continue
            facts = _measure(work, path, path if counts.moofs else short, counts)
            row.facts[words + also] = facts
            # The strictest of the three: what the file's own pages add is counted in.
            reached = max(facts["maxrss_over_idle"], facts["peak_rss_added"]) / 1e6
            limit = facts["limit"] / 1e6
            moof = "moof" if counts.moofs else "moov"
            row.wants.append(
                Want(
                    f"{words}{also}: ≤ {moof} bytes + 3 × tables + 16 MB = {limit:.1f} MB",
                    reached,
                    limit,
                    at_most=True,
                    unit="MB",
                )
            )
            media = facts["mdat_bytes_read"]
            row.wants.append(
                Want(f"{words}{also}: media bytes read", media, 0, at_most=True, unit="bytes")
            )
    return row
