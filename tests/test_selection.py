"""Which tests a change can touch."""

from pathlib import Path
from types import SimpleNamespace

import pytest

import selection

ROOT = Path(__file__).parent.parent
SOURCES = [path for path in selection._files("src") if path.stem not in ("__init__", "env")]


def reached(*changed):
    return {str(path.relative_to(ROOT)) for path in selection.tests_reaching(set(changed))}


def test_every_module_is_reached_by_a_test():
    """A module that no test reaches could be changed, and nothing would run."""
    names = {name: path for name, path in selection._modules().items() if path in SOURCES}
    tests = [path for path in selection._files("tests") if path.name.startswith("test_")]
    reached_names = set().union(*(selection._closure(path) for path in tests))
    assert names.keys() - reached_names == set()


def test_a_test_that_changed_runs_and_others_do_not():
    assert reached("tests/test_digest.py") == {"tests/test_digest.py"}


def test_a_box_reaches_what_reads_boxes():
    tests = reached("src/fragdex/boxes/movie.py")
    assert {"tests/boxes/test_laws.py", "tests/seeking/test_times.py"} <= tests
    assert "tests/test_byterange.py" not in tests


def test_a_room_of_the_service_reaches_its_tests_and_those_of_all_rooms():
    tests = reached("src/fragdex/service/webhooks/worker.py")
    assert {"tests/service/webhooks/test_sending.py", "tests/service/test_openapi.py"} <= tests
    assert not any(
        name.startswith(("tests/rendering/", "tests/service/renders/", "tests/boxes/"))
        for name in tests
    )


def test_a_command_reaches_its_test():
    tests = reached("src/fragdex/cli/verify.py")
    assert "tests/cli/test_md5.py" in tests
    assert "tests/cli/test_plot.py" not in tests


def test_the_compiled_part_reaches_who_calls_it():
    assert "tests/indexing/test_shapes.py" in reached("src/fragdex/native/box_walk.c")


def test_a_page_reaches_the_room_that_it_lies_in():
    tests = reached("src/fragdex/service/console/film.js")
    assert "tests/service/console/test_film.py" in tests
    assert not any(name.startswith("tests/boxes/") for name in tests)


def test_a_document_reaches_the_tests_that_name_it():
    assert reached("docs/scope.md") >= {
        str(path.relative_to(ROOT))
        for path in selection._files("tests")
        if path.name.startswith("test_") and "scope.md" in path.read_text()
    }


def test_what_all_stand_on_reaches_all():
    assert reached("tests/conftest.py") > reached("src/fragdex/boxes/movie.py")


@pytest.mark.parametrize(("is_all", "left"), [(False, ["plain"]), (True, ["plain", "nightly"])])
def test_what_is_nightly_runs_by_all_alone(is_all, left):
    items = [
        SimpleNamespace(
            name=name, path=Path(__file__), get_closest_marker=lambda mark, name=name: mark == name
        )
        for name in ("plain", "nightly")
    ]
    gone = []

    def deselected(items):
        gone.extend(items)

    hook = SimpleNamespace(pytest_deselected=deselected)
    config = SimpleNamespace(getoption={"full_product": is_all}.get, hook=hook)
    selection.pytest_collection_modifyitems(config, items)
    assert [item.name for item in items] == left
    assert len(gone) == 2 - len(left)
