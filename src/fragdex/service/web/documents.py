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

from fragdex.service.web.auth import SECURITY_SCHEMES
from fragdex.service.web.problems import HTTP, PROBLEMS

__all__ = ["PROBLEM_SCHEMA", "document", "install", "router"]

router = APIRouter(include_in_schema=False)

TITLE = "fragdex"
DESCRIPTION = (
    "Stores media files, indexes their fragments, and serves the bytes of any moment. "
    "Errors are RFC 9457 problems; identifiers are opaque and sort by time; every md5 is taken as "
    "32 hex digits or dashed, and answered dashed."
)

PROBLEM_SCHEMA: dict[str, Any] = {
    "title": "Problem",
    "description": "RFC 9457, with members of its own for some types (`limit`, `next_byte` …)",
    "type": "object",
    "required": ["type", "title", "status", "detail"],
    "properties": {
        "type": {"type": "string", "format": "uri-reference"},
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "detail": {"type": "string"},
        "errors": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["detail"],
                "properties": {
                    "detail": {"type": "string"},
                    "pointer": {"type": "string", "description": "RFC 6901, as a URI fragment"},
                    "parameter": {"type": "string"},
                },
            },
        },
    },
}

METHODS = ("get", "head", "post", "put", "patch", "delete")

STYLE = """
:root{color-scheme:light dark;--line:#8884;--soft:#888;--mark:#2f6fdb}
body{font:15px/1.5 system-ui,sans-serif;max-width:62rem;margin:0 auto;padding:2rem 1.2rem 6rem}
h1{font-size:1.7rem;margin:0}h2{margin:2.6rem 0 .6rem;border-bottom:1px solid var(--line)}
code,pre{font:13px/1.45 ui-monospace,monospace}pre{overflow:auto;padding:.7rem;
border:1px solid var(--line);border-radius:6px}
details{border:1px solid var(--line);border-radius:6px;margin:.35rem 0;padding:.35rem .7rem}
summary{cursor:pointer;display:flex;gap:.7rem;align-items:baseline}
summary b{font:600 12px ui-monospace,monospace;width:3.6rem;color:var(--mark)}
summary span{color:var(--soft);margin-left:auto;text-align:right}
table{border-collapse:collapse;width:100%}td,th{text-align:left;vertical-align:top;
padding:.25rem .6rem .25rem 0;border-bottom:1px solid var(--line)}tr:target{background:#2f6fdb33}
a{color:var(--mark)}
"""
POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"


def install(app: FastAPI) -> None:
    """Let `app` describe itself as `document` does."""

    def openapi() -> dict[str, Any]:
        if app.openapi_schema is None:
            app.openapi_schema = document(app)
        return app.openapi_schema

    app.openapi = openapi  # type: ignore[method-assign]
    app.router.routes.extend(router.routes)


def document(app: FastAPI) -> dict[str, Any]:
    """The OpenAPI 3.1 document: what every operation really answers."""
    made = get_openapi(title=TITLE, version=app.version, description=DESCRIPTION, routes=app.routes)
    components = made.setdefault("components", {})
    components["securitySchemes"] = SECURITY_SCHEMES
    schemas = components.setdefault("schemas", {})
    schemas["Problem"] = PROBLEM_SCHEMA
    # FastAPI's own form of a refusal, which nothing answers here
    for name in ("HTTPValidationError", "ValidationError"):
        schemas.pop(name, None)
    return made


@router.get("/openapi.json")
def openapi_json(request: Request) -> Response:
    """The OpenAPI document."""
    return JSONResponse(request.app.openapi())


@router.get("/docs")
def docs(request: Request) -> Response:
    """The interface as a page."""
    return HTMLResponse(page(request.app.openapi()), headers={"Content-Security-Policy": POLICY})


def page(made: Mapping[str, Any]) -> str:
    """The document as HTML, complete in itself."""
    by_tag: dict[str, list[str]] = {}
    for path, item in made["paths"].items():
        for method in METHODS:
            if method in item:
                operation = item[method]
                tag = (operation.get("tags") or ["other"])[0]
                by_tag.setdefault(tag, []).append(_operation(method, path, operation))
    families = "".join(f"<h2>{_text(tag)}</h2>{''.join(parts)}" for tag, parts in by_tag.items())
    schemas = "".join(
        f'<details id="schema-{_text(name)}"><summary><code>{_text(name)}</code></summary>'
        f"<pre>{_text(json.dumps(schema, indent=2))}</pre></details>"
        for name, schema in sorted(made["components"]["schemas"].items())
    )
    return (
        '<!doctype html><html lang="en"><meta charset="utf-8"><title>fragdex</title>'
        '<meta name="viewport" content="width=device-width"><style>'
        f"{STYLE}</style><h1>{_text(made['info']['title'])} {_text(made['info']['version'])}</h1>"
        f"<p>{_text(made['info']['description'])}</p>"
        '<p>For programs: <a href="openapi.json">openapi.json</a>. Every request below '
        "<code>/api/v1</code> carries <code>Authorization: Bearer KEY</code>.</p>"
        f"{families}<h2>Problems</h2>{_problems()}<h2>Schemas</h2>{schemas}</html>"
    )


def _operation(method: str, path: str, operation: Mapping[str, Any]) -> str:
    summary = operation.get("summary", "")
    parts = [f"<p>{_text(operation.get('description', summary))}</p>"]
    rows = [
        (parameter["name"], parameter["in"], parameter.get("description", ""))
        for parameter in operation.get("parameters", ())
    ]
    if rows:
        parts.append(_table(("parameter", "in", ""), rows))
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
        for row in sorted(rows.values(), key=lambda row: (row.status, row.slug))
    )
    return f"<table>{cells}</table>"


def _table(heads: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> str:
    head = "".join(f"<th>{_text(cell)}" for cell in heads)
    body = "".join("<tr>" + "".join(f"<td>{_text(cell)}" for cell in row) for row in rows)
    return f"<table><tr>{head}{body}</table>"


def _text(value: object) -> str:
    return html.escape(str(value))
