"""Limits of a tenant as an operator sets them and as its clients meet them."""

import json
from types import SimpleNamespace

import pytest
import sqlalchemy as sa

from fragdex.__main__ import main
from fragdex.service.records import keys, tables, tenant_limits
from fragdex.service.records.identifiers import new_id
from fragdex.service.records.pages import PAGE_BYTES
from fragdex.service.records.tenant_limits import set_limits
from service.serving import API, serving
from service.working import announced, md5_of

DATA = bytes(range(250)) * 4


@pytest.fixture
def served(tmp_path):
    with serving(tmp_path) as served:
        yield served


@pytest.fixture
def fragdex(capsys):
    def run(*arguments):
        code = main([*map(str, arguments)])
        return SimpleNamespace(returncode=code, **capsys.readouterr()._asdict())

    return run


def usage_of(client):
    answer = client.get(f"{API}/usage")
    assert answer.status_code == 200, answer.text
    return answer.json()


def limited(served, **limits):
    set_limits(served.context.database, served.tenant, limits)


def test_an_operator_limits_a_tenant_and_the_tenant_sees_it(served, tmp_path, fragdex):
    before = usage_of(served.client)
    assert before == {
        "stored_bytes": 0,
        "row_bytes": 0,
        "jobs": 0,
        "scope": "admin",
        "limits": {
            "max_stored_bytes": None,
            "max_render_seconds": 21600,
            "max_render_cost": None,
            "max_jobs": 500,
            "retention_days": None,
        },
    }
    command = ["tenant", "limits", "ours", "--data", tmp_path, "--json"]
    flags = ["--max-stored-bytes", "1KB", "--max-render-seconds", "60", "--max-render-cost", "9.5"]
    done = fragdex(*command, *flags, "--max-jobs", "1", "--retention-days", "30")
    assert done.returncode == 0, done.err
    limits = {
        "max_stored_bytes": 1000,
        "max_render_seconds": 60,
        "max_render_cost": 9.5,
        "max_jobs": 1,
        "retention_days": 30,
    }
    assert json.loads(done.out) == {"tenant": "ours", "stored_bytes": 0, **limits}
    assert usage_of(served.client)["limits"] == limits
    assert usage_of(served.stranger) == before

    body = {"html": "<p>"}
    assert served.client.post(f"{API}/renders", json=body).status_code == 201
    refused = served.client.post(f"{API}/renders", json=body)
    assert (refused.status_code, refused.json()["limit"]) == (429, 1)
    assert usage_of(served.client)["jobs"] == 1
    assert usage_of(served.client)["stored_bytes"] == len(body["html"])

    done = fragdex(*command[:-1], "--retention-days", "none")
    assert "retention_days\tnone" in done.out
    assert "max_jobs\t1" in done.out
    for wrong, message in (
        (["nobody"], "there is no tenant called nobody"),
        (["ours", "--max-jobs", "0"], "--max-jobs"),
    ):
        failed = fragdex("tenant", "limits", *wrong, "--data", tmp_path)
        assert failed.returncode == 2
        assert message in failed.err


def test_uploads_beyond_the_quota_are_refused_before_their_bytes(served):
    limited(served, max_stored_bytes=1500)
    record = announced(served.client, DATA)
    assert usage_of(served.client)["stored_bytes"] == len(DATA), "announced bytes are reserved"
    body = {"filename": "b.mp4", "byte_size": 501, "md5": md5_of(b"other")}
    refused = served.client.post(f"{API}/unprocessed_files", json=body)
    assert refused.status_code == 413
    problem = refused.json()
    assert problem["type"].endswith("quota-exceeded")
    assert (problem["limit"], problem["stored_bytes"]) == (1500, 1501)
    assert served.stranger.post(f"{API}/unprocessed_files", json=body).status_code == 201

    # the archive of a render says how large it is with its first byte
    render = served.client.post(f"{API}/renders", json={}).json()["id"]
    sent = served.client.post(f"{API}/renders/{render}/upload", content=bytes(501))
    assert (sent.status_code, sent.json()["limit"]) == (413, 1500)

    path = f"{API}/unprocessed_files/{record['id']}"
    half = {"Content-Range": f"bytes 0-499/{len(DATA)}"}
    assert served.client.post(f"{path}/upload", content=DATA[:500], headers=half).status_code == 202
    limited(served, max_stored_bytes=900)  # while it comes
    rest = {"Content-Range": f"bytes 500-999/{len(DATA)}"}
    refused = served.client.post(f"{path}/upload", content=DATA[500:], headers=rest)
    assert (refused.status_code, refused.json()["stored_bytes"]) == (413, 1000)
    assert served.client.delete(path).status_code == 204
    assert usage_of(served.client)["stored_bytes"] == 0
    assert served.client.post(f"{API}/unprocessed_files", json=body).status_code == 201


def test_every_key_of_a_tenant_reads_its_usage_and_nobody_else(served):
    key = keys.create_key(served.context.database, "ours")
    limited(served, max_jobs=7)
    answer = served.anyone.get(f"{API}/usage", headers={"Authorization": f"Bearer {key}"})
    assert answer.json()["limits"]["max_jobs"] == 7
    assert served.anyone.get(f"{API}/usage").status_code == 401


LARGE = "x" * 16_000
NAME = "\N{GRINNING FACE}" * 1000  # four bytes each
ROWS = 1 << 18
"""What the rows of a small quota may have here: fewer requests than by the service's own bound."""


def row_maker(client, way):
    """A request that makes another large row each time that it is sent."""
    md5 = (f"{n:032x}" for n in range(1, 1 << 20))
    renders, video = f"{API}/renders", {"filename": NAME, "byte_size": 9}
    if way == "metadata":
        return lambda: client.post(renders, json={"metadata": {"a": LARGE}})
    if way == "data":
        return lambda: client.post(renders, json={"data": {"a": LARGE}})
    if way == "batch":
        rows = {"html": "<p>", "rows": [{"a": LARGE}] * 3}
        return lambda: client.post(f"{renders}/batch", json=rows)
    if way == "answer":  # of one record, that is made once
        body = {"filename": NAME, "md5": next(md5)}
        key = lambda: {"Idempotency-Key": next(md5)}  # noqa: E731
        return lambda: client.post(f"{API}/isobmff_files", json=body, headers=key())
    if way == "registered":
        named = {"filename": NAME}
        return lambda: client.post(f"{API}/isobmff_files", json={**named, "md5": next(md5)})
    if way == "announced":
        return lambda: client.post(f"{API}/unprocessed_files", json={**video, "md5": next(md5)})
    assert way == "tus"
    tus = {"Tus-Resumable": "1.0.0", "Upload-Length": "9"}
    return lambda: client.post(
        f"{API}/tus", headers={**tus, "Upload-Metadata": f"filename YQ==,note {LARGE[:6000]}"}
    )


@pytest.mark.parametrize(
    "way", ["metadata", "data", "batch", "answer", "registered", "announced", "tus"]
)
def test_rows_count_whatever_they_are_made_by(served, way, monkeypatch):
    monkeypatch.setattr(tenant_limits, "_LEAST_ROW_BYTES", ROWS)
    limited(served, max_stored_bytes=250_000, max_jobs=1000)
    make = row_maker(served.client, way)
    for _ in range(500):
        answer = make()
        if answer.status_code == 413:
            break
        assert answer.status_code in (200, 201), answer.text
        size = len(answer.content)
    refused = answer.json()
    assert refused["type"].endswith("quota-exceeded"), "rows without end"
    assert refused["row_bytes"] > refused["limit"] == ROWS
    assert ROWS // 2 < usage_of(served.client)["row_bytes"] <= ROWS + size
    assert served.stranger.post(f"{API}/renders", json={}).status_code == 201


def test_a_page_of_a_list_has_few_large_records(served):
    database = served.context.database
    render_id = served.client.post(f"{API}/renders", json={"metadata": {"a": "b"}}).json()["id"]
    with database.write() as connection:
        row = connection.execute(sa.select(tables.renders)).one()._asdict()
        del row["row_bytes"]
        large = {f"k{n}": "x" * 60_000 for n in range(20)}
        ids = [new_id() for _ in range(11)]
        for id in ids:
            values = {**row, "id": id, "metadata": large}
            connection.execute(tables.renders.insert().values(values))
    seen, cursor = [], ""
    while cursor is not None:
        answer = served.client.get(f"{API}/renders?limit=200{cursor}")
        page = answer.json()
        assert len(answer.content) <= 2 * PAGE_BYTES
        assert page["renders"]
        seen += [one["id"] for one in page["renders"]]
        cursor = page["next_cursor"] and f"&cursor={page['next_cursor']}"
    assert seen == [*reversed(ids), render_id]
