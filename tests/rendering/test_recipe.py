"""A slice is found again exactly where the same pixels would be made."""

import json
import shutil
import subprocess
import sys
from dataclasses import replace
from fractions import Fraction
from importlib import metadata
from pathlib import Path

import pytest

import fragdex
from fragdex.rendering.browser.model import PageView
from fragdex.rendering.outputs import Film, Still
from fragdex.rendering.recipe import _version_of, code_digest, engine_modules, recipe
from fragdex.rendering.spec import RenderSpec

VIEW = PageView(1280, 720, Fraction(30))
FILM = RenderSpec()


def test_everything_that_decides_pixels_is_in_the_recipe():
    others = [
        recipe(replace(VIEW, width=1282), range(60), FILM, "1"),
        recipe(replace(VIEW, height=722), range(60), FILM, "1"),
        recipe(replace(VIEW, fps=Fraction(30000, 1001)), range(60), FILM, "1"),
        recipe(replace(VIEW, transparent=True), range(60), FILM, "1"),
        recipe(replace(VIEW, scale=2.0), range(60), FILM, "1"),
        recipe(replace(VIEW, crop=(0, 0, 64, 64)), range(60), FILM, "1"),
        recipe(replace(VIEW, crop=(0, 2, 64, 64)), range(60), FILM, "1"),
        recipe(replace(VIEW, page_fps=2 * VIEW.fps), range(60), FILM, "1"),
        recipe(VIEW, range(1, 60), FILM, "1"),
        recipe(VIEW, range(61), FILM, "1"),
        recipe(VIEW, range(60), FILM, "2"),
        recipe(VIEW, range(1), RenderSpec(still=Still("png"), time_ms=0), "1"),
        recipe(VIEW, range(1), RenderSpec(still=Still("png"), time_ms=1), "1"),
        recipe(VIEW, range(1), RenderSpec(still=Still("webp"), time_ms=0), "1"),
        recipe(VIEW, range(1), RenderSpec(still=Still("webp", quality=81), time_ms=0), "1"),
        *(
            recipe(VIEW, range(60), RenderSpec(film=film), "1")
            for film in (
                Film(crf=20),
                Film(bit_rate=5000),
                Film(gop=5),
                Film(codec="hevc"),
                Film(codec="hevc", pixel_format="yuv444p"),
                Film("gif"),
                Film("wav"),
                Film(codec="hevc", pixel_format="yuv420p10le"),
                Film(codec="hevc", color="bt2020-pq"),
            )
        ),
        recipe(VIEW, range(60), FILM, "1"),
    ]
    assert len(set(others)) == len(others)
    assert recipe(replace(VIEW), range(60), FILM, "1") == others[-1]


def test_the_sound_and_the_container_decide_no_pixels():
    mine = recipe(VIEW, range(60), FILM, "1")
    for film in (Film("mkv", audio="pcm"), Film(sound=False), Film(fragmented=True)):
        assert recipe(VIEW, range(60), RenderSpec(film=film), "1") == mine


def test_all_that_the_engine_imports_counts():
    """A list of files kept by hand forgot those that decode, plan and answer."""
    program = (
        "import json, sys\n"
        "import fragdex.rendering.child, fragdex.rendering.slice\n"
        "import fragdex.rendering.render, fragdex.rendering.outputs\n"
        "print(json.dumps([n for n in sys.modules if n.partition('.')[0] == 'fragdex']))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
    modules, packages = engine_modules()
    assert set(json.loads(done.stdout)) - {"fragdex._native"} <= modules.keys()
    assert {"av", "numpy", "PIL"} <= packages


def test_versions_are_those_of_the_packages_whatever_they_are_installed_as():
    installed = metadata.packages_distributions()
    for package in engine_modules()[1]:
        versions = sorted(map(metadata.version, installed.get(package, [])))
        assert _version_of(package).split() == versions


@pytest.fixture(scope="module")
def copy(tmp_path_factory):
    """A copy of the program, whose files may be changed."""
    folder = tmp_path_factory.mktemp("src") / "fragdex"
    shutil.copytree(
        Path(fragdex.__file__).parent, folder, ignore=shutil.ignore_patterns("__pycache__", "*.so")
    )
    return folder


@pytest.mark.parametrize(
    ("file", "counts"),
    [
        ("decoding/pictures.py", True),
        ("decoding/sound_stream.py", True),
        ("frames/frames.py", True),
        ("rendering/plan.py", True),
        ("rendering/child.py", True),
        ("rendering/encode.py", True),
        ("rendering/browser/steady.js", True),
        ("rendering/recipe.py", False),
        ("service/webhooks/worker.py", False),
    ],
)
def test_a_change_of_the_code_makes_slices_anew(file, counts, copy, monkeypatch):
    monkeypatch.setattr(fragdex, "__file__", str(copy / "__init__.py"))
    before, text = code_digest(), (copy / file).read_text()
    (copy / file).write_text(f"{text}\n")
    try:
        assert (code_digest() != before) == counts
    finally:
        (copy / file).write_text(text)
    assert code_digest() == before
