"""The C files of the C extension use one another in one direction."""

import re
from pathlib import Path

FOLDER = Path(__file__).parents[2] / "src" / "fragdex" / "native"
SOURCES = {path.name: path.read_text("utf-8") for path in sorted(FOLDER.glob("*.[ch]"))}
# A function for other files begins in the first column, without `static`, and has a body.
DEFINED = re.compile(r"^(?!static)\w[\w ]*[ *](\w+)\([^;{]*\)\n\{", re.MULTILINE)


def part(name):
    """A source and the header of its name are one part."""
    return name.rpartition(".")[0]


def code(text):
    return re.sub(r"/\*.*?\*/|\"(?:\\.|[^\"\\])*\"", "", text, flags=re.DOTALL)


def uses(sources):
    """{part: parts that it includes, or whose functions it names}."""
    home = {
        name: part(file)
        for file, text in sources.items()
        if file.endswith(".c")
        for name in DEFINED.findall(code(text))
    }
    graph = {part(file): set() for file in sources}
    for file, text in sources.items():
        included = {part(name) for name in re.findall(r'#include "([\w.]+)"', text)}
        # A header declares what others define; only a source uses it.
        named = set(re.findall(r"\w+", code(text))) if file.endswith(".c") else set()
        graph[part(file)] |= included | {home[name] for name in named & home.keys()}
    return {here: there - {here} for here, there in graph.items()}


def circles(graph):
    while free := {here for here, there in graph.items() if not there & graph.keys()}:
        graph = {here: there for here, there in graph.items() if here not in free}
    return sorted(graph)


def test_functions_of_other_parts_are_found():
    graph = uses(SOURCES)
    assert "arguments" in graph["box_shapes"]
    assert "box_walk" in graph["file_walk"]


def test_a_header_that_shares_a_name_with_the_file_above_it_is_a_circle():
    sources = {
        "a.h": "int down(void);",
        "a.c": '#include "a.h"\nint up(void)\n{\n    return down();\n}\n',
        "b.c": '#include "a.h"\nint down(void)\n{\n    return 0;\n}\n',
    }
    assert circles(uses(sources)) == ["a", "b"]


def test_no_two_parts_use_one_another():
    assert circles(uses(SOURCES)) == []
