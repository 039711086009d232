"""A slice is found again exactly where the same pixels would be made."""

from dataclasses import replace
from fractions import Fraction

from fragdex.service.renders.plan import View
from fragdex.service.renders.recipe import recipe, still_recipe
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
