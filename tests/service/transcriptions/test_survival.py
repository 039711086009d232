"""Whatever dies while speech is heard: the words are those that are heard without it."""

import pytest

from fragdex.service.records import tables
from fragdex.speech.engines import EngineChoice
from service.survival import slices
from service.survival.processes import until
from service.survival.slices import (  # noqa: F401
    any_site,
    cloud,
)
from service.transcriptions.working import SPEECH, Transcriber, by_itself, first_seconds, sound_file

pytestmark = pytest.mark.slow

SPOKEN = first_seconds(SPEECH / "pauses-aac.mp4", 54)


@pytest.fixture(scope="module")
def whole():
    """What is heard in one piece."""
    pytest.importorskip("pocketsphinx")
    return by_itself(SPOKEN, jobs=2, choice=EngineChoice("pocketsphinx"))


def begun(client):
    """A transcription, and its id, of which some slices are heard."""
    transcriber = Transcriber(client)
    # the engine that hears each ten seconds by themselves: many slices
    file = sound_file(client, SPOKEN)
    id = transcriber.begin(file, work_slice_ms=5000, engine="pocketsphinx")
    transcriber.until(id, lambda record: record["slices_done"] > 1)
    return transcriber, id


def slice_rows(site):
    return site.rows(tables.transcription_slices)


@pytest.fixture
def right(whole):
    """Gives the record of a transcription that completes, with the words of the whole."""

    def right(client, id):
        transcriber = Transcriber(client)
        record = transcriber.ended(id)
        assert record["status"] == "complete", record
        assert transcriber.words(id) == whole
        return record

    return right


# Over PostgreSQL in service/renders/test_survival.py: the slices of both are the same rows.
@pytest.mark.parametrize("any_site", ["sqlite"], indirect=True)
def test_a_worker_is_killed(any_site, right):  # noqa: F811
    def in_work(client):
        transcriber_and_id = begun(client)
        # not between two slices
        until(lambda: any(row.attempts and row.heard is None for row in slice_rows(any_site)))
        return transcriber_and_id

    serving = any_site.serve(job_workers=0)
    with any_site.client(serving) as client:
        record, done = slices.a_worker_is_killed(any_site, client, in_work, right)
        assert done < record["slices"]
        attempts = [row.attempts for row in slice_rows(any_site)]
        assert max(attempts) == 2
        assert attempts.count(1) >= done
        assert client.delete(f"/transcriptions/{record['id']}").status_code == 204
        assert slice_rows(any_site) == []


@pytest.mark.parametrize("any_site", ["sqlite"], indirect=True)
def test_the_service_ends_well_and_hands_its_slices_back(any_site, right):  # noqa: F811
    slices.the_service_ends_well(any_site, begun, right)
    # it needs no files of its own
    assert not any_site.work()


def test_one_of_two_machines_dies(cloud, right):  # noqa: F811
    """The sound is read by ranges from the object store."""
    slices.one_of_two_machines_dies(cloud, begun, right)
