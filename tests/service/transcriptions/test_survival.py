"""Whatever dies while speech is heard: the words are those that are heard without it."""

import pytest

from fragdex.service.records import tables
from service.renders.working import descendants, gone
from service.store.conftest import s3_environment, s3_server, s3_url  # noqa: F401
from service.survival.processes import Site
from service.transcriptions.working import SPEECH, Transcriber, by_itself, first_seconds, sound_file

pytestmark = pytest.mark.slow

SPOKEN = first_seconds(SPEECH / "pauses-aac.mp4", 34)


@pytest.fixture(scope="module")
def whole():
    """What is heard in one piece."""
    pytest.importorskip("pocketsphinx")
    return by_itself(SPOKEN, jobs=2)


@pytest.fixture(params=["sqlite", "postgresql"])
def site(request, tmp_path):
    """Each kind of database, and a folder."""
    url = request.getfixturevalue("new_postgres")() if request.param == "postgresql" else ""
    made = Site(tmp_path, url)
    yield made
    made.close()


@pytest.fixture
def sqlite(tmp_path):
    made = Site(tmp_path)
    yield made
    made.close()


@pytest.fixture
def cloud(tmp_path, new_postgres, s3_url):  # noqa: F811
    """PostgreSQL and an object store: nothing is kept on the machines that work."""
    made = Site(tmp_path, new_postgres(), s3_url)
    yield made
    made.close()


def begun(client):
    """A transcription, and its id, of which some slices are heard."""
    transcriber = Transcriber(client)
    id = transcriber.begin(sound_file(client, SPOKEN), work_slice_ms=5000)
    transcriber.until(id, lambda record: record["slices_done"] > 1)
    return transcriber, id


def right(transcriber, id, whole):
    """The record of a transcription that completes, with the words of the whole."""
    record = transcriber.ended(id)
    assert record["status"] == "complete", record
    assert transcriber.words(id) == whole
    return record


def attempts(site):
    return [row.attempts for row in site.rows(tables.transcription_slices)]


def test_a_worker_is_killed(site, whole):
    serving, first = site.serve(job_workers=0), site.worker(slice_workers=2)
    with site.client(serving) as client:
        transcriber, id = begun(client)
        before = list(descendants(first.process.pid))
        first.kill()
        gone(before)
        done = transcriber.record(id)["slices_done"]
        site.worker(slice_workers=2)
        record = right(transcriber, id, whole)
        assert done < record["slices"]
        assert max(attempts(site)) == 2
        assert attempts(site).count(1) >= done
        assert client.delete(f"/transcriptions/{id}").status_code == 204
        assert site.rows(tables.transcription_slices) == []


def test_the_service_ends_well_and_hands_its_slices_back(sqlite, whole):
    serving = sqlite.serve(job_workers=1, slice_workers=2)
    with sqlite.client(serving) as client:
        _, id = begun(client)
    before = list(descendants(serving.process.pid))
    serving.end()
    gone(before)
    assert all(job.problem is None for job in sqlite.rows(tables.jobs))
    serving = sqlite.serve(job_workers=1, slice_workers=2)
    with sqlite.client(serving) as client:
        right(Transcriber(client), id, whole)
    # it needs no files of its own
    assert not sqlite.work()


def test_one_of_two_machines_dies(cloud, whole):
    """The sound is read by ranges from the object store."""
    serving = cloud.serve(job_workers=0)
    one = cloud.worker(apart=True, slice_workers=1)
    with cloud.client(serving) as client:
        transcriber, id = begun(client)
        cloud.worker(apart=True, slice_workers=1)
        one.kill()
        right(transcriber, id, whole)
