"""The laws of the box language: every byte comes back, from the fields alone."""

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from fragdex.boxes import Box, BoxLayout, build, layout_of, make_box, parse, parse_box
from fragdex.boxes.kinds import Bits, Packed
from fragdex.boxes.rows import Rows
from fragdex.errors import FragdexError
from strategies.boxes import boxes, declared, field_values, mutations, trees

DECLARED = declared()
NAMES = [f"{parent or ''}/{layout.code}" for layout, parent in DECLARED]
FEW = settings(max_examples=settings.default.max_examples // 4)
"""Of each of two hundred boxes; `./dev test --all` draws more."""
every_box = pytest.mark.parametrize(("layout", "parent"), DECLARED, ids=NAMES)


def stripped(box):
    """The box as a user would write it: no place, no layout, arrays copied."""
    fields = {
        name: value.copy() if isinstance(value, np.ndarray) else value
        for name, value in box.fields.items()
    }
    return Box(box.type, fields, tuple(map(stripped, box)), box.trailing, box.size_form)


@every_box
@given(data=st.data())
@FEW
def test_a_box_comes_back_from_its_fields(layout, parent, data):
    box = data.draw(boxes(layout, parent))
    written = build(box)
    read = parse_box(written, parent)
    assert build(read, parent=parent) == written
    assert build(stripped(read), parent=parent) == written
    if not any(field.probe for field in layout.fields):
        assert read == box
        assert not read.opaque or layout.code == "csgp"


@every_box
def test_a_box_can_be_made_without_a_value(layout, parent):
    for version in layout.versions or (0,):
        for flags in (0, 0xFFFFFF) if layout.full else (0,):
            given = {"version": version, "flags": flags} if layout.full else {}
            box = make_box(layout.code, parent=parent, **given)
            assert build(parse_box(build(box), parent), parent=parent) == build(box)


@every_box
@given(body=st.binary(max_size=80))
@FEW
def test_any_body_comes_back(layout, parent, body):
    box = Box("uuid" if len(layout.code) == 32 else layout.code, {"data": body})
    if box.type == "uuid":
        box = Box("uuid", {"user_type": layout.code, "data": body})
    written = build(box)
    try:
        read = parse_box(written, parent)
    except FragdexError:
        return
    assert build(stripped(read), parent=parent) == written


@every_box
@given(data=st.data())
@FEW
def test_offsets_tell_where_fields_stand(layout, parent, data):
    box = data.draw(boxes(layout, parent))
    body = layout.build(box.fields)
    offsets = layout.offsets(box.get("version", 0), box.get("flags", 0))
    for name, (offset, dtype) in offsets.items():
        value = box[name]
        if isinstance(value, np.ndarray):
            stored = np.frombuffer(body, dtype, len(value), offset)
        else:
            stored = np.frombuffer(body, dtype, 1, offset)[0]
        if isinstance(value, str):
            assert bytes(body[offset : offset + 4]).decode("latin-1") == value
        elif isinstance(value, bytes):
            assert stored.tobytes() == value
        else:
            assert np.array_equal(stored, value)


def test_plans_for_hostile_flags_are_forgotten():
    layout = layout_of("trun")
    for flags in range(2000):
        layout.steps(0, flags)
    assert len(layout._steps) < 300


def extent(layout, position, fields):
    """Where a declared field stands in the body: written with and without it."""
    ends = [
        len(BoxLayout(layout.code, "", "", layout.fields[:stop], layout.full).build(fields))
        for stop in (position, position + 1)
    ]
    return ends[0], ends[1]


def hangs_on_others(field):
    """Whether fields before decide on the presence or width of this one."""
    kinds = field.kind.values() if isinstance(field.kind, dict) else [field.kind]
    return field.when is not None or any(
        isinstance(kind, Packed)
        or callable(getattr(kind, "size", None))
        or callable(getattr(kind, "count", None))
        or (isinstance(kind, Rows) and any(callable(code) for _, code, _ in kind.columns))
        for kind in kinds
    )


@pytest.mark.parametrize(
    ("layout", "parent"),
    [pair for pair in DECLARED if pair[0].fields],
    ids=[name for name, pair in zip(NAMES, DECLARED, strict=True) if pair[0].fields],
)
@given(data=st.data())
@FEW
def test_changing_one_field_changes_only_its_bytes(layout, parent, data):
    box = data.draw(boxes(layout, parent))
    version, flags = box.get("version", 0), box.get("flags", 0)
    there = [
        position
        for position, field in enumerate(layout.fields)
        if field.resolved(version, flags) is not None and field.written(box.fields)
    ]
    assume(there)
    position = data.draw(st.sampled_from(there))
    field = layout.fields[position]
    kind = field.resolved(version, flags)
    if isinstance(kind, Rows):
        table = box[field.name].copy()
        assume(len(table) and table.dtype.names)
        column = data.draw(st.sampled_from(table.dtype.names))
        table[column][0] = 0
        changes = {field.name: table}
    else:
        value = data.draw(field_values(kind, box.fields, field.name))
        changes = value if isinstance(kind, Bits) else {field.name: value}
    try:
        before, after = layout.build(box.fields), layout.build({**box.fields, **changes})
    except FragdexError:
        assume(False)  # other fields hang on this one
    start, stop = extent(layout, position, box.fields)
    new_start, new_stop = extent(layout, position, {**box.fields, **changes})
    assert new_start == start
    assert after[:start] == before[:start]
    if not any(hangs_on_others(other) for other in layout.fields[position + 1 :]):
        assert after[new_stop:] == before[stop:]


@given(trees())
def test_nested_boxes_come_back(tree):
    written = build(tree)
    read = parse(written)
    assert build(map(stripped, read)) == written
    assert [box.offset for box in read[1:]] == [box.stop for box in read[:-1]]


@given(mutations())
@settings(max_examples=400)
def test_damaged_boxes_come_back_or_are_refused(damaged):
    try:
        read = parse(damaged)
    except FragdexError:
        return
    stop = read[-1].stop if read else 0
    assert build(map(stripped, read)) == damaged[:stop]


@given(trees(), st.data())
def test_truncated_input_gives_what_is_complete(tree, data):
    written = build(tree)
    whole = parse(written)
    cut = data.draw(st.integers(0, len(written)))
    try:
        read = parse(written[:cut])
    except FragdexError:
        assert cut < whole[0].size
        return
    assert read == tuple(box for box in whole if box.stop <= cut)


def real_files(folder):
    other = (".json", ".md", ".py", ".pyc")
    return [p for p in sorted(folder.rglob("*")) if p.is_file() and p.suffix not in other]


def assert_comes_back(path):
    content = path.read_bytes()
    try:
        read = parse(content)
    except FragdexError:
        with pytest.raises(FragdexError):
            parse(content, strict=True)
        return 0
    stop = read[-1].stop if read else 0
    assert build(map(stripped, read)) == content[:stop]
    return stop


def test_the_fixtures_come_back(root):
    assert sum(assert_comes_back(path) for path in real_files(root / "fixtures")) > 500_000


@pytest.mark.corpus
def test_the_corpus_comes_back(corpus):
    assert sum(assert_comes_back(path) for path in real_files(corpus)) > 2_000_000
