"""The table of forms: every one can be had by its short name."""

from __future__ import annotations

import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

from fragdex.formats import FORMS, export
from fragdex.formats.fidx import open_index
from fragdex.seeking.model import FragmentIndex, How, SourceInfo

NAMES = ["fidx", "json", "sidx", "mfra", "hls", "dash", "arrow", "parquet", "torchcodec", "csv"]
NAMES += ["frames", "frames-json"]
EMPTY = FragmentIndex(SourceInfo("a.mp4"), How("boxes", True), ())


def test_the_short_names() -> None:
    assert list(FORMS) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_every_form_has_a_writer(name: str) -> None:
    form = FORMS[name]
    writer = getattr(import_module(form.module), form.function)
    assert callable(writer)
    assert writer.__doc__
    assert form.suffix.startswith(".")
    assert "/" in form.media_type


def test_an_unknown_form_is_refused() -> None:
    with pytest.raises(ValueError, match="no form 'xml': expected one of fidx, json"):
        export(EMPTY, "xml")


def test_an_index_offers_export_and_save(tmp_path: Path) -> None:
    assert EMPTY.export("csv").startswith(b"track_id,")
    EMPTY.save(tmp_path / "a.fidx")
    assert open_index(tmp_path / "a.fidx").source.name == "a.mp4"


def test_forms_are_imported_when_they_are_used() -> None:
    program = (
        "import sys, fragdex.formats\n"
        "print([m for m in sys.modules if m.startswith('fragdex.formats.') or m == 'pyarrow'])"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert done.stdout.strip() == "[]", done.stderr
