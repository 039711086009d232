"""Who may ask what: keys and URL tokens."""

import time
from datetime import timedelta
from types import SimpleNamespace

import jwt
import pytest

from fragdex.service.records import keys
from fragdex.service.records.identifiers import instant
from fragdex.service.web import auth
from service.serving import client_of, serving
from service.web.conftest import web_service

BYTES = "/api/v1/test/bytes"


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def server(request, tmp_path_factory):
    """The service with the routes of these tests, over each kind of database in turn."""
    with web_service(request.param, request, tmp_path_factory) as served:
        yield served


@pytest.mark.parametrize(
    "value",
    [
        "",
        "Bearer",
        "Bearer x",
        "Basic eA==",
        "Bearer ef_a_b",
        f"Bearer ef_{'a' * 9000}_b",
        "Bearer a.b.c",
        "Bearer ef_\xe9_b",
    ],
)
def test_without_a_key_it_is_401(server, value):
    answer = server.anyone.get(BYTES, headers={"Authorization": value.encode("latin-1")})
    assert answer.status_code == 401
    assert answer.headers["www-authenticate"].startswith("Bearer")


def test_another_secret_with_the_same_id_is_401(server):
    first, secret, key_id = server.key.split("_")
    other = f"{first}_{secret[:-1]}{'0' if secret[-1] != '0' else '1'}_{key_id}"
    with client_of(server.url, other) as client:
        assert client.get(BYTES).status_code == 401


def test_a_key_in_a_URL_opens_nothing(server):
    assert server.anyone.get(f"{BYTES}?token={server.key}").status_code == 401


def token_for(server, url):
    answer = server.client.post("/api/v1/url-token", json={"url": url})
    assert answer.status_code == 200, answer.text
    return answer.json()["token"]


@pytest.mark.parametrize("lower", ["", "?", "/"])
def test_a_token_opens_GET_and_HEAD_of_its_URL(server, lower):
    token = token_for(server, f"{server.url}{BYTES}{lower}")
    with client_of(server.url, token) as client:
        assert client.get(BYTES).status_code == 200
        assert client.head(BYTES).status_code == 200
    assert server.anyone.get(f"{BYTES}?token={token}").status_code == 200


def test_a_token_opens_what_lies_below_by_whole_segments(server):
    with client_of(server.url, token_for(server, "/api/v1/test")) as client:
        assert client.get(BYTES).status_code == 200
    with client_of(server.url, token_for(server, "/api/v1/test/byte")) as client:
        assert client.get(BYTES).status_code == 403
    with client_of(server.url, token_for(server, "/api/v1/test/%62ytes")) as client:
        assert client.get(BYTES).status_code == 200


def test_a_token_opens_nothing_else(server):
    with client_of(server.url, token_for(server, BYTES)) as client:
        assert client.get("/api/v1/test/events/whole").status_code == 403
        assert client.post("/api/v1/test/things", json={"name": "a"}).status_code == 403
        assert client.post("/api/v1/url-token", json={"url": BYTES}).status_code == 403


def test_a_token_lasts_as_long_as_is_asked_for_up_to_the_setting(server):
    most = server.context.settings.max_url_token_seconds
    for asked, seconds in ((None, 3600), (1, 1), (most, most)):
        wanted = {"url": BYTES} | ({} if asked is None else {"seconds": asked})
        token = server.client.post("/api/v1/url-token", json=wanted).json()["token"]
        claims = jwt.decode(token, options={"verify_signature": False})
        assert claims["exp"] - claims["iat"] == seconds
    for wrong in (0, -1, most + 1, 10**12, "5", 1.5, True):
        answer = server.client.post("/api/v1/url-token", json={"url": BYTES, "seconds": wrong})
        assert answer.status_code == 422, wrong
        assert answer.json()["errors"][0]["pointer"] == "#/seconds"


def test_a_token_for_parameters_opens_requests_that_have_them(server):
    wanted = {"url": BYTES, "params": {"a": "x y&z", "b": ""}}
    token = server.client.post("/api/v1/url-token", json=wanted).json()["token"]
    right = "a=x+y%26z&b="
    with client_of(server.url, token) as client:
        # parameters that the route does not know are refused later
        assert client.get(f"{BYTES}?{right}").status_code == 422
        for wrong in ("", "a=x+y%26z", f"{right}&a=other", f"a=other&{right}", "a=x%20y&b="):
            assert client.get(f"{BYTES}?{wrong}").status_code == 403, wrong
    narrow = token_for(server, f"{BYTES}?a=x+y%26z&b=")
    with client_of(server.url, narrow) as client:
        assert client.get(f"{BYTES}?{right}").status_code == 422
        assert client.get(BYTES).status_code == 403
    long = {"url": BYTES, "params": {f"p{n}": "x" * 2000 for n in range(2)}}
    refused = server.client.post("/api/v1/url-token", json=long)
    assert (refused.status_code, refused.json()["errors"][0]["pointer"]) == (422, "#/params")


@pytest.mark.parametrize(
    ("wanted", "pointer"),
    [
        ({"url": f"{BYTES}#x"}, "#/url"),
        ({"url": f"{BYTES}?a=1#x"}, "#/url"),
        ({"url": f"{BYTES}?a=1&a=2"}, "#/url"),
        ({"url": f"{BYTES}?a=1", "params": {"a": "2"}}, "#/url"),
        ({"url": BYTES + "?" + "&".join(f"p{n}=" for n in range(21))}, "#/url"),
        ({"url": BYTES, "params": {}}, "#/params"),
        ({"url": BYTES, "parmas": {"a": "1"}}, "#/parmas"),
    ],
    ids=str,
)
def test_what_seems_to_narrow_a_token_is_never_passed_over(server, wanted, pointer):
    answer = server.client.post("/api/v1/url-token", json=wanted)
    assert (answer.status_code, answer.json()["errors"][0]["pointer"]) == (422, pointer)


def test_a_token_of_another_origin_is_403(server):
    with client_of(server.url, token_for(server, f"https://example.org{BYTES}")) as client:
        assert client.get(BYTES).status_code == 403
        host = server.url.removeprefix("http://")
        assert client.get(BYTES, headers={"Host": "example.org"}).status_code == 403
        seen = {"Host": "example.org", "X-Forwarded-Proto": "https"}
        assert client.get(BYTES, headers=seen).status_code == 200, "through a proxy"
        assert host


@pytest.mark.parametrize(
    "url", ["", "x", "ftp://a/b", "http://[", "/", "http://a:99999/b", "/a/../b", "/a/%2e%2e/b", 7]
)
def test_a_token_for_no_URL_is_422(server, url):
    answer = server.client.post("/api/v1/url-token", json={"url": url})
    assert answer.status_code == 422
    assert answer.json()["errors"][0]["pointer"] == "#/url"


def test_a_token_ends_and_cannot_be_forged(server):
    good = jwt.decode(token_for(server, BYTES), options={"verify_signature": False})
    assert good["exp"] - time.time() == pytest.approx(3600, abs=60)
    secret = server.app.state.authenticator.signing_secret()
    old = jwt.encode({**good, "exp": int(time.time()) - 1}, secret, "HS256")
    endless = jwt.encode({k: v for k, v in good.items() if k != "exp"}, secret, "HS256")
    unsigned = jwt.encode(good, "", "none")
    forged = jwt.encode(good, b"another secret of thirty-two bytes", "HS256")
    for token in (old, endless, unsigned, forged):
        with client_of(server.url, token) as client:
            assert client.get(BYTES).status_code == 401


def test_a_revoked_key_ends_and_its_tokens_with_it(tmp_path, monkeypatch):
    from service.web.conftest import BYTES as DATA
    from service.web.conftest import KEY, router

    monkeypatch.setattr(auth, "REMEMBER_SECONDS", 0)
    with serving(tmp_path, router) as served:
        served.context.store.write(KEY, [DATA])
        token = token_for(served, BYTES)
        with client_of(served.url, token) as client:
            assert client.get(BYTES).status_code == 200
            keys.revoke_key(served.context.database, served.key.split("_")[2])
            assert client.get(BYTES).status_code == 401
        assert served.client.get(BYTES).status_code == 401


def test_over_the_rate_it_is_429_for_that_key_alone(tmp_path):
    with serving(tmp_path, rate_limit=0.2, rate_burst=2) as served:
        wanted = {"url": BYTES}
        for _ in range(2):
            assert served.client.post("/api/v1/url-token", json=wanted).status_code == 200
        answer = served.client.post("/api/v1/url-token", json=wanted)
        assert answer.status_code == 429
        assert 1 <= int(answer.headers["retry-after"]) <= 5
        assert served.stranger.post("/api/v1/url-token", json=wanted).status_code == 200
        assert served.client.get("/healthz").status_code == 200


def test_a_key_and_its_tokens_end_at_their_time_though_they_are_remembered(tmp_path, monkeypatch):
    with serving(tmp_path) as served:
        ends = instant() + timedelta(minutes=1)
        key = keys.create_key(served.context.database, "ours", scope=keys.READ, expires_at=ends)
        with client_of(served.url, key) as reader:
            wanted = {"url": "/api/v1/usage"}
            token = reader.post("/api/v1/url-token", json=wanted).json()["token"]
            of_token = f"/api/v1/usage?token={token}"
            assert reader.get("/api/v1/usage").status_code == 200
            assert served.anyone.get(of_token).status_code == 200
            later = SimpleNamespace(monotonic=time.monotonic, time=ends.timestamp)
            monkeypatch.setattr(auth, "time", later)
            assert reader.get("/api/v1/usage").status_code == 401
            assert served.anyone.get(of_token).status_code == 401
