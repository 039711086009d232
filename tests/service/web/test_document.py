"""The OpenAPI document is valid, names things as clients like them, and refuses what it says."""

import itertools
import json
import re
import string
from functools import partial

import jsonschema
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from service.serving import API, serving
from service.working import UNKNOWN, fixture_bytes, md5_of, uploaded

VERBS = {
    "append", "cancel", "complete", "copy", "create", "delete", "download", "find", "get", "head",
    "list", "ping", "post", "process", "repair", "replay", "rotate", "seek", "transcribe", "update",
    "upload",
}  # fmt: skip
QUICK = settings(
    max_examples=settings.default.max_examples // 4,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=list(HealthCheck),
)


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with serving(tmp_path_factory.mktemp("document")) as served:
        yield served


@pytest.fixture(scope="module")
def document(server):
    return server.anyone.get("/openapi.json").json()


@pytest.fixture(scope="module")
def film(server):
    """The path parameters of records that are complete, by the beginning of the path."""
    data = fixture_bytes("frag-global-sidx-video.mp4")
    file_id = uploaded(server.client, data, "film.mp4")["id"]
    process = server.client.post(f"{API}/unprocessed_files/{file_id}/process").json()
    assert process["status"] == "complete"
    still = {"html": "<p>", "md5": md5_of(data), "output": {"container": "png"}}
    render = server.client.post(f"{API}/renders", json=still).json()["id"]
    server.client.post(f"{API}/renders/{render}/cancel")
    return {
        "renders": {"id": render, "md5": md5_of(data)},
        "process_isobmff": {"id": process["id"]},
        "": {
            "id": file_id,
            "file_id": file_id,
            "track_id": "1",
            "md5": md5_of(data),
            "n": "0",
            "delivery_id": file_id,
        },
    }


def operations(document):
    for path, item in document["paths"].items():
        for method, operation in item.items():
            yield path, method, operation


def schemas_in(node, place=()):
    """Every object of a document that may be a schema, and where it is."""
    if isinstance(node, dict):
        yield place, node
        for name, inner in node.items():
            yield from schemas_in(inner, (*place, name))
    elif isinstance(node, list):
        for number, inner in enumerate(node):
            yield from schemas_in(inner, (*place, number))


# ---- what the document is ----------------------------------------------------------------------


def test_it_is_valid(document):
    validator = pytest.importorskip("openapi_spec_validator")
    assert document["openapi"].startswith("3.1")
    errors = validator.OpenAPIV31SpecValidator(document).iter_errors()
    assert [f"{list(one.absolute_path)}: {one.message}" for one in errors] == []


def test_bounds_and_patterns_are_words_of_json_schema(document):
    """A word that JSON Schema does not know is passed over, and with it what it bounds."""
    known = {*jsonschema.Draft202012Validator.VALIDATORS, "$ref", "discriminator"}
    known |= {"title", "description", "examples", "default", "format", "contentMediaType"}
    known |= {"contentSchema", "$defs"}
    for name, schema in document["components"]["schemas"].items():
        jsonschema.Draft202012Validator.check_schema(schema)
        for place, node in schemas_in(schema):
            keywords = place[-1:] not in [("properties",), ("patternProperties",), ("mapping",)]
            if keywords and not {"default", "examples", "discriminator"} & set(place):
                assert set(node) <= known, (name, place)


def test_operations_are_called_by_what_they_do(document):
    names = [operation["operationId"] for _, _, operation in operations(document)]
    assert len(set(names)) == len(names)
    for name in names:
        assert name.split("_")[0] in VERBS, name
        assert re.fullmatch("[a-z0-9_]+", name)
    for path, method, operation in operations(document):
        assert len(operation["tags"]) == 1, path
        assert (method == "head") == operation["operationId"].startswith("head_")


def test_what_clients_would_make_a_class_of_has_a_name(document):
    nameless = [
        place
        for place, node in schemas_in(document)
        if ("enum" in node or (node.get("type") == "object" and node.get("properties")))
        and place[:-1] != ("components", "schemas")
        and not {"properties"} & set(place[-1:])
    ]
    assert nameless == []
    assert not [name for name in document["components"]["schemas"] if "-" in name]


def test_unions_of_objects_say_how_they_are_told_apart(document):
    for place, node in schemas_in(document):
        kinds = node.get("anyOf") or node.get("oneOf") or ()
        if sum("$ref" in kind for kind in kinds) > 1:
            assert "discriminator" in node, place


def test_what_may_be_left_out_is_never_null(document):
    for path, _, operation in operations(document):
        for content in operation.get("requestBody", {}).get("content", {}).values():
            assert {"type": "null"} not in content["schema"].get("anyOf", ()), path
        for parameter in operation.get("parameters", ()):
            assert "null" not in json.dumps(parameter["schema"]), (path, parameter["name"])


FREE = {"Index"}
"""Bodies whose unknown members are kept: whatever a player writes into its index."""


def test_a_field_that_nobody_knows_is_refused_by_its_name(server, document):
    """Skipped, `scop` would make a key that writes, and `events` a webhook of all."""
    schemas, tried = document["components"]["schemas"], 0
    for path, method, operation in operations(document):
        content = operation.get("requestBody", {}).get("content", {}).get("application/json", {})
        name = content.get("schema", {}).get("$ref", "").rpartition("/")[2]
        if not name or name in FREE:
            continue
        place = re.sub(r"\{\w+\}", UNKNOWN, path)
        for known in schemas[name]["properties"]:
            wrong = f"{known}~/x" if len(known) < 4 else known[:-1]
            if wrong in schemas[name]["properties"]:
                continue
            answer = server.client.request(method, place, json={wrong: None})
            problem = answer.json()
            assert answer.status_code == 422, (path, wrong, problem)
            (one,) = problem["errors"]
            assert one["pointer"] == "#/" + wrong.replace("~", "~0").replace("/", "~1")
            assert "no such field; " in one["detail"] or len(schemas[name]["properties"]) > 12
        assert f"did you mean {known}?" in problem["detail"] or len(known) < 4, path
        tried += 1
    assert tried > 20


def test_every_object_of_a_request_is_closed(document):
    """Those within it too, but maps, whose names are their sender's."""
    schemas = document["components"]["schemas"]
    bodies = [operation.get("requestBody", {}) for _, _, operation in operations(document)]
    names = {node["$ref"] for _, node in schemas_in(bodies) if "$ref" in node}
    seen = set()
    while names:
        name = names.pop().rpartition("/")[2]
        if name in seen or name in FREE:
            continue
        seen.add(name)
        for _, node in schemas_in(schemas[name]):
            if isinstance(node.get("$ref"), str):
                names.add(node["$ref"])
        if "properties" in schemas[name]:
            assert schemas[name].get("additionalProperties") is False, name
    assert len(seen) > 20


def test_true_is_no_number_and_not_as_text(server, document):
    schemas, tried = document["components"]["schemas"], 0
    for path, method, operation in operations(document):
        content = operation.get("requestBody", {}).get("content", {}).get("application/json", {})
        name = content.get("schema", {}).get("$ref", "").rpartition("/")[2]
        for field, schema in schemas.get(name, {}).get("properties", {}).items():
            kinds = [schema, *schema.get("anyOf", ())]
            if name in FREE or not any(k.get("type") in ("integer", "number") for k in kinds):
                continue
            place = re.sub(r"\{\w+\}", UNKNOWN, path)
            for wrong in (True, [1], {}):
                answer = server.client.request(method, place, json={field: wrong})
                assert answer.status_code == 422, (path, field)
                said = {one["pointer"]: one["detail"] for one in answer.json()["errors"]}
                assert "as text" not in said[f"#/{field}"] or "digits as text" in said[f"#/{field}"]
            tried += 1
    assert tried > 30


def test_names_without_end_are_refused_in_few_words(server):
    body = {f"{number}{'x' * 500}": None for number in range(500)}
    answer = server.client.post(f"{API}/keys", json=body)
    assert (answer.status_code, len(answer.json()["errors"])) == (422, 20)


# ---- what holds for every route ------------------------------------------------------------------

NAMES = {"playlist": "v1.m3u8", "rendition": "v1", "part": "init.mp4", "sheet": "1.jpg"}
"""Of the files of a title."""


def placed(path, film):
    family = path.removeprefix(f"{API}/").partition("/")[0]
    form = "jpg" if "/thumbnail." in path else "json"
    return path.format(**{**film[""], **film.get(family, {})}, **NAMES, form=form)


def test_HEAD_answers_what_GET_answers_without_the_body(server, document, film):
    tried = 0
    for path, method, _ in operations(document):
        if method != "get":
            continue
        place = placed(path, film)
        asked = {"params": {"file_id": film[""]["id"]}} if path.endswith("_tracks") else {}
        if path.endswith("/seek"):
            asked = {"params": {"time_ms": 0}}
        got = server.client.get(place, **asked)
        head = server.client.head(place, **asked)
        assert (head.status_code, head.content) == (got.status_code, b""), place
        changing = {"date", "x-request-id", "transfer-encoding", "content-length"}
        if path == "/metrics" or "byteranges" in got.headers.get("content-type", ""):
            changing.add("content-length")
        assert {k: v for k, v in head.headers.items() if k not in changing} == {
            k: v for k, v in got.headers.items() if k not in changing
        }, place
        if "content-length" in got.headers and path != "/metrics":
            assert head.headers["content-length"] == got.headers["content-length"], place
        tried += 1
    assert tried > 45


@pytest.mark.parametrize("place", ["/", "/docs", "/openapi.json"])
def test_HEAD_of_what_stands_outside(server, place):
    got, head = server.anyone.get(place), server.anyone.head(place)
    assert (head.status_code, head.content) == (200, b"")
    assert head.headers["content-length"] == got.headers["content-length"]


def test_every_DELETE_answers_204(document):
    deletions = [one for _, method, one in operations(document) if method == "delete"]
    assert len(deletions) > 7
    for operation in deletions:
        succeeded = [status for status in operation["responses"] if status < "300"]
        assert succeeded == ["204"], operation["operationId"]


def test_DELETE_of_a_file_answers_204_and_its_POST_a_body(server):
    for method, suffix, status in (("DELETE", "", 204), ("POST", "/delete", 200)):
        body = {"filename": "a.png", "type": "image", "byte_size": 1}
        place = f"{API}/files/{server.client.post(f'{API}/files', json=body).json()['id']}"
        answer = server.client.request(method, place + suffix)
        assert answer.status_code == status
        assert server.client.get(place).status_code == 404


def test_a_parameter_that_nobody_knows_is_named_with_those_there_are(server, document, film):
    for path, method, operation in operations(document):
        if not path.startswith(API):
            continue
        answer = server.client.request(method.upper(), placed(path, film), params={"Limt": "1"})
        assert answer.status_code == 422, (method, path)
        if method == "head":
            continue
        problem = answer.json()
        assert problem["type"] == "/docs#invalid-request"
        assert problem["errors"][0]["parameter"] == "Limt"
        for parameter in operation.get("parameters", ()):
            if parameter["in"] == "query":
                assert parameter["name"] in problem["detail"], path
        assert "Limt" in problem["detail"]


def test_who_has_no_key_learns_nothing_of_parameters(server):
    assert server.anyone.get(f"{API}/renders", params={"limt": 1}).status_code == 401
    assert server.anyone.post(f"{API}/renders", params={"limt": 1}).status_code == 401


def test_what_players_add_to_every_URL_is_passed_over(server, film):
    place = f"{API}/isobmff_tracks/{film['']['id']}/1"
    plain = server.client.get(place)
    answer = server.client.get(place, params={"CMCD": "bl=4000,br=300"})
    assert (answer.status_code, answer.content) == (200, plain.content)
    assert server.client.get(place, params={"v": "2"}).status_code == 422


# ---- what it refuses ---------------------------------------------------------------------------

PNG = {"filename": "a.png", "byte_size": 9, "mime_type": "image/png"}
BODIES = {
    "/image_files": PNG,
    "/caption_files": {"filename": "a.vtt", "byte_size": 9, "mime_type": "text/vtt"},
    "/unprocessed_files": {"filename": "a.mp4", "byte_size": 9},
    "/files": {"filename": "a", "type": "video", "byte_size": 9},
    "/isobmff_files": {"filename": "a.mp4"},
    "/isobmff_tracks": {"file_id": UNKNOWN, "track_id": 1, "type": "video", "byte_size": 9},
    "/renders": {"html": "<p>", "output": {"container": "png"}},
    "/transcriptions": {"file_id": UNKNOWN},
    "/url-token": {"url": "/api/v1/files/1"},
}
"""By path: bodies whose form is right, md5 aside. An unknown file is 404, and no 422."""

# limits that are settings, or reach over several fields: not of a field's form
OVER_A_LIMIT = (
    "over the limit", "is past", "in the past", "1 to 120", "or equal to", "this language",
    "do not go together", "applies only",
)  # fmt: skip

TEXTS = st.text(st.characters(codec="utf-8"), max_size=40) | st.text(string.printable, max_size=40)
ANYTHING = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | TEXTS,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(TEXTS, inner, max_size=2),
    max_leaves=3,
)


def resolved(schema, document):
    while "$ref" in schema:
        schema = document["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
    return schema


def fitting(schema, document):
    """Values that a schema lets through."""
    schema = resolved(schema, document)
    if "anyOf" in schema or "oneOf" in schema:
        kinds = schema.get("anyOf") or schema["oneOf"]
        return st.one_of([fitting(kind, document) for kind in kinds])
    if "enum" in schema or "const" in schema:
        return st.sampled_from(schema.get("enum") or [schema["const"]])
    least, most = schema.get("minimum"), schema.get("maximum")
    if schema.get("format") == "date-time":
        whens = st.datetimes(timezones=st.timezones(), allow_imaginary=False)
        return whens.map(lambda when: when.isoformat().replace("+00:00", "Z")).filter(
            lambda text: re.search(schema["pattern"], text)
        )
    match schema.get("type"):
        case None:
            return ANYTHING
        case "null":
            return st.none()
        case "boolean":
            return st.booleans()
        case "integer":
            return st.integers(least, most)
        case "number" if "multipleOf" in schema:
            step = schema["multipleOf"]
            return st.integers(round(least / step), round(most / step)).map(lambda n: n * step)
        case "number":
            return st.floats(least, most, allow_nan=False, allow_infinity=False)
        case "string" if "pattern" in schema:
            texts = st.from_regex(re.compile(schema["pattern"][:-1] + r"\Z"))
        case "string":
            texts = TEXTS
        case "object":
            return objects(schema, document)
        case "array":
            items = fitting(schema.get("items", {}), document)
            bounds = schema.get("minItems", 0), min(schema.get("maxItems", 4), 4)
            return st.lists(items, min_size=bounds[0], max_size=max(bounds))
    size = schema.get("minLength", 0), schema.get("maxLength", 1 << 20)
    # half of a surrogate pair is no text that JSON could hold
    return texts.filter(
        lambda text: size[0] <= len(text) <= size[1] and text.isprintable() | text.isascii()
    )


def objects(schema, document):
    if "properties" not in schema:
        inner = schema["additionalProperties"]
        anything = {"type": "string", "pattern": "^[^\0]*$"}
        names = fitting(schema.get("propertyNames", anything), document)
        values = fitting(anything if inner is True else inner, document)
        return st.dictionaries(names, values, min_size=schema.get("minProperties", 0), max_size=3)
    members = {name: fitting(one, document) for name, one in schema["properties"].items()}
    needed = {name: members.pop(name) for name in schema.get("required", ())}
    return st.fixed_dictionaries(needed, optional=members)


def fields(document):
    for path in BODIES:
        operation = document["paths"][API + path]["post"]
        schema = operation["requestBody"]["content"]["application/json"]["schema"]
        for name, inner in sorted(resolved(schema, document)["properties"].items()):
            yield path, name, inner


numbers = itertools.count()


def sent(server, path, name, value):
    body = dict(BODIES[path])
    if path not in ("/isobmff_tracks", "/renders", "/transcriptions", "/url-token"):
        body["md5"] = f"{next(numbers):032x}"
    return server.client.post(API + path, json={**body, name: value})


def about(answer, name):
    """What an answer finds wrong with a field."""
    if answer.status_code != 422:
        return []
    return [
        one["detail"]
        for one in answer.json().get("errors", ())
        if one.get("pointer", "").startswith(f"#/{name}")
        and not any(limit in one["detail"] for limit in OVER_A_LIMIT)
    ]


def tried_with(values, check):
    @QUICK
    @given(value=values)
    def try_one(value):
        check(value)

    try_one()


@pytest.mark.slow
def test_what_the_document_lets_through_is_not_refused_for_its_form(server, document):
    wrong = []

    def check(path, name, value):
        answer = sent(server, path, name, value)
        assert answer.status_code < 500, (path, name, value)
        if fault := about(answer, name):
            wrong.append((path, name, value, fault))

    for path, name, schema in fields(document):
        tried_with(fitting(schema, document), partial(check, path, name))
    assert wrong == [], json.dumps(wrong, indent=1)


def broken(text):
    """Texts near one that fits."""
    return st.sampled_from([text + "\0", "\x1f" + text, text * 2, text[:-1], text + "é"])


@pytest.mark.slow
def test_what_the_document_refuses_is_422(server, document):
    wrong = []

    def check(path, name, validator, value):
        if not validator.is_valid(value):
            answer = sent(server, path, name, value)
            if answer.status_code != 422:
                wrong.append((path, name, value, answer.status_code))

    for path, name, schema in fields(document):
        whole = {**schema, "components": document["components"]}
        validator = jsonschema.Draft202012Validator(whole)
        values = ANYTHING
        if "pattern" in json.dumps(schema):
            texts = fitting(schema, document).filter(lambda value: isinstance(value, str))
            values |= texts.flatmap(broken)
        tried_with(values, partial(check, path, name, validator))
    assert wrong == []


@pytest.mark.parametrize("path", ["/renders", "/image_files", "/files"])
def test_cursors_are_as_the_document_says(server, document, path):
    (parameter,) = (
        one for one in document["paths"][API + path]["get"]["parameters"] if one["name"] == "cursor"
    )
    pattern = parameter["schema"]["pattern"]

    @QUICK
    @given(cursor=st.from_regex(re.compile(pattern[:-1] + r"\Z")))
    def let_through(cursor):
        assert server.client.get(API + path, params={"cursor": cursor}).status_code == 200

    @QUICK
    @given(cursor=st.text(string.printable, max_size=30))
    def refused(cursor):
        if not re.fullmatch(pattern, cursor):
            assert server.client.get(API + path, params={"cursor": cursor}).status_code == 422

    let_through()
    refused()


@pytest.mark.parametrize(
    ("instant", "status"),
    [
        ("2999-01-31T12:00:00Z", 201),
        ("2999-01-31 12:00:00.5+01:00", 201),
        ("9999-12-31T23:59:59-01:00", 422),  # the year 10000 in UTC
        ("0001-01-01T00:00:00+01:00", 422),
        ("1700000000", 422),
        (32503680000, 422),
        ("2999-01-31", 422),
        ("2999-02-31T12:00:00Z", 422),
    ],
)
def test_instants_are_those_of_RFC_3339(server, instant, status):
    body = {**BODIES["/files"], "md5": f"{next(numbers):032x}", "expires_at": instant}
    assert server.client.post(f"{API}/files", json=body).status_code == status


def test_what_looks_like_an_escaped_NUL_is_kept(server):
    new = {"md5": f"{next(numbers):032x}", "filename": "a.mp4"}
    file_id = server.client.post(f"{API}/isobmff_files", json=new).json()["id"]
    probe_info = {"path": r"C:\u0000", "note": "\\"}
    track = {**BODIES["/isobmff_tracks"], "file_id": file_id, "probe_info": probe_info}
    answer = server.client.post(f"{API}/isobmff_tracks", json=track)
    assert (answer.status_code, answer.json().get("probe_info")) == (201, probe_info)
    track = {**track, "track_id": 2, "probe_info": {"path": ["\0"]}}
    assert server.client.post(f"{API}/isobmff_tracks", json=track).status_code == 422


# As published players read them: the words of a slice, captions, and one parameter of addresses
# that pages fill in.
SECONDS = {
    "Segment",
    "WordSegment",
    "MissingSpan",
    "DoubtedSpan",
    "UnattributedSpan",
    "LanguageSpan",
}
OF_PAGES = {("/api/v1/transcode/{rendition}/{part}", "trackId")}
TIME = re.compile(r"\b(?:start|end|time|every|from|to|at|begin|duration|t)\b")
UNITS = ("_ms", "_at", "_seconds", "_days", "_hours", "_byte", "_bytes")


def named(document):
    """(where, name, schema) of every parameter of a query and every member of a schema."""
    for path, item in document["paths"].items():
        for operation in item.values():
            for one in operation.get("parameters", ()):
                if one["in"] == "query":
                    yield path, one["name"], {**one["schema"], **one}
    for name, schema in document["components"]["schemas"].items():
        for member, inner in schema.get("properties", {}).items():
            yield name, member, inner


def kinds_of(schema):
    inner = schema.get("schema", schema)
    some = [inner, *inner.get("anyOf", ())]
    return {kind for one in some for kind in [one.get("type")] if isinstance(kind, str)}


def test_times_have_their_unit_in_their_name(document):
    """`start`, `t` and `time_ms` were three ways of one thing."""
    bare = {
        (where, name)
        for where, name, schema in named(document)
        if kinds_of(schema) & {"number", "integer"}
        and TIME.search(name.replace("_", " ")) and not name.endswith(UNITS)
        and "byte" not in schema.get("description", "") and where not in SECONDS
    }  # fmt: skip
    # bytes of a repair; ticks of an index, beside cts and dts
    assert bare == {
        ("RepairSpan", "start"), ("IndexSegment", "duration"), ("SeekAnswer", "duration")
    }  # fmt: skip
    assert {(where, name) for where, name, _ in named(document)} & {
        ("SeekAnswer", "time_ms"), ("Gap", "start_ms"), ("NewRender", "from_ms")
    }  # fmt: skip


def test_a_name_means_one_thing(document):
    """`exact` in one sentence, and a track by one name."""
    said = {schema["description"] for _, name, schema in named(document) if name == "exact"}
    assert len(said) == 1
    assert {(where, name) for where, name, _ in named(document) if name == "trackId"} == OF_PAGES
