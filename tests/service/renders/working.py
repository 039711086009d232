"""Renders of a service that works on them, and what is seen of its processes."""

import io
import time
from dataclasses import dataclass
from pathlib import Path

import av
import httpx

from fragdex.service.renders.rates import rate_of
from service.renders.frames.numbers import numbers_page, plane, read_rows
from service.serving import API
from service.working import events_of

PATIENCE = 120
SMALL = {"width": 320, "height": 180}


def numbers(fps=30):
    """A page that shows the number of each frame."""
    return numbers_page(rate_of(fps))


@dataclass
class Renderer:
    """Asks a service for renders."""

    client: httpx.Client
    served: object = None

    def path(self, below=""):
        """Of renders, from where the client begins."""
        prefix = "" if self.client.base_url.path.startswith(API) else API
        return f"{prefix}/renders{below}"

    def begin(self, html=None, site=None, **more):
        """The id of a render that is queued."""
        body = {"html": html, **SMALL, **more}
        answer = self.client.post(self.path(), json=body)
        assert answer.status_code == 201, answer.text
        id = answer.json()["id"]
        if site is not None:
            answer = self.client.post(self.path(f"/{id}/upload"), content=site)
            assert answer.status_code == 201, answer.text
        return id

    def record(self, id):
        answer = self.client.get(self.path(f"/{id}"))
        assert answer.status_code == 200, answer.text
        return answer.json()

    def ended(self, id):
        """The record of a render that has come to its end; its events were right."""
        events = events_of(self.client, f"/renders/{id}/progress")
        record = self.record(id)
        names = [name for name, _ in events if name != "heartbeat"]
        assert names[0] == "size"
        assert set(names[1:-1]) <= {"completion"}
        if record["status"] == "complete":
            assert names[-1] == "complete"
            assert events[-1][1] == {}
            counts = [data["count"] for name, data in events if name == "completion"]
            assert sum(counts) == record["frames"] == dict(events)["size"]["size"]
            assert all(count > 0 for count in counts)
        else:
            assert names[-1] == "error"
            assert events[-1][1] == record["problem"]
        return record

    def rendered(self, *args, **more):
        """The record and the bytes of a render that is complete."""
        record = self.ended(self.begin(*args, **more))
        assert record["status"] == "complete", record
        answer = self.client.get(self.path(f"/{record['id']}.mp4"))
        assert answer.status_code == 200
        return record, answer.content

    def until(self, id, true):
        """The record once something is true of it."""
        deadline = time.monotonic() + PATIENCE
        while not true(record := self.record(id)):
            assert time.monotonic() < deadline, record
            time.sleep(0.05)
        return record


def numbers_of(film):
    """The numbers that the frames of a film show, by the page's clock."""
    with av.open(io.BytesIO(film)) as container:
        return [read_rows(plane(frame))[0] for frame in container.decode(video=0)]


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
    found, edge = {}, {pid}
    while edge:
        edge = {child for child, parent in parents.items() if parent in edge and child not in found}
        found |= {child: names[child] for child in edge}
    return found


def browsers(pid):
    """Ids of the Chromium processes below one."""
    return [child for child, name in descendants(pid).items() if "chrom" in name]


def alive(pids):
    """Those processes that still run."""
    found = []
    for pid in pids:
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except OSError:
            continue
        if state != "Z":
            found.append(pid)
    return found


def gone(pids):
    """Waits until none of some processes runs."""
    deadline = time.monotonic() + PATIENCE
    while left := alive(pids):
        assert time.monotonic() < deadline, left
        time.sleep(0.05)
