"""Whatever a client sends, the answer is one that the OpenAPI document tells of, and no fault.

schemathesis makes requests out of the document, right ones and wrong ones; every second one is
about records that are there. To learn what is right and wrong takes longer than to send it, so that
operations that take the same are tried together.
"""

import hashlib
import itertools
import json
from pathlib import Path

import jsonschema
import pytest
import requests
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis.errors import Unsatisfiable

import fragdex
from fragdex.service.records import tables
from fragdex.service.records.identifiers import instant
from fragdex.service.web.documents import SCHEMAS
from service.serving import API, serving

schemathesis = pytest.importorskip("schemathesis")

from schemathesis import GenerationMode, checks  # noqa: E402

schemathesis.serializer.alias("application/partial-upload", "application/octet-stream")

FIXTURES = Path(__file__).parents[2] / "fixtures"
FILM = (FIXTURES / "frag-default-base.mp4").read_bytes()
PNG = bytes.fromhex(
    "89504e470d0a1a0a0000000d4948445200000001000000010802000000907753de"
    "0000000c4944415408d763f8cfc0000003010100c9fe92ef0000000049454e44ae426082"
)
VTT = b"WEBVTT\n\n00:00.000 --> 00:01.000\nword\n"

EXAMPLES = settings.default.max_examples // 12
"""Requests of each kind, where no other operation takes the same: some 400 of each in all, and
twelve times as many by `./dev test --all`."""

CHECKS = [
    checks.not_a_server_error,
    checks.status_code_conformance,
    checks.content_type_conformance,
    # not of events: OpenAPI 3.1 has no schema of one, schemathesis takes that of the text for it
    checks.response_schema_conformance,
    checks.response_headers_conformance,
]
SENDING = settings(
    database=None,
    deadline=None,
    phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
)


def md5(data):
    return hashlib.md5(data).hexdigest()


def uploaded(client, collection, new, data):
    answer = client.post(f"{API}/{collection}", json=new)
    assert answer.status_code == 201, answer.text
    place = f"{API}/{collection}/{answer.json()['id']}/upload"
    assert client.post(place, content=data).status_code == 201
    return answer.json()["id"]


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with serving(tmp_path_factory.mktemp("openapi")) as served:
        yield served


@pytest.fixture(scope="module")
def records(server, tmp_path_factory):
    """Ids and md5s by the first part of a path, for one complete record of each family."""
    client = server.client
    announced = {"md5": md5(FILM), "filename": "film.mp4", "byte_size": len(FILM)}
    unprocessed = uploaded(client, "unprocessed_files", announced, FILM)
    process = client.post(f"{API}/unprocessed_files/{unprocessed}/process").json()
    file_id = client.post(
        f"{API}/isobmff_files", json={"md5": md5(b"indexed"), "filename": "indexed.mp4"}
    ).json()["id"]
    index = tmp_path_factory.mktemp("index") / "film.fidx"
    fragdex.index(FILM).save(index)
    place = f"{API}/isobmff_files/{file_id}/index/upload"
    assert client.post(place, content=index.read_bytes()).status_code == 201
    track = {"file_id": file_id, "track_id": 1, "type": "video", "byte_size": len(FILM)}
    assert client.post(f"{API}/isobmff_tracks", json=track).status_code == 201
    place = f"{API}/isobmff_tracks/{file_id}/1/upload"
    assert client.post(place, content=FILM).status_code == 201
    image = uploaded(client, "image_files", {"filename": "dot.png", "byte_size": len(PNG)}, PNG)
    caption = uploaded(
        client,
        "caption_files",
        {"md5": md5(VTT), "filename": "words.vtt", "byte_size": len(VTT)},
        VTT,
    )
    still = {"html": "<p>", "md5": md5(b"render"), "output": {"container": "png"}}
    render = client.post(f"{API}/renders", json=still).json()["id"]
    client.post(f"{API}/renders/{render}/cancel")  # its events come to an end
    repair = client.post(f"{API}/files/{unprocessed}/repair", json={}).json()["id"]
    ended = tables.repairs.update().where(tables.repairs.c.id == repair)
    with server.context.database.write() as connection:
        connection.execute(ended.values(failed_at=instant(), problem={}))
    hook = {"url": "https://example.org/"}
    webhook = client.post(f"{API}/webhooks", json=hook).json()["id"]
    delivery = client.post(f"{API}/webhooks/{webhook}/ping").json()["id"]
    return {
        "renders": {"id": render, "md5": md5(b"render")},
        "unprocessed_files": {"id": unprocessed, "md5": md5(FILM)},
        "process_isobmff": {"id": process["id"]},
        "repairs": {"id": repair},
        "isobmff_files": {"id": file_id, "md5": md5(b"indexed")},
        "isobmff_tracks": {"file_id": file_id, "track_id": "1"},
        "image_files": {"id": image, "md5": md5(PNG)},
        "caption_files": {"id": caption, "md5": md5(VTT)},
        "timelines": {
            "id": client.post(f"{API}/timelines", json={"files": [file_id]}).json()["id"]
        },
        "webhooks": {"id": webhook, "delivery_id": delivery},
        "keys": {"id": client.post(f"{API}/keys", json={}).json()["id"]},
        "files": {"id": image, "md5": md5(PNG), "n": "1"},
        "uploads": {"id": image},
    }


def wrong_events(text):
    """What is not as the schema `Event` says it."""
    schemas = {"components": {"schemas": SCHEMAS}}
    event = jsonschema.Draft202012Validator({"$ref": "#/components/schemas/Event", **schemas})
    for frame in filter(None, text.decode("ascii").split("\n\n")):
        fields = dict(line.split(": ", 1) for line in frame.splitlines())
        message = {"id": fields["id"], "event": fields["event"], "data": json.loads(fields["data"])}
        yield from (error.message for error in event.iter_errors(message))


def family(operation):
    return operation.path.removeprefix(f"{API}/").partition("/")[0]


def taken(operation):
    """What an operation takes, whatever it is of: its method, the rest of its path, its fields."""
    fields = {name: operation.definition.raw.get(name) for name in ("parameters", "requestBody")}
    rest = operation.path.removeprefix(f"{API}/{family(operation)}")
    return operation.method, rest, json.dumps(fields, sort_keys=True)


def tried(operations, mode, records, session):
    """Send requests of a kind to operations that take the same, in turn.

    Each gets one about a record that is there, and one about any. Gives their number, and what was
    wrong.
    """
    numbers = itertools.count()
    wrong = []

    @settings(SENDING, max_examples=max(EXAMPLES, 2 * len(operations)))
    @given(case=operations[0].as_strategy(generation_mode=mode))
    def sent(case):
        turn, place = divmod(next(numbers), len(operations))
        operation = operations[place]
        case.operation, case.path = operation, operation.path
        known = records.get(family(operation))
        if turn % 2 and known is not None and operation.method.upper() != "DELETE":
            case.path_parameters = {
                name: known.get(name, value) for name, value in case.path_parameters.items()
            }
        try:
            answer = case.call(session=session, timeout=60)
            if answer.headers.get("content-type", [""])[0].startswith("text/event-stream"):
                case.validate_response(answer, checks=CHECKS[:3])
                wrong.extend(f"{operation.label}: {one}" for one in wrong_events(answer.content))
            else:
                case.validate_response(answer, checks=CHECKS)
        except (checks.FailureGroup, requests.RequestException) as error:
            errors = getattr(error, "exceptions", [error])
            wrong.append(
                f"{operation.label}: {case.as_curl_command()}: {'; '.join(map(str, errors))}"
            )

    try:
        sent()
    except Unsatisfiable as error:
        # nothing can be made wrong where there is nothing to be sent
        if mode is GenerationMode.POSITIVE:
            wrong.append(f"{operations[0].label}: {error}")
    return next(numbers), wrong


@pytest.mark.slow
@pytest.mark.parametrize("mode", [GenerationMode.POSITIVE, GenerationMode.NEGATIVE])
def test_every_answer_is_documented_and_none_is_a_fault(server, records, mode):
    schema = schemathesis.openapi.from_url(f"{server.url}/openapi.json", timeout=120)
    session = requests.Session()
    session.trust_env = False
    session.headers["Authorization"] = f"Bearer {server.key}"
    wrong, count, alike = [], 0, {}
    for operation in schema.get_all_operations():
        alike.setdefault(taken(operation.ok()), []).append(operation.ok())
    assert 100 < len(alike) < sum(map(len, alike.values()))
    waiting = list(alike.values())
    while waiting:
        operations = waiting.pop()
        number, found_wrong = tried(operations, mode, records, session)
        wrong += found_wrong
        count += number
        if 0 < number < len(operations):
            # there are not so many different requests
            waiting.append(operations[number:])
    assert count > 200
    assert not wrong, f"{len(wrong)} answers\n" + "\n\n".join(wrong)
