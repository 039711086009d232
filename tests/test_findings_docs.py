"""docs/findings.md lists every code that the library can give, and none that it cannot."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SOURCES = sorted(
    path
    for room in ("fragments", "formats", "indexing", "muxing", "packaging", "seeking", "cli")
    for path in (ROOT / "src" / "fragdex" / room).glob("*.py")
)
# Functions that take a code, first or behind what it is about.
NOTING = {"add", "note", "_note", "Finding"}


def documented() -> set[str]:
    rows = re.findall(
        r"^\| (`.*?) \|", (ROOT / "docs" / "findings.md").read_text("utf-8"), re.MULTILINE
    )
    return {code for row in rows for code in re.findall(r"`([^`]+)`", row)}


def patterns() -> Iterator[tuple[str, str]]:
    """(place, regular expression of codes) for every text that may be one."""
    for path in SOURCES:
        for call in ast.walk(ast.parse(path.read_bytes())):
            if isinstance(call, ast.AnnAssign) and names(call.target) == {"code"} and call.value:
                # the code of a kind of finding that is a class
                for pattern in texts(call.value, path):
                    yield f"{path.name}:{call.lineno}", pattern
            if isinstance(call, ast.Call) and named(call.func) in NOTING and len(call.args) > 1:
                codes = [call.args[0], *(a for a in call.args[1:] if is_later_code(a))]
                for pattern in (text for code in codes for text in texts(code, path)):
                    yield f"{path.name}:{call.lineno}", pattern


def named(function: ast.expr) -> str:
    if isinstance(function, ast.Attribute):
        return function.attr
    return function.id if isinstance(function, ast.Name) else ""


def texts(code: ast.expr, path: Path) -> Iterator[str]:
    if isinstance(code, ast.Constant) and isinstance(code.value, str):
        yield re.escape(code.value)
    elif isinstance(code, ast.JoinedStr):
        yield "".join(
            re.escape(str(part.value)) if isinstance(part, ast.Constant) else "[a-z_]+"
            for part in code.values
        )
    elif isinstance(code, ast.Name):
        # A variable of a loop over the codes themselves: every text that the loop goes over.
        for loop in ast.walk(ast.parse(path.read_bytes())):
            if isinstance(loop, ast.For) and code.id in names(loop.target):
                for text in ast.walk(loop.iter):
                    if isinstance(text, ast.Constant) and is_code(text.value):
                        yield re.escape(str(text.value))


def names(target: ast.expr) -> set[str]:
    return {node.id for node in ast.walk(target) if isinstance(node, ast.Name)}


def is_later_code(argument: ast.expr) -> bool:
    if isinstance(argument, ast.Constant):
        return is_code(argument.value) and "-" in str(argument.value)
    return isinstance(argument, ast.Name) and argument.id == "code"


def is_code(text: object) -> bool:
    return isinstance(text, str) and re.fullmatch(r"[a-z_]+(-[a-z]+)*", text) is not None


def test_every_code_is_documented() -> None:
    uses = set(patterns())
    assert len(uses) > 40
    unknown = [
        f"{place}: {pattern}"
        for place, pattern in uses
        if not any(re.fullmatch(pattern, code) for code in documented())
    ]
    assert unknown == []


def test_every_documented_code_can_be_found() -> None:
    possible = [pattern for _, pattern in patterns()]
    invented = [c for c in documented() if not any(re.fullmatch(p, c) for p in possible)]
    assert invented == []
