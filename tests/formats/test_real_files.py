"""The saved forms of real files: what muxers wrote comes back as it was indexed."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest

import fragdex
from fragdex.errors import BuildError, FragdexError, InexactIndex
from fragdex.formats import fidx, sample_csv, wire
from fragdex.seeking.model import Index

FIXTURES = sorted(
    path
    for path in Path(__file__).parents[2].joinpath("fixtures").glob("*.*")
    if path.suffix not in (".py", ".json", ".md")
)


def check(index: Index) -> None:
    for samples in (False, True):
        data = fidx.write(index, samples=samples)
        fidx.verify(data)
        opened = fidx.read(data)
        assert fidx.write(opened, samples=samples) == data
        for track, again in zip(index.tracks, opened.tracks, strict=True):
            assert (again.info, again.shift, again.groups) == (
                track.info,
                track.shift,
                track.groups,
            )
            assert again.fragments == track.fragments
            assert again.sync_samples == track.sync_samples
            assert not samples or again.samples == track.samples
    rows = list(csv.DictReader(io.StringIO(sample_csv.write(index).decode())))
    assert len(rows) == sum(track.sample_count or 0 for track in index.tracks)
    try:
        text = wire.write(index)
    except (BuildError, InexactIndex):  # several periods, or no moov
        return
    again = wire.read(text, size=index.file.size)
    assert wire.write(again) == text
    for key, segments in json.loads(text).items():
        track = index.track(int(key))
        for segment in segments["segments"]:
            # who starts at this segment's decoding time finds its bytes
            stop = segment["offset"] + segment["size"]
            assert segment["offset"] <= stop <= (index.file.size or stop)
        assert segments["sample_count"] == track.sample_count


@pytest.mark.parametrize("path", FIXTURES, ids=lambda path: path.name)
def test_fixtures_come_back(path: Path) -> None:
    try:
        index = fragdex.index(path, exact=True)
    except FragdexError as error:
        pytest.skip(f"refused: {type(error).__name__}")
    check(index)


@pytest.mark.corpus
def test_the_corpus_comes_back(corpus: Path) -> None:
    for path in sorted(corpus.glob("*__*")):
        try:
            index = fragdex.index(path, exact=True)
        except FragdexError:
            continue
        check(index)
