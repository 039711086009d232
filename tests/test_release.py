"""What people install: built as for a release, and tried where nothing else is installed."""

from __future__ import annotations

import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path
from typing import Any

import pytest

from fragdex.indexing import native

ROOT = Path(__file__).resolve().parents[1]
MOST_INSTALLED = 16 << 20
DATA = {"py.typed", "fidx_vectors.tar.xz", "readers.tar.xz"}
NOT_CODE = {".js", ".css", ".html"}
READERS = ROOT / "src/fragdex/formats"
"""Where the readers of an index are that are no Python."""


def run(*command: Any, **options: Any) -> None:
    subprocess.run(
        [sys.executable, *command],
        check=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        **options,
    )


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with a source distribution, and the wheel that is built from it alone."""
    folder = tmp_path_factory.mktemp("built")
    run("-m", "build", "--no-isolation", "--outdir", folder, cwd=ROOT)
    return folder


@pytest.fixture(scope="module")
def wheel(built: Path) -> Path:
    (wheel,) = built.glob("*.whl")
    return wheel


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("installed")
    run("-m", "pip", "install", "--no-deps", "--no-index", "--target", folder, wheel)
    return folder


def test_a_wheel_holds_the_package_and_nothing_else(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        held = {Path(name) for name in archive.namelist() if ".dist-info/" not in name}
    source = ROOT / "src"
    expected = {
        path.relative_to(source)
        for path in (source / "fragdex").rglob("*")
        if (path.suffix in {".py", *NOT_CODE} or path.name in DATA)
        and path.parent.name != "fidx-js"
    }
    assert {path for path in held if path.suffix != ".so"} == expected


def test_a_wheel_holds_the_readers_of_other_languages(installed: Path, tmp_path: Path) -> None:
    paths = [READERS / "fidx.h", *(READERS / "fidx-js").iterdir()]
    with tarfile.open(installed / "fragdex/formats/readers.tar.xz") as archive:
        archive.extractall(tmp_path)
        assert len(archive.getnames()) == len(paths)
    for path in paths:
        assert (tmp_path / path.relative_to(READERS)).read_bytes() == path.read_bytes()


def test_one_wheel_serves_python_3_11_and_all_later_versions(wheel: Path) -> None:
    if native.compiled is None:
        pytest.skip("the C extension was not compiled")
    assert "-cp311-abi3-" in wheel.name
    with zipfile.ZipFile(wheel) as archive:
        assert "fragdex/_native.abi3.so" in archive.namelist()


def test_a_source_distribution_holds_what_a_wheel_is_built_from(built: Path) -> None:
    (path,) = built.glob("*.tar.gz")
    with tarfile.open(path) as archive:
        held = {name.partition("/")[2] for name in archive.getnames()}
    sources = (ROOT / "src/fragdex/native").glob("*.[ch]")
    code = {path.relative_to(ROOT).as_posix() for path in sources}
    assert code
    code |= {
        (READERS / name).relative_to(ROOT).as_posix() for name in ("fidx.h", "fidx-js/fidx.js")
    }
    assert code | {"setup.py", "pyproject.toml", "README.md", "LICENSE"} <= held
    assert not {name for name in held if name.startswith(("tests", "fixtures", "benchmarks"))}


def test_installed_it_is_small(installed: Path) -> None:
    """With the bytecode that pip makes; numpy and construct apart."""
    size = sum(path.stat().st_size for path in installed.rglob("*") if path.is_file())
    assert size < MOST_INSTALLED, f"{size / (1 << 20):.1f} MiB"


def test_installed_it_indexes(installed: Path) -> None:
    options = [] if native.compiled is not None else ["--pure"]
    run(
        *(ROOT / "tools" / "check_wheel.py", *options, ROOT / "fixtures" / "made"),
        env={"PYTHONPATH": str(installed), "PYTHONSAFEPATH": "1"},
    )
