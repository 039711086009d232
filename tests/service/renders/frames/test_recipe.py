"""A slice is found again exactly where the same pixels would be made."""

from dataclasses import replace
from fractions import Fraction

from fragdex.service.renders.plan import View
from fragdex.service.renders.recipe import holds, recipe, still_recipe
from fragdex.service.renders.site import Folder
from fragdex.service.renders.stills import Still

VIEW = View(1280, 720, Fraction(30))


def test_everything_that_decides_pixels_is_in_the_recipe():
    others = [
        recipe(replace(VIEW, width=1282), 0, 60, "1"),
        recipe(replace(VIEW, height=722), 0, 60, "1"),
        recipe(replace(VIEW, fps=Fraction(30000, 1001)), 0, 60, "1"),
        recipe(replace(VIEW, transparent=True), 0, 60, "1"),
        recipe(VIEW, 1, 60, "1"),
        recipe(VIEW, 0, 61, "1"),
        recipe(VIEW, 0, 60, "2"),
        still_recipe(VIEW, 0, Still("png"), "1"),
        still_recipe(VIEW, 1, Still("png"), "1"),
        still_recipe(VIEW, 0, Still("webp"), "1"),
        still_recipe(VIEW, 0, Still("webp", quality=81), "1"),
        recipe(VIEW, 0, 60, "1"),
    ]
    assert len(set(others)) == len(others)
    assert recipe(replace(VIEW), 0, 60, "1") == others[-1]


def test_a_manifest_holds_until_something_that_was_read_changes(tmp_path):
    (tmp_path / "index.html").write_text("<link rel=stylesheet href=a.css>")
    (tmp_path / "a.css").write_text("p {}")
    (tmp_path / "unread.css").write_text("p {}")
    site = Folder(tmp_path)
    reads = {path: site.read(path).sha256 for path in ("", "a.css")} | {"missing.js": None}
    assert holds(reads, Folder(tmp_path))
    (tmp_path / "unread.css").write_text("b {}")
    assert holds(reads, Folder(tmp_path))
    # what was looked for in vain must still be missing
    (tmp_path / "missing.js").write_text("")
    assert not holds(reads, Folder(tmp_path))
    (tmp_path / "missing.js").unlink()
    (tmp_path / "a.css").write_text("b {}")
    assert not holds(reads, Folder(tmp_path))
    (tmp_path / "a.css").unlink()
    assert not holds(reads, Folder(tmp_path))
