"""Cut off at the edge of a box or within its header, a file keeps what is whole, and says so."""

from __future__ import annotations

import numpy as np
import pytest

import fragdex
from oracle.media_files import fixture_files
from oracle.packet_agreement import samples_by_track

FILES = fixture_files()
# One of each rule for the base, of each order of boxes, and one frame a fragment.
NAMES = (
    "frag-default-base.mp4",
    "frag-base-data-offset.mp4",
    "frag-base-implicit.mp4",
    "frag-global-sidx-stale-base.mp4",
    "frag-separate-moof.mp4",
    "frag-interleaved-truns.mp4",
    "frag-dash.mp4",
    "frag-prft.mp4",
    "frag-every-frame.mp4",
    "frag-samples-in-moov.mp4",
    "piff.ismv",
)


def rows(samples: fragdex.tables.SampleTable) -> list[list[int]]:
    table = [samples.offset, samples.size, samples.dts, samples.cts, samples.sync]
    lists: list[list[int]] = np.stack(table, axis=1).tolist()
    return lists


@pytest.mark.parametrize("name", NAMES)
def test_what_is_whole_stays_as_it_is(name: str) -> None:
    data = FILES[name].read_bytes()
    boxes = fragdex.boxes.parse(data)
    whole = {key: rows(s) for key, s in samples_by_track(fragdex.index(data, exact=True)).items()}
    first = next(box.offset for box in boxes if box.type == "moof")
    for box in boxes:
        for cut in (box.offset, box.offset + 4, box.offset + 12):
            if first < cut < len(data):
                index = fragdex.index(data[:cut], exact=True)
                for key, samples in samples_by_track(index).items():
                    assert rows(samples) == whole[key][: len(samples)]
                    assert (samples.offset + samples.size <= cut).all(), f"cut at byte {cut}"
                # At an edge nothing tells that more was to come, but behind a moof.
                assert index.complete is (cut == box.offset and last_before(boxes, cut) != "moof")


@pytest.mark.parametrize("name", NAMES)
def test_a_file_that_grows_on_gives_the_whole_index(name: str) -> None:
    data = FILES[name].read_bytes()
    boxes = fragdex.boxes.parse(data)
    whole = fragdex.index(data, exact=True)
    first = next(box.offset + box.size for box in boxes if box.type in ("moof", "mdat"))
    for box in boxes:
        for cut in (box.offset, box.offset + 4, box.offset + 12):
            if first < cut < len(data):
                grown = fragdex.index(data[:cut], exact=True).extend(data)
                for mine, truth in zip(grown.tracks, whole.tracks, strict=True):
                    assert mine.fragments == truth.fragments, f"cut at byte {cut}"
                    # How they are put into rows depends on what came at once.
                    assert sync_times(mine.sync_samples) == sync_times(truth.sync_samples)


def sync_times(table: fragdex.tables.SyncTable) -> list[tuple[int, int]]:
    """Number and composition time of every sync sample."""
    return sorted(
        (sample + k * sample_step, cts + k * step)
        for sample, sample_step, cts, step, count in zip(
            table.sample.tolist(),
            table.sample_step.tolist(),
            table.cts.tolist(),
            table.step.tolist(),
            table.count.tolist(),
            strict=True,
        )
        for k in range(count)
    )


def last_before(boxes: tuple[fragdex.boxes.Box, ...], cut: int) -> str:
    return [box.type for box in boxes if box.offset < cut][-1]
