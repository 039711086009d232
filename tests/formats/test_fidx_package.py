"""The npm package of fidx.js is ready to publish: its files, its version, its types."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest

from formats import fidx_programs as programs

ROOT = Path(__file__).parents[2]
FOLDER = programs.MODULE.parent
TSC = ROOT / "tests/service/generated/node/node_modules/typescript/bin/tsc"
PACKAGE = json.loads((FOLDER / "package.json").read_text())
needs_node = pytest.mark.skipif(shutil.which("node") is None, reason="node is missing")


def test_version_and_licence_are_those_of_the_project():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert PACKAGE["version"] == project["version"]
    assert PACKAGE["license"] == project["license"]
    assert (FOLDER / "LICENSE").read_bytes() == (ROOT / "LICENSE").read_bytes()
    assert "dependencies" not in PACKAGE


@pytest.mark.skipif(shutil.which("npm") is None, reason="npm is missing")
def test_what_npm_packs(tmp_path):
    command = ["npm", "pack", "--dry-run", "--json", "--offline", f"--cache={tmp_path}"]
    done = subprocess.run(command, cwd=FOLDER, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    packed = {one["path"] for one in json.loads(done.stdout)[0]["files"]}
    assert packed == {path.name for path in FOLDER.iterdir() if path.is_file()}
    exported = [one for entry in PACKAGE["exports"].values() for one in paths_of(entry)]
    assert {path.removeprefix("./") for path in exported} <= packed


def paths_of(entry):
    return [entry] if isinstance(entry, str) else entry.values()


@needs_node
@pytest.mark.parametrize("name", ["fidx", "make", "windows"])
def test_types_name_what_the_module_exports(name):
    uri = (FOLDER / f"{name}.js").as_uri()
    script = f"console.log(JSON.stringify(Object.keys(await import({json.dumps(uri)}))))"
    command = ["node", "--input-type=module", "-e", script]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    text = (FOLDER / f"{name}.d.ts").read_text()
    declared = re.findall(r"^export (?:class|function|const) (\w+)", text, re.MULTILINE)
    assert sorted(json.loads(done.stdout)) == sorted(declared)


USE = """
import { FrameIndex, type Sample } from "fragdex-fidx";
import { IndexingError, makeIndex } from "fragdex-fidx/make";
import { Windows } from "fragdex-fidx/windows";

const file = new File([], "a.mp4");
const index = new FrameIndex(await makeIndex(file, { samples: ["video"] }));
const bytes: number = index.seek(1.5).stop - index.span(1, 2)[0].start;
const samples: Sample[] = index.frames({ order: "decode" }).group(7).samples;
const windows = await Windows.open(file, index);
for await (const { picture, time } of windows.window(0, 2)) {
  picture.close();
  time.toFixed(bytes);
}
// @ts-expect-error: a number is not a film
makeIndex(7).catch((error: IndexingError) => samples.length + (error.offset ?? 0));
"""


@needs_node
@pytest.mark.skipif(not TSC.exists(), reason="TypeScript is missing (./dev setup)")
def test_types_hold_in_a_program(tmp_path):
    (tmp_path / "node_modules").mkdir()
    shutil.copytree(FOLDER, tmp_path / "node_modules" / PACKAGE["name"])
    (tmp_path / "use.mts").write_text(USE)
    options = ["--noEmit", "--strict", "--module", "nodenext", "--target", "es2023"]
    options += ["--lib", "es2023,dom,dom.asynciterable"]
    done = subprocess.run(
        ["node", TSC, *options, "use.mts"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout
