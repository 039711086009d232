"""The processes below one, as the system tells of them."""

import time
from pathlib import Path

PATIENCE = 120


def descendants(pid):
    """Ids of all processes below one, with what each is called."""
    parents, names = {}, {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                status = (entry / "stat").read_text()
            except OSError:
                continue
            name, _, rest = status.partition("(")[2].rpartition(")")
            parents[int(entry.name)] = int(rest.split()[1])
            names[int(entry.name)] = name
    processes, edge = {}, {pid}
    while edge:
        edge = {
            child for child, parent in parents.items() if parent in edge and child not in processes
        }
        processes |= {child: names[child] for child in edge}
    return processes


def browsers(pid):
    """Ids of the Chromium processes below one."""
    return [child for child, name in descendants(pid).items() if "chrom" in name]


def alive(pids):
    """Those processes that still run."""
    living_pids = []
    for pid in pids:
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except OSError:
            continue
        if state != "Z":
            living_pids.append(pid)
    return living_pids


def gone(pids):
    """Waits until none of some processes runs."""
    deadline = time.monotonic() + PATIENCE
    while left := alive(pids):
        assert time.monotonic() < deadline, left
        time.sleep(0.05)
