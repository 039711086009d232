"""Write docs/openapi.json and the tables of docs/http-api.md and docs/operations.md.

Between `<!-- NAME -->` and `<!-- /NAME -->` stands what the program says of itself; all else is
written by hand. `./dev docs` runs this.
"""

from __future__ import annotations

import inspect
import json
import re
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

from fragdex.cli.app import SERVICE_COMMANDS, SERVICE_GROUPS
from fragdex.service.app import close_context, make_app, open_context
from fragdex.service.config import Settings
from fragdex.service.web.documents import METHODS
from fragdex.service.web.problems import HTTP, PROBLEMS

HERE = Path(__file__).parent
PAGES = (HERE / "http-api.md", HERE / "operations.md")
OPENAPI = HERE / "openapi.json"


@cache
def document() -> dict[str, Any]:
    """What `/openapi.json` answers."""
    with tempfile.TemporaryDirectory() as folder:
        context = open_context(Settings(data=folder))
        told = make_app(context).openapi()
        close_context(context)
    return told


def openapi() -> str:
    """The same as a file that changes with the interface alone.

    In the order of the alphabet; and by the version of the interface, which is that of its paths,
    where a running service names its own.
    """
    told = document()
    lasting = {**told, "info": {**told["info"], "version": "v1"}}
    return json.dumps(lasting, indent=1, sort_keys=True) + "\n"


def routes() -> str:
    """Every operation, by family: method, path, first sentence, answers."""
    families: dict[str, list[str]] = {}
    for path, item in document()["paths"].items():
        for method in METHODS:
            if method not in item:
                continue
            operation = item[method]
            sentence = operation["description"].split("\n")[0].removesuffix(".")
            answers = " ".join(sorted(operation["responses"]))
            row = f"| {method.upper()} | `{path}` | {sentence} | {answers} |"
            families.setdefault(operation["tags"][0], []).append(row)
    parts = []
    for family, rows in sorted(families.items()):
        head = f"### {family.capitalize()}\n\n| Method | Path | | Answers |\n|---|---|---|---|\n"
        parts.append(head + "\n".join(rows))
    return "\n\n".join(parts)


def problems() -> str:
    """Every error class, and what HTTP answers."""
    rows = [
        f"| {row.status} | `{row.slug}` | {row.title} | `{error.__name__}` |"
        for error, row in PROBLEMS.items()
    ]
    known = {row.slug for row in PROBLEMS.values()}
    rows += [
        f"| {row.status} | `{row.slug}` | {row.title} | |"
        for row in HTTP.values()
        if row.slug not in known
    ]
    rows.sort(key=lambda row: (row.split(" | ")[0], row.split("`")[1]))
    return "| Status | Type | Title | Raised as |\n|---|---|---|---|\n" + "\n".join(rows)


def settings() -> str:
    """Every setting: name, default, meaning."""
    at_hand = Settings(data="/fragdex-data")
    told = {"data": "fragdex-data", "database_url": "in `data`", "store_url": "in `data`"}
    rows = []
    for name, field in Settings.model_fields.items():
        default = told.get(name) or at_hand.shown()[name] or "none"
        if name.endswith("_bytes"):
            default = getattr(at_hand, name).human_readable().replace(".0", "")
        rows.append(f"| `{name}` | {default} | {field.description} |")
    return "| Setting | Default | Meaning |\n|---|---|---|\n" + "\n".join(rows)


def commands() -> str:
    """Every command of the service and its options, as `--help` tells them."""
    found = {name.__name__: (name, line) for name, line in SERVICE_COMMANDS.items()}
    for group, (_, members) in SERVICE_GROUPS.items():
        found |= {f"{group} {word}": member for word, member in members.items()}
    rows = []
    for name, (function, line) in found.items():
        options = []
        for parameter in inspect.signature(function).parameters.values():
            text = str(parameter.annotation)
            if "Argument" in text:
                options.append(parameter.name.upper())
            else:
                options.append(f"--{parameter.name.replace('_', '-')}")
        rows.append(f"| `fragdex {name}` | {line} | {' '.join(f'`{one}`' for one in options)} |")
    return "| Command | | Takes |\n|---|---|---|\n" + "\n".join(rows)


TABLES = {"routes": routes, "problems": problems, "settings": settings, "commands": commands}


def written(text: str) -> str:
    """A page with its tables as they are now."""
    for name, table in TABLES.items():
        marks = re.compile(rf"(<!-- {name} -->)\n.*?(<!-- /{name} -->)", re.DOTALL)
        if marks.search(text):
            said = table()
            text = marks.sub(lambda found, said=said: f"{found[1]}\n{said}\n{found[2]}", text)
    return text


if __name__ == "__main__":
    for page in PAGES:
        page.write_text(written(page.read_text("utf-8")), "utf-8")
    OPENAPI.write_text(openapi(), "utf-8")
