"""Webhooks: what is delivered, what comes of attempts, and who may be asked. Jobs are run here."""

import json
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import timedelta
from types import SimpleNamespace

import pytest
import sqlalchemy as sa

import fragdex
from fragdex.client import InvalidSignature, verify_webhook
from fragdex.service.jobs.work import JobOptions
from fragdex.service.outbox import EVENT_TYPES, emit
from fragdex.service.records import tables
from fragdex.service.records.identifiers import instant
from fragdex.service.renders import worker as rendering
from fragdex.service.transcriptions import worker as transcribing
from fragdex.service.unprocessed import worker as processing
from fragdex.service.webhooks import operations
from fragdex.service.webhooks.worker import WORK
from service.serving import API, serving
from service.webhooks.receiving import LOOPBACK, receiving
from service.working import announced, fixture_bytes, md5_of, uploaded

JOBS, DELIVERIES = tables.jobs, tables.webhook_deliveries
VTT = b"WEBVTT\n\n00:01.000 --> 00:02.000\nhello\n"


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    """Jobs wait; `deliver` makes the attempts."""
    folder = tmp_path_factory.mktemp("webhooks")
    with serving(folder, webhook_networks=LOOPBACK, webhook_attempts=3) as served:
        yield served


@pytest.fixture
def receiver():
    with receiving() as new_receiver:
        yield new_receiver


@pytest.fixture
def webhook(served, receiver):
    """A webhook for all events, with its secret; the only one of the tenant."""
    answer = served.client.post(f"{API}/webhooks", json={"url": receiver.url})
    assert answer.status_code == 201, answer.text
    yield SimpleNamespace(path=f"{API}/webhooks/{answer.json()['id']}", **answer.json())
    served.client.delete(f"{API}/webhooks/{answer.json()['id']}")


def deliver(served, again=False):
    """Make every attempt that is ordered, as a worker does; those of later, too."""
    context = served.context
    with context.database.read() as connection:
        rows = connection.execute(
            sa.select(DELIVERIES.c.id, DELIVERIES.c.orders)
            .where(DELIVERIES.c.status == "pending")
            .order_by(DELIVERIES.c.id)
        ).all()
    for row in rows:
        job = SimpleNamespace(record_id=row.id, payload={"number": row.orders})
        for _ in range(1 + again):
            WORK[0].run(context, job)
    return len(rows)


def deliveries(served, webhook, **params):
    answer = served.client.get(f"{webhook.path}/deliveries", params=params)
    assert answer.status_code == 200, answer.text
    return answer.json()["deliveries"]


def changed(served, kind="file.ready", **data):
    """A change that a webhook is told of."""
    with served.context.database.write() as connection:
        emit(served.context, connection, served.tenant, kind, data)


def ping(served, webhook):
    answer = served.client.post(f"{webhook.path}/ping")
    assert answer.status_code == 202, answer.text
    return answer.json()


def test_a_change_is_delivered_signed(served, receiver, webhook):
    record = uploaded(served.client, VTT, "a.vtt", "caption_files")
    deliver(served)
    messages = [verify_webhook(headers, body, webhook.secret) for headers, body in receiver.came]
    assert [one["type"] for one in messages] == ["file.uploaded", "file.ready"]
    for one in messages:
        assert one["data"]["id"] == record["id"]
        assert one["data"]["type"] == "caption"
        assert one["topic"] == one["type"]
    headers, body = receiver.came[0]
    with pytest.raises(InvalidSignature, match="no signature fits"):
        verify_webhook(headers, body + b" ", webhook.secret)
    listed = deliveries(served, webhook)
    assert [one["status"] for one in listed] == ["delivered"] * 2
    assert {one["id"] for one in listed} == {dict(h)["webhook-id"] for h, _ in receiver.came}
    assert listed[-1]["message"] == json.loads(receiver.came[0][1])
    assert served.client.get(webhook.path).json()["accepted_at"]


def test_an_event_is_there_if_its_change_is(served, webhook):
    def rolled_back():
        with served.context.database.write() as connection:
            emit(served.context, connection, served.tenant, "file.ready", {})
            raise LookupError

    with pytest.raises(LookupError):
        rolled_back()
    assert deliveries(served, webhook) == []
    changed(served)
    assert len(deliveries(served, webhook)) == 1


def test_only_types_that_are_wanted_are_sent(served, webhook):
    types = ["render.*", "file.failed"]
    assert served.client.patch(webhook.path, json={"types": types}).status_code == 200
    for kind in EVENT_TYPES:
        changed(served, kind)
    wanted = {kind for kind in EVENT_TYPES if kind.startswith("render.")}
    wanted |= {"file.failed", "webhook.ping"}
    assert {one["type"] for one in deliveries(served, webhook)} == wanted


def test_an_attempt_that_fails_is_made_again_under_the_same_id(served, receiver, webhook):
    receiver.answers = [500, (503, {"Retry-After": "600"}), 200]
    sent = ping(served, webhook)
    deliver(served)
    (first,) = deliveries(served, webhook)
    assert (first["status"], first["attempts"], first["response_status"]) == ("pending", 1, 500)
    assert first["response_body"] == "hello"
    assert first["next_attempt_at"] > first["created_at"]
    deliver(served)
    with served.context.database.read() as connection:
        row = connection.execute(sa.select(DELIVERIES).where(DELIVERIES.c.id == sent["id"])).one()
        job = connection.execute(sa.select(JOBS).where(JOBS.c.id == f"webhook-{row.id}-3")).one()
    assert row.next_attempt_at > instant() + timedelta(seconds=590)
    # its age counts from when it may begin, so that no pause looks like a queue that stands still
    assert job.created_at > instant() + timedelta(seconds=590)
    deliver(served)
    (last,) = deliveries(served, webhook, status="delivered")
    assert (last["attempts"], last["problem"]) == (3, None)
    assert {headers["webhook-id"] for headers, _ in receiver.came} == {sent["id"]}
    assert deliver(served) == 0


def test_a_run_that_comes_again_does_not_count_twice(served, receiver, webhook):
    """A worker that was killed when the outcome was written, and its job begun again."""
    receiver.status = 500
    ping(served, webhook)
    deliver(served, again=True)
    assert len(receiver.came) == 1
    assert deliveries(served, webhook)[0]["attempts"] == 1


def test_a_webhook_that_accepts_nothing_is_disabled_and_says_so(served, receiver, webhook):
    receiver.status = 500
    ping(served, webhook)
    while deliver(served):
        pass
    assert len(receiver.came) == 3
    (failed,) = deliveries(served, webhook, status="failed")
    assert failed["problem"] == "the receiver answered 500"
    record = served.client.get(webhook.path).json()
    assert record["enabled"] is False
    assert "the receiver answered 500" in record["disabled_because"]
    changed(served)
    assert deliver(served) == 0
    assert len(deliveries(served, webhook, status="failed")) == 2
    for path in ("ping", "replay", f"deliveries/{failed['id']}/replay"):
        answer = served.client.post(f"{webhook.path}/{path}", json={})
        assert answer.status_code == 409, answer.text

    receiver.status = 200
    enabled = served.client.patch(webhook.path, json={"enabled": True}).json()
    assert (enabled["enabled"], enabled["disabled_because"]) == (True, None)
    answer = served.client.post(f"{webhook.path}/replay", json={"since": failed["created_at"]})
    assert answer.json() == {"count": 2, "more": False}
    deliver(served)
    assert len(deliveries(served, webhook, status="delivered")) == 2
    later = (instant() + timedelta(hours=1)).isoformat()
    answer = served.client.post(f"{webhook.path}/replay", json={"since": later})
    assert answer.json() == {"count": 0, "more": False}


def test_one_event_that_is_refused_disables_nothing_while_others_arrive(served, receiver, webhook):
    receiver.answers = [500, 200, 500, 500]
    refused = ping(served, webhook)
    changed(served)
    while deliver(served):
        pass
    assert [one["id"] for one in deliveries(served, webhook, status="failed")] == [refused["id"]]
    assert served.client.get(webhook.path).json()["enabled"] is True


def test_410_disables_at_once_and_what_waits_is_given_up(served, receiver, webhook):
    receiver.status = 410
    ping(served, webhook)
    changed(served)
    deliver(served)
    assert len(receiver.came) == 1
    assert served.client.get(webhook.path).json()["disabled_because"].endswith("410 Gone")
    assert {one["status"] for one in deliveries(served, webhook)} == {"failed"}


def test_a_delivery_can_be_sent_once_more(served, receiver, webhook):
    sent = ping(served, webhook)
    deliver(served)
    answer = served.client.post(f"{webhook.path}/deliveries/{sent['id']}/replay")
    assert (answer.status_code, answer.json()["status"]) == (202, "pending")
    deliver(served)
    assert [headers["webhook-id"] for headers, _ in receiver.came] == [sent["id"]] * 2
    assert receiver.came[0][1] == receiver.came[1][1]


def test_an_attempt_of_before_a_replay_does_nothing(served, receiver, webhook):
    receiver.status = 500
    sent = ping(served, webhook)
    deliver(served)
    served.client.post(f"{webhook.path}/deliveries/{sent['id']}/replay")
    old = SimpleNamespace(record_id=sent["id"], payload={"number": 2})
    WORK[0].run(served.context, old)
    assert len(receiver.came) == 1


def test_two_secrets_sign_while_one_is_replaced(served, receiver, webhook):
    rotated = served.client.post(f"{webhook.path}/rotate", json={}).json()
    assert rotated["secret"] != webhook.secret
    assert rotated["previous_secret_until"]
    ping(served, webhook)
    deliver(served)
    for secret in (webhook.secret, rotated["secret"]):
        verify_webhook(*receiver.came[-1], secret)
    last = served.client.post(f"{webhook.path}/rotate", json={"previous_seconds": 0}).json()
    ping(served, webhook)
    deliver(served)
    verify_webhook(*receiver.came[-1], last["secret"])
    for secret in (webhook.secret, rotated["secret"]):
        with pytest.raises(InvalidSignature):
            verify_webhook(*receiver.came[-1], secret)


def test_a_secret_is_shown_once_and_is_not_stored(served, webhook, tmp_path):
    assert "secret" not in served.client.get(webhook.path).json()
    assert webhook.secret not in served.client.get(f"{API}/webhooks").text
    with served.context.database.read() as connection:
        for table in (tables.webhooks, DELIVERIES, JOBS):
            assert webhook.secret.removeprefix("whsec_") not in str(
                connection.execute(sa.select(table)).all()
            )


def test_deleted_webhooks_are_sent_nothing(served, receiver, webhook):
    sent = ping(served, webhook)
    assert served.client.delete(webhook.path).status_code == 204
    WORK[0].run(served.context, SimpleNamespace(record_id=sent["id"], payload={"number": 1}))
    assert receiver.came == []
    assert served.client.get(webhook.path).status_code == 404


def test_a_fault_of_an_attempt_counts_as_one(served, receiver, webhook):
    sent = ping(served, webhook)
    job = SimpleNamespace(record_id=sent["id"], payload={"number": 1})
    WORK[0].failed(served.context, job, {"error": "ServiceError", "detail": "it broke"})
    (row,) = deliveries(served, webhook)
    assert (row["status"], row["attempts"], row["problem"]) == ("pending", 1, "it broke")


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        ({"url": "ftp://example.org/"}, "/url"),
        ({"url": "https://user:password@example.org/"}, "/url"),
        ({"url": "https:///path"}, "/url"),
        ({"url": "https://example.org:99999/"}, "/url"),
        ({"url": "https://[::1/"}, "/url"),
        ({"url": "https://example.org/", "types": ["film.*"]}, "/types/0"),
        ({"url": "https://example.org/", "types": []}, "/types"),
    ],
)
def test_what_cannot_be_a_webhook_is_refused(served, body, pointer):
    answer = served.client.post(f"{API}/webhooks", json=body)
    assert answer.status_code == 422, answer.text
    assert answer.json()["errors"][0]["pointer"] == f"#{pointer}"


def test_a_tenant_has_so_many_and_no_more(served):
    stranger = served.stranger
    body = {"url": "https://example.org/"}
    for _ in range(operations.MOST_WEBHOOKS):
        assert stranger.post(f"{API}/webhooks", json=body).status_code == 201
    answer = stranger.post(f"{API}/webhooks", json=body)
    assert (answer.status_code, answer.json()["limit"]) == (409, operations.MOST_WEBHOOKS)


def test_as_many_at_once_are_no_more(tmp_path, new_postgres, monkeypatch):
    monkeypatch.setattr(operations, "MOST_WEBHOOKS", 2)
    wanted = {"json": {"url": "https://example.org/"}}
    with serving(tmp_path, database_url=new_postgres()) as served:
        served.client.post(f"{API}/webhooks", **wanted)
        # both have counted before either has committed, unless they wait for each other
        database, both = served.context.database, threading.Barrier(2)

        def counted(connection, cursor, statement, *_):
            if statement.startswith("SELECT fragdex_webhooks.id"):
                with suppress(threading.BrokenBarrierError):
                    both.wait(1)

        sa.event.listen(database.engine, "after_cursor_execute", counted)
        with ThreadPoolExecutor(2) as threads:
            answers = list(threads.map(
                lambda _: served.client.post(f"{API}/webhooks", **wanted).status_code, range(2)
            ))  # fmt: skip
    assert sorted(answers) == [201, 409]


def test_deliveries_that_wait_count_as_nobodys_work(served, receiver, webhook):
    jobs, few = served.context.jobs, JobOptions(tenant_jobs=1)
    changed(served)
    changed(served)
    options, jobs.options = jobs.options, few
    try:
        with served.context.database.read() as connection:
            jobs.ensure_room(connection, served.tenant)
    finally:
        jobs.options = options


def test_old_deliveries_are_forgotten(served, webhook):
    changed(served)
    (old,) = deliveries(served, webhook)
    changed(served)
    month = instant() - timedelta(days=31)
    with served.context.database.write() as connection:
        mine = DELIVERIES.update().where(DELIVERIES.c.id == old["id"])
        connection.execute(mine.values(created_at=month))
    assert operations.forget_deliveries(served.context) == 1
    assert old["id"] not in [one["id"] for one in deliveries(served, webhook)]


def events_of(served, webhook):
    """(type, data) of all deliveries, oldest first."""
    listed = deliveries(served, webhook)[::-1]
    return [(one["type"], one["message"]["data"]) for one in listed]


def test_events_of_videos(served, webhook):
    video = fixture_bytes("frag-global-sidx-video.mp4", salt="webhooks")
    record = uploaded(served.client, video, family="files", type="video")
    bad = announced(served.client, b"#EXTM3U\nhttp://example.org/", family="unprocessed_files")
    path = f"{API}/unprocessed_files/{bad['id']}"
    served.client.post(f"{path}/upload", content=b"#EXTM3U\nhttp://example.org/")
    file = served.client.post(f"{API}/files", json={
        "filename": "b.mkv", "type": "video", "byte_size": 400}).json()  # fmt: skip
    served.client.post(f"{API}/files/{file['id']}/upload", content=bytes(range(200)) * 2)
    with served.context.database.read() as connection:
        mine = tables.processes.c.unprocessed_file_id == file["id"]
        process = connection.scalar(sa.select(tables.processes.c.id).where(mine))
    problem = {"error": "UndecodableMedia", "detail": "it is none"}
    job = SimpleNamespace(record_id=process)
    for _ in range(2):
        processing.WORK[0].failed(served.context, job, problem)
    events = events_of(served, webhook)
    of = {id_: [kind for kind, data in events if data["id"] == id_]
          for id_ in (record["id"], bad["id"], file["id"])}  # fmt: skip
    assert of[record["id"]] == ["file.uploaded", "file.ready"]
    assert of[bad["id"]] == ["file.uploaded", "file.failed"]
    assert of[file["id"]] == ["file.uploaded", "file.failed"]
    assert events[-1][1]["problem"] == problem


def test_events_of_renders_and_transcriptions(served, webhook):
    client, context = served.client, served.context
    ids = [client.post(f"{API}/renders", json={"html": "<p>"}).json()["id"] for _ in range(2)]
    client.post(f"{API}/renders/{ids[0]}/cancel")
    client.post(f"{API}/renders/{ids[0]}/cancel")
    problem = {"error": "PageFailed", "detail": "it threw"}
    for _ in range(2):
        rendering.WORK[0].failed(context, SimpleNamespace(record_id=ids[1]), problem)
    sound = fixture_bytes("frag-audio.m4a", salt="webhooks")
    file = uploaded(client, sound, "a.m4a", "files", type="video")["id"]
    heard = [client.post(f"{API}/files/{file}/transcribe").json()["id"]]
    client.post(f"{API}/transcriptions/{heard[0]}/cancel")
    heard.append(client.post(f"{API}/files/{file}/transcribe").json()["id"])
    for _ in range(2):
        transcribing.WORK[0].failed(context, SimpleNamespace(record_id=heard[1]), problem)
    events = [
        (kind, data["id"]) for kind, data in events_of(served, webhook) if "file." not in kind
    ]
    assert events == [
        ("render.cancelled", ids[0]),
        ("render.failed", ids[1]),
        ("transcription.failed", heard[0]),
        ("transcription.failed", heard[1]),
    ]


def test_an_index_of_a_client_makes_its_file_ready(served, webhook, tmp_path):
    data = fixture_bytes("frag-global-sidx-video.mp4", salt="index")
    body = {"md5": md5_of(data), "filename": "film.mp4"}
    file = served.client.post(f"{API}/isobmff_files", json=body).json()["id"]
    fragdex.index(data).save(tmp_path / "film.fidx")
    index = (tmp_path / "film.fidx").read_bytes()
    answer = served.client.post(f"{API}/isobmff_files/{file}/index/upload", content=index)
    assert answer.status_code == 201, answer.text
    assert [(kind, data["id"]) for kind, data in events_of(served, webhook)] == [
        ("file.ready", file)
    ]
