"""The tutorial of renders, command by command."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from PIL import Image

import fragdex

PAGE = Path(__file__).parents[2] / "docs" / "first-render.md"


@pytest.mark.slow
@pytest.mark.true_start
def test_the_tutorial_of_renders_works(chromium, checkout):
    blocks = re.findall(r"^```sh\n(.*?)^```", PAGE.read_text("utf-8"), re.DOTALL | re.MULTILINE)
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["sh", "-eu", "-c", "".join(blocks)],
        cwd=checkout,
        env=os.environ | {"PATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    for name, frames in {"hello": 20, "morning": 10, "hello-ada": 10, "hello-alan": 10}.items():
        assert fragdex.index(checkout / "out" / f"{name}.mp4").track(1).sample_count == frames
    with (
        Image.open(checkout / "out" / "still.png") as still,
        Image.open(checkout / "out" / "hello.gif") as moving,
    ):
        assert still.size == (640, 360)
        assert moving.n_frames == 10
