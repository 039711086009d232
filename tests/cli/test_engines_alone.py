"""What renders and transcribes does so with its own extra alone, and without the service."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import venv
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement

import fragdex
from fragdex.testing import movie

pytestmark = [pytest.mark.slow, pytest.mark.true_start]

SPEECH = Path(__file__).parents[2] / "fixtures" / "speech"


def needed(name, extras=frozenset(), known=None):
    """The distributions that one needs, with all that they need."""
    known = {} if known is None else known
    distribution = known.setdefault(name, metadata.distribution(name))
    for text in distribution.requires or []:
        one = Requirement(text)
        marks = [{"extra": extra} for extra in (*extras, "")]
        if one.marker is not None and not any(map(one.marker.evaluate, marks)):
            continue
        if one.name == name:
            needed(name, one.extras, known)
        elif one.name not in known:
            needed(one.name, one.extras, known)
    return known


def copy(place, target):
    """By hard links, so that nothing outside of the environment is read."""
    if place.is_dir():
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(place, target, ignore=ignored, copy_function=link, dirs_exist_ok=True)
    elif place.exists():
        link(place, target)


def link(place, target):
    try:
        os.link(place, target)
    except OSError:  # another disk
        shutil.copy2(place, target)


@pytest.fixture
def python_of(tmp_path):
    """python_of(*extras): an interpreter that has fragdex with these extras, and no service."""

    def made(*extras):
        folder = tmp_path / "alone"
        venv.EnvBuilder(symlinks=True).create(folder)
        (site,) = folder.glob("lib/python*/site-packages")
        for name, distribution in needed("fragdex", extras).items():
            if name == "fragdex":
                continue
            for top in {file.parts[0] for file in distribution.files or []} - {"..", "__pycache__"}:
                copy(Path(str(distribution.locate_file(top))), site / top)
        copy(Path(fragdex.__file__).parent, site / "fragdex")
        shutil.rmtree(site / "fragdex" / "service")
        own = metadata.metadata("fragdex")
        metadata_file = site / f"fragdex-{own['Version']}.dist-info" / "METADATA"
        metadata_file.parent.mkdir()
        metadata_file.write_text(str(own))
        python = folder / "bin" / "python"
        for package in ("pydantic", "sqlalchemy", "starlette"):
            command = [python, "-c", f"import {package}"]
            missing = subprocess.run(command, check=False, capture_output=True)
            assert missing.returncode, f"the environment has {package}"
        return python

    return made


def run(python, *command):
    done = subprocess.run(
        [python, "-m", "fragdex", *map(str, command)],
        capture_output=True, encoding="utf-8", check=False, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done


def test_a_page_is_rendered(python_of, tmp_path, chromium):
    (tmp_path / "film.mp4").write_bytes(movie())
    page = tmp_path / "page.html"
    page.write_text("<!doctype html><h1>Here</h1>")
    python = python_of("render")
    out = tmp_path / "out.mp4"
    run(python, "render", page, "-o", out, "--duration", "0.2", "--fps", "10", "--size", "64x48")
    assert fragdex.index(out, exact=True).tracks[0].sample_count == 2
    run(python, "render", page, "-o", tmp_path / "still.png", "--size", "64x48")
    rows = tmp_path / "rows.csv"
    rows.write_text("name\nAda\n")
    short = ("--duration", "0.2", "--fps", "10", "--size", "64x48")
    run(python, "render", page, "-o", tmp_path / "{name}.mp4", "--page-data", rows, *short)
    assert (tmp_path / "Ada.mp4").exists()
    run(python, "render", page, "--dry-run", *short)
    run(python, "render", page, "-o", tmp_path / "sheet.png", "--contact-sheet", "2x1", *short)


def test_speech_is_heard(python_of, tmp_path):
    pytest.importorskip("pocketsphinx")
    out = tmp_path / "said.vtt"
    run(python_of("speech"), "transcribe", SPEECH / "pauses-flac.mp4", "-o", out)
    assert "river" in out.read_text()


def test_doctor_names_what_is_missing_in_a_line(python_of, chromium):
    """Without an extra nothing can be tried, and no traceback says so."""
    done = subprocess.run(
        [python_of("cli"), "-m", "fragdex", "doctor", "--json"],
        capture_output=True, encoding="utf-8", check=False, timeout=300,
    )  # fmt: skip
    assert done.stdout, done.stderr
    parts = {part["name"]: part for part in json.loads(done.stdout)}
    assert all("\n" not in part["said"] for part in parts.values())
    assert (parts["chromium"]["state"], parts["renders"]["state"]) == ("limited", "missing")
    advice = {name: part["advice"] for name, part in parts.items() if part["state"] == "missing"}
    for name, extra in (("renders", "render"), ("media", "media"), ("stills", "media")):
        assert advice[name] == f"pip install 'fragdex[{extra}]'"
