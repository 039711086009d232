"""Advice can be followed: every `advice=` of the source is taken at its word.

The list is derived from the source; a new error with advice is looked at by itself.
"""

from __future__ import annotations

import ast
import inspect
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from functools import cache
from pathlib import Path

import pytest
import typer

from fragdex.__main__ import main
from fragdex.cli import doctor
from fragdex.cli.app import COMMANDS, SERVICE_COMMANDS, SERVICE_GROUPS, app_of
from fragdex.errors import install_command

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "fragdex"
EXTRAS = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
FILM = ROOT / "fixtures" / "frag-global-sidx.mp4"
HOLE = "…"
"""Where a text has a value that is known when it is said."""


def texts(node):
    """The texts that an expression can be, of all its branches."""
    if isinstance(node, ast.Constant):
        return [node.value] if isinstance(node.value, str) else []
    if isinstance(node, ast.JoinedStr):
        return [
            "".join(one.value if isinstance(one, ast.Constant) else HOLE for one in node.values)
        ]
    if isinstance(node, ast.IfExp):
        return texts(node.body) + texts(node.orelse)
    if isinstance(node, ast.BinOp):
        return [a + b for a in texts(node.left) or [""] for b in texts(node.right) or [""]]
    return []


def called(call):
    """The name of what is called."""
    return getattr(call.func, "id", getattr(call.func, "attr", ""))


def target(assignment):
    """What is assigned to, as it is written."""
    targets = getattr(assignment, "targets", None) or [assignment.target]
    return ast.unparse(targets[0])[:20]


def advices(path, tree):
    """Place → text."""
    parts = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            parts |= {id(one) for one in node.values}
        advised = []
        if isinstance(node, ast.Call) and called(node) == "MissingExtra":
            advised = [install_command(one.value.value) for one in node.keywords
                       if one.arg == "extra" and isinstance(one.value, ast.Constant)]  # fmt: skip
        elif isinstance(node, ast.Call) and called(node) == "install_command":
            advised = [install_command(text) for text in texts(node.args[0])]
        elif isinstance(node, ast.keyword) and node.arg in ("advice", "fix"):
            advised = texts(node.value)
        elif isinstance(node, ast.AnnAssign | ast.Assign) and "ADVICE" in target(node):
            advised = [text for one in ast.walk(node.value) for text in texts(one)]
        elif isinstance(node, ast.Constant) and id(node) not in parts:
            text = node.value if isinstance(node.value, str) else ""
            advised = [text] if text.startswith("pip install") else []
        for number, text in enumerate(advised):
            yield f"{path}:{getattr(node, 'lineno', 0)}:{number}", text


def statements(tree):
    """All statements, and whatever else has a body: definitions stand nowhere else."""
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        yield node
        for field in ("body", "orelse", "finalbody", "handlers", "cases"):
            more = getattr(node, field, ())
            waiting += more if isinstance(more, list) else ()


@cache
def defined():
    """Names of what functions take, and of classes that are no word of English."""
    parameters, classes = set(), set()
    for path in SOURCE.rglob("*.py"):
        for node in statements(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef):
                parameters |= {one.arg for one in (*node.args.args, *node.args.kwonlyargs)}
            elif isinstance(node, ast.ClassDef) and re.search("[a-z][A-Z]", node.name):
                classes.add(node.name)
    return parameters, classes - {"WebP"}


ADVISES = re.compile(r"\b(advice|fix)=|MissingExtra|install_command|ADVICE|pip install")
"""What a file with advice has somewhere: to look at each expression of all takes seconds."""
ADVICES = {}
for path in sorted(SOURCE.rglob("*.py")):
    text = path.read_text()
    if ADVISES.search(text):
        # No tree is kept: all of them take 170 MB in each process of the tests.
        ADVICES.update(advices(path.relative_to(SOURCE), ast.parse(text)))
del path, text


def commands():
    """What a user types → the function behind it."""
    for word, command in (COMMANDS | SERVICE_COMMANDS).items():
        yield word, command.function
    for group, (_, members) in SERVICE_GROUPS.items():
        for word, command in members.items():
            yield f"{group} {word}", command.function


WHOLE = typer.main.get_command(app_of())


def command_of(words):
    """The command that words begin with, and how many of them are its name."""
    command, used = WHOLE, 0
    for word in words:
        member = getattr(command, "commands", {}).get(word)
        if member is None:
            break
        command, used = member, used + 1
    return command, used


def every_option():
    """Options of all commands, as they are typed."""
    for name, _ in commands():
        for parameter in command_of(name.split())[0].params:
            yield from (word for word in parameter.opts if word.startswith("--"))


OPTIONS = set(every_option())


def test_there_is_advice():
    assert len(ADVICES) > 120


@pytest.mark.parametrize("place", [p for p, text in ADVICES.items() if "pip install" in text])
def test_what_is_to_be_installed_is_an_extra_of_ours(place):
    """A package by its own name may be another version than the one that works here."""
    for what in re.findall(r"pip install (?:-U )?(\S+)", ADVICES[place]):
        named = re.fullmatch(r"'fragdex\[([\w,-]+|…)\]'|…", what.rstrip(",;"))
        assert named, ADVICES[place]
        for extra in (named[1] or HOLE).split(","):
            assert extra == HOLE or EXTRAS[extra], ADVICES[place]


@pytest.mark.parametrize("place", [p for p, text in ADVICES.items() if "fragdex " in text])
def test_commands_that_are_advised_run(place, tmp_path, monkeypatch, capfd):
    """Words in capitals stand for a film, its index, a folder, and what is to be written."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("FRAGDEX_DATA", str(tmp_path / "data"))
    shutil.copy(FILM, "FILE")
    (tmp_path / "FOLDER").mkdir()
    shutil.copy(FILM, tmp_path / "FOLDER" / "film.mp4")
    assert main(["index", "FILE", "-o", "INDEX"]) == 0
    for line in re.findall(r"\bfragdex ([a-z][^;,()`]*)", ADVICES[place]):
        words = shlex.split(line)
        _, used = command_of(words)
        if not used:
            assert not re.search(rf"`fragdex {re.escape(line)}", ADVICES[place]), "no such command"
            continue
        given = []
        for word in words[used:]:
            if not re.fullmatch(r"-{1,2}[a-z-]+|[A-Z][A-Z.a-z0-9]*|[0-9.]+|end", word):
                break
            given.append(word)
        capfd.readouterr()
        code = main([*words[:used], *given])
        error = capfd.readouterr().err
        if error.startswith("fragdex: an argument is missing: "):
            # said as a name, not to be typed; or its argument is the user's own
            assert main([*words[:used], "--help"]) == 0
            continue
        assert code in (0, 1), (line, error)


OPTION = re.compile(r"--\w|\w=")


@pytest.mark.parametrize("place", [p for p, text in ADVICES.items() if OPTION.search(text)])
def test_options_that_are_advised_are_there(place):
    advice = re.sub(r"pip install \S+|apt-get [^;]*|playwright [^;]*", "", ADVICES[place])
    for option in re.findall(r"(?<![\w-])--[a-z][a-z-]*", advice):
        assert option in OPTIONS, ADVICES[place]
    for name in re.findall(r"\b([a-z_]+)=", advice):
        assert name in defined()[0], ADVICES[place]


@pytest.mark.parametrize("name", [name for name, _ in commands()])
def test_help_begins_with_a_sentence_of_the_field(name, capfd):
    """`extract --help` began "ClipRequest a playable clip": a class was renamed in it, too."""
    (command,) = [one for other, one in commands() if other == name]
    sentence = inspect.cleandoc(command.__doc__).partition("\n\n")[0]
    assert not defined()[1] & set(re.findall(r"\w+", sentence))
    assert sentence[0].isupper()
    assert sentence.endswith(".")


@pytest.mark.parametrize("name", [name for name, _ in commands()])
def test_every_command_takes_json(name):
    """As README.md says."""
    command, _ = command_of(name.split())
    assert "--json" in {word for one in command.params for word in one.opts}


def test_json_of_the_commands_that_change_something(tmp_path, monkeypatch, capfd):
    monkeypatch.setenv("FRAGDEX_DATA", str(tmp_path / "data"))
    answers = []
    for words in (
        ["db", "upgrade"], ["key", "create", "--scope", "admin"], ["key", "rotate", "ID"],
        ["key", "create"], ["key", "revoke", "ID"], ["tenant", "delete", "default", "--yes"],
    ):  # fmt: skip
        given = [answers[-1]["id"] if word == "ID" else word for word in words]
        assert main([*given, "--json"]) == 0
        (line,) = capfd.readouterr().out.splitlines()
        answers.append(json.loads(line))
    assert answers[1]["id"] == answers[2]["id"]
    assert answers[1]["key"] != answers[2]["key"]
    assert answers[4] == {"id": answers[3]["id"], "status": "revoked"}
    assert answers[5]["tenant"] == "default"


@pytest.mark.parametrize(
    ("typed", "expected"),
    [("ex", "extract"), ("tenant li", "limits"), ("extract --fra", "--fragmented")],
)
def test_words_are_completed_by_the_tab_key(typed, expected):
    words = f"fragdex {typed}"
    asked = {"_FRAGDEX_COMPLETE": "complete_bash", "COMP_WORDS": words,
             "COMP_CWORD": str(len(words.split()) - 1)}  # fmt: skip
    program = "import sys; from fragdex.__main__ import main; sys.exit(main())"
    done = subprocess.run(
        [sys.executable, "-c", program], env={**os.environ, **asked}, check=False,
        capture_output=True, text=True,
    )  # fmt: skip
    assert expected in done.stdout.split()


def test_a_browser_that_is_here_is_not_said_to_be_missing(monkeypatch):
    """Where PyAV was missing, doctor said it of Chromium, and advised to install that."""
    from fragdex.rendering.browser import finding

    engine = finding.Browser(Path("/usr/bin/chromium"), False)
    monkeypatch.setattr(finding, "find_engine", lambda: engine)
    monkeypatch.setitem(sys.modules, "av", None)
    parts = {part.name: part for part in doctor.browser()}
    assert parts["chromium"].state is not doctor.RequirementState.MISSING
    assert parts["renders"].state is doctor.RequirementState.MISSING
    assert parts["renders"].advice == "pip install 'fragdex[render]'"
