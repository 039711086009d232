"""Hypothesis strategies for boxes: from the declarations, so that a new box is tested by itself.

`boxes` draws every field of a declared box in every version and under every flag it knows;
`trees` nests them; `mutations` damages bytes as broken writers, cables and attackers do.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from hypothesis import strategies as st

from fragdex.box_header import SizeForm
from fragdex.boxes import Box, BoxLayout, build, layout_of, make_box
from fragdex.boxes.kinds import (
    Array,
    Bits,
    Code,
    Descriptor,
    Greedy,
    Integer,
    Items,
    Packed,
    Raw,
    Record,
    Rest,
    Sized,
    String,
    Text,
    WideInteger,
)
from fragdex.boxes.layout import Field
from fragdex.boxes.rows import Rows
from fragdex.boxes.tree import entries

_SHORT = 4  # items of a list, rows of a table: laws do not depend on length

# Numbers that other fields hang on: any value would do, few make a box.
_CHOICES: Mapping[str, tuple[Any, ...]] = {
    "field_size": (4, 8, 16),
    "colour_type": ("nclx", "nclc", "prof"),
    "item_type": ("mime", "uri ", "av01"),
    "default_length": (0, 1, 2),
    "description_length": (0, 3),
    "pattern_length": (0, 1, 3),
    "AVCProfileIndication": (66, 77, 100, 244),
    "entry_version": (0, 1, 2),
    "sample_size": (0, 512),
    "default_sample_info_size": (0, 8),
    "default_isProtected": (0, 1),
    "default_Per_Sample_IV_Size": (0, 8, 16),
}


def declared() -> list[tuple[BoxLayout, str | None]]:
    """Every declaration with a parent its box may stand in, in the tree's order.

    Codes that share a declaration (audio sample entries) are there once.

    >>> declared()[0][0].code
    'ftyp'
    """
    layouts: list[tuple[BoxLayout, str | None]] = []
    names = set()
    for entry in entries():
        if entry.declaration in names:
            continue
        names.add(entry.declaration)
        code = "abcd" if entry.code == "*" else entry.code
        parent = entry.parents[0] if entry.parents else None
        layout = layout_of(code, parent)
        if layout is not None:
            layouts.append((layout, parent))
    return layouts


def field_values(kind: Any, fields: Mapping[str, Any], name: str = "") -> st.SearchStrategy[Any]:
    """Values of one field, given the fields before it.

    >>> from fragdex.boxes.kinds import u8
    >>> from hypothesis import find
    >>> find(field_values(u8, {}), lambda value: value > 7)
    8
    """
    if name in _CHOICES:
        return st.sampled_from(_CHOICES[name])
    if isinstance(kind, Integer):
        code = kind.fmtstr[1]
        return _integers(kind.length, code.islower(), name)
    if isinstance(kind, WideInteger):
        return _integers(kind.length, kind.signed, name)
    if isinstance(kind, Code):
        return st.binary(min_size=4, max_size=4).map(lambda data: data.decode("latin-1"))
    if isinstance(kind, Raw):
        size = kind.length(fields)
        return st.binary(min_size=size, max_size=size)
    if isinstance(kind, Rest):
        return st.binary(max_size=24)
    if isinstance(kind, (String, Text)):
        banned = b"\0" if isinstance(kind, String) else b""
        return st.binary(max_size=12).map(
            lambda data: data.translate(None, banned).decode("utf-8", "surrogateescape")
        )
    if isinstance(kind, Sized):
        return field_values(kind.item, fields)
    if isinstance(kind, Bits):
        return st.fixed_dictionaries({part: _bits(part, width) for part, width in kind.names})
    if isinstance(kind, Array):
        count = kind.length(fields)
        return st.lists(field_values(kind.item, fields), min_size=count, max_size=count).map(tuple)
    if isinstance(kind, (Greedy, Items)):
        return st.lists(field_values(kind.item, fields), max_size=_SHORT).map(tuple)
    if isinstance(kind, Packed):
        count, top = kind.count(fields), (1 << kind.width(fields)) - 1
        numbers = st.lists(st.integers(0, top), min_size=count, max_size=count)
        code = f">u{max(1, kind.width(fields) // 8)}"
        return numbers.map(lambda values: np.array(values, code))
    if isinstance(kind, Record):
        return _records(kind, fields)
    if isinstance(kind, Descriptor):
        return _descriptors(kind)
    raise TypeError(f"no strategy for {kind!r}")


def _bits(name: str, width: int) -> st.SearchStrategy[Any]:
    if name in _CHOICES:
        return st.sampled_from(_CHOICES[name])
    top = (1 << width) - 1
    return st.integers(0, min(top, _SHORT) if name.startswith("num_") else top)


def _integers(size: int, signed: bool, name: str) -> st.SearchStrategy[int]:
    if name.endswith(("count", "Count")):
        return st.integers(0, _SHORT)
    return _whole(size * 8, signed)


def _whole(bits: int, signed: bool) -> st.SearchStrategy[int]:
    if signed:
        return st.integers(-(1 << bits - 1), (1 << bits - 1) - 1)
    return st.integers(0, (1 << bits) - 1)


@st.composite
def _records(draw: st.DrawFn, kind: Record, fields: Mapping[str, Any]) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for name, inner, conditions in kind.fields:
        scope = {**fields, **values}
        if not conditions or conditions["when"](scope):
            value = draw(field_values(inner, scope, name))
            values.update(value if isinstance(inner, Bits) else {name: value})
    return values


@st.composite
def _descriptors(draw: st.DrawFn, kind: Descriptor) -> dict[str, Any]:
    tag = draw(st.sampled_from([*kind.bodies, 6, 5]))
    inner = kind.bodies.get(tag)
    body = {"data": draw(st.binary(max_size=20))} if inner is None else draw(_records(inner, {}))
    return {"tag": tag, "size_length": draw(st.integers(2, 4)), **body}


@st.composite
def _tables(
    draw: st.DrawFn, kind: Rows, fields: Mapping[str, Any], flags: int
) -> np.ndarray[Any, Any]:
    dtype = kind.dtype(flags, fields)
    count = draw(st.integers(0, _SHORT)) if kind.count is None else fields[kind.count]
    if not dtype.names:
        return np.zeros(0, dtype)
    widths = kind.widths(flags, fields)
    columns = []
    for name in dtype.names:
        if name in _CHOICES:
            values: st.SearchStrategy[int] = st.sampled_from(_CHOICES[name])
        else:
            values = _whole(widths[name], dtype[name].kind == "i")
        columns.append(draw(st.lists(values, min_size=count, max_size=count)))
    return np.array(list(zip(*columns, strict=True)), dtype)


@st.composite
def boxes(draw: st.DrawFn, layout: BoxLayout | None = None, parent: str | None = None) -> Box:
    """One declared box with drawn fields, without children.

    Args:
        draw: given by hypothesis.
        layout: which one; None draws one of `declared()`.
        parent: type of the box it stands in.

    >>> from hypothesis import find
    >>> find(boxes(layout_of("mfhd")), lambda box: box["sequence_number"] > 4)["sequence_number"]
    5
    """
    if layout is None:
        layout, parent = draw(st.sampled_from(declared()))
    fields: dict[str, Any] = {}
    version = flags = 0
    if layout.full:
        version = fields["version"] = draw(st.sampled_from(layout.versions))
        flags = fields["flags"] = draw(_flags(layout))
    counts = {declared_field.counted_by for declared_field in layout.fields}
    for declared_field in layout.fields:
        kind = declared_field.resolved(version, flags)
        if kind is None or not _wanted(draw, declared_field, fields):
            continue
        name = declared_field.name
        if name in counts:
            fields[name] = draw(st.integers(0, _SHORT))
        elif isinstance(kind, Rows):
            fields[name] = draw(_tables(kind, fields, flags))
        else:
            value = draw(field_values(kind, fields, name))
            fields.update(value if isinstance(kind, Bits) else {name: value})
    if layout.child_count:
        fields[layout.child_count] = 0
    return make_box(layout.code, parent=parent, **fields)


def _flags(layout: BoxLayout) -> st.SearchStrategy[int]:
    masks = {field.flag for field in layout.fields if field.flag}
    for field in layout.fields:
        kinds = field.kind.values() if isinstance(field.kind, dict) else (field.kind,)
        for kind in kinds:
            if isinstance(kind, Rows):
                masks |= {mask for _, _, mask in kind.columns if mask}
    if layout.code == "csgp":
        return st.sampled_from([0, 0x40, 0x14, 0x55, 0x7F, 0x17])
    known = st.sets(st.sampled_from(sorted(masks))).map(sum) if masks else st.just(0)
    return known | st.integers(0, 0xFFFFFF)


def _wanted(draw: st.DrawFn, declared_field: Field, fields: Mapping[str, Any]) -> bool:
    if declared_field.when is not None and not declared_field.when(fields):
        return False
    return declared_field.probe is None or draw(st.booleans())


def opaque_boxes() -> st.SearchStrategy[Box]:
    """Boxes of types that nobody declared.

    >>> from hypothesis import find
    >>> find(opaque_boxes(), lambda box: len(box["data"]) > 1).opaque
    True
    """
    unknown = st.text("qxyz", min_size=4, max_size=4).filter(lambda code: layout_of(code) is None)
    user_type = st.binary(min_size=16, max_size=16).map(bytes.hex)
    return st.builds(
        lambda code, data, form: make_box(code, data=data, size_form=form),
        unknown | user_type,
        st.binary(max_size=40),
        st.sampled_from(["compact", "large"]),
    )


@st.composite
def trees(draw: st.DrawFn) -> tuple[Box, ...]:
    """Top-level boxes with children as the tree nests them, unknown ones among them.

    >>> from hypothesis import Phase, find, settings
    >>> drawn = settings(max_examples=2000, phases=[Phase.generate])
    >>> found = find(trees(), lambda found: found[0].children, settings=drawn)
    >>> found[0].children != ()
    True
    """
    return tuple(draw(_nested(None, 0)) for _ in range(draw(st.integers(1, 3))))


@st.composite
def _nested(draw: st.DrawFn, parent: str | None, depth: int) -> Box:
    inside = [
        layout
        for layout, stands_in in declared()
        if stands_in == parent and len(layout.code) == 4 and layout.code != "abcd"
    ]
    if not inside or draw(st.integers(0, 5)) == 0:
        return draw(opaque_boxes())
    layout = draw(st.sampled_from(inside))
    box = draw(boxes(layout, parent))
    children: list[Box] = []
    if layout.children and depth < 8:
        children = [draw(_nested(layout.code, depth + 1)) for _ in range(draw(st.integers(0, 3)))]
    size_form: SizeForm = draw(st.sampled_from(["compact", "compact", "large"]))
    trailing = draw(st.sampled_from([b"", bytes(4)])) if layout.children else b""
    return box.replace(children=children, size_form=size_form, trailing=trailing)


@st.composite
def mutations(draw: st.DrawFn, content: bytes | None = None) -> bytes:
    r"""Damaged bytes: cut, bits turned, lengths and counts set to extremes, pieces moved.

    Args:
        draw: given by hypothesis.
        content: what to damage; None draws `trees`.

    >>> from hypothesis import find
    >>> find(mutations(b"\0\0\0\x08free"), lambda data: len(data) < 8) < b"\1"
    True
    """
    data = bytearray(build(draw(trees())) if content is None else content)
    for _ in range(draw(st.integers(1, 4))):
        if not data:
            break
        at = draw(st.integers(0, len(data) - 1))
        match draw(st.sampled_from(["cut", "turn", "extreme", "repeat", "swap"])):
            case "cut":
                del data[at:]
            case "turn":
                data[at] ^= 1 << draw(st.integers(0, 7))
            case "extreme":
                word = draw(st.sampled_from(_EXTREMES))
                data[at : at + len(word)] = word
            case "repeat":
                data[at:at] = data[at : at + draw(st.integers(1, 64))] * draw(st.integers(1, 3))
            case _:
                other = draw(st.integers(0, len(data) - 1))
                data[at : at + 4], data[other : other + 4] = (
                    data[other : other + 4],
                    data[at : at + 4],
                )
    return bytes(data)


_EXTREMES = (
    b"\0\0\0\0",
    b"\0\0\0\1",
    b"\0\0\0\7",
    b"\x7f\xff\xff\xff",
    b"\x80\0\0\0",
    b"\xff\xff\xff\xff",
    b"\xff\xff\xff\xff\xff\xff\xff\xff",
)
