"""The pages' examples that need torch, run in the peers' environment: python examples.py PAGE.

Each ```py block of docs/frames.md asks two libraries for the same, line by line: as many
expressions before as after. docs/training.md has a loop, the same with our sets, and a stream.
"""

from __future__ import annotations

import ast
import os
import re
import sys
import tempfile
import zlib
from collections import Counter
from pathlib import Path
from typing import Any

import av
import torch

sys.path.insert(1, str(Path(__file__).parents[1]))

import loop

import fragdex
from fragdex.data import VideoSet, Windows, WindowSampler, WindowStream, write_set

Names = dict[str, Any]


def blocks(page: Path) -> list[str]:
    """The examples that pytest does not run."""
    return re.findall(r"^```py\n(.*?)^```", page.read_text("utf-8"), re.MULTILINE | re.DOTALL)


def values(code: str, names: Names) -> list[Any]:
    """Run an example; what its bare expressions give."""
    results = []
    for part in ast.parse(code).body:
        if isinstance(part, ast.Expr):
            results.append(eval(compile(ast.Expression(part.value), "page", "eval"), names))  # noqa: S307
        else:
            exec(compile(ast.Module([part], []), "page", "exec"), names)
    return results


def frames(page: Path) -> None:
    """Before and after, pixel by pixel."""
    for code in blocks(page):
        if 'device="cuda"' in code:
            continue  # ./dev bench-gpu compares these pixels
        names: Names = {"fragdex": fragdex, "torch": torch}
        tensors = [one for one in values(code, names) if isinstance(one, torch.Tensor)]
        half = len(tensors) // 2
        assert half, code
        for before, after in zip(tensors[:half], tensors[half:], strict=True):
            assert torch.equal(before, after), code
        print(f"{page.name}: {half} answers are the same tensors")


def _sums(clips: Any) -> Counter[int]:
    """Of each window of a batch of shape (windows, frames, channels, height, width)."""
    assert clips.shape[2] == 3
    assert clips.dtype == torch.uint8
    return Counter(zlib.crc32(one.contiguous().numpy()) for one in clips)


def training(page: Path) -> None:
    """The loop before and after, and the stream: the same windows."""
    names: Names = {"torch": torch, "fragdex": fragdex, "Windows": Windows, "VideoSet": VideoSet}
    names |= {"WindowSampler": WindowSampler, "WindowStream": WindowStream, "path": "movie.mp4"}
    seen: list[Counter[int]] = []
    for code in blocks(page)[:3]:
        values(code, names)
        sums: Counter[int] = Counter()
        for batch in names["loader"]:
            clips = batch
            if isinstance(batch, dict):
                clips = batch["frames"].permute(0, 1, 4, 2, 3)
            sums += _sums(clips)
        seen.append(sums)
        if len(seen) == 2:
            names["stream"] = WindowStream(names["windows"], batch=8)
    assert seen[0] == seen[1] == seen[2]
    print(f"{page.name}: {seen[0].total()} windows are the same tensors in all three loops")


def _made(path: Path) -> None:
    packets = loop.encode(loop.Shape(width=128, height=72))
    with av.open(str(path), "w") as out:
        streams = [out.add_stream_from_template(one) for one in (packets.video, packets.audio)]
        for number, packet in packets.packets(loop.SECONDS):
            packet.stream = streams[number]
            out.mux_one(packet)


def main() -> None:
    """Run the examples of a page on a small film."""
    page = Path(sys.argv[1]).resolve()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        _made(Path("movie.mp4"))
        write_set("movie.mp4", "set.parquet")
        {"frames.md": frames, "training.md": training}[page.name](page)


if __name__ == "__main__":
    main()
