"""Write docs/boxes.md from the table of boxes: `python docs/make_boxes.py`."""

from __future__ import annotations

from itertools import groupby
from pathlib import Path

from fragdex.boxes import ESSENTIAL, OPAQUE, layout_of
from fragdex.boxes.limits import MAX_BOXES, MAX_BOXES_PER_ROOT, MAX_DEPTH, MAX_ITEMS
from fragdex.boxes.tree import Entry, entries

HEAD = """# Boxes

Every box that fragdex parses into fields, nested as in files. All others are opaque bytes:
`build(parse(x)) == x` holds for every box, declared or not. This page is written by
`docs/make_boxes.py` from `src/fragdex/boxes/tree.py`; a test compares them.

```python
from fragdex.boxes import build, make_box, parse

boxes = parse(data)  # views of data; mdat is not copied
tkhd = boxes[1].find("trak[2]/tkhd")  # the second track's header
tkhd["width"] >> 16  # raw integers, the standard's names
build(tkhd.replace(width=1280 << 16))  # changes the bytes of that field alone
make_box("stts", entries=[(48, 512)])  # counts are set, the rest is zero
```

Values are the integers of the file: fixed-point numbers are not divided, language is
the packed 16 bits, reserved bits are fields. Tables are numpy arrays with named columns. Full boxes
have `version` and `flags`; boxes of user types have `type` `uuid` and the field `user_type`.

A code that occurs in several places is listed once, at the first of them: `meta`
also in `moov`, `trak` and `udta`, `sbgp` and `sgpd` also in `traf`, `free` anywhere. An index
needs the **bold** codes: damage there is an error. Any other box that does not fit its declaration
stays opaque, and `Box.misfit` says why; `parse(data, strict=True)` refuses it.

- [Declared](#declared)
- [Opaque on purpose](#opaque-on-purpose)
- [Limits](#limits)

## Declared

| Box | Inside | Name | Standard |
|---|---|---|---|
"""

LIMITS = f"""
## Limits

At most {MAX_BOXES:,} boxes side by side, {MAX_BOXES_PER_ROOT:,} inside one top-level box,
{MAX_DEPTH} levels deep, {MAX_ITEMS:,} items in a list that is not a table. Counts are checked
against the remaining bytes before anything is allocated.
"""


def code_of(entry: Entry) -> str:
    """The code as it is shown: user types with their dashes, essential ones bold."""
    if len(entry.code) == 32:
        parts = (entry.code[:8], *(entry.code[at : at + 4] for at in (8, 12, 16)), entry.code[20:])
        return f"`uuid` {'-'.join(parts)}"
    if entry.code == "*":
        return "any"
    shown = f"`{entry.code.rstrip()}`"
    return f"**{shown}**" if entry.code in ESSENTIAL else shown


def inside(parents: tuple[str, ...]) -> str:
    """The parents, cut where a whole family shares a child."""
    if not parents:
        return ""
    if parents == ("*",):
        return "any of those"
    if "avc1" in parents:
        return "video sample entries"
    if "mp4a" in parents:
        return "audio sample entries"
    return ", ".join(f"`{parent.rstrip()}`" for parent in parents)


def page() -> str:
    """The whole page."""
    rows = []
    known = (entry for entry in entries() if entry.declaration != "opaque")
    for _, group in groupby(known, key=lambda entry: (entry.parents, entry.declaration)):
        alike = list(group)
        first = alike[0]
        parent = first.parents[0] if first.parents else None
        layout = layout_of("abcd" if first.code == "*" else first.code, parent)
        assert layout is not None
        codes = " ".join(map(code_of, alike))
        where = inside(first.parents)
        indent = "&emsp;" * first.depth
        rows.append(f"| {indent}{codes} | {where} | {layout.title} | {layout.source} |\n")
    opaque = "".join(f"| `{code.rstrip()}` | {reason} |\n" for code, reason in OPAQUE)
    return (
        HEAD
        + "".join(rows)
        + "\n## Opaque on purpose\n\nTheir payload is `data`, a view of the input.\n\n"
        + "| Box | Why |\n|---|---|\n"
        + opaque
        + LIMITS
    )


if __name__ == "__main__":
    Path(__file__).with_name("boxes.md").write_text(page(), "utf-8")
