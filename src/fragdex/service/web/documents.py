"""What the service says about itself: `/openapi.json`, and `/docs` as a page that needs no network.

The page is drawn from the document and from the table of problems; types of problems point to it.
"""

from __future__ import annotations

import html
import json
from collections.abc import Mapping, Sequence
from typing import Any

from fastapi import APIRouter, FastAPI, Request
from fastapi.openapi.utils import get_openapi
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import BaseRoute

from fragdex.service.web.auth import SECURITY_SCHEMES
from fragdex.service.web.events import NAMES
from fragdex.service.web.fields import VALIDATORS
from fragdex.service.web.problems import ACTIONS, HTTP, PROBLEMS
from fragdex.service.web.routing import HeadRoute

router = APIRouter(include_in_schema=False, route_class=HeadRoute)

TITLE = "fragdex"
DESCRIPTION = (
    "Stores media files, indexes their fragments, and serves the bytes of any moment. "
    "Errors are RFC 9457 problems; identifiers are opaque and sort by time; every md5 is taken as "
    "32 hex digits or dashed, and answered dashed. HEAD is answered wherever GET is; below it is "
    "named where stored bytes are answered. A query parameter that is not named is refused (422)."
)

METHODS = ("get", "head", "post", "put", "patch", "delete")

STYLE = """
:root{color-scheme:light dark;--line:#8884;--soft:light-dark(#565e6c,#9ba4b2);
--mark:light-dark(#4353d6,#98a4ff)}
body{font:15px/1.5 system-ui,sans-serif;max-width:62rem;margin:0 auto;padding:2rem 1.2rem 6rem;
overflow-wrap:anywhere;background:light-dark(#fff,#121212);color:light-dark(#171a21,#e8ebf0)}
h1{font-size:1.7rem;margin:0}h2{margin:2.6rem 0 .6rem;border-bottom:1px solid var(--line)}
code,pre{font:13px/1.45 ui-monospace,monospace}pre{white-space:pre-wrap;padding:.7rem;
border:1px solid var(--line);border-radius:6px}
details{border:1px solid var(--line);border-radius:6px;margin:.35rem 0;padding:.35rem .7rem}
summary{cursor:pointer;display:flex;flex-wrap:wrap;gap:0 .7rem;align-items:baseline}
summary b{font:600 12px ui-monospace,monospace;width:3.6rem;color:var(--mark)}
summary code{min-width:0}summary span{color:var(--soft);margin-left:auto}
table{border-collapse:collapse;width:100%}td,th{text-align:left;vertical-align:top;
padding:.25rem .6rem .25rem 0;border-bottom:1px solid var(--line)}tr:target{background:#2f6fdb33}
a{color:var(--mark)}
"""
POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"


def install(app: FastAPI, routes: Sequence[BaseRoute]) -> None:
    """Let `app` describe itself as `document` does, its routes in this order."""

    def openapi() -> dict[str, Any]:
        with VALIDATORS:  # pydantic cannot describe one model in two threads at once
            if app.openapi_schema is None:
                app.openapi_schema = document(app, routes)
        return app.openapi_schema

    app.openapi = openapi  # type: ignore[method-assign]
    app.router.routes.extend(router.routes)


def document(app: FastAPI, routes: Sequence[BaseRoute]) -> dict[str, Any]:
    """The OpenAPI 3.1 document: what every operation really answers."""
    document = get_openapi(title=TITLE, version=app.version, description=DESCRIPTION, routes=routes)
    public_url = app.state.context.settings.public_url
    if public_url:
        document["servers"] = [{"url": public_url}]
    components = document.setdefault("components", {})
    components["securitySchemes"] = SECURITY_SCHEMES
    components["headers"] = HEADERS
    schemas = components.setdefault("schemas", {})
    schemas.update(SCHEMAS)
    # FastAPI's own form of a refusal, which nothing answers here
    for name in ("HTTPValidationError", "ValidationError"):
        schemas.pop(name, None)
    for name, schema in schemas.items():
        schemas[name] = {**_plain(schema), "title": name}
    for item in document["paths"].values():
        for operation in item.values():
            for parameter in operation.get("parameters", ()):
                parameter["schema"] = _without_null(parameter["schema"])
            for content in operation.get("requestBody", {}).get("content", {}).values():
                content["schema"] = _without_null(content["schema"])
    return document


def _plain(schema: Any, name: str = "") -> Any:
    """A schema as programs that write clients read it best.

    Without titles that repeat the names of properties (classes would be named after them), with
    whole bounds as whole numbers, and `…_at` as the instants that they are.
    """
    if isinstance(schema, list):
        return [_plain(one, name) for one in schema]
    if isinstance(schema, float) and schema.is_integer():
        return int(schema)
    if not isinstance(schema, dict):
        return schema
    plain = {
        key: {own: _plain(one, own) for own, one in inner.items()}
        if key == "properties"
        else _plain(inner, name)
        for key, inner in schema.items()
        if key != "title" or not isinstance(inner, str)
    }
    if name.endswith("_at") and plain.get("type") == "string":
        plain["format"] = "date-time"
    return plain


def _without_null(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema of a parameter or a body that may be left out; `null` is not how that is said."""
    plain: dict[str, Any] = _plain(schema)
    plain.pop("description", None)  # what has the schema has the same
    kinds = [one for one in plain.pop("anyOf", ()) if one != {"type": "null"}]
    if len(kinds) == 1:
        return {**kinds[0], **plain}
    return {**plain, "anyOf": kinds} if kinds else plain


@router.get("/openapi.json")
def openapi_json(request: Request) -> Response:
    """The OpenAPI document."""
    return JSONResponse(request.app.openapi())


@router.get("/docs")
def docs(request: Request) -> Response:
    """The interface as a page."""
    return HTMLResponse(page(request.app.openapi()), headers={"Content-Security-Policy": POLICY})


def page(document: Mapping[str, Any]) -> str:
    """The document as HTML, complete in itself."""
    by_tag: dict[str, list[str]] = {}
    for path, item in document["paths"].items():
        for method in METHODS:
            if method in item:
                operation = item[method]
                tag = (operation.get("tags") or ["other"])[0]
                by_tag.setdefault(tag, []).append(_operation(method, path, operation))
    families = "".join(f"<h2>{_text(tag)}</h2>{''.join(parts)}" for tag, parts in by_tag.items())
    schemas = "".join(
        f'<details id="schema-{_text(name)}"><summary><code>{_text(name)}</code></summary>'
        f"<pre>{_text(json.dumps(schema, indent=2))}</pre></details>"
        for name, schema in sorted(document["components"]["schemas"].items())
    )
    info = document["info"]
    return (
        '<!doctype html><html lang="en"><meta charset="utf-8"><title>fragdex</title>'
        '<meta name="viewport" content="width=device-width"><style>'
        f"{STYLE}</style><main><h1>{_text(info['title'])} {_text(info['version'])}</h1>"
        f"<p>{_text(info['description'])}</p>"
        '<p>For programs: <a href="openapi.json">openapi.json</a>. Every request below '
        "<code>/api/v1</code> carries <code>Authorization: Bearer KEY</code>.</p>"
        f"{families}<h2>Problems</h2>{_problems()}<h2>Schemas</h2>{schemas}</main></html>"
    )


def _operation(method: str, path: str, operation: Mapping[str, Any]) -> str:
    summary = operation.get("summary", "")
    parts = [f"<p>{_text(operation.get('description', summary))}</p>"]
    rows = [
        (parameter["name"], parameter["in"], parameter.get("description", ""))
        for parameter in operation.get("parameters", ())
    ]
    if rows:
        parts.append(_table(("parameter", "in", "what"), rows))
    body = operation.get("requestBody", {}).get("content", {})
    for media_type, content in body.items():
        parts.append(f"<p>Body: <code>{_text(media_type)}</code> {_schema(content)}</p>")
    answers = []
    for status, answer in sorted(operation.get("responses", {}).items()):
        forms = ", ".join(
            f"<code>{_text(kind)}</code> {_schema(content)}"
            for kind, content in answer.get("content", {}).items()
        )
        answers.append(f"<tr><td>{status}<td>{_text(answer['description'])}<td>{forms}")
    parts.append(f"<table>{''.join(answers)}</table>")
    return (
        f"<details><summary><b>{method.upper()}</b><code>{_text(path)}</code>"
        f"<span>{_text(summary)}</span></summary>{''.join(parts)}</details>"
    )


def _schema(content: Mapping[str, Any]) -> str:
    reference = str(content.get("schema", {}).get("$ref", ""))
    name = reference.rpartition("/")[2]
    return f'<a href="#schema-{_text(name)}">{_text(name)}</a>' if name else ""


def _problems() -> str:
    rows = {row.slug: row for row in (*HTTP.values(), *PROBLEMS.values())}
    cells = "".join(
        f'<tr id="{row.slug}"><td>{row.status}<td><code>{row.slug}</code><td>{_text(row.title)}'
        f"<td>{row.action}"
        for row in sorted(rows.values(), key=lambda row: (row.status, row.slug))
    )
    actions = "".join(
        f"<tr><td><code>{name}</code><td>{_text(what)}" for name, what in ACTIONS.items()
    )
    return f"<table>{cells}</table><p>What a client should do:</p><table>{actions}</table>"


def _table(heads: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> str:
    head = "".join(f"<th>{_text(cell)}" for cell in heads)
    body = "".join("<tr>" + "".join(f"<td>{_text(cell)}" for cell in row) for row in rows)
    return f"<table><tr>{head}{body}</table>"


def _text(value: object) -> str:
    return html.escape(str(value))


def _ref(name: str) -> dict[str, str]:
    return {"$ref": f"#/components/schemas/{name}"}


INDEX = _ref("Index")
"""An index as JSON."""

_PROBLEM_MEMBERS: dict[str, Any] = {
    "type": {"type": "string", "format": "uri-reference"},
    "title": {"type": "string"},
    "status": {"type": "integer"},
    "detail": {"type": "string"},
    "action": _ref("ProblemAction"),
}

HEADERS: dict[str, dict[str, Any]] = {
    "RetryAfter": {
        "description": "with the action `retry`: seconds after which to send the same again",
        "schema": {"type": "integer", "minimum": 1},
    }
}
"""Fields of responses that several operations have."""

SCHEMAS: dict[str, dict[str, Any]] = {
    "Problem": {
        "description": "RFC 9457, with members of its own for some types (`limit`, `next_byte` …)",
        "type": "object",
        "required": [*_PROBLEM_MEMBERS],
        "properties": {
            **_PROBLEM_MEMBERS,
            "errors": {"type": "array", "items": _ref("ProblemError")},
            "next_byte": {"type": "integer", "description": "of an upload: where to continue"},
            "limit": {"type": "number", "description": "that the request is over"},
        },
    },
    "ProblemAction": {
        "description": "What to do: "
        + "; ".join(f"`{action}`: {what}" for action, what in ACTIONS.items()),
        "type": "string",
        "enum": [*ACTIONS],
    },
    "ProblemError": {
        "description": "A rule that a request breaks, and where",
        "type": "object",
        "required": ["detail"],
        "properties": {
            "detail": {"type": "string"},
            "pointer": {"type": "string", "description": "RFC 6901, as a URI fragment"},
            "parameter": {"type": "string", "description": "of the path or the query"},
            "header": {"type": "string", "description": "the field of the request"},
        },
    },
    "Event": {
        "description": "One event of a stream",
        "type": "object",
        "required": ["id", "event", "data"],
        "properties": {
            "id": {
                "type": "string",
                "description": "send it as `Last-Event-ID` to continue from here",
            },
            "event": _ref("EventName"),
            "data": _ref("EventData"),
        },
    },
    "EventName": {"type": "string", "enum": sorted(NAMES)},
    "EventData": {
        "description": "`size` and `count` of counted work, `progress` of all other; the problem "
        "with `error`; nothing with `complete` and `heartbeat`",
        "type": "object",
        "properties": {
            "size": {"type": "integer", "description": "how many there are in all"},
            "count": {"type": "integer", "description": "how many were finished since"},
            "progress": {"type": "number", "minimum": 0, "maximum": 1},
            **_PROBLEM_MEMBERS,
        },
    },
    "Index": {
        "description": "The tracks of a file by their ids; -1: the scrub track. What else was sent "
        "is given back",
        "type": "object",
        "patternProperties": {"^(?:-1|[0-9]+)$": _ref("IndexTrack")},
        "additionalProperties": True,
    },
    "IndexTrack": {
        "description": "Times are ticks of `timescale` on the presentation's time line, bytes are "
        "those of the track's own file; what else was sent is given back",
        "type": "object",
        "required": ["type", "timescale", "initSegment", "segments"],
        "properties": {
            "track": {"type": "integer"},
            "type": _ref("IndexTrackType"),
            "codec": {"type": ["string", "null"], "description": "RFC 6381"},
            "timescale": {"type": "integer", "minimum": 1, "description": "ticks a second"},
            "startTimeOffsetMs": {
                "type": "number",
                "description": "the first presentation time, where it is over 10 ms",
            },
            "initSegment": _ref("Place"),
            "segments": {"type": "array", "items": _ref("IndexSegment")},
            **{
                name: {"type": ["integer", "null"], "minimum": 0}
                for name in (
                    "duration",
                    "sample_count",
                    "width",
                    "height",
                    "channel_count",
                    "sample_rate",
                    "sample_size",
                )
            },
        },
    },
    "IndexTrackType": {"type": "string", "enum": ["video", "audio"]},
    "IndexSegment": {
        "description": "Bytes that are decoded by themselves; `cts` and `dts` are those of the "
        "first sample in presentation and in decode order, `duration` reaches to the next `cts`",
        "type": "object",
        "required": ["cts", "dts", "duration", "offset", "size"],
        "properties": {
            "cts": {"type": "integer"},
            "dts": {"type": "integer"},
            **{name: {"type": "integer", "minimum": 0} for name in ("duration", "offset", "size")},
        },
    },
}
