"""A worker process of the tests: `python program.py URL DATA LOG OPTIONS-JSON`.

Every work writes lines `time pid event job attempt` into LOG; SIGTERM stops it as `fragdex worker`
stops. Works are told what to do by their payload.
"""

import json
import os
import signal
import sys
import time
from pathlib import Path

from fragdex.cli.serve import until_signal
from fragdex.errors import Unprocessable
from fragdex.service.jobs.api import Jobs
from fragdex.service.jobs.work import PARENTS, SLICES, JobOptions, Work
from fragdex.service.records.database import Database

FAST = {
    "poll_seconds": 0.05,
    "heartbeat_seconds": 0.3,
    # Nobody is taken for dead but where a test says so: a busy machine silences workers, too.
    "dead_after_seconds": 120,
    "grace_seconds": 3,
    "backoff_seconds": 0.1,
}


class Log:
    def __init__(self, path):
        self.path = path

    def __call__(self, event, job, detail=""):
        line = f"{time.time():.3f} {os.getpid()} {event} {job.id} {job.attempt} {detail}\n"
        with open(self.path, "a") as file:
            file.write(line)


def works(log):
    def steps(context, job):
        """Sleeps in small steps and looks whether it is still wanted."""
        log("begin", job)
        until = time.monotonic() + job.payload.get("seconds", 0)
        while time.monotonic() < until:
            time.sleep(0.02)
            job.check()
        log("end", job)
        return {"n": job.payload.get("n")}

    def gated(context, job):
        """Goes on when the file that its payload names is there, or one for this job alone."""
        log("begin", job)
        gate = job.payload["gate"]
        while not (Path(gate).exists() or Path(f"{gate}-{job.id}").exists()):
            time.sleep(0.01)
            job.check()
        log("end", job)
        return {"n": job.payload.get("n")}

    def poison(context, job):
        log("begin", job)
        os.kill(os.getpid(), signal.SIGKILL)

    def raises(context, job):
        log("begin", job)
        if job.attempt <= job.payload["times"]:
            raise Unprocessable("not a film") if job.payload.get("final") else OSError("weather")
        log("end", job)

    def sliced(context, job):
        log("begin", job)
        payloads = [{"n": n, **job.payload} for n in range(job.payload["count"])]
        seen = []
        results = job.slices(
            job.payload.get("slice", "slice"), payloads, lambda n, r: seen.append(n)
        )
        log("end", job, json.dumps({"results": [r["n"] for r in results], "seen": sorted(seen)}))

    def failed(context, job, problem):
        log("failed", job, json.dumps(problem))

    return (
        Work("steps", steps, failed),
        Work("gated", gated, failed),
        Work("poison", poison, failed, attempts=2),
        Work("raises", raises, failed, attempts=3),
        Work("sliced", sliced, failed),
        Work("waiting", sliced, failed, queue=PARENTS),
        Work("slice", steps, queue=SLICES),
        Work("gatedslice", gated, queue=SLICES),
        Work("poisonslice", poison, queue=SLICES, attempts=2),
    )


def open_jobs(database, data, log, **options):
    jobs = Jobs(database, JobOptions(data=Path(data), **FAST | options))
    jobs.register(*works(Log(log)))
    return jobs


def main():
    url, data, log, options = sys.argv[1:]
    database = Database(url)
    jobs = open_jobs(database, data, log, **json.loads(options))
    wait = until_signal()
    print(jobs.start_worker(None), flush=True)
    wait()
    jobs.close()
    database.close()


if __name__ == "__main__":
    main()
