"""What docs/index-format.md shows of the code: tables of columns, and an example byte for byte.

`python tests/formats/index_format_page.py` puts it into the page again after a change.
"""

from __future__ import annotations

import json
import re
from dataclasses import MISSING, fields
from pathlib import Path
from typing import Any

import numpy as np

from fragdex.formats.fidx_columns import TABLES
from fragdex.fragments.findings import Finding
from fragdex.fragments.table import FragmentFlags
from fragdex.fragments.track_info import (
    Colour,
    ContentLight,
    DolbyVision,
    Edit,
    Encryption,
    MasteringDisplay,
    Movie,
    SampleDefaults,
    TrackInfo,
)
from fragdex.seeking.model import FileInfo, How

PAGE = Path(__file__).parents[2] / "docs" / "index-format.md"
EXAMPLE = Path(__file__).with_name("fidx_example.py")


def columns(table: str) -> str:
    """The rows of the table of columns."""
    return "\n".join(
        f"| `{column.stored}` | `{_escaped(np.dtype(column.dtype).newbyteorder('<').str)}` "
        f"| {column.unit or '–'} | {column.meaning} |"
        for column in TABLES[table].schema()
    )


RECORDS: dict[str, Any] = {
    "Member `source`": FileInfo,
    "Member `how`": How,
    "A `finding`": Finding,
    "A `movie`": Movie,
    "A `record`": TrackInfo,
}
"""Heading → the record that its table has to list, member by member."""
INSIDE = (Edit, Encryption, SampleDefaults, Colour, MasteringDisplay, ContentLight, DolbyVision)


def listed(heading: str) -> list[tuple[str, str]]:
    """Member and default of each row of the table below a heading."""
    text = PAGE.read_text(encoding="utf-8").split(f"### {heading}\n", 1)[1].split("\n#", 1)[0]
    rows = [
        re.split(r" *(?<!\\)\| *", line)[1:-1] for line in text.splitlines() if line[:3] == "| `"
    ]
    return [(row[0].strip("`"), row[2].strip("`*")) for row in rows]


def members(kind: Any) -> list[tuple[str, str]]:
    """The same of a record."""
    return [(one.name, _default(one.default)) for one in fields(kind) if one.compare]


def _default(value: Any) -> str:
    if value is MISSING:
        return "must"
    return "[]" if value == () else json.dumps(value)


def set_columns() -> list[tuple[str, str]]:
    """Name and type of each row of the table of the set."""
    text = PAGE.read_text(encoding="utf-8").split("## The set", 1)[1].split("\n## ", 1)[0]
    rows = [line.split(" | ") for line in text.splitlines() if line.startswith("| `")]
    return [(row[0].strip("| `"), row[1]) for row in rows]


def _escaped(text: str) -> str:
    return text.replace("|", "\\|")


def flags() -> str:
    """The flags and their values."""
    return ", ".join(f"{flag.value} `{flag.name}`" for flag in FragmentFlags)


def example() -> bytes:
    """The bytes that the program in the page makes."""
    names: dict[str, bytes] = {}
    exec(EXAMPLE.read_text(), names)
    return names["data"]


def dump(data: bytes) -> str:
    """Sixteen bytes a line; lines that repeat the one before are left out and told by a star."""
    lines, before = [], b""
    for place in range(0, len(data), 16):
        row = data[place : place + 16]
        if row == before:
            if lines[-1] != "*":
                lines.append("*")
            continue
        text = "".join(chr(byte) if 32 <= byte < 127 else "." for byte in row)
        lines.append(f"{place:08x}  {row.hex(' '):47}  {text}")
        before = row
    return "\n".join([*lines, f"{len(data):08x}"])


def page(text: str) -> str:
    """The text of the page with everything from the code put in anew."""
    for name in TABLES:
        start = text.index("|---|---|---|---|\n", text.index(f"### `{name}`")) + 18
        stop = text.index("\n\n", start)
        text = text[:start] + columns(name) + text[stop:]
    text = re.sub(r"(?<=`flags` is a sum of ).*?(?=\.\n)", lambda _: flags(), text, count=1)
    head, tail = text.split("## An example, byte for byte", 1)
    blocks = {"python": EXAMPLE.read_text().rstrip(), "text": dump(example())}
    for language, block in blocks.items():
        start = tail.index(f"```{language}\n") + len(language) + 4
        stop = tail.index("\n```", start)
        tail = tail[:start] + block + tail[stop:]
    return f"{head}## An example, byte for byte{tail}"


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text()))
