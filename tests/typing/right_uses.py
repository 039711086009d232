"""A user's program over the whole face: strict mypy passes it, and no expression is Any.

tests/test_types.py runs mypy over it, and the program itself.
"""
# mypy: disallow-any-expr, disallow-any-unimported

import io
import tempfile
from datetime import timedelta
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import fragdex
from fragdex.errors import TrackNotFound
from fragdex.testing import movie

data: bytes = movie(fragments=6, tracks=2, reordered=True)
with tempfile.TemporaryDirectory() as folder:
    path = Path(folder, "movie.mp4")
    path.write_bytes(data)
    index: fragdex.Index = fragdex.index(path, exact=True, md5=True, max_bytes=10**9)
    fragdex.index(str(path), retries=1, timeout=2.0, headers={"a": "b"}, client=None, store=None)
    fragdex.index(bytearray(data), init=fragdex.index(data))
    fragdex.index(memoryview(data), strict=True, partial=True, max_requests=99)
    with path.open("rb") as file:
        fragdex.index(file)
    fragdex.index(io.BytesIO(data))
    with fragdex.open_source(path) as source:
        fragdex.index(source)
        source.read(fragdex.ByteRange(0, 8)).hex()
    saved = Path(folder, "movie.fidx")
    index.save(saved, samples=True)
    opened: fragdex.Index = fragdex.open_index(saved)
    same: bool = opened == index
    hexadecimal: str = fragdex.sources.md5(path, max_bytes=10**9).hex

track: fragdex.Track = index.track(1)
hit: fragdex.Hit = track.seek(0.5)
for time in (1, 0.5, Fraction(1, 3), Decimal("0.5"), timedelta(seconds=1), "1:30", hit.time):
    track.seek(time)
hits: fragdex.Hits = track.seek_many([0.1, 0.2])
track.seek_many(["0.1s", "0:00.2"])
count: int = len(hits)
first_hit: fragdex.Hit = hits[0]
others: fragdex.Hits = hits[1:]
later: fragdex.Time = hits[0].time + 1.5
gap: fragdex.Time = later - hit.time
times: fragdex.Time = 2 * gap
ratio: Fraction = later / gap
for one in hits:
    clock: str = f"{one.time}, {one.time < 0.5}"
own: fragdex.digest.Digest | None = index.file.md5
where: fragdex.ByteRange = hit.range
header: str = where.header
seconds: float = hit.time.seconds
sample: int | None = hit.sample
span: fragdex.Span = index.span("0.1", timedelta(seconds=0.5), tracks=[1], max_gap=10)
clamped: bool = span.clamped
size: int = sum(part.size for part in span.init + span.media)
plan: fragdex.Plan = index.plan(0.5)
why: str = "; ".join(plan.why)
tables: tuple[
    fragdex.tables.FragmentTable, fragdex.tables.SyncTable, fragdex.tables.SampleTable
] = (
    track.fragments,
    track.sync_samples,
    track.samples,
)
start: fragdex.Time | None = track.start
if start is not None:
    exact: Fraction = start.fraction
findings: tuple[fragdex.Finding, ...] = index.findings
codes: list[str] = [finding.code for finding in findings]

written: list[bytes] = [
    index.export("fidx", samples=True),
    index.export("json", segment_duration=0.5, period=0, unknown={"a": 1}),
    index.export("sidx", track=1, period=0, first_offset=0, segment_duration=0),
    index.export("mfra", period=0, source=data),
    index.export("hls", uri="a.mp4", track=1, playlist="media", growing=False),
    index.export("dash", uri="a.mp4", source=data, track=1, segment_duration=0),
    index.export("torchcodec", track=1),
    index.export("frames", track=1, order="decode"),
    index.export("csv", presentation=True, tracks=[1]),
]

indexer = fragdex.Indexer(md5=True, init=None, strict=False)
indexer.feed(data)
need: fragdex.ByteRange | None = indexer.need
finished: fragdex.Index = indexer.finish()
grown: fragdex.Index = fragdex.index(data[:-100]).extend(data)

view: fragdex.View = fragdex.clip(index, 0.1, 0.4, source=data)
clip: bytes = view.read(source=data) + view.read(fragdex.ByteRange(0, 4), source=[data])
status: int = view.respond("GET", {"Range": "bytes=0-3"}, source=data).status
package: fragdex.Package = fragdex.package(index, source=[data])
playlist: bytes = package["master.m3u8"].read()

boxes: tuple[fragdex.boxes.Box, ...] = fragdex.boxes.parse(data)
kind: str = fragdex.boxes.parse_box(data).type
found: fragdex.boxes.Box | None = boxes[0].find("mvhd")
made: fragdex.boxes.Box = fragdex.boxes.make_box("free")

ranges: list[fragdex.ByteRange] = list(fragdex.byterange.coalesce([where, where], max_gap=0))
text: str = fragdex.byterange.content_range(where, 10**9)
answer: fragdex.byterange.RangeAnswer = fragdex.byterange.parse_range("bytes=0-9", 100)
fields: dict[str, str] = answer.headers
fragdex.byterange.parse_content_range("bytes 0-9/100")
digest = fragdex.digest.Md5()
digest.update(data)
null: int = fragdex.tables.NULL
flags: fragdex.tables.FragmentFlags = fragdex.tables.FragmentFlags.VIRTUAL

try:
    index.track(99)
except TrackNotFound as error:
    offset: int | None = error.offset
except fragdex.FragdexError as error:
    message: str = error.message
