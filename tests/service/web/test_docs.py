"""Law 6: every route, error, setting and command of the service is in the docs."""

import importlib.util

import pytest


@pytest.mark.parametrize("page", ["http-api.md", "operations.md"])
def test_the_tables_are_those_of_the_program(root, page):
    program = root / "docs" / "make_service.py"
    spec = importlib.util.spec_from_file_location("make_service", program)
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    text = (root / "docs" / page).read_text("utf-8")
    assert text == made.written(text), "run python docs/make_service.py"
    assert all(f"<!-- {name} -->" in text for name in {
        "http-api.md": ("routes", "problems"), "operations.md": ("settings", "commands")
    }[page])  # fmt: skip
