"""Write the client's operations from docs/openapi.json: python tools/make_client.py.

Every operation of the document becomes a function of `fragdex.client.api` that returns a Request,
every record of a response a struct. `./dev docs` runs this; a test says when it was forgotten.
"""

from __future__ import annotations

import ast
import json
import keyword
import re
import shutil
import subprocess
import sys
import textwrap
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
DOCUMENT = ROOT / "docs" / "openapi.json"
API = ROOT / "src" / "fragdex" / "client" / "api"
PREFIX = "#/components/schemas/"
JSON = "application/json"
EVENTS = "text/event-stream"
FILES = {
    "files": ("files", "resumable uploads"),
    "media_files": ("unprocessed files", "ISOBMFF files", "repairs"),
    "images_and_captions": ("image files", "caption files"),
    "streaming": ("streaming",),
    "timelines": ("timelines",),
    "transcriptions": ("transcriptions",),
    "renders": ("renders",),
    "webhooks": ("webhooks",),
    "access": ("keys", "url-token", "usage", "health"),
}
"""The files of the package, and the tags of the document whose operations each has."""
SHARED = "records"
"""The file of what several of them use."""
WIDTH = 98
METHODS = ("get", "head", "post", "put", "patch", "delete")
SIMPLE = {"integer": "int", "number": "float", "string": "str", "boolean": "bool", "null": "None"}
RECORD_ALONE = {"get_file"}
"""Operations that give a record or bytes by what is accepted: here they give the record."""


def known_headers() -> dict[str, str]:
    """What the client says of headers; read, as it cannot be imported while it is written."""
    exchange = ast.parse((API.parent / "exchange.py").read_text("utf-8"))
    (value,) = (
        one.value
        for one in exchange.body
        if isinstance(one, ast.AnnAssign) and ast.unparse(one.target) == "HEADERS"
    )
    assert value is not None
    found: dict[str, str] = ast.literal_eval(value)
    return found


HEADERS = known_headers()
document = json.loads(DOCUMENT.read_text("utf-8"))
schemas: dict[str, Any] = document["components"]["schemas"]


Operation = tuple[str, str, dict[str, Any]]
"""A method, a path, and what the document says of them."""
SUFFIX = "suffix"


def operations() -> list[Operation]:
    """Those of the whole document; those that differ by the suffix of their path alone are one."""
    stems: dict[str, list[Operation]] = {}
    for path, methods in document["paths"].items():
        found = [(method.upper(), path, methods[method]) for method in METHODS if method in methods]
        stems.setdefault(re.sub(r"(?<=\})\.\w+$", "", path), []).extend(found)
    return [one for same in stems.values() for one in joined(same)]


def joined(same: list[Operation]) -> list[Operation]:
    """Operations on one path but for its suffix: one of each method, if those are alike."""
    groups: dict[str, list[Operation]] = {}
    for one in same:
        if suffix_of(one) is not None:
            groups.setdefault(one[0], []).append(one)
    if any(len({form_of(one) for one in group}) > 1 or len(group) < 2 for group in groups.values()):
        return same
    alone = [one for one in same if suffix_of(one) is None]
    return alone + [with_any_suffix(group) for group in groups.values()]


def form_of(one: Operation) -> tuple[str, Any]:
    """What an operation takes, and gives."""
    return json.dumps(one[2].get("parameters"), sort_keys=True), result_of(one[2])


def suffix_of(one: Operation) -> str | None:
    """The suffix of a path by which the operation is named, too."""
    _, path, operation = one
    found = re.search(r"\}\.(\w+)$", path)
    return found[1] if found and operation["operationId"].endswith(f"_{found[1]}") else None


def with_any_suffix(group: list[Operation]) -> Operation:
    """The one operation that several are, given the suffix."""
    method, path, first = group[0]
    told: dict[str, list[str]] = {}
    for one in group:
        suffix = suffix_of(one) or ""
        about = one[2]["description"].replace(f".{suffix}", ".{suffix}")
        told.setdefault(about, []).append(suffix)
    (most, _), *others = sorted(told.items(), key=lambda pair: -len(pair[1]))
    schema = {"enum": sorted(suffix_of(one) or "" for one in group)}
    more = "; ".join(
        f"`{', '.join(names)}`: {about[:1].lower()}{about[1:]}" for about, names in others
    )
    given = {"name": SUFFIX, "in": "path", "required": True, "schema": schema, "description": more}
    suffix = suffix_of(group[0]) or ""
    merged = {
        **first,
        "operationId": first["operationId"].removesuffix(f"_{suffix}"),
        "description": most.replace(".{suffix}", ".`suffix`"),
        "parameters": [*first.get("parameters", ()), given],
    }
    return method, f"{path.removesuffix(suffix)}{{{SUFFIX}}}", merged


def snake(name: str) -> str:
    """A name as Python writes it."""
    name = re.sub(r"(?<=[a-z0-9])([A-Z])", r"_\1", name).replace("-", "_").lower()
    return f"{name}_" if keyword.iskeyword(name) else name


def is_struct(name: str) -> bool:
    """Whether a schema is an object of known members."""
    schema = schemas[name]
    return "properties" in schema and not schema.get("additionalProperties")


def type_of(schema: dict[str, Any]) -> str:
    """A schema as a Python type; unions of objects, whose members differ, as a mapping."""
    if "$ref" in schema:
        name = schema["$ref"].removeprefix(PREFIX)
        return name if is_struct(name) else type_of(schemas[name])
    if "enum" in schema:
        return f"Literal[{', '.join(map(repr, schema['enum']))}]"
    if "const" in schema:
        return f"Literal[{schema['const']!r}]"
    if "oneOf" in schema:
        return "Mapping[str, Any]"
    if "anyOf" in schema:
        return " | ".join(dict.fromkeys(type_of(one) for one in schema["anyOf"]))
    kind = schema.get("type")
    if isinstance(kind, list):
        return " | ".join(type_of({**schema, "type": one}) for one in kind)
    if kind == "array":
        return f"tuple[{type_of(schema.get('items', {}))}, ...]"
    if kind == "object":
        inner = schema.get("additionalProperties")
        of = type_of(inner) if isinstance(inner, dict) else "Any"
        return f"Mapping[str, {of}]"
    if kind == "string" and schema.get("format") == "date-time":
        return "datetime"
    return SIMPLE.get(kind or "", "Any")


@cache
def members_of(name: str) -> frozenset[str]:
    """The structs that a struct needs, itself included."""
    found: set[str] = set()

    def look(value: Any) -> None:
        if isinstance(value, dict):
            if "$ref" in value:
                inner = value["$ref"].removeprefix(PREFIX)
                if inner not in found:
                    if is_struct(inner):
                        found.add(inner)
                    look(schemas[inner] if "oneOf" not in schemas[inner] else None)
            else:
                for one in value.values():
                    look(one)
        elif isinstance(value, list):
            for one in value:
                look(one)

    look({"$ref": PREFIX + name})
    return frozenset(found)


def base_of(name: str) -> str | None:
    """The record that a record is with more in it: `ApiKey` of `SecretApiKey`."""
    members = schemas[name]["properties"].items()
    for other in schemas:
        if name != other and name.endswith(other) and is_struct(other):
            fields = schemas[other]["properties"]
            if fields.items() <= members and {*schemas[other]["required"]} == required(
                name, fields
            ):
                return other
    return None


def required(name: str, fields: Iterable[str]) -> set[str]:
    """Those of the fields that a record always has."""
    return {field for field in fields if field in schemas[name].get("required", ())}


def content_of(operation: dict[str, Any]) -> dict[str, Any]:
    """The media types of the responses of success, with their schemas."""
    found: dict[str, Any] = {}
    for status, response in operation["responses"].items():
        if status.startswith("2"):
            found.update({k: v.get("schema", {}) for k, v in response.get("content", {}).items()})
    return found


def result_of(operation: dict[str, Any]) -> tuple[str, bool]:
    """(type, whether bytes are a form of it) of what an operation gives."""
    content = content_of(operation)
    if operation["operationId"].startswith("head_") or not content:
        return "None", False
    if EVENTS in content:
        return "Event", False
    schema = content.get(JSON, {})
    if schema.get("format") == "binary" or not schema:
        return "bytes", True
    binary = len(content) > 1 and operation["operationId"] not in RECORD_ALONE
    empty = " | None" if "204" in operation["responses"] else ""
    return type_of(schema) + empty, binary


def file_of(operation: dict[str, Any]) -> str:
    """The file that an operation stands in, by its tag."""
    return next(file for file, tags in FILES.items() if operation["tags"][0] in tags)


def structs_by_file() -> dict[str, list[str]]:
    """The structs of each file."""
    users: dict[str, set[str]] = {}
    for _, _, operation in operations():
        for schema in content_of(operation).values():
            if "$ref" in schema:
                for name in members_of(schema["$ref"].removeprefix(PREFIX)):
                    users.setdefault(name, set()).add(file_of(operation))
    structs: dict[str, list[str]] = {SHARED: ["Event", "EventData", "Problem", "ProblemError"]}
    for name, files in users.items():
        file = SHARED if len(files) > 1 else next(iter(files))
        if name not in structs[SHARED]:
            structs.setdefault(file, []).append(name)
    for names in structs.values():
        names.sort(key=lambda name: (len(members_of(name)), base_of(name) is not None, name))
    return structs


STRUCTS = structs_by_file()


def quoted(text: str, indent: int) -> str:
    """A docstring: its first sentence on a line of its own, where all does not fit on one."""
    text = text.replace("\\", "\\\\")
    if len(text) + indent + 6 <= WIDTH:
        return f'"""{text}"""'
    first, _, rest = text.partition(". ")
    parts = [f"{first}." if rest else first, rest]
    lines = [line for part in parts if part for line in [*textwrap.wrap(part, WIDTH - indent), ""]]
    return (
        '"""'
        + "\n".join([lines[0], *[" " * indent * bool(x) + x for x in lines[1:]]])
        + " " * indent
        + '"""'
    )


def sentence(text: str) -> str:
    """A description as a sentence that ends."""
    text = " ".join(text.split())
    text = text[:1].upper() + text[1:]
    return text if text.endswith((".", "?")) else f"{text}."


def struct(name: str) -> str:
    """A record as a class."""
    schema, base = schemas[name], base_of(name)
    inherited = schemas[base]["properties"] if base else {}
    lines = [f"class {name}({base or 'msgspec.Struct'}, frozen=True, kw_only=True):"]
    lines += [f"    {quoted(sentence(schema.get('description', name)), 4)}", ""]
    for member, inner in schema["properties"].items():
        if member in inherited:
            continue
        kind, python = type_of(inner), snake(member)
        if member in schema.get("required", ()):
            default = f' = msgspec.field(name="{member}")' if python != member else ""
        else:
            kind = kind if "None" in kind.split(" | ") else f"{kind} | None"
            named = f'msgspec.field(name="{member}", default=None)' if python != member else "None"
            default = f" = {named}"
        lines.append(f"    {python}: {kind}{default}")
        if "description" in inner:
            lines.append(f"    {quoted(sentence(inner['description']), 4)}")
    return "\n".join(lines)


Argument = tuple[str, str, str, bool, str]


def arguments(path: str, operation: dict[str, Any]) -> list[Argument]:
    """(name, type, where, required, description) of all that an operation is given."""
    given = []
    for one in operation.get("parameters", ()):
        kind, where, name = type_of(one["schema"]), one["in"], one["name"]
        about = one.get("description", "")
        if where == "header":
            kind, where = "str", name
        if where == "Range":
            # how it is written in HTTP is the client's to know; its type says what it is here
            kind, about = "ByteRange", ""
        given.append((name, kind, where, one.get("required", False), about))
    content = operation.get("requestBody", {}).get("content", {})
    schema = content.get(JSON, {}).get("schema", {})
    if (content and JSON not in content) or len(content) > 1:
        given.append(("content", "bytes", "content", True, "the bytes"))
    elif schema:
        schema = schemas[schema["$ref"].removeprefix(PREFIX)] if "$ref" in schema else schema
        if "$ref" in next(iter(schema.get("anyOf", [{}]))):  # a body that may be left out
            schema = schemas[schema["anyOf"][0]["$ref"].removeprefix(PREFIX)]
        for name, inner in schema.get("properties", {}).items():
            if inner.get("type") != "null":
                required = name in schema.get("required", ())
                given.append((name, type_of(inner), "json", required, inner.get("description", "")))
    return given


Told = tuple[tuple[str, str], ...]
"""Arguments of an operation, and what is said of them."""


def function(method: str, path: str, operation: dict[str, Any], described: dict[Told, str]) -> str:
    """An operation as a function.

    Args:
        described: operations of the file by their arguments; those of another one are not said
            again.
    """
    given = arguments(path, operation)
    result, binary = result_of(operation)
    positional, named = [], []
    for name, kind, where, required, _ in given:
        kind = "str | None" if where == "Idempotency-Key" else kind
        if not required and "None" not in kind.split(" | "):
            kind += " | None"
        text = f"{snake(name)}: {kind}" + ("" if required else " = None")
        (positional if where in ("path", "content") else named).append(text)
    named.sort(key=lambda text: text.endswith("= None"))
    takes = ", ".join(positional + (["*", *named] if named else []))
    kind = f"{result} | bytes" if binary and result != "bytes" else result
    lines = [f"def {operation['operationId']}({takes}) -> Request[{kind}]:"]
    about = sentence(operation.get("description") or operation["summary"])
    told = tuple(
        (snake(n), " ".join(d.split()))
        for n, _, where, _, d in given
        if d and (where != "path" or n == SUFFIX)
    )
    first = described.setdefault(told, operation["operationId"])
    if len(told) > 1 and first != operation["operationId"]:
        args = f"Args: as of `{first}`."
        lines += ["    " + quoted(about, 4)[:-3].rstrip(), "", f"    {args}", '    """']
    elif told:
        lines += ["    " + quoted(about, 4)[:-3].rstrip(), "", "    Args:"]
        for name, text in told:
            lines += textwrap.wrap(
                f"{name}: {text}.".replace("..", ".").replace("\\", "\\\\"),
                96,
                initial_indent=" " * 8,
                subsequent_indent=" " * 12,
            )
        lines.append('    """')
    else:
        lines.append(f"    {quoted(about, 4)}")
    return "\n".join([decorator(method, path, operation, given), *lines])


def decorator(method: str, path: str, operation: dict[str, Any], given: list[Argument]) -> str:
    """What says how a signature becomes a request."""
    result, binary = result_of(operation)
    url = re.sub(r"\{(\w+)\}", lambda m: f"{{{snake(m[1])}}}", path)
    parts = [f'"{method}"', f'"{url}"']
    if result != "None":
        parts.append(result)
    if binary and result != "bytes":
        parts.append("binary=True")
    kinds = [*operation.get("requestBody", {}).get("content", {})]
    if len(kinds) == 1 and kinds[0] not in (JSON, "application/octet-stream"):
        parts.append(f'content_type="{kinds[0]}"')
    others = "query" if method in ("GET", "HEAD", "DELETE") else "json"
    written = []
    for name, _, where, _, _ in given:
        if where == others and snake(name) not in HEADERS:
            written += [f'"{snake(name)}": "{name}"'] if snake(name) != name else []
        elif where not in ("path", "content") and HEADERS.get(snake(name)) != where:
            raise SystemExit(f"{operation['operationId']}: {name} has no place in a request")
    if written:
        parts.append(f"written={{{', '.join(written)}}}")
    return f"@operation({', '.join(parts)})"


HEAD = '''"""{title}. Written by tools/make_client.py."""
# mypy: disable-error-code="empty-body"

from __future__ import annotations

'''


def imported(text: str, file: str) -> list[str]:
    """The lines of import that the text of a file needs."""
    lines = []
    if re.search(r"\bMapping\b", text):
        lines.append("from collections.abc import Mapping")
    if re.search(r"\bdatetime\b", text):
        lines.append("from datetime import datetime")
    typing = [name for name in ("Any", "Literal") if re.search(rf"\b{name}\b", text)]
    if typing:
        lines.append(f"from typing import {', '.join(typing)}")
    if "msgspec." in text:
        lines.append("import msgspec")
    if re.search(r"\bByteRange\b", text):
        lines.append("from fragdex.byterange import ByteRange")
    used = [name for name in STRUCTS[SHARED] if re.search(rf"\b{name}\b", text)]
    if used and file != SHARED:
        lines.append(f"from fragdex.client.api.{SHARED} import {', '.join(used)}")
    used = [name for name in ("Request", "operation") if re.search(rf"\b{name}[\[(]", text)]
    if used:
        lines.append(f"from fragdex.client.exchange import {', '.join(used)}")
    return lines


def module(file: str) -> str:
    """The text of one file: its records, then its operations."""
    tags = FILES.get(file, ())
    within = sorted(
        (one for one in operations() if one[2]["tags"][0] in tags),
        key=lambda one: tags.index(one[2]["tags"][0]),
    )
    structs = STRUCTS.get(file, [])
    described: dict[Told, str] = {}
    text = "\n\n\n".join([*map(struct, structs), *(function(*one, described) for one in within)])
    names = sorted([*structs, *(operation["operationId"] for _, _, operation in within)])
    title = f"Operations on {', '.join(tags)}" if tags else "Records that several families use"
    listed = textwrap.fill(
        " ".join(f'"{name}",' for name in names),
        WIDTH,
        initial_indent="    ",
        subsequent_indent="    ",
    )
    exported = ["# fmt: off", "__all__ = [", listed, "]", "# fmt: on"]
    head = [HEAD.format(title=title), *imported(text, file), "", *exported]
    return "\n".join(head) + f"\n\n\n{text}\n"


PACKAGE = '''"""Every operation of the service, and every record that it gives.

Each function describes a request; `Client.send` sends it. Written by
tools/make_client.py from docs/openapi.json.
"""
'''


def formatted(text: str) -> str:
    """A text as ruff writes it."""
    ours = 'lint.isort.known-first-party=["fragdex"]'
    fix = ["check", "--fix", "--quiet", "--select", "I,RUF022", "--config", ours]
    for command in (fix, ["format", "--quiet"]):
        made = subprocess.run(
            [sys.executable, "-m", "ruff", *command, "--stdin-filename", str(API / "x.py"), "-"],
            input=text,
            capture_output=True,
            text=True,
            check=True,
            cwd=ROOT,
        )
        text = made.stdout
    return text


def written() -> dict[str, str]:
    """All files of the package, by name."""
    files = {file: module(file) for file in sorted([SHARED, *FILES])}
    files["__init__"] = "\n".join(
        [
            PACKAGE,
            f"from fragdex.client.api import {', '.join(files)}",
            *(f"from fragdex.client.api.{file} import *" for file in files),
            "",
            "__all__: list[str] = []",
            *(f"__all__ += {file}.__all__" for file in files),
            "",
        ]
    )
    return {f"{name}.py": formatted(text) for name, text in files.items()}


def main() -> None:
    """Write the package anew."""
    files = written()
    shutil.rmtree(API, ignore_errors=True)
    API.mkdir(parents=True)
    for name, text in files.items():
        (API / name).write_text(text, "utf-8")


if __name__ == "__main__":
    main()
