"""The site of the documentation builds, with every page found and every link leading somewhere."""

import os
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
MKDOCS = ROOT / ".venv-site" / "bin" / "mkdocs"


@pytest.mark.skipif(not MKDOCS.exists(), reason="MkDocs is missing (./dev setup installs it)")
def test_the_site_builds_without_a_warning(tmp_path):
    done = subprocess.run(
        [MKDOCS, "build", "--strict", "--quiet", "--site-dir", tmp_path],
        cwd=ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    reference = (tmp_path / "reference" / "library" / "index.html").read_text("utf-8")
    assert "fragdex.open_index" in reference
