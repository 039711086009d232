"""Renders as records: sites that are uploaded, states, look-ups, lists, cancelling, deleting."""

import hashlib
import os
import time
import uuid
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import httpx
import pytest
import sqlalchemy as sa

from fragdex.service.records import blobs, tables
from fragdex.service.records.identifiers import instant
from fragdex.service.renders.operations import give_up_unsent
from fragdex.service.renders.worker import RENDER
from rendering.test_archives import tar_of, zip_of
from service.serving import API, serving
from service.working import events_of

SITE = tar_of(("index.html", b"<h1>Hi"), ("noise", os.urandom(200_000)))


def get(client, record, suffix=""):
    return client.get(f"{API}/renders/{record['id']}{suffix}")


def post(client, record, suffix, **more):
    return client.post(f"{API}/renders/{record['id']}{suffix}", **more)


def chunk(data, start, stop):
    return {
        "content": data[start:stop],
        "headers": {"Content-Range": f"bytes {start}-{stop - 1}/{len(data)}"},
    }


def test_html_is_queued_at_once(begun, client, server):
    record = begun(html="<h1>Hi")
    assert record["status"] == "pending"
    assert record["queued_at"] >= record["created_at"]
    assert server.context.jobs.status(f"{RENDER}-{record['id']}") == "queued"
    again = get(client, record).json()
    assert {**again, "seconds": {}} == {**record, "seconds": {}}


def test_every_post_is_a_new_render_and_the_mark_finds_the_newest(begun, client):
    mark = uuid.uuid4().hex
    first, second = begun(md5=mark), begun(md5=mark, html="<p>")
    assert first["id"] != second["id"]
    for written in (mark, mark.upper(), str(uuid.UUID(mark))):
        assert client.get(f"{API}/renders/md5/{written}").json()["id"] == second["id"]
    assert client.get(f"{API}/renders/md5/{uuid.uuid4().hex}").status_code == 404


def test_the_same_key_is_answered_the_same(client):
    body, headers = {"html": "<p>"}, {"Idempotency-Key": str(uuid.uuid4())}
    first = client.post(f"{API}/renders", json=body, headers=headers)
    again = client.post(f"{API}/renders", json=body, headers=headers)
    assert (again.status_code, again.json()) == (201, first.json())
    other = client.post(f"{API}/renders", json={"html": "<b>"}, headers=headers)
    assert other.status_code == 422


@pytest.mark.parametrize("pack", [tar_of, zip_of])
def test_a_site_is_uploaded_whole(begun, client, server, pack):
    record = begun()
    missing = get(client, record, "/upload")
    assert (missing.status_code, missing.json()["next_byte"]) == (404, 0)
    site = pack(("index.html", b"<h1>Hi"))
    answer = post(client, record, "/upload", content=site)
    assert (answer.status_code, answer.json()["status"]) == (201, "pending")
    assert get(client, record, "/upload").json()["id"] == record["id"]
    assert server.context.jobs.status(f"{RENDER}-{record['id']}") == "queued"
    assert post(client, record, "/upload", content=site).status_code == 201


def test_a_site_is_uploaded_in_chunks(begun, client):
    record, half = begun(), len(SITE) // 2
    answer = post(client, record, "/upload", **chunk(SITE, 0, half))
    assert answer.status_code == 202
    assert (answer.json()["status"], answer.json()["next_byte"]) == ("created", half)
    missing = get(client, record, "/upload")
    assert (missing.status_code, missing.json()["next_byte"]) == (404, half)
    gap = post(client, record, "/upload", **chunk(SITE, half + 1, len(SITE)))
    assert (gap.status_code, gap.json()["next_byte"]) == (409, half)
    again = post(client, record, "/upload", **chunk(SITE, 0, half))
    assert again.status_code == 202
    answer = post(client, record, "/upload", **chunk(SITE, half, len(SITE)))
    assert (answer.status_code, answer.json()["status"]) == (201, "pending")


def test_a_site_that_was_packed_anew_begins_anew(begun, client):
    record, other = begun(), SITE + b"\0" * 100
    assert post(client, record, "/upload", **chunk(SITE, 0, 1000)).status_code == 202
    late = post(client, record, "/upload", **chunk(other, 1000, 2000))
    assert late.status_code == 422
    answer = post(client, record, "/upload", **chunk(other, 0, 500))
    assert (answer.status_code, answer.json()["next_byte"]) == (202, 500)
    answer = post(client, record, "/upload", content=SITE)
    assert (answer.status_code, answer.json()["status"]) == (201, "pending")


def test_a_site_that_is_streamed_without_a_length(begun, client):
    record = begun()
    answer = post(client, record, "/upload", content=iter([SITE[:9], SITE[9:]]))
    assert (answer.status_code, answer.json()["status"]) == (201, "pending")


def test_no_site_is_taken_beside_html(begun, client):
    record = begun(html="<p>")
    assert post(client, record, "/upload", content=SITE).status_code == 409


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (tar_of(("main.html", b"")), "index.html"),
        (tar_of(("index.html", b""), ("../x", b"")), "leads outside"),
        (b"no archive at all", "no .tar.gz"),
        (b"", "no .tar.gz"),
        (SITE[: len(SITE) // 2], "broken"),
    ],
)
def test_what_is_no_site_is_refused_and_another_one_is_taken(begun, client, data, said):
    record = begun()
    answer = post(client, record, "/upload", content=data)
    assert answer.status_code == 422
    assert said in answer.json()["detail"]
    assert get(client, record).json()["status"] == "created"
    assert post(client, record, "/upload", content=SITE).status_code == 201


def test_the_limit_of_an_upload(begun, client, server):
    limit = server.context.settings.max_render_upload_bytes
    record = begun()
    headers = {"Content-Range": f"bytes 0-9/{limit + 1}"}
    answer = post(client, record, "/upload", content=b"0" * 10, headers=headers)
    assert (answer.status_code, answer.json()["limit"]) == (413, limit)
    unknown = {"Content-Range": "bytes 0-9/*"}
    answer = post(client, record, "/upload", content=b"0" * 10, headers=unknown)
    assert answer.status_code == 422


def test_the_result_is_not_ready_and_the_status_is_told(begun, client):
    record = begun(html="<p>", output={"container": "png"})
    for suffix in (".mp4", ".png"):
        answer = get(client, record, suffix)
        assert (answer.status_code, answer.json()["state"]) == (409, "pending")
    for suffix in (".jpeg", ".webp"):
        assert get(client, record, suffix).status_code == 404
    assert client.head(f"{API}/renders/{record['id']}.png").status_code == 409
    assert get(client, record, ".gif").status_code == 404


def test_a_render_is_cancelled(begun, client, server):
    record = begun(html="<p>")
    answer = post(client, record, "/cancel")
    assert (answer.status_code, answer.json()["status"]) == (200, "cancelled")
    assert post(client, record, "/cancel").json() == answer.json()
    assert server.context.jobs.status(f"{RENDER}-{record['id']}") == "cancelled"
    assert get(client, record, ".mp4").status_code == 409
    events = events_of(client, f"/renders/{record['id']}/progress")
    assert [name for name, _ in events] == ["size", "error"]
    assert "cancelled" in events[-1][1]["detail"]
    waiting = begun()
    assert post(client, waiting, "/cancel").json()["status"] == "cancelled"
    assert post(client, waiting, "/upload", content=SITE).status_code == 409


def test_lists_are_filtered_and_paged(begun, client):
    ids = [begun(html="<p>")["id"] for _ in range(3)] + [begun()["id"]]
    page = client.get(f"{API}/renders", params={"limit": 2}).json()
    assert [one["id"] for one in page["renders"]] == ids[:1:-1]
    more = client.get(f"{API}/renders", params={"limit": 2, "cursor": page["next_cursor"]}).json()
    assert [one["id"] for one in more["renders"]] == ids[1::-1]
    only = client.get(f"{API}/renders", params={"status": "created"}).json()["renders"]
    assert ids[-1] in [one["id"] for one in only]
    assert {one["status"] for one in only} == {"created"}
    assert client.get(f"{API}/renders", params={"status": "done"}).status_code == 422


def test_what_is_deleted_leaves_nothing(begun, client, server):
    context = server.context
    html = f"<p>{uuid.uuid4()}"
    records = [begun(html=html), begun(), begun()]
    post(client, records[1], "/upload", content=SITE + os.urandom(10))
    post(client, records[2], "/upload", **chunk(SITE, 0, 1000))
    for record in records:
        assert client.delete(f"{API}/renders/{record['id']}").status_code == 204
        assert get(client, record).status_code == 404
        assert client.delete(f"{API}/renders/{record['id']}").status_code == 404
    with context.database.read() as connection:
        for table in (tables.blob_uses, tables.uploads):
            row = table.c.record_id
            ids = [record["id"] for record in records]
            left = sa.select(row).where(sa.or_(*(row.startswith(id) for id in ids)))
            assert connection.execute(left).all() == []
    with context.database.write() as connection:
        connection.execute(tables.trash.update().values(delete_after=sa.func.current_timestamp()))
    blobs.sweep(context.database, context.store)
    digest = hashlib.sha256(html.encode()).hexdigest()
    assert not [key for key in context.store.keys("blobs/") if digest in key]


def test_an_upload_that_breaks_off_goes_on(begun, client, server):
    record = begun()

    def broken():
        yield SITE[:70_000]
        raise httpx.ReadError("gone")

    headers = {"Content-Length": str(len(SITE))}
    with pytest.raises(httpx.ReadError):
        post(client, record, "/upload", content=broken(), headers=headers)
    while True:
        # the server may not have seen yet that the first one is gone
        answer = post(client, record, "/upload", content=SITE)
        if answer.status_code != 409:
            break
        time.sleep(int(answer.headers["Retry-After"]))
    assert (answer.status_code, answer.json()["status"]) == (201, "pending")


def test_an_upload_that_ends_and_one_that_begins_anew_do_not_wait_for_each_other(
    tmp_path, new_postgres
):
    """Each holds the upload before the render."""
    with serving(tmp_path, database_url=new_postgres()) as served:
        client, database = served.client, served.context.database
        for path, begin in (
            ("upload", lambda url: client.post(url, **chunk(SITE + b"x", 0, 1000))),
            ("", lambda url: client.delete(url.rstrip("/"))),
        ):
            record = client.post(f"{API}/renders", json={}).json()
            assert post(client, record, "/upload", **chunk(SITE, 0, 1000)).status_code == 202
            upload, render = tables.uploads, tables.renders
            with ThreadPoolExecutor(1) as other:
                with database.write() as connection:
                    mine = upload.c.record_id == record["id"]
                    connection.execute(upload.update().where(mine).values(next_byte=1000))
                    answer = other.submit(begin, f"{API}/renders/{record['id']}/{path}")
                    while not connection.scalar(sa.text(WAITING)):
                        time.sleep(0.01)
                    own = render.c.id == record["id"]
                    connection.execute(render.update().where(own).values(is_archive=False))
                assert answer.result().status_code in (202, 204), answer.result().text


def test_a_render_whose_page_does_not_come_fails(tmp_path):
    with serving(tmp_path) as served:
        client, table = served.client, tables.renders
        silent, begun, sent, fresh = (
            client.post(f"{API}/renders", json=new).json()
            for new in ({}, {}, {"html": "<p>Hi"}, {})
        )
        assert post(client, begun, "/upload", **chunk(SITE, 0, 1000)).status_code == 202
        with served.context.database.write() as connection:
            old = table.c.id.in_([one["id"] for one in (silent, begun, sent)])
            then = instant() - timedelta(days=2)
            connection.execute(table.update().where(old).values(created_at=then))
        give_up_unsent(served.context)
        records = [client.get(f"{API}/renders/{one['id']}").json() for one in
                 (silent, begun, sent, fresh)]  # fmt: skip
        assert [one["status"] for one in records] == ["failed", "created", "pending", "created"]
        assert records[0]["problem"]["detail"] == "its page did not come in time"
        upload = tables.uploads
        with served.context.database.write() as connection:
            times = {"created_at": then, "written_at": then, "lease_until": None}
            mine = upload.c.record_id == begun["id"]
            connection.execute(upload.update().where(mine).values(**times))
        give_up_unsent(served.context)
        assert client.get(f"{API}/renders/{begun['id']}").json()["status"] == "failed"
        assert post(client, begun, "/upload", **chunk(SITE, 0, 1000)).status_code == 409


WAITING = "SELECT count(*) FROM pg_locks WHERE NOT granted"
