"""Law 6: every route, error, setting and command of the service is in the docs."""

import importlib.util
import json

import pytest

from service.serving import serving


@pytest.fixture(scope="module")
def made(root):
    """The program that writes the docs."""
    spec = importlib.util.spec_from_file_location("make_service", root / "docs/make_service.py")
    program = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(program)
    return program


@pytest.mark.parametrize(
    "page", ["http-api.md", "operations.md", "settings.md", "render-fields.md", "cli.md"]
)
def test_the_tables_are_those_of_the_program(root, page, made):
    text = (root / "docs" / page).read_text("utf-8")
    assert text == made.written(text), "run ./dev docs"
    assert all(f"<!-- {name} -->" in text for name in {
        "http-api.md": ("routes", "problems"), "operations.md": ("commands",),
        "settings.md": ("settings",),
        "render-fields.md": ("render-fields", "render-video", "render-containers"),
        "cli.md": ("render-options",),
    }[page])  # fmt: skip


def test_the_document_in_the_docs_is_the_one_that_is_served(root, made, tmp_path):
    kept = json.loads((root / "docs/openapi.json").read_text("utf-8"))
    with serving(tmp_path) as service:
        served = service.anyone.get("/openapi.json").json()
    served["info"]["version"] = kept["info"]["version"]
    assert kept == served, "run ./dev docs"
    assert (root / "docs/openapi.json").read_text("utf-8") == made.openapi(), "run ./dev docs"
