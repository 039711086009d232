"""Names that a file gives for others: what is below a folder, whatever leads there."""

import os

import pytest

from fragdex.sources.names_in_files import is_below

STEPS = ("a", "b", "out", "in", "file", "..", ".", "")


@pytest.fixture
def folder(tmp_path):
    """A folder with a folder, links into it and out of it, and a file at each place."""
    base, outside = tmp_path / "base", tmp_path / "outside"
    for place in (base, base / "a", base / "a" / "b", outside, outside / "a"):
        place.mkdir(exist_ok=True)
        (place / "file").touch()
    for place in (base, base / "a"):
        (place / "out").symlink_to(outside)
        (place / "in").symlink_to(base / "a")
    return base


@pytest.mark.parametrize("last", STEPS)
@pytest.mark.parametrize("first", STEPS)
def test_what_is_below_is_what_its_real_path_is(folder, first, last):
    for middle in STEPS:
        name = "/".join((first, middle, last))
        for base in (str(folder), f"{folder}/", str(folder / "in"), str(folder / "a" / "..")):
            real = os.path.realpath(os.path.join(base, name))
            root = os.path.realpath(base)
            is_in = real == root or real.startswith(root + os.sep)
            assert is_below(name, base) == is_in, (name, base)


@pytest.mark.parametrize("name", ["/etc/passwd", "../base-of-others/file", "..", "a/../../x"])
def test_what_leads_out_is_not_below(folder, name):
    (folder.parent / "base-of-others").mkdir()
    assert not is_below(name, str(folder))
    assert not is_below(str(folder.parent / "base-of-others"), str(folder))
