"""Uses that mypy must refuse: tests/test_types.py wants an error in each line that ends in `# no`.

It is checked, never run.
"""
# ruff: noqa: B018, SIM115

from typing import Any

import fragdex

index = fragdex.index("movie.mp4")
track = index.track(1)

fragdex.index(123)  # no
fragdex.index(None)  # no
fragdex.index(["a.mp4"])  # no
fragdex.index("a.mp4", True)  # no
fragdex.index("a.mp4", exactt=True)  # no
fragdex.index("a.mp4", exact="yes")  # no
fragdex.index("a.mp4", max_bytes="10")  # no
fragdex.index("a.mp4", retrys=3)  # no
fragdex.index("a.mp4", timeout="3 s")  # no
fragdex.index("a.mp4", init=3)  # no
fragdex.index(open("a.mp4"))  # no
fragdex.open_index(3)  # no
fragdex.open_index("a.fidx", samples=True)  # no
fragdex.open_source(3)  # no
fragdex.open_source("a.mp4", max_requests=1.5)  # no
fragdex.sources.md5(3)  # no
fragdex.sources.md5("a.mp4", progres=print)  # no
fragdex.Indexer(md5="yes")  # no
fragdex.Indexer().feed("text")  # no
fragdex.boxes.parse("text")  # no
fragdex.boxes.parse_box(3)  # no
fragdex.seek  # no
index.track("1")  # no
index.span(0)  # no
index.span(0, None)  # no
index.span(0, 1, tracks=1)  # no
index.span(0, 1, trak=[1])  # no
index.span(0, 1, max_gap=0.5)  # no
index.plan([1])  # no
index.extend(3)  # no
index.save(3)  # no
index.save("a.fidx", sample=True)  # no
index.export("hsl")  # no
index.export(3)  # no
index.export("hls", playlst="media")  # no
index.export("hls", playlist="medium")  # no
index.export("hls", samples=True)  # no
index.export("json", track=1)  # no
index.export("arrow", of="boxes")  # no
index.export("csv", tracks=1)  # no
index.traks  # no
track.seek(None)  # no
track.seek([1.0])  # no
track.seek(b"1:30")  # no
track.seek()  # no
track.seek(1.0, exact=True)  # no
track.seek_many(None)  # no
track.seek(0).rang  # no
track.seek(0).range.begin  # no
fragdex.ByteRange("0", 1)  # no
fragdex.byterange.coalesce([(0, 1)])  # no
one: int = track.seek(0)  # no
two: str = track.seek(0).time.seconds  # no
three: bytes = index.export("csv").decode()  # no
four: list[Any] = index.tracks  # no
five: int = track.seek(0).sample  # no
