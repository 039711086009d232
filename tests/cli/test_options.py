"""One name of an option, one meaning: what helps say first is the same in every command."""

import re
from collections import defaultdict

import pytest
import typer

from fragdex.cli.app import app_of


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
            long_names |= {
                word: long_names[word] | {one for one in option.opts if one.startswith("--")}
                for word in short
            }
    assert {word: names for word, names in long_names.items() if len(names) > 1} == {}
    assert len(long_names) > 5


def test_every_option_says_what_it_does():
    assert [option for option, helps in MEANINGS.items() if min(map(len, helps)) < 5] == []
