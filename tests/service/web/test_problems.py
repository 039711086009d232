"""Law 6: every error has one row, and every refusal is a problem of RFC 9457."""

import ast
import json
import re
from functools import cache

import pytest

from fragdex import errors as kinds
from fragdex.service.jobs.work import not_ready
from fragdex.service.renders.model import RenderStatus
from fragdex.service.transcriptions.model import TranscriptionStatus
from fragdex.service.unprocessed.model import Problem
from fragdex.service.web.problems import ACTIONS, HTTP, PROBLEMS, Action, problem_of, row_of
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
        text = path.read_text("utf-8")
        for node in ast.walk(ast.parse(text)) if "more=" in text else ():
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
        if answer.is_error:
            agrees(answer)
        assert not [words for words in PYDANTIC if words in answer.text], answer.text
    assert refused[-1].json()["errors"][0]["header"] == "Idempotency-Key"
    assert refused[-2].json()["errors"][0]["header"] == "Upload-Metadata"


# Where each action may stand. 403 and 401 say nothing but "another key", 500 and 501 nothing but
# "not by a request", 429 and from 502 on nothing but "later".
STATUSES = {
    Action.RETRY: {404, 409, 429, 502, 503, 507},
    Action.RESEND: {404, 408, 409, 422, 460},
    Action.CHANGE: {400, 405, 406, 409, 412, 413, 415, 416, 422},
    Action.PREPARE: {409, 413},
    Action.AUTHORIZE: {401, 403},
    Action.STOP: {400, 404, 409},
    Action.REPORT: {500, 501},
}


def agrees(answer):
    """Whether type, action, status and Retry-After of a problem say the same."""
    told = answer.json() if hasattr(answer, "json") else json.loads(answer.body)
    slug = told["type"].rpartition("#")[2]
    (row,) = {row for row in (*PROBLEMS.values(), *HTTP.values()) if row.slug == slug}
    assert (told["action"], told["status"]) == (row.action, row.status) == (
        row.action, answer.status_code)  # fmt: skip
    assert answer.status_code in STATUSES[row.action]
    seconds = answer.headers.get("retry-after")
    assert (seconds is not None) == (row.action == Action.RETRY), told
    assert seconds is None or int(seconds) >= 1


def test_every_action_is_described():
    assert set(ACTIONS) == set(Action) == set(STATUSES)
    by_status = {}
    for row in (*PROBLEMS.values(), *HTTP.values()):
        by_status.setdefault(row.status, set()).add(row.action)
    for status in (401, 403, 429, 500, 501, 502, 503, 507):
        assert len(by_status[status]) == 1, status


@pytest.mark.parametrize("error", OURS, ids=lambda error: error.__name__)
@pytest.mark.parametrize("seconds", [None, 0.2, 7])
def test_what_to_do_agrees_with_type_status_and_Retry_After(error, seconds):
    failure = error("it failed")
    if isinstance(failure, kinds.ServiceError):
        failure.retry_after = seconds
    agrees(problem_of(failure))
    saved = Problem.of({"error": error.__name__, "detail": "it failed"})
    assert (saved.action, saved.status) == (row_of(error).action, row_of(error).status)


CLASSES = {error.__name__: error for error in OURS}


@cache
def raised(root):
    """Every place of the program where an error of the tree is made: (place, class, node)."""
    return [*places_of(root)]


def places_of(root):
    name_of_one = re.compile(rf"\b(?:{'|'.join(CLASSES)})\b")
    for path in sorted((root / "src" / "fragdex").rglob("*.py")):
        if path.parent.name == "client":
            continue  # it has a tree of its own
        text = path.read_text("utf-8")
        for node in ast.walk(ast.parse(text)) if name_of_one.search(text) else ():
            if isinstance(node, ast.Call):
                name = getattr(node.func, "id", getattr(node.func, "attr", None))
                if name in CLASSES:
                    yield f"{path.relative_to(root)}:{node.lineno}", CLASSES[name], node
            elif isinstance(node, ast.Dict) and [getattr(k, "value", None) for k in node.keys][
                :1
            ] == ["error"]:
                name = getattr(node.values[0], "value", None)
                if name in CLASSES:
                    yield f"{path.relative_to(root)}:{node.lineno}", CLASSES[name], node


AGAIN = re.compile(r"\b(?:send|sent|come|try|upload)\b[^;.,]{0,24}\bagain\b")
FIRST = re.compile(r"\b(?:delete|revoke|enable|cancel|raise)\b.*")


def test_every_place_that_raises_says_what_its_type_says(root):
    """Words, members and seconds of each place against the action of its class."""
    wrong, places = [], 0
    for place, error, node in raised(root):
        action, places = row_of(error).action, places + 1
        text = " ".join(
            one.value for one in ast.walk(node)
            if isinstance(one, ast.Constant) and isinstance(one.value, str)
        )  # fmt: skip
        named = {one.arg: one.value for one in getattr(node, "keywords", ())}
        members = {key.value for key in getattr(named.get("more"), "keys", ()) if key is not None}
        if "retry_after" in named and action != Action.RETRY:
            wrong.append(f"{place}: {error.__name__} with retry_after is {action}")
        if AGAIN.search(text) and action not in (Action.RETRY, Action.RESEND):
            wrong.append(f"{place}: {error.__name__} says {text!r}, and is {action}")
        if issubclass(error, kinds.Conflict) and FIRST.search(text) and action == Action.STOP:
            wrong.append(f"{place}: {error.__name__} says {text!r}, and is {action}")
        # who can wait for a state, or can no longer: a type of its own for each
        if "state" in members and not issubclass(
            error, (kinds.NotReady, kinds.RecordNotFound, kinds.Finished)
        ):
            wrong.append(f"{place}: {error.__name__} has a state")
        if isinstance(node, ast.Dict) and action == Action.RETRY:
            wrong.append(f"{place}: a record that failed for good cannot be {error.__name__}")
    assert places > 250
    assert not wrong, "\n".join(wrong)


def test_a_result_that_is_not_there_is_being_made_or_will_never_be():
    """One home decides it by the state; no other place raises NotReady by itself."""
    for status in RenderStatus:
        if status != RenderStatus.COMPLETE:
            over = status in (RenderStatus.FAILED, RenderStatus.CANCELLED)
            assert (type(not_ready("render", status)) is kinds.NeverReady) == over
    for status in TranscriptionStatus:
        if status != TranscriptionStatus.COMPLETE:
            over = status == TranscriptionStatus.FAILED
            assert (type(not_ready("transcription", status)) is kinds.NeverReady) == over


def test_NotReady_is_raised_by_its_home_alone(root):
    places = {place.rpartition(":")[0] for place, error, _ in raised(root)
              if error is kinds.NotReady}  # fmt: skip
    assert not places, "use jobs.work.not_ready"


def test_the_document_says_when_to_come_again(client):
    """A response that may be of the action `retry` has the field Retry-After, and no other has."""
    document = client.get("/openapi.json").json()
    schemas = document["components"]["schemas"]
    assert set(schemas["ProblemAction"]["enum"]) == set(Action)
    assert {"action", "type", "status", "title", "detail"} <= set(schemas["Problem"]["required"])
    rows = [*PROBLEMS.values(), *HTTP.values()]
    count = 0
    for path, item in document["paths"].items():
        for method, operation in item.items():
            for status, response in operation["responses"].items():
                if "application/problem+json" not in response.get("content", {}):
                    continue
                titles = response["description"].split("; ")
                retries = any(row.status == int(status) and row.action == Action.RETRY
                              and row.title in titles for row in rows)  # fmt: skip
                told = "Retry-After" in response.get("headers", {})
                assert told == retries, f"{method} {path} {status}: {titles}"
                count += told
    assert count > 100
