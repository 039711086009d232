"""The checker of words: what it reads, and that its list is true."""

import importlib.util
import tomllib

import pytest


@pytest.fixture(scope="module")
def wording(root):
    spec = importlib.util.spec_from_file_location("wording", root / "tools" / "wording.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    ("name", "text", "lines"),
    [
        ("a.md", "One.\n\nA word stands\nbehind it, `behind` and\n```\nbehind\n```\n", [4]),
        ("a.md", "Run it behind a proxy. [Go](behind.md)\n\n    behind this\n", []),
        ("a.py", '"""A row\nbehind it.\n\n>>> behind = 1\n"""\nbehind = "behind"\n', [2]),
        ("a.py", 'raise ValueError(f"no byte is behind {place}")\n', [1]),
        ("a.html", "<p>\nWhat is\nbehind it</p><script>behind()</script>\n", [3]),
        ("a.py", "a = 1\nbehind = 2  # it is behind, not `behind`\n", [2]),
        ("a.js", 'const behind = 1;\nsay("One behind the other");\n// behind, `behind`', [2, 3]),
        ("a.js", 'h("behind", "Behind")\n', [1]),
    ],
)
def test_prose_is_read_and_code_is_not(wording, tmp_path, name, text, lines):
    path = tmp_path / name
    path.write_text(text)
    say = tomllib.loads(wording.VOCABULARY.read_text("utf-8"))["say"]
    assert [line for line, *_ in wording.found_in(path, say)] == lines


def test_what_is_pending_has_such_words(wording):
    vocabulary = tomllib.loads(wording.VOCABULARY.read_text("utf-8"))
    for pattern in vocabulary["pending"]:
        others = [one for one in vocabulary["pending"] if one != pattern]
        now = set(wording.files(vocabulary))
        more = set(wording.files({**vocabulary, "pending": others})) - now
        hits = (next(wording.found_in(path, vocabulary["say"]), None) for path, _ in more)
        assert any(hits), f"{pattern} is read over: take it off the list"
