"""A client that uploads one file in chunks: python sender.py FILE SALT CHUNK, rest by environment.

It stands in a process of its own, sends from mapped memory, and makes the file another one by
writing SALT over its last bytes. A line of JSON tells the time from the first request to the
record of the file that came of it; hashing what is announced is not part of it.
"""

from __future__ import annotations

import hashlib
import http.client
import json
import mmap
import os
import sys
import time
from typing import Any

SALT_BYTES = 32


class Talk:
    """One connection that is kept open."""

    def __init__(self, url: str, key: str) -> None:
        self._connection = http.client.HTTPConnection(url.removeprefix("http://"), timeout=300)
        self._connection.connect()
        self._key = key

    def ask(self, path: str, body: Any, **headers: str) -> dict[str, Any]:
        """POST; the answer as JSON, whatever of 2xx it is."""
        fields = {"Authorization": f"Bearer {self._key}", "Content-Type": "application/json"}
        fields |= {name.replace("_", "-"): value for name, value in headers.items()}
        self._connection.request("POST", f"/api/v1{path}", body, fields)
        answer = self._connection.getresponse()
        text = answer.read()
        if answer.status >= 300:
            raise SystemExit(f"{path}: {answer.status} {text.decode()}")
        result: dict[str, Any] = json.loads(text)
        return result


def send(path: str, salt: str, chunk: int, url: str, key: str) -> dict[str, Any]:
    """Announce, upload, have it processed: until the index is there."""
    with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY) as data:
        data[-SALT_BYTES:] = salt.encode().ljust(SALT_BYTES, b".")
        digest = hashlib.md5(data).hexdigest()
        size = len(data)
        view = memoryview(data)
        talk = Talk(url, key)
        new = {"md5": digest, "filename": "film.mp4", "byte_size": size}
        began = time.perf_counter_ns()
        record = talk.ask("/unprocessed_files", json.dumps(new))
        for start in range(0, size, chunk):
            stop = min(start + chunk, size)
            part = view[start:stop]
            span = f"bytes {start}-{stop - 1}/{size}"
            record = talk.ask(
                f"/unprocessed_files/{record['id']}/upload",
                part,
                Content_Range=span,
                Content_Length=str(stop - start),
            )
            part.release()
        uploaded = time.perf_counter_ns()
        process = talk.ask(f"/unprocessed_files/{record['id']}/process", "")
        ended = time.perf_counter_ns()
        view.release()
    return {
        "ns": ended - began,
        "process_ns": ended - uploaded,
        "complete": record["complete"] and record["md5"].replace("-", "") == digest,
        "unprocessed": record["id"],
        "isobmff": process["isobmff_file_id"],
        "failed": process["failed_at"],
    }


if __name__ == "__main__":
    where = os.environ
    report = send(sys.argv[1], sys.argv[2], int(sys.argv[3]), where["SERVICE_URL"], where["KEY"])
    print(json.dumps(report))
