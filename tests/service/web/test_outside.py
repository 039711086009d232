"""What stands outside of /api/v1, and what browsers are told."""

import hashlib
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest

from fragdex.errors import StoreFull, Unavailable
from fragdex.service.records.database import Database
from service.serving import serving


def test_healthz_and_readyz_need_no_key(server):
    assert server.anyone.get("/healthz").json() == {"status": "ok"}
    ready = server.anyone.get("/readyz")
    assert (ready.status_code, ready.json()["status"]) == (200, "ok")


def test_readyz_says_what_does_not_answer(tmp_path):
    with serving(tmp_path) as served:

        class Away:
            def check(self):
                raise Unavailable("gone")

            def path(self, key):
                return None

        store = served.context.store
        object.__setattr__(served.context, "store", Away())
        answer = served.anyone.get("/readyz")
        assert answer.status_code == 503
        assert answer.json() == {
            "status": "unavailable",
            "database": "ok",
            "store": "does not answer",
            "draining": "no",
            "browser": "not used here",
            "engine": "not used here",
            "disk": "ok",
        }
        object.__setattr__(served.context, "store", store)
        for _ in range(200):
            if served.anyone.get("/readyz").status_code == 200:
                break
            time.sleep(0.05)
        else:
            pytest.fail("it is not ready again")


class Watched:
    """A store that answers as it is told, and counts who asks it."""

    def __init__(self, answer):
        self.answer, self.asked = answer, 0

    def check(self):
        self.asked += 1
        self.answer()

    def path(self, key):
        return None


def test_a_store_that_hangs_holds_up_nobody_who_does_not_need_it(tmp_path, monkeypatch):
    """However many probes have given up: they took every thread, for a minute each."""
    goes_on = threading.Event()
    monkeypatch.setattr("fragdex.service.web.health.PATIENCE_SECONDS", 0.3)
    with serving(tmp_path) as served:
        real, hanging = served.context.store, Watched(goes_on.wait)
        object.__setattr__(served.context, "store", hanging)
        try:
            with ThreadPoolExecutor(60) as pool:
                probes = [pool.submit(httpx.get, f"{served.url}/readyz") for _ in range(60)]
                assert served.client.get("/api/v1/files").status_code == 200
                answers = [probe.result() for probe in probes]
            assert {answer.json()["store"] for answer in answers} == {"does not answer"}
            assert {answer.status_code for answer in answers} == {503}
            assert served.client.get("/api/v1/files").status_code == 200
            assert hanging.asked == 1
        finally:
            goes_on.set()
            object.__setattr__(served.context, "store", real)


def test_probes_of_anyone_cost_one_look_at_an_object_store(tmp_path):
    with serving(tmp_path) as served:
        real, paid = served.context.store, Watched(lambda: None)
        object.__setattr__(served.context, "store", paid)
        for _ in range(20):
            assert served.anyone.get("/readyz").json()["status"] == "ok"
        assert paid.asked == 1
        object.__setattr__(served.context, "store", real)


def test_a_full_store_is_neither_ready_for_all_nor_down(tmp_path):
    """A balancer that took the service out would take away what makes room."""

    def full():
        raise StoreFull("no space is left")

    with serving(tmp_path) as served:
        real = served.context.store
        object.__setattr__(served.context, "store", Watched(full))
        answer = served.anyone.get("/readyz")
        assert (answer.status_code, answer.json()["status"]) == (200, "full")
        assert answer.json()["store"] == "full"
        object.__setattr__(served.context, "store", real)


def test_a_database_that_is_away_is_503_and_comes_back(tmp_path):
    with serving(tmp_path) as served:
        database = served.context.database
        nobody = Database("postgresql+psycopg://nobody@127.0.0.1:1/nothing")
        object.__setattr__(served.context, "database", nobody)
        asked = {"json": {"url": "/api/v1/x"}}
        answer = served.client.post("/api/v1/url-token", **asked)
        assert answer.status_code == 503
        assert answer.headers["retry-after"]
        assert "127.0.0.1" not in answer.text
        assert served.anyone.get("/readyz").status_code == 503
        object.__setattr__(served.context, "database", database)
        assert served.client.post("/api/v1/url-token", **asked).status_code == 200


def test_a_full_store_is_507(server, monkeypatch):
    def full(*args):
        raise StoreFull("no room")

    monkeypatch.setattr(server.context.store.__class__, "path", full)
    answer = server.client.get("/api/v1/test/bytes")
    assert answer.status_code == 507


def test_metrics_count_routes_and_never_paths(server):
    server.anyone.get("/some/path/of/a/stranger")
    server.client.get("/api/v1/test/events/whole")
    counted = 'route="/api/v1/test/events/{kind}",status="200"'
    for _ in range(100):
        text = server.anyone.get("/metrics").text
        if counted in text:
            break
        time.sleep(0.05)  # a stream is counted after the client has read its end
    assert counted in text
    assert 'route="(none)",status="404"' in text
    assert "stranger" not in text


def test_a_preflight_allows_what_clients_send(server):
    asked = "authorization,content-type,range,content-range,idempotency-key"
    answer = server.anyone.options(
        "/api/v1/test/things",
        headers={
            "Origin": "https://a.example",
            "Access-Control-Request-Method": "POST",
            "Access-Control-Request-Headers": asked,
        },
    )
    assert answer.status_code == 200
    assert answer.headers["access-control-allow-origin"] == "*"
    allowed = answer.headers["access-control-allow-headers"].lower()
    assert all(name in allowed for name in asked.split(","))
    assert "access-control-allow-credentials" not in answer.headers


def test_an_answer_exposes_what_players_read(server):
    for path, status in (("/api/v1/test/bytes", 200), ("/api/v1/test/fault", 500)):
        answer = server.client.get(path, headers={"Origin": "https://a.example"})
        assert answer.status_code == status
        exposed = answer.headers["access-control-expose-headers"]
        for name in ("ETag", "Content-Range", "Accept-Ranges", "Location"):
            assert name in exposed


@pytest.mark.parametrize(("origin", "allowed"), [("https://a.example", True), ("https://b", False)])
def test_origins_can_be_set(tmp_path, origin, allowed):
    with serving(tmp_path, cors_origins="https://a.example") as served:
        answer = served.anyone.get("/healthz", headers={"Origin": origin})
        assert ("access-control-allow-origin" in answer.headers) == allowed


def test_the_document_knows_no_catch_all_and_names_every_refusal(server):
    document = server.anyone.get("/openapi.json").json()
    for path, item in document["paths"].items():
        for method, operation in item.items():
            answers = operation["responses"]
            assert "default" not in answers
            if path.startswith("/api/v1/"):
                assert {"401", "403", "422", "429", "503"} <= answers.keys(), (method, path)
                assert operation["security"], (method, path)
            for status, answer in answers.items():
                assert all(digit.isdigit() for digit in status)
                if status >= "400" and path.startswith("/api/v1/"):
                    assert list(answer["content"]) == ["application/problem+json"]
    assert "HTTPValidationError" not in str(document)


def test_the_page_of_the_interface_needs_no_network(server):
    answer = server.anyone.get("/docs")
    assert answer.status_code == 200
    assert "http://" not in answer.text
    assert "https://" not in answer.text
    assert "<script" not in answer.text
    assert 'id="upload-gap"' in answer.text
    assert "default-src 'none'" in answer.headers["content-security-policy"]


@pytest.mark.parametrize(
    "path",
    [
        "/healthz",
        "/readyz",
        "/openapi.json",
        "/api/v1/image_files",
        "/api/v1/image_files/none",
        "/api/v1/isobmff_files/md5/00000000-0000-0000-0000-000000000000",
        "/no/such/path",
    ],
)
def test_json_ends_its_line(server, path):
    """A shell's prompt would stand behind it."""
    answer = server.client.get(path)
    assert answer.json()
    assert answer.content.endswith(b"}\n")
    assert int(answer.headers["content-length"]) == len(answer.content)
    head = server.client.head(path)
    assert head.content == b""
    if head.status_code == answer.status_code:
        assert head.headers["content-length"] == answer.headers["content-length"]


def test_json_that_somebody_sent_stays_as_it_is(tmp_path):
    with serving(tmp_path) as served:
        sent = b'{"segments": [{"start": 0, "end": 1, "text": "a"}], "word_segments": []}'
        md5 = hashlib.md5(sent).hexdigest()
        new = {"filename": "a.json", "byte_size": len(sent), "md5": md5}
        path = "/api/v1/caption_files"
        record = served.client.post(path, json=new).json()
        path = f"{path}/{record['id']}"
        answer = served.client.post(f"{path}/upload", content=sent)
        assert answer.status_code == 201, answer.text
        kept = served.client.get(path)
        assert answer.text.endswith("}\n")
        assert kept.headers["etag"]
        assert kept.content == sent
