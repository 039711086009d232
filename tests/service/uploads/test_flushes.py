"""What an upload costs the disk: every flush is waited for, and those of the database by all."""

import os
from pathlib import Path

import pytest
import sqlalchemy as sa

from fragdex.service.store import disk
from service.serving import API, await_housekeeping, serving
from service.working import announced

CHUNKS, CHUNK = 4, 3000
DATA = bytes(range(1, 251)) * (CHUNKS * CHUNK // 250)


@pytest.fixture
def served(tmp_path):
    with serving(tmp_path) as served:
        await_housekeeping(served.url)
        yield served


@pytest.fixture
def commits(served):
    """How each write transaction was committed: flushed, or not."""
    seen = []

    def committing(connection):
        level = connection.connection.dbapi_connection.execute("PRAGMA synchronous").fetchone()[0]
        seen.append(level >= 2)  # https://sqlite.org/pragma.html#pragma_synchronous

    sa.event.listen(served.context.database.engine, "commit", committing)
    return seen


@pytest.fixture
def flushes(served, monkeypatch):
    """Paths of the files and folders of the store that are flushed."""
    seen, fsync, flush = [], os.fsync, disk._flush

    def named(descriptor):
        seen.append(Path(os.readlink(f"/proc/self/fd/{descriptor}")))

    monkeypatch.setattr(os, "fsync", lambda file: (named(file), fsync(file))[1])
    monkeypatch.setattr(disk, "_flush", lambda file: (named(file), flush(file))[1])
    return seen


def chunk(served, record, number):
    start = number * CHUNK
    span = {"Content-Range": f"bytes {start}-{start + CHUNK - 1}/{len(DATA)}"}
    path = f"{API}/unprocessed_files/{record['id']}/upload"
    return served.client.post(path, content=DATA[start : start + CHUNK], headers=span).json()


def test_only_what_is_acknowledged_is_flushed_in_the_database(served, commits):
    record = announced(served.client, DATA)
    assert commits == [True]
    for number in range(CHUNKS - 1):
        commits.clear()
        assert chunk(served, record, number)["next_byte"] == (number + 1) * CHUNK
        assert commits.count(True) == 1  # how far it is; not who may write, before and after
    commits.clear()
    assert chunk(served, record, CHUNKS - 1)["complete"]
    assert commits.count(True) == 2  # the object is expected; it is here


def test_a_chunk_that_brings_nothing_new_flushes_nothing(served, commits, flushes):
    record = announced(served.client, DATA)
    chunk(served, record, 0)
    commits.clear()
    flushes.clear()
    assert chunk(served, record, 0)["next_byte"] == CHUNK
    assert commits
    assert not any(commits)
    assert not flushes


@pytest.mark.skipif(not os.path.exists("/proc/self/fd"), reason="needs /proc")
def test_bytes_are_flushed_once(served, flushes):
    record = announced(served.client, DATA)
    for number in range(CHUNKS):
        chunk(served, record, number)
    assert [path.parent.name for path in flushes].count("drafts") == CHUNKS
    assert [path.name for path in flushes].count("drafts") == 2  # the draft is made; it is gone
