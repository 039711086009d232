"""POST, GET and DELETE of ISOBMFF files."""

import pytest

from service.isobmff.conftest import FILM, fresh_md5, index_json
from service.serving import API

FILES = f"{API}/isobmff_files"


def test_post_registers_a_file(client):
    body = {"md5": fresh_md5("a film"), "filename": "film.mp4"}
    answer = client.post(FILES, json=body)
    assert answer.status_code == 201
    record = answer.json()
    assert record["md5"] == body["md5"]
    assert record["filename"] == "film.mp4"
    assert record["fragment_index_complete"] is False
    assert answer.headers["location"] == f"{FILES}/{record['id']}"
    again = client.post(FILES, json=body | {"filename": "other.mp4"})
    assert (again.status_code, again.json()) == (200, record)


@pytest.mark.parametrize("write", [str.upper, lambda md5: md5.replace("-", ""), str.lower])
def test_md5_is_found_however_it_is_written(client, write):
    md5 = fresh_md5("written in many ways")
    client.post(FILES, json={"md5": md5, "filename": "a.mp4"})
    answer = client.get(f"{FILES}/md5/{write(md5)}")
    assert answer.status_code == 200
    assert answer.json()["md5"] == md5
    assert client.post(FILES, json={"md5": write(md5), "filename": "b"}).status_code == 200


def test_what_is_not_there_is_not_found(client, new_file, server):
    file = new_file()
    unknown = "01890000-0000-7000-8000-000000000000"
    paths = [
        f"{FILES}/{unknown}",
        f"{FILES}/md5/{fresh_md5('unknown')}",
        f"{FILES}/{unknown}/index",
        f"{FILES}/{file['id']}/index",
        f"{FILES}/{unknown}/seek?time_ms=0",
        f"{FILES}/{file['id']}/seek?time_ms=0",
        f"{FILES}/nonsense",
    ]
    for path in paths:
        assert client.get(path).status_code == 404, path
    # another tenant's record is not found either, in the same words
    theirs = server.stranger.get(f"{FILES}/{file['id']}")
    assert theirs.status_code == 404
    assert theirs.json() == client.get(f"{FILES}/{unknown}").json()
    assert server.stranger.get(f"{FILES}/md5/{file['md5']}").status_code == 404
    assert server.stranger.delete(f"{FILES}/{file['id']}").status_code == 404
    assert client.get(f"{FILES}/{file['id']}").status_code == 200


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        ({"filename": "a"}, "#/md5"),
        ({"md5": "nonsense" * 4, "filename": "a"}, "#/md5"),
        ({"md5": "0" * 32}, "#/filename"),
        ({"md5": "0" * 32, "filename": ""}, "#/filename"),
        ({"md5": "0" * 32, "filename": "a\0"}, "#/filename"),
    ],
)
def test_a_body_that_breaks_a_rule_names_the_field(client, body, pointer):
    answer = client.post(FILES, json=body)
    assert answer.status_code == 422
    assert pointer in [error["pointer"] for error in answer.json()["errors"]]


def test_tenants_may_have_the_same_file(client, server):
    body = {"md5": fresh_md5("everyone has it"), "filename": "a.mp4"}
    ours, theirs = client.post(FILES, json=body), server.stranger.post(FILES, json=body)
    assert (ours.status_code, theirs.status_code) == (201, 201)
    assert ours.json()["id"] != theirs.json()["id"]


def test_lists_are_newest_first_and_filtered(server, new_file, client):
    ids = [new_file(f"listed {number}")["id"] for number in range(5)]
    client.post(f"{FILES}/{ids[1]}/index/upload", json=index_json(FILM))
    seen, cursor = [], None
    while True:
        parameters = {"limit": 2} | ({"cursor": cursor} if cursor else {})
        answer = client.get(FILES, params=parameters).json()
        seen += [record["id"] for record in answer["isobmff_files"]]
        cursor = answer["next_cursor"]
        if cursor is None:
            break
    assert seen[:5] == ids[::-1]
    assert seen == sorted(seen, reverse=True)
    ready = client.get(FILES, params={"status": "ready", "limit": 200}).json()["isobmff_files"]
    assert ids[1] in {record["id"] for record in ready}
    assert {record["status"] for record in ready} == {"ready"}
    assert ids[1] not in {
        record["id"]
        for record in client.get(FILES, params={"status": "created", "limit": 200}).json()[
            "isobmff_files"
        ]
    }
    assert client.get(FILES, params={"limit": 0}).status_code == 422
    assert client.get(FILES, params={"cursor": "nonsense"}).status_code == 422


def test_delete_takes_everything_along(client, new_file):
    file = new_file()
    client.post(f"{FILES}/{file['id']}/index/upload", json=index_json())
    assert client.delete(f"{FILES}/{file['id']}").status_code == 204
    assert client.delete(f"{FILES}/{file['id']}").status_code == 404
    assert client.get(f"{FILES}/{file['id']}/seek?time_ms=0").status_code == 404
    again = client.post(FILES, json={"md5": file["md5"], "filename": "a.mp4"})
    assert again.status_code == 201
    assert again.json()["fragment_index_complete"] is False


def test_an_idempotency_key_makes_one_file(client):
    headers = {"Idempotency-Key": "the only one"}
    body = {"md5": fresh_md5("idempotent"), "filename": "a.mp4"}
    first = client.post(FILES, json=body, headers=headers)
    again = client.post(FILES, json=body, headers=headers)
    assert (first.status_code, again.status_code) == (201, 201)
    assert first.json() == again.json()
    other = client.post(FILES, json=body | {"filename": "b.mp4"}, headers=headers)
    assert other.status_code == 422
