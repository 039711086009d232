"""Law 6: every error has one row, and every refusal is a problem of RFC 9457."""

import ast
import json
import re

import pytest

from fragdex import errors as kinds
from fragdex.service.web.problems import HTTP, PROBLEMS, problem_of, row_of
from service.serving import API, serving


def tree(root):
    yield root
    for child in root.__subclasses__():
        yield from tree(child)


STANDARD = {"type", "title", "status", "detail"}
OURS = [
    error for error in dict.fromkeys(tree(kinds.FragdexError)) if error.__module__ == kinds.__name__
]


@pytest.mark.parametrize("error", OURS, ids=lambda error: error.__name__)
def test_every_error_class_has_one_row(error):
    assert error in PROBLEMS
    assert 400 <= PROBLEMS[error].status < 600


def test_the_table_names_nothing_else():
    assert set(PROBLEMS) == set(OURS)


def test_slugs_are_one_for_each_problem():
    slugs = [row.slug for row in PROBLEMS.values()]
    assert len(set(slugs)) == len(slugs)
    for row in HTTP.values():
        same = [other for other in PROBLEMS.values() if other.slug == row.slug]
        assert all(other.status == row.status for other in same)


def test_no_member_of_our_own_takes_a_standard_name(root):
    """It would never be told: `status` is the number of the answer (RFC 9457, 3.1)."""
    taken = []
    for path in (root / "src" / "fragdex").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.keyword) and node.arg == "more":
                named = node.value.keys if isinstance(node.value, ast.Dict) else []
                names = {key.value for key in named if isinstance(key, ast.Constant)}
                taken += [f"{path.name}:{node.value.lineno}"] * bool(names & STANDARD)
    assert not taken


def test_a_class_of_another_house_is_a_fault():
    assert row_of(ZeroDivisionError).status == 500


def is_problem(answer, status):
    assert answer.status_code == status
    assert answer.headers["content-type"] == "application/problem+json"
    problem = answer.json()
    assert problem["status"] == status
    assert problem.keys() >= {"type", "title", "detail"}
    return problem


def test_GET_of_no_path_is_404(client):
    is_problem(client.get("/nothing"), 404)


def test_DELETE_of_a_path_that_takes_none_is_405_with_Allow(client):
    answer = client.delete("/healthz")
    is_problem(answer, 405)
    assert answer.headers["allow"] == "GET, HEAD"


def test_POST_of_a_field_of_the_wrong_type_names_its_place(client):
    problem = is_problem(client.post("/api/v1/test/things", json={"name": 1, "count": "x"}), 422)
    assert {one["pointer"] for one in problem["errors"]} == {"#/name", "#/count"}


def test_POST_of_what_is_no_JSON_is_422(client):
    problem = is_problem(client.post("/api/v1/test/things", content=b'{"name":'), 422)
    assert problem["errors"][0]["pointer"] == "#"


@pytest.mark.parametrize("body", [b'"\xff"', b"[" * 100_000, b'{"name": "\\ud800"}', b"", b"NaN"])
def test_POST_of_odd_JSON_is_no_fault(client, body):
    assert client.post("/api/v1/test/things", content=body).status_code in (201, 400, 422)


def test_JSON_is_JSON_whatever_its_type_is_called(client):
    for kind in ("text/plain", "application/octet-stream", "multipart/form-data"):
        answer = client.post(
            "/api/v1/test/things", content=b'{"name": "a"}', headers={"Content-Type": kind}
        )
        assert answer.status_code == 201, kind


def test_a_fault_tells_nothing_but_where_it_is_written_down(client):
    problem = is_problem(client.get("/api/v1/test/fault"), 500)
    assert "secret" not in str(problem)
    assert problem["instance"].startswith("urn:uuid:")


@pytest.mark.parametrize(
    ("pointer", "place"),
    [
        ("", {"pointer": "#"}),
        ("/tracks/0", {"pointer": "#/tracks/0"}),
        ("limit", {"parameter": "limit"}),
    ],
)
def test_the_body_as_a_whole_is_a_place_too(pointer, place):
    """RFC 6901, section 5: the empty pointer is the whole document."""
    answer = problem_of(kinds.Unprocessable("no", pointer=pointer))
    assert json.loads(answer.body)["errors"] == [{"detail": "no", **place}]


def test_every_answer_is_safe_to_show(client):
    for path in ("/healthz", "/nothing", "/api/v1/test/fault", "/docs"):
        headers = client.get(path).headers
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "no-referrer"


def test_405_names_the_methods_of_every_route_of_the_path(client):
    answer = client.put("/api/v1/image_files/0192f0c1-0000-7000-8000-000000000000")
    assert answer.status_code == 405
    assert answer.headers["allow"] == "DELETE, GET, HEAD"
    assert client.put("/api/v1/image_files/x.json").headers["allow"] == "GET, HEAD"


def test_without_a_key_even_odd_paths_are_401(server):
    for path in ("md5/0", "x.json", "x", "x/upload"):
        assert server.anyone.get(f"/api/v1/image_files/{path}").status_code == 401


PYDANTIC = ("Input should", "Value error", "Field required", "String should", "Extra inputs",
            "validation error", "expected (")  # fmt: skip
WRONG = [None, True, -1.5, 1e300, "", "x" * 5000, "a/../b", [], [1], {}, {"x": {"y": [0]}}]


def test_what_breaks_a_rule_is_told_in_the_words_of_the_service(tmp_path):
    """Every field of every body, and every parameter of every list, with values of all kinds."""
    with serving(tmp_path) as served:
        document = served.client.get("/openapi.json").json()
        schemas, answers = document["components"]["schemas"], []
        for path, methods in document["paths"].items():
            place = re.sub(r"\{\w+\}", "0193f0a2-0000-7000-8000-000000000000", path)
            for method, operation in methods.items():
                asked = operation.get("requestBody", {}).get("content", {}).get("application/json")
                name = (asked or {}).get("schema", {}).get("$ref", "").rpartition("/")[2]
                for value in WRONG:
                    request = {"json": value}
                    if name and (fields := schemas[name].get("properties")):
                        answers.append(served.client.request(method, place, json=value))
                        request = {"json": dict.fromkeys(fields, value)}
                    elif method == "get" and not path.endswith("progress"):
                        names = [one["name"] for one in operation.get("parameters", ())
                                 if one["in"] == "query" and one["name"] != "token"]  # fmt: skip
                        if not names:
                            continue
                        request = {"params": dict.fromkeys(names, str(value)[:40])}
                    elif not name:
                        continue
                    answers.append(served.client.request(method, place, **request))
        tus = {"Tus-Resumable": "1.0.0", "Upload-Length": "1", "Upload-Metadata": "filename LgAu"}
        answers.append(served.client.post(f"{API}/tus", headers=tus))
        headers = {"Idempotency-Key": "x" * 300}
        answers.append(served.client.post(f"{API}/renders", json={}, headers=headers))
    refused = [answer for answer in answers if answer.status_code == 422]
    assert len(refused) > 100
    for answer in answers:
        assert answer.status_code < 500, answer.text
        assert not [words for words in PYDANTIC if words in answer.text], answer.text
    assert refused[-1].json()["errors"][0]["header"] == "Idempotency-Key"
    assert refused[-2].json()["errors"][0]["header"] == "Upload-Metadata"
