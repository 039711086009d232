"""The table of forms: every one can be had by its short name."""

from __future__ import annotations

import subprocess
import sys
from ast import literal_eval
from importlib import import_module
from inspect import signature
from pathlib import Path
from typing import get_overloads

import pytest

from fragdex.formats import export
from fragdex.formats.fidx import open_index
from fragdex.seeking.forms import FORMS, Exporting
from fragdex.seeking.model import FileInfo, How, Index

EMPTY = Index(FileInfo("a.mp4"), How("boxes", True), ())


SIGNATURES = {
    name: signature(one)
    for one in get_overloads(Exporting.export)
    for name in literal_eval(signature(one).parameters["form"].annotation.removeprefix("Literal"))
}


def test_every_form_has_a_signature() -> None:
    assert SIGNATURES.keys() == FORMS.keys()


@pytest.mark.parametrize("name", FORMS)
def test_every_form_has_a_writer_with_its_options(name: str) -> None:
    form = FORMS[name]
    writer = getattr(import_module(f"fragdex.{form.module}"), form.function)
    assert tuple(signature(writer).parameters)[1:] == form.options
    assert tuple(SIGNATURES[name].parameters)[2:] == form.options
    assert writer.__doc__
    assert form.suffix.startswith(".")
    assert "/" in form.media_type


def test_an_unknown_form_is_refused() -> None:
    with pytest.raises(ValueError, match="no form 'xml': expected one of fidx, json"):
        export(EMPTY, "xml")


def test_an_index_offers_export_and_save(tmp_path: Path) -> None:
    assert EMPTY.export("csv").startswith(b"track_id,")
    EMPTY.save(tmp_path / "a.fidx")
    assert open_index(tmp_path / "a.fidx").file.name == "a.mp4"


def test_forms_are_imported_when_they_are_used() -> None:
    program = (
        "import sys, fragdex.formats\n"
        "print([m for m in sys.modules if m.startswith('fragdex.formats.') or m == 'pyarrow'])"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert done.stdout.strip() == "[]", done.stderr
