"""Whatever the service does when it is killed: nothing is lost, nothing twice, nothing left behind.

`KILLS=50 ./dev test tests/service/survival/test_kills.py` kills it as often over each database.
"""

import os
import random
import tempfile
import time
from pathlib import Path

import pytest
from processes import (
    announced_track,
    done,
    emptied,
    film,
    holds,
    noise,
    ordered,
    send,
    until,
)

from fragdex.client import verify_webhook
from fragdex.service.records import tables
from service.descendants import descendants, gone
from service.renders.conftest import chromium  # noqa: F401
from service.renders.working import Renderer, numbers, numbers_of
from service.survival.slices import any_site  # noqa: F401
from service.transcriptions.working import SPEECH, Transcriber, by_itself, first_seconds, sound_file
from service.webhooks.receiving import LOOPBACK, receiving

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("chromium")]

KILLS = int(os.environ.get("KILLS", "2"))
LONGEST_S = 5
"""About what all of the work takes on a quiet machine."""

FRAMES = 60
FILM_S = 3
CHUNKED = noise(3 << 20)
SPOKEN = first_seconds(SPEECH / "pauses-aac.mp4", 20)


@pytest.fixture(scope="module")
def words():
    """What is heard where nothing dies."""
    pytest.importorskip("pocketsphinx")
    return by_itself(SPOKEN, jobs=2)


@pytest.fixture
def temporary(monkeypatch):
    """The temporary folder of the service's processes: not below pytest's own, which is closed."""
    with tempfile.TemporaryDirectory(prefix="fragdex-kills-") as name:
        folder = Path(name)
        folder.chmod(0o1777)
        monkeypatch.setenv("TMPDIR", name)
        yield folder


@pytest.fixture(scope="module")
def short_film(tmp_path_factory):
    return film(tmp_path_factory.mktemp("film") / "film.mkv", FILM_S).read_bytes()


@pytest.fixture
def receiver():
    with receiving() as new_receiver:
        yield new_receiver


def test_killed_at_random_moments(any_site, short_film, words, temporary, receiver):  # noqa: F811
    chance = random.Random(0)
    settings = {"job_workers": 1, "slice_workers": 2, "webhook_networks": LOOPBACK}
    serving = any_site.serve(**settings)
    with any_site.client(serving) as client:
        hook = client.post("/webhooks", json={"url": receiver.url}).json()
    for _ in range(KILLS):
        with any_site.client(serving) as client:
            work = asked_for(client, short_film)
        time.sleep(chance.uniform(0, LONGEST_S))
        below = list(descendants(serving.process.pid))
        serving.kill()
        gone(below)

        serving = any_site.serve(**settings)
        with any_site.client(serving) as client:
            is_done(any_site, client, work, short_film, words)
            is_told(receiver, hook, work)
            until(lambda child=serving: not child.works)
            emptied(any_site, client)
    below = list(descendants(serving.process.pid))
    serving.end()
    gone(below)
    assert list(temporary.iterdir()) == []


def asked_for(client, given):
    """One of each: a file to process, a render, a transcription, and an upload half done."""
    path = announced_track(client, CHUNKED)
    send(client, path, CHUNKED, 0, 1 << 20)
    process, _ = ordered(client, given)
    render = Renderer(client).begin(numbers(), duration_ms=2000, work_slice_ms=1000)
    spoken = sound_file(client, SPOKEN)
    heard = Transcriber(client).begin(spoken, work_slice_ms=5000)
    return path, process, render, heard


def is_told(receiver, hook, work):
    """Each change came to the webhook once at least, and under one id however often."""
    _, process, render, heard = work
    wanted = {
        ("file.ready", "process_id", process.rpartition("/")[2]),
        ("render.completed", "id", render),
        ("transcription.completed", "id", heard),
    }

    def told(came):
        message_ids = {}
        for headers, body in came:
            message = verify_webhook(headers, body, hook["secret"])
            for kind, name, value in wanted:
                if message["type"] == kind and message["data"].get(name) == value:
                    message_ids.setdefault((kind, name, value), set()).add(headers["webhook-id"])
        return message_ids

    message_ids = told(receiver.wait(lambda came: told(came).keys() == wanted))
    assert {len(ids) for ids in message_ids.values()} == {1}


def is_done(site, client, work, given, words):
    """All of it is done, once, and as it would be without a kill; the jobs' records go."""
    path, process, render, heard = work
    send(client, path, CHUNKED, 1 << 20, len(CHUNKED))
    assert client.get(path).content == CHUNKED
    done(client, process)
    # two more: the file of the chunks and that of the speech
    holds(client, given, FILM_S, others=2)
    record = Renderer(client).ended(render)
    assert record["status"] == "complete", record
    assert numbers_of(client.get(f"/renders/{render}.mp4").content) == list(range(FRAMES))
    record = Transcriber(client).ended(heard)
    assert record["status"] == "complete", record
    assert Transcriber(client).words(heard) == words
    assert len(site.rows(tables.renders)) == len(site.rows(tables.transcriptions)) == 1
    assert client.delete(f"/transcriptions/{heard}").status_code == 204
    assert client.delete(f"/renders/{render}").status_code == 204
