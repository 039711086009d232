"""Write docs/openapi.json and the tables of `PAGES`.

The program writes what is between `<!-- NAME -->` and `<!-- /NAME -->`; the rest is written by
hand. `./dev docs` runs this.
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
from fragdex.cli.render_fields import option_fields, output_help
from fragdex.rendering.fields import declared_fields
from fragdex.rendering.outputs import CONTAINERS, Film, audio_codecs_of, video_codecs_of
from fragdex.rendering.spec import RenderSpec
from fragdex.service.app import close_context, make_app, open_context
from fragdex.service.config import Settings
from fragdex.service.web.documents import METHODS
from fragdex.service.web.problems import ACTIONS, HTTP, PROBLEMS
from fragdex.service.web.routing import OTHER_NAMES

HERE = Path(__file__).parent
PAGES = tuple(
    HERE / name
    for name in ("http-api.md", "operations.md", "settings.md", "render-fields.md", "cli.md")
)
OPENAPI = HERE / "openapi.json"


@cache
def document() -> dict[str, Any]:
    """What `/openapi.json` answers."""
    with tempfile.TemporaryDirectory() as folder:
        context = open_context(Settings(data=folder))
        answer = make_app(context).openapi()
        close_context(context)
    return answer


def openapi() -> str:
    """The same as a file that changes with the interface alone.

    In the order of the alphabet; and by the version of the interface, which is that of its paths,
    where a running service names its own.
    """
    current = document()
    lasting = {**current, "info": {**current["info"], "version": "v1"}}
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
        f"| {row.status} | `{row.slug}` | `{row.action}` | {row.title} | `{error.__name__}` |"
        for error, row in PROBLEMS.items()
    ]
    known = {row.slug for row in PROBLEMS.values()}
    rows += [
        f"| {row.status} | `{row.slug}` | `{row.action}` | {row.title} | |"
        for row in HTTP.values()
        if row.slug not in known
    ]
    rows.sort(key=lambda row: (row.split(" | ")[0], row.split("`")[1]))
    head = "| Status | Type | Action | Title | Raised as |\n|---|---|---|---|---|\n"
    return head + "\n".join(rows)


def actions() -> str:
    """What a client should do about a problem."""
    rows = [f"| `{action}` | {what} |" for action, what in ACTIONS.items()]
    return "| Action | What to do |\n|---|---|\n" + "\n".join(rows)


def names() -> str:
    """Earlier names that are taken too."""
    rows = [f"| `{old}`, in a query | `{new}` | seconds |" for old, (new, _) in OTHER_NAMES.items()]
    rows.append("| `trackId`, in a body | `track_id` | |")
    return "| Earlier name | Now | Its unit |\n|---|---|---|\n" + "\n".join(rows)


def settings() -> str:
    """Every setting: name, default, meaning."""
    at_hand = Settings(data="/fragdex-data")
    described = {"data": "fragdex-data", "database_url": "in `data`", "store_url": "in `data`"}
    rows = []
    for name, field in Settings.model_fields.items():
        default = described.get(name) or at_hand.shown()[name] or "none"
        if name.endswith("_bytes"):
            default = getattr(at_hand, name).human_readable().replace(".0", "")
        rows.append(f"| `{name}` | {default} | {field.description} |")
    return "| Setting | Default | Meaning |\n|---|---|---|\n" + "\n".join(rows)


def commands() -> str:
    """Every command of the service and its options, as `--help` tells them."""
    found = dict(SERVICE_COMMANDS)
    for group, (_, members) in SERVICE_GROUPS.items():
        found |= {f"{group} {word}": member for word, member in members.items()}
    rows = []
    for name, command in found.items():
        options = []
        for parameter in inspect.signature(command.function).parameters.values():
            text = str(parameter.annotation)
            if "Argument" in text:
                options.append(parameter.name.upper())
            else:
                options.append(f"--{parameter.name.replace('_', '-')}")
        rows.append(
            f"| `fragdex {name}` | {command.line} | {' '.join(f'`{one}`' for one in options)} |"
        )
    return "| Command | | Takes |\n|---|---|---|\n" + "\n".join(rows)


def render_options() -> str:
    """The options of `fragdex render` that are fields of a render."""
    rows = [f"| `--output`, `-o` PATH | {_plain(output_help())} | |"]
    for one in option_fields():
        takes = "" if one.metavar is None else f" {one.metavar}"
        rows.append(
            f"| `{one.option}`{takes} | {one.docs or _plain(one.help)} | {one.usual or ''} |"
        )
    return "| Option | Meaning | Default |\n|---|---|---|\n" + "\n".join(rows)


def _plain(sentence: str) -> str:
    return sentence[0].lower() + sentence[1:].removesuffix(".")


def render_fields() -> str:
    """The fields of a request that say what is drawn of the page."""
    rows = [
        f"| `{one.json}` | {one.request_docs or one.request} | {one.request_default} |"
        for one in declared_fields(RenderSpec).values()
    ]
    return "| Field | Meaning | Default |\n|---|---|---|\n" + "\n".join(rows)


def render_video() -> str:
    """The fields in `output.video`, but its codec."""
    rows = [
        f"| `{one.json.rpartition('/')[2]}` | {one.request_docs or one.request} |"
        for one in declared_fields(Film).values()
        if one.json.startswith("output/video/") and one.request
    ]
    return "| In `video` | Meaning |\n|---|---|\n" + "\n".join(rows)


def render_containers() -> str:
    """The containers of results, and the codecs that they hold."""
    alike: dict[str, list[str]] = {}
    for name, container in CONTAINERS.items():
        alike.setdefault(container.schema, []).append(name)
    rows = []
    for names in alike.values():
        container = CONTAINERS[names[0]]
        video = video_codecs_of(names[0]) if container.video else []
        audio = [codec for name in names for codec in audio_codecs_of(name)]
        rows.append(" | ".join(["| " + _codes(names), container.about.removesuffix("."),
                                _codes(video), _codes(audio) + " |"]))  # fmt: skip
    head = "| `container` | | `video.codec` | `audio.codec` |\n|---|---|---|---|\n"
    return head + "\n".join(rows)


def _codes(names: list[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


TABLES = {
    "routes": routes,
    "names": names,
    "actions": actions,
    "problems": problems,
    "settings": settings,
    "commands": commands,
    "render-options": render_options,
    "render-fields": render_fields,
    "render-video": render_video,
    "render-containers": render_containers,
}


def written(text: str) -> str:
    """A page with its tables as they are now."""
    for name, table in TABLES.items():
        marks = re.compile(rf"(<!-- {name} -->)\n.*?(<!-- /{name} -->)", re.DOTALL)
        if marks.search(text):
            rows = table()
            text = marks.sub(lambda mark, rows=rows: f"{mark[1]}\n{rows}\n{mark[2]}", text)
    return text


if __name__ == "__main__":
    for page in PAGES:
        page.write_text(written(page.read_text("utf-8")), "utf-8")
    OPENAPI.write_text(openapi(), "utf-8")
