"""The table of boxes, and the page made from it."""

import ast
import itertools
import subprocess
import sys
from pathlib import Path

import pytest

import fragdex.boxes
from fragdex.boxes import ESSENTIAL, OPAQUE, layout_of, make_box, parse_box
from fragdex.boxes.tree import entries

FOLDER = Path(fragdex.boxes.__file__).parent


@pytest.mark.parametrize("entry", entries(), ids=lambda entry: f"{entry.code}-{entry.declaration}")
def test_every_line_leads_to_a_declaration(entry):
    code = "abcd" if entry.code == "*" else entry.code
    for parent in entry.parents or (None,):
        layout = layout_of(code, parent)
        if entry.declaration == "opaque":
            assert layout is None
            continue
        assert layout.code == code
        assert layout.title
        assert layout.source
        names = [field.name for field in layout.fields if not field.when and not field.version]
        assert len(names) == len(set(names))
        if parent is not None and len(parent) == 4:
            above = layout_of(parent)
            assert above is None or above.children or parent == "*", f"{parent} holds no boxes"


def declarations():
    """(name, what stands below it) of every declaration in the files of the room."""
    for path in FOLDER.glob("*.py"):
        body = ast.parse(path.read_bytes()).body
        for node, after in itertools.pairwise([*body, None]):
            if (
                isinstance(node, ast.Assign)
                and isinstance(node.value, ast.Call)
                and ast.unparse(node.value.func) in {"box", "fullbox", "uuid_box"}
            ):
                yield node.targets[0].id.lower(), after


def test_every_declaration_stands_in_the_table():
    names = [name for name, _ in declarations()]
    assert len(names) == len(set(names))
    assert set(names) == {entry.declaration for entry in entries()} - {"opaque"}


def test_every_declaration_says_what_its_box_is_for():
    for name, after in declarations():
        text = after.value if isinstance(after, ast.Expr) else None
        assert isinstance(text, ast.Constant), name
        assert isinstance(text.value, str), name


def test_essential_boxes_are_declared():
    assert all(layout_of(code) is not None for code in ESSENTIAL)


@pytest.mark.parametrize(("code", "reason"), OPAQUE, ids=[code for code, _ in OPAQUE])
def test_opaque_boxes_keep_their_bytes(code, reason):
    assert reason
    layout = layout_of(code, "stsd" if code == "text" else None)
    assert layout is None or layout.fields[-1].name == "data"
    read = parse_box(b"\0\0\0\x0e" + code.encode() + b"\0\0\0\0ab", "stsd")
    assert bytes(read["data"]).endswith(b"ab")


def test_unknown_codes_have_no_declaration():
    assert layout_of("qxyz") is None
    assert layout_of("00" * 16) is None
    assert layout_of("tfhd", "qxyz") is layout_of("tfhd", "qxyz")


def test_any_code_inside_a_reference_is_a_reference():
    assert layout_of("sync", "tref").title == "Track Reference Type"
    assert make_box("hint", parent="tref", track_IDs=(1,))["track_IDs"] == (1,)


def test_the_page_of_boxes_is_the_table(root):
    output = subprocess.run(
        [sys.executable, "-c", "import make_boxes; print(make_boxes.page(), end='')"],
        cwd=root / "docs",
        env={"PYTHONPATH": str(root / "src"), "PYTHONUTF8": "1"},
        capture_output=True,
        check=True,
        encoding="utf-8",
    ).stdout
    page = (root / "docs" / "boxes.md").read_text("utf-8")
    assert page == output, "run python docs/make_boxes.py"
