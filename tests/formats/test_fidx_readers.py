"""Three readers of the binary index that share no code answer alike: Python, C, JavaScript.

For every fixture, at every boundary of its fragments and sync samples, and for the test vectors.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import tarfile
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fragdex
from forged_indexes import forged_columns, forged_values
from formats import fidx_programs as programs
from formats import fidx_vectors as made
from fragdex.errors import DamagedIndex, FragdexError
from fragdex.formats import fidx
from fragdex.testing import check_fidx, check_fidx_file, movie
from fragdex.testing.checks.fidx import ASKED, fidx_answers, fidx_vectors, is_same
from strategies.indexes import indexes

FIXTURES = Path(__file__).parents[2] / "fixtures"
OF_JS = ("tracks", "init", "seek", "span", "sample")
needs_node = pytest.mark.skipif(shutil.which("node") is None, reason="node is missing")


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    """fidx_answers.c under the sanitizers."""
    if programs.compiler() is None:
        pytest.skip("no gcc and no clang")
    target = tmp_path_factory.mktemp("fidx") / "answers"
    programs.compiled(programs.HERE / "fidx_answers.c", target, *programs.SANITIZED)
    if not programs.runs(target):
        pytest.skip("no process runs under the sanitizers here")
    return target


@pytest.fixture(scope="module")
def asked():
    """Name, bytes and questions for each fixture that has an index."""
    cases = []
    for path in sorted([*FIXTURES.iterdir(), *(FIXTURES / "made").iterdir()]):
        try:
            index = fragdex.index(path, exact=True, partial=True)
            data = fidx.write(index, samples=True)
        except (FragdexError, IsADirectoryError):
            continue
        questions = made.questions(fidx.read(data), 16)
        cases.append((path.name, data, questions, fidx_answers(data, questions)))
    assert len(cases) > 120
    return cases


def compare(asked, answers, kinds=ASKED):
    for (name, _, questions, right), reply in zip(asked, answers, strict=True):
        chosen = [pair for pair in zip(questions, right, strict=True) if pair[0]["ask"] in kinds]
        assert reply is not None, name
        for (question, expected), answer in zip(chosen, reply, strict=True):
            assert is_same(answer, expected), (name, question, answer, expected)


def test_c_answers_as_the_library_does(program, asked):
    compare(asked, programs.answered_by_c(program, [(data, q) for _, data, q, _ in asked]))


@needs_node
def test_javascript_answers_as_the_library_does(asked, tmp_path):
    files = [(data, [q for q in qs if q["ask"] in OF_JS]) for _, data, qs, _ in asked]
    compare(asked, programs.answered_by_js(tmp_path, files), OF_JS)


@pytest.fixture(scope="module")
def forged():
    """Files that the library refuses for a value of their JSON part, and the file as it was."""
    film = fragdex.index(movie(fragments=2, samples=3, fps=25), exact=True)
    whole = fidx.write(film, samples=True)
    refused = []
    for name, data in forged_values(whole):
        try:
            fidx.read(data)
        except DamagedIndex:
            refused.append((name, data))
    assert len(refused) > 300
    return refused, whole


def refused_or_unused(forged, answered, kinds):
    """A reader refuses such a file as well, or does not use the value: it answers as before."""
    files, whole = forged
    questions = [q for q in made.questions(fidx.read(whole), 8) if q["ask"] in kinds]
    asked = [(data, questions) for data in (*(data for _, data in files), whole)]
    *replies, right = answered(asked)
    named = zip((name for name, _ in files), replies, strict=True)
    assert [name for name, got in named if got not in (None, right)] == []


@needs_node
def test_javascript_uses_no_member_that_the_library_refuses(forged, tmp_path):
    refused_or_unused(forged, lambda asked: programs.answered_by_js(tmp_path, asked), OF_JS)


def test_c_uses_no_member_that_the_library_refuses(forged, program):
    files, whole = forged
    # texts come out of it as they stand in the file
    files = [(name, data) for name, data in files if "ud800" not in name]
    answered = lambda asked: programs.answered_by_c(program, asked)  # noqa: E731
    refused_or_unused((files, whole), answered, ASKED)


@pytest.fixture(scope="module")
def forged_tables():
    """Files with a number in a column that leaves its bounds, or that another column contradicts.

    With the questions, and what the library answers: None where it refuses.
    """
    film = fragdex.index(movie(fragments=2, samples=3, fps=25), exact=True)
    whole = fidx.write(film, samples=True)
    questions = made.questions(fidx.read(whole), 8)
    files = [("as it was", whole), *forged_columns(whole)]
    return [
        (name, data, questions, fidx_answers(data, questions) or [None] * len(questions))
        for name, data in files
    ]


def columns_refused_or_unused(forged_tables, answered, kinds, can_refuse=lambda name: False):
    """Each answer is the library's; what it refuses is refused, or does not need the number."""
    chosen = [n for n, one in enumerate(forged_tables[0][2]) if one["ask"] in kinds]
    asked = [(data, [questions[n] for n in chosen]) for _, data, questions, _ in forged_tables]
    _, _, questions, as_before = forged_tables[0]
    assert any(answers[n] is None for _, _, _, answers in forged_tables for n in chosen)
    wrong = []
    for (name, _, _, right), reply in zip(forged_tables, answered(asked), strict=True):
        for n, answer in zip(chosen, reply or [None] * len(chosen), strict=True):
            allowed = [right[n], *([as_before[n]] if right[n] is None else [])]
            allowed += [None] if can_refuse(name) else []
            if not any(is_same(answer, one) for one in allowed):
                wrong.append((name, questions[n], answer, right[n]))
    assert wrong[:5] == []


@needs_node
def test_javascript_uses_no_column_that_the_library_refuses(forged_tables, tmp_path):
    answered = lambda asked: programs.answered_by_js(tmp_path, asked)  # noqa: E731
    # a browser counts exactly up to 2^53
    is_far = lambda name: abs(int(name.rpartition("=")[2])) >= 2**53  # noqa: E731
    columns_refused_or_unused(
        forged_tables, answered, OF_JS, lambda name: "=" in name and is_far(name)
    )


def test_c_uses_no_column_that_the_library_refuses(forged_tables, program):
    answered = lambda asked: programs.answered_by_c(program, asked)  # noqa: E731
    columns_refused_or_unused(forged_tables, answered, ASKED)


@settings(max_examples=15)
@given(files=st.lists(indexes(), min_size=1, max_size=5))
def test_c_answers_alike_for_indexes_of_any_shape(program, files):
    asked = []
    for index in files:
        data = fidx.write(index, samples=True)
        questions = made.questions(fidx.read(data), 4)
        asked.append(("drawn", data, questions, fidx_answers(data, questions)))
    compare(asked, programs.answered_by_c(program, [(data, q) for _, data, q, _ in asked]))


def test_the_vectors_are_those_that_the_script_makes():
    with tarfile.open(made.PACKED) as archive:
        packed = {one.name: archive.extractfile(one).read() for one in archive}
    assert packed == made.content()


def test_vectors_of_every_kind():
    every = list(fidx_vectors())
    assert sum(one.answers is None for one in every) > 30
    assert {question["ask"] for one in every for question in one.questions} == set(ASKED)
    hits = [a for one in every for a in one.answers or () if isinstance(a, dict) and "cts" in a]
    assert any(one.get("clamped") for one in hits)
    assert any(one.get("sample", 0) is None for one in hits)


def test_all_readers_pass_the_vectors(program, tmp_path):
    assert check_fidx(lambda data, asked: programs.answered_by_c(program, [(data, asked)])[0]) == []
    every = {one.data: one for one in fidx_vectors()}
    if shutil.which("node"):
        files = [(d, [q for q in v.questions if q["ask"] in OF_JS]) for d, v in every.items()]
        by_name = dict(zip(every, programs.answered_by_js(tmp_path, files), strict=True))
        assert check_fidx(lambda data, _: by_name[data], asks=OF_JS) == []


def test_a_wrong_reader_is_told():
    def later(data, asked):
        answers = fidx_answers(data, asked)
        for question, answer in zip(asked, answers or (), strict=False):
            if question["ask"] == "seek" and answer:
                answer["cts"] += 1
        return answers

    assert {one.rule for one in check_fidx(later)} == {"fidx-answer"}
    assert {one.rule for one in check_fidx(lambda data, asked: [])} == {"fidx-refused", "fidx-read"}
    assert {one.rule for one in check_fidx(lambda data, asked: data.gone)} == {"fidx-reader"}
    wrong = check_fidx(lambda data, asked: None)
    assert {one.rule for one in wrong} == {"fidx-read"}
    assert all("docs/index-format.md" in one.clause for one in wrong)


def test_a_written_file_is_checked(tmp_path):
    data = made.film("cmaf")
    (tmp_path / "a.fidx").write_bytes(data)
    assert check_fidx_file(tmp_path / "a.fidx") == []
    (wrong,) = check_fidx_file(made.replaced("sync", "fragment", 0, 99))
    assert "rows of the fragment table" in wrong.message


NUMBERS = """
const text = readFileSync(process.argv[4], "utf8");
const block = text.split("// Label Studio:")[1].split("```")[0];
const names = "fromLabelStudio, toLabelStudio, fromCvat";
const functions = new Function(`//${block}; return { ${names} };`)();
const index = new FrameIndex(new Uint8Array(readFileSync(process.argv[3])).buffer);
const frames = index.frames();
const rate = frames.length / (frames.time(frames.length - 1) + frames.duration(frames.length - 1));
const found = Array.from({ length: frames.length }, (_, number) => [
  functions.fromLabelStudio(frames, functions.toLabelStudio(frames, number, 1000), 1000),
  functions.fromCvat(number), functions.fromCvat(number, { first: 5, step: 2 }),
]);
const counted = Array.from({ length: frames.length }, (_, n) =>
  functions.fromLabelStudio(frames, n + 1, rate));
console.log(JSON.stringify({ found, counted }));
"""


@needs_node
@pytest.mark.parametrize("name", ["open-gop.mp4", "frag-variable-rate.mp4"])
def test_numbers_of_labelling_tools(name, tmp_path):
    page = Path(__file__).parents[2] / "docs" / "labelling.md"
    module = (tmp_path / "fidx.mjs").as_uri()
    shutil.copy(programs.MODULE, tmp_path / "fidx.mjs")
    index = fragdex.index(FIXTURES / name, exact=True)
    (tmp_path / "a.fidx").write_bytes(fidx.write(index, samples=True))
    head = f'import {{ readFileSync }} from "node:fs"; import {{ FrameIndex }} from "{module}";'
    (tmp_path / "a.mjs").write_text(head + NUMBERS)
    command = ["node", tmp_path / "a.mjs", "-", tmp_path / "a.fidx", page]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    count = len(answer["found"])
    assert answer["found"] == [[n, n, 5 + 2 * n] for n in range(count)]
    if name == "open-gop.mp4":  # of a constant rate
        assert answer["counted"] == list(range(count))
    else:
        assert answer["counted"] != list(range(count))


def test_the_header_has_no_warnings_of_an_optimizer(tmp_path):
    """Which sees more than a compiler that does not optimize, as for the sanitizers."""
    if programs.compiler() is None:
        pytest.skip("no gcc and no clang")
    programs.compiled(programs.HERE / "fidx_answers.c", tmp_path / "a.o", "-O2", "-c")


def test_the_header_is_c_plus_plus_as_well(tmp_path):
    if shutil.which("g++") is None:
        pytest.skip("g++ is missing")
    (tmp_path / "a.cpp").write_text(
        '#include "fidx.h"\nint main() { return fidx_message(FIDX_OK)[0] == 0; }\n'
    )
    flags = ["-std=c++11", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-fsyntax-only"]
    command = ["g++", *flags, f"-I{programs.HEADER.parent}", tmp_path / "a.cpp"]
    subprocess.run(command, check=True)


def test_texts_of_a_name_come_out_as_utf_8(tmp_path):
    """Escapes, pairs, and lone surrogates that stand for bytes, cut to any room."""
    if programs.compiler() is None:
        pytest.skip("no gcc and no clang")
    name = 'a\\"\n\u00e9\u4e2d\U0001f600\udc80z'
    index = fragdex.index(FIXTURES / "frag-cmaf.mp4")
    index.file = replace(index.file, name=name)
    (tmp_path / "a.fidx").write_bytes(fidx.write(index))
    (tmp_path / "a.c").write_text(NAMES)
    program = programs.compiled(tmp_path / "a.c", tmp_path / "a", *programs.SANITIZED)
    if not programs.runs(program):
        pytest.skip("no process runs under the sanitizers here")
    done = subprocess.run([program, tmp_path / "a.fidx"], capture_output=True, check=True)
    whole = name.encode("utf-8", "surrogateescape")
    parts = done.stdout.split(b"\xff")[:-1]
    assert parts[-1] == whole
    assert all(whole.startswith(part) for part in parts)
    assert all(len(part) < room for room, part in enumerate(parts, 1))


NAMES = r"""
#include <stdio.h>
#include "fidx.h"
int main(int argc, char **argv)
{
    static unsigned char data[1 << 16];
    char text[32];
    fidx_index index;
    FILE *file = argc == 2 ? fopen(argv[1], "rb") : NULL;
    if (!file)
        return 0;
    size_t size = fread(data, 1, sizeof data, file);
    if (fidx_open(data, size, &index) != FIDX_OK)
        return 2;
    size_t needed = fidx_copy_text(index.media_name, NULL, 0);
    for (size_t room = 1; room <= needed + 1; room++) {
        if (fidx_copy_text(index.media_name, text, room) != needed)
            return 3;
        printf("%s\xff", text);
    }
    return fclose(file);
}
"""
