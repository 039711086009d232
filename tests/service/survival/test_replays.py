"""A process that dies while a request with an Idempotency-Key is done: it is done once more."""

import threading
import time
from contextlib import suppress

import httpx
import pytest
from processes import md5_of, noise, until

from fragdex.service.records import tables
from fragdex.service.web.idempotency import LEASE

ROUNDS = 40
"""Requests until one is met while it is done: most are over before anybody looks."""
PATIENCE_S = 120
"""Of a busy machine, behind the documented time."""


@pytest.fixture(params=["sqlite", "postgresql"])
def any_database(request):
    return request.getfixturevalue("site" if request.param == "sqlite" else "postgres_site")


def body_of(number):
    return {"filename": f"{number}.mp4", "byte_size": 9, "md5": md5_of(noise(9, seed=number))}


def post(client, number):
    key = {"Idempotency-Key": f"key {number}"}
    return client.post("/unprocessed_files", json=body_of(number), headers=key)


def begun(site, number):
    """The claim of a request, as soon as it is made."""
    return until(
        lambda: next((r for r in site.rows(tables.replays) if r.key == f"key {number}"), None)
    )


def test_a_request_whose_process_is_killed_is_done_once(any_database):
    site = any_database
    child, answers = site.serve(), {}

    def ask(number):
        with suppress(httpx.HTTPError), site.client(child) as client:
            answers[number] = post(client, number)

    for asked in range(ROUNDS):
        thread = threading.Thread(target=ask, args=(asked,))
        thread.start()
        met = begun(site, asked).status is None
        if met or asked + 1 == ROUNDS:
            child.kill()
        thread.join()
        if met:
            break
    killed = time.monotonic()
    child = site.serve()
    with site.client(child) as client:
        for number in range(asked + 1):
            while (again := post(client, number)).status_code == 409:
                assert time.monotonic() - killed < LEASE.total_seconds() + PATIENCE_S
                assert int(again.headers["Retry-After"]) >= 1
                time.sleep(0.2)
            assert again.status_code in (200, 201)
            if number in answers:  # it was heard: the same is heard again
                assert again.json() == answers[number].json()
                assert again.headers["Idempotency-Replayed"] == "true"
            once_more = post(client, number)
            assert once_more.json() == again.json()
            assert once_more.headers["Idempotency-Replayed"] == "true"
    names = sorted(row.filename for row in site.rows(tables.files))
    assert names == sorted(f"{number}.mp4" for number in range(asked + 1))
