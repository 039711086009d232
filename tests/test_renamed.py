"""Old names: each works, warns with the new one, and is told in docs/moving.md."""

import importlib
import inspect
import re
from pathlib import Path

import pytest

import fragdex
from fragdex import renamed
from fragdex.__main__ import main

MOVING = Path(__file__).parent.parent / "docs" / "moving.md"


def rows():
    """What docs/moving.md tells: {before: now}."""
    text = MOVING.read_text("utf-8")
    return dict(re.findall(r"^\| `([^`]+)` \| `([^`]+)` \|", text, re.MULTILINE))


def test_the_docs_tell_every_old_name_and_no_other():
    new_names = {f"fragdex.{old}": f"fragdex.{new}" for old, new in renamed.NAMES.items()}
    for old, new in renamed.ATTRIBUTES.items():
        new_names[old] = f"{old.rpartition('.')[0]}.{new}"
    for old, new in renamed.ARGUMENTS.items():
        function, _, name = old.rpartition(".")
        function = function.replace("Exporting.", "Index.")
        new_names[f"{function}({name}=)"] = f"{function}({new}=)"
    new_names |= renamed.CALLS
    for command, options in renamed.OPTIONS.items():
        new_names |= {f"fragdex {command} {old}": f"fragdex {command} {new}"
                 for old, new in options.items()}  # fmt: skip
    assert rows() == new_names


def test_an_old_option_does_what_it_did_and_says_its_new_name(capsys, root):
    film = str(root / "fixtures" / "frag-cmaf.mp4")
    assert main(["seek", film, "0.2", "--until", "0.4"]) == 0
    old = capsys.readouterr()
    assert old.err == "fragdex: --until is now --stop; the old name goes in 0.2\n"
    assert main(["seek", film, "0.2", "--stop", "0.4"]) == 0
    assert capsys.readouterr() == (old.out, "")
    assert renamed.renewed_options(["render", "--to=3", "--", "--from"])[0] == [
        "render", "--stop=3", "--", "--from",
    ]  # fmt: skip


@pytest.mark.parametrize("old", renamed.NAMES)
def test_an_old_name_of_the_module_is_the_new_one_with_a_warning(old):
    with pytest.warns(DeprecationWarning, match=rf"fragdex\.{old} is now fragdex\.\S+;") as caught:
        value = getattr(fragdex, old)
    home, _, name = renamed.FORMER.get(old, renamed.NAMES[old]).rpartition(".")
    assert value is getattr(importlib.import_module(f"fragdex.{home}".rstrip(".")), name)
    assert caught[0].filename == __file__, "it names the line that uses the old name"
    assert old not in dir(fragdex)


def test_a_name_that_never_was_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'seeek'"):
        fragdex.seeek  # noqa: B018


def thing_class():
    class Thing:
        def __init__(self):
            self.stop = 3

        end = renamed.OldName()

    return Thing


@pytest.fixture
def tables(monkeypatch):
    monkeypatch.setattr(renamed, "ATTRIBUTES", {"Thing.end": "stop"})
    monkeypatch.setattr(renamed, "ARGUMENTS", {"cut.exact": "at", "cut.end": "stop"})


def test_an_old_attribute_is_the_new_one_with_a_warning(tables):
    thing = thing_class()()
    with pytest.warns(DeprecationWarning, match=r"Thing\.end is now stop;") as caught:
        assert thing.end == 3
    assert caught[0].filename == __file__


def test_an_old_attribute_that_no_table_tells_cannot_be_made():
    with pytest.raises((KeyError, RuntimeError)):
        thing_class()


def test_an_old_argument_is_the_new_one_with_a_warning(tables):
    @renamed.old_arguments(end=None, exact={True: "frame", False: "key"}.get)
    def cut(start, *, stop=0, at="key"):
        """What it does."""
        return start, stop, at

    with pytest.warns(DeprecationWarning, match=r"cut\(end=\) is now stop=;") as caught:
        assert cut(1, end=5) == (1, 5, "key")
    assert caught[0].filename == __file__
    with pytest.warns(DeprecationWarning, match="at="):
        assert cut(1, exact=True) == (1, 0, "frame")
    both = pytest.raises(TypeError, match="both are given")
    with pytest.warns(DeprecationWarning, match="stop="), both:
        cut(1, end=5, stop=6)
    assert cut(1, stop=5) == (1, 5, "key")
    assert list(inspect.signature(cut).parameters) == ["start", "stop", "at"]
    assert cut.__doc__ == "What it does."


def test_a_hit_can_still_be_unpacked_and_indexed(root):
    hit = fragdex.index(root / "fixtures" / "frag-cmaf.mp4").seek(1)
    with pytest.warns(DeprecationWarning, match="use the attributes of Hit") as caught:
        track, fragment, *_ = hit
    assert caught[0].filename == __file__
    assert (track, fragment) == (hit.track, hit.fragment)
    with pytest.warns(DeprecationWarning, match=r"Hit\.offset"):
        assert hit[3] == hit.offset


def test_help_of_an_old_attribute_says_the_new_one(root):
    track = fragdex.index(root / "fixtures" / "frag-cmaf.mp4").track(1)
    assert inspect.getdoc(inspect.getattr_static(track, "end")) == "The old name of `stop`."
    with pytest.raises(AttributeError, match=r"Track\.end is now stop"):
        track.end = 1
