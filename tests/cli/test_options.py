"""One name of an option, one meaning: what helps say first is the same in every command."""

import itertools
import re
import shutil
from collections import defaultdict

import pytest
import typer

from fragdex.cli.app import COMMANDS, OTHER_WORDS, app_of


def commands(command, path=()):
    members = getattr(command, "commands", None)
    if members is None:
        yield " ".join(path), command
    for name, member in (members or {}).items():
        yield from commands(member, (*path, name))


def meanings():
    """{option: {the first words of its help: commands}}, and the same of short names."""
    found = defaultdict(lambda: defaultdict(list))
    for name, command in commands(typer.main.get_command(app_of())):
        for option in command.params:
            if option.param_type_name == "option":
                meaning = re.split(r"[.,:;(]", option.help, maxsplit=1)[0].strip()
                for word in option.opts:
                    found[word][meaning].append(name)
    return found


MEANINGS = meanings()


@pytest.mark.parametrize("option", sorted(MEANINGS))
def test_an_option_means_one_thing_in_all_commands(option):
    assert len(MEANINGS[option]) == 1, dict(MEANINGS[option])


def test_a_short_name_stands_for_one_option():
    long_names = defaultdict(set)
    for _, command in commands(typer.main.get_command(app_of())):
        for option in command.params:
            short = [word for word in option.opts if re.fullmatch(r"-\w", word)]
            spelled = tuple(one for one in option.opts if one.startswith("--"))
            long_names |= {word: long_names[word] | {spelled} for word in short}
    assert {word: names for word, names in long_names.items() if len(names) > 1} == {}
    assert len(long_names) > 5


def test_every_option_says_what_it_does():
    assert [option for option, helps in MEANINGS.items() if min(map(len, helps)) < 5] == []


@pytest.mark.parametrize("word", sorted(OTHER_WORDS))
def test_words_of_other_tools_lead_to_a_command(word, call):
    assert word not in COMMANDS
    for command in OTHER_WORDS[word].split(" or "):
        assert command in COMMANDS
    ran = call(word, "a.mp4")
    assert ran.code == 2
    assert f"Did you mean {OTHER_WORDS[word]}?" in ran.err


TIMED = {
    name: [one.metavar or one.name.upper() for one in command.params
           if one.param_type_name == "argument" and one.metavar != "FILE"]
    for name, command in commands(typer.main.get_command(app_of()))
    if any(one.param_type_name == "argument" and one.nargs == -1 for one in command.params)
    and any(one.param_type_name == "argument" and one.metavar in ("TIME", "T0")
            for one in command.params)
}  # fmt: skip
OPTIONS = {"TIME": ("--at",), "T0": ("--start",), "T1": ("--end", "--stop")}


def test_commands_whose_times_stand_behind_files():
    assert {"extract", "seek", "plan", "thumbnail"} <= set(TIMED)


@pytest.mark.parametrize("name", sorted(TIMED))
def test_times_behind_files_may_be_options(name, call, fixtures, tmp_path):
    """Both ways give the same, for one file and for several; both at once are refused."""
    files = [str(fixtures / "faststart.mp4"), str(fixtures / "hevc-aac.mp4")]
    times = {"TIME": "1", "T0": "0.5", "T1": "1.5"}
    outputs = name in ("extract", "thumbnail")

    def result(files, *words):
        folder = tmp_path / "made"
        more = ["-o", f"{folder}/"] if outputs else ["--json"]
        ran = call(name, *files, *words, *more)
        assert ran.code == 0, ran.err
        if not outputs:
            return ran.out
        made = {one.name: one.read_bytes() for one in sorted(folder.iterdir())}
        shutil.rmtree(folder)
        return made

    for some in (files[:1], files):
        positions = result(some, *(times[one] for one in TIMED[name]))
        for spelling in itertools.product(*(OPTIONS[one] for one in TIMED[name])):
            words = itertools.chain(*zip(spelling, map(times.get, TIMED[name]), strict=True))
            assert result(some, *words) == positions
    first = OPTIONS[TIMED[name][0]][0]
    ran = call(name, files[0], "1", first, "1", "-o", str(tmp_path / "x.mp4"))
    assert ran.code == 2
    assert "not both" in ran.err
    for words in ([], [files[0]], [first, "1"]):
        ran = call(name, *words)
        assert ran.code == 2
        usage = " ".join([f"fragdex {name} [OPTIONS] FILE...", *TIMED[name]])
        assert ran.err.startswith(f"fragdex: an argument is missing: {usage}; or FILE... with ")
        assert all(set(OPTIONS[one]) & set(ran.err.split()) for one in TIMED[name])


def test_an_extract_of_one_end_reaches_to_the_other(call, fixtures, tmp_path):
    film = str(fixtures / "faststart.mp4")
    made = {}
    for number, words in enumerate(
        ([film, "--start", "1"], [film, "1", "end"], [film, "--end", "1"], [film, "0", "1"])
    ):
        assert call("extract", *words, "-o", str(tmp_path / f"{number}.mp4")).code == 0
        made[number] = (tmp_path / f"{number}.mp4").read_bytes()
    assert made[0] == made[1]
    assert made[2] == made[3]
