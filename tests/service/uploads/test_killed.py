"""A process that receives is killed; the upload goes on in another from `next_byte`."""

import hashlib
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from fragdex import ByteRange
from fragdex.errors import UploadBusy
from fragdex.service.records import blobs
from fragdex.service.records.identifiers import new_id
from fragdex.service.uploads.operations import begin, receive, state

from .upload_program import CONTENT

PROGRAM = Path(__file__).with_name("upload_program.py")
SIZE = len(CONTENT)
MD5 = hashlib.md5(CONTENT).digest()
SHA256 = hashlib.sha256(CONTENT).digest()


@pytest.fixture(params=[SIZE, None], ids=["measured", "unmeasured"])
def size(request):
    """What was announced."""
    return request.param


@pytest.fixture
def record(context, tenant, size):
    record = new_id()
    with context.database.write() as connection:
        begin(context, connection, tenant, "image", record, size, MD5)
    return record


@pytest.fixture
def killed(context, tenant, record, size):
    """killed(start, lines=, stop_at=): a process receives from `start` and is killed."""

    def start_and_kill(start, *, lines=None, stop_at=None):
        url = context.database.url.render_as_string(hide_password=False)
        command = [PROGRAM, url, context.store.root, tenant, record, str(start), str(SIZE)]
        command += ["*" if size is None else str(size)]
        command += [stop_at] if stop_at else []
        with subprocess.Popen(
            [sys.executable, *command], stdout=subprocess.PIPE, text=True
        ) as process:
            for number, line in enumerate(process.stdout):
                assert line != "complete\n"
                if line == "here\n" or number + 1 == lines:
                    break
            process.send_signal(signal.SIGKILL)

    return start_and_kill


def send(context, tenant, record, start, stop):
    """As a client that waits as long as it is told to."""
    text = f"bytes {start}-{stop - 1}/{SIZE}"
    while True:
        try:
            return receive(context, tenant, "image", record, text, [CONTENT[start:stop]])
        except UploadBusy as busy:
            time.sleep(min(busy.retry_after, 0.2))


def stored(context, tenant):
    with context.database.read() as connection:
        blob = blobs.find(connection, tenant, SHA256)
    assert blob.sha256 == hashlib.sha256(CONTENT).digest()
    return b"".join(context.store.read(blob.store_key, ByteRange(0, SIZE)))


def test_killed_again_and_again(context, tenant, record, killed):
    seen = 0
    for lines in (5, 30, 40):
        killed(seen, lines=lines)
        now = state(context, tenant, "image", record)
        assert not now.complete
        assert now.next_byte > seen
        seen = now.next_byte
        # no lease is left that would not end
        assert send(context, tenant, record, 0, 1000).next_byte == seen
    assert send(context, tenant, record, seen, SIZE).complete
    assert stored(context, tenant) == CONTENT
    assert list(context.store.drafts()) == []


def test_killed_with_all_bytes_sent(context, tenant, record, killed, size):
    killed(0, stop_at="sent")
    now = state(context, tenant, "image", record)
    assert 0 < now.next_byte < SIZE
    assert now.byte_size == size
    assert send(context, tenant, record, now.next_byte, SIZE).complete
    assert stored(context, tenant) == CONTENT


def test_killed_between_the_object_and_the_record(context, tenant, record, killed, size):
    killed(0, stop_at="finished")
    now = state(context, tenant, "image", record)
    assert (now.complete, list(context.store.drafts())) == (False, [])
    assert now.byte_size == size, "nobody takes it for complete"
    assert len(list(context.store.keys("blobs/"))) == 1
    stop = min(SIZE, now.next_byte + 1000)
    assert send(context, tenant, record, min(now.next_byte, SIZE - 1), stop).complete
    assert stored(context, tenant) == CONTENT
