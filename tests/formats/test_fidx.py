"""The binary index comes back as it was saved, and says so where it cannot."""

from __future__ import annotations

import contextlib
import copy
import os
import pickle
import stat
import zlib
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from formats import index_format_page
from fragdex.errors import DamagedIndex, InexactIndex, SourceNotFound
from fragdex.formats import fidx
from fragdex.formats.fidx_head import HEADER, build_head, parse_head
from fragdex.fragments.table import SampleTable
from fragdex.seeking.model import FileInfo, How, Index, Period, Track
from strategies.indexes import (
    indexes,
    sample_tables,
    tables_from_samples,
    track_infos,
)


def same(a: Index, b: Index, *, samples: bool) -> bool:
    def told(index: Index) -> tuple[object, ...]:
        periods = [(p.number, p.init, p.movie, len(p.tracks)) for p in index.periods]
        tracks = [(t.info, t.shift, t.period, t.exact, t.groups) for t in index.tracks]
        rest = (index.file, index.how, index.findings, index.complete, index.resume_offset)
        return (*rest, periods, tracks)

    return told(a) == told(b) and all(
        x.fragments == y.fragments
        and x.sync_samples == y.sync_samples
        and (x.samples == y.samples if samples else not y.has_samples)
        for x, y in zip(a.tracks, b.tracks, strict=True)
    )


@given(indexes(), st.booleans())
def test_what_is_written_is_read_back(index: Index, samples: bool) -> None:
    data = fidx.write(index, samples=samples)
    assert same(index, fidx.read(data), samples=samples)
    fidx.verify(data)
    assert fidx.write(fidx.read(data), samples=samples) == data
    with mock.patch.object(fidx, "FEW", -1):
        assert fidx.write(index, samples=samples) == data


@given(indexes(max_periods=1, max_tracks=1), st.data())
def test_every_changed_byte_is_noticed(index: Index, data: st.DataObject) -> None:
    whole = bytearray(fidx.write(index, samples=True))
    place = data.draw(st.integers(0, len(whole) - 1))
    whole[place] ^= data.draw(st.integers(1, 255))
    with pytest.raises(DamagedIndex):
        fidx.verify(whole)
    if place < parse_head(memoryview(fidx.write(index, samples=True)))[1]:
        with pytest.raises(DamagedIndex):
            fidx.read(whole)  # the header and the JSON part are tested at opening


@pytest.fixture
def small() -> Index:
    """One video track: four samples in two fragments."""
    samples = SampleTable.of(
        {
            "offset": [200, 210, 320, 330],
            "size": [10, 20, 10, 20],
            "dts": [0, 1, 2, 3],
            "cts": [1, 3, 2, 4],
            "duration": [1, 1, 1, 1],
            "sync": [True, False, True, False],
        }
    )
    fragments, sync = tables_from_samples(samples, [2], head=96)
    info = replace(fidx.TrackInfo.unknown(1), kind="video", handler="vide", timescale=25)
    track = Track(info, fragments, sync, samples=samples)
    movie = fidx.Movie(25, 0, True, (info,))
    how = How("boxes", True, "no sidx and no mfra")
    return Index(FileInfo("a.mp4", 350), how, [Period(0, (), movie, (track,))])


def test_every_single_byte_counts(small: Index) -> None:
    data = fidx.write(small, samples=True)
    for place in range(len(data)):
        changed = bytearray(data)
        changed[place] ^= 0x10
        with pytest.raises(DamagedIndex):
            fidx.verify(changed)


def test_every_cut_is_noticed_at_opening(small: Index) -> None:
    data = fidx.write(small, samples=True)
    for size in range(len(data)):
        with pytest.raises(DamagedIndex):
            fidx.read(data[:size])
    with pytest.raises(DamagedIndex, match="cut off or has grown"):
        fidx.read(data + b"\0")


@given(st.binary(max_size=300))
def test_random_bytes_are_refused(data: bytes) -> None:
    with pytest.raises(DamagedIndex):
        fidx.open_index(data)
    with pytest.raises(DamagedIndex):
        fidx.open_index(fidx.MAGIC + data)


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.text(max_size=5)
    | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=6,
)


@settings(max_examples=2 * settings.default.max_examples)
@given(indexes(max_periods=1, max_tracks=1), st.data(), json_values)
def test_a_hostile_json_part_with_a_right_checksum(
    index: Index, data: st.DataObject, value: object
) -> None:
    """Any value in any place: opened, or refused with its place; never another error.

    What can be opened can be printed.
    """
    whole = fidx.write(index, samples=True)
    plain, _, start = parse_head(memoryview(whole))
    at = plain
    while True:
        if isinstance(at, dict) and at:
            key = data.draw(st.sampled_from(sorted(at)))
        elif isinstance(at, list) and at:
            key = data.draw(st.integers(0, len(at) - 1))
        else:
            return
        if not isinstance(at[key], (dict, list)) or data.draw(st.integers(0, 4)) == 0:
            break
        at = at[key]
    if data.draw(st.booleans()) and isinstance(at, dict):
        del at[key]
    else:
        at[key] = value
    changed = build_head(plain, len(whole) - start)[0] + whole[start:]
    with contextlib.suppress(DamagedIndex):
        fidx.verify(changed)
    try:
        opened = fidx.read(changed)
    except DamagedIndex:
        return
    assert repr(opened)
    assert opened._repr_html_()
    assert all(map(repr, opened.tracks))


def test_json_that_is_nested_without_end_is_refused() -> None:
    text = b"[" * 200_000
    start = -(-(64 + len(text)) // 64) * 64
    header = HEADER.pack(fidx.MAGIC, 1, 0, 0x0A0B0C0D, start, len(text), start, 0)[:60]
    checksum = zlib.crc32(text, zlib.crc32(header))
    data = (header + checksum.to_bytes(4, "little") + text).ljust(start, b"\0")
    with pytest.raises(DamagedIndex, match="JSON part cannot be read"):
        fidx.read(data)


def test_a_newer_major_version_is_refused_and_a_newer_minor_is_read(small: Index) -> None:
    data = bytearray(fidx.write(small))
    data[8:10] = (2).to_bytes(2, "little")
    with pytest.raises(DamagedIndex, match=r"version 2\.0 .* too new.*update fragdex"):
        fidx.read(data)
    data = bytearray(fidx.write(small))
    data[10:12] = (7).to_bytes(2, "little")
    text_end = parse_head(memoryview(fidx.write(small)))[1]
    checksum = zlib.crc32(data[64:text_end], zlib.crc32(data[:60]))
    data[60:64] = checksum.to_bytes(4, "little")
    assert same(small, fidx.read(data), samples=False)


def test_what_a_later_minor_version_may_add_is_passed_over(small: Index) -> None:
    whole = fidx.write(small)
    plain, _, start = parse_head(memoryview(whole))
    plain["later"] = {"a": 1}
    tables = plain["periods"][0]["tracks"][0]["tables"]
    tables["later"] = {"rows": 1, "columns": [["x", "<f8", 0, 0]]}
    tables["fragments"]["columns"].append(["later", "<f8", 0, 0])
    changed = build_head(plain, len(whole) - start)[0] + whole[start:]
    assert same(small, fidx.read(changed), samples=False)


@pytest.mark.parametrize(
    ("change", "pointer"),
    [
        (lambda table: table.update(rows=10**15), "/columns/0"),
        (lambda table: table.update(rows=-1), "/rows"),
        (lambda table: table["columns"][0].__setitem__(2, 2**62), "/columns/0/2"),
        (lambda table: table["columns"][0].__setitem__(2, 8), "/columns/0/2"),
        (lambda table: table["columns"][0].__setitem__(1, "<f8"), "/columns/0/1"),
        (lambda table: table["columns"].pop(0), "/columns"),
        (lambda table: table["columns"].append(table["columns"][0]), "/columns/13"),
        (lambda table: table.update(rows=2**62), "/columns/0"),
        (lambda table: table.update(rows=2**64), "/rows"),
    ],
)
def test_a_column_that_leads_elsewhere_is_refused_at_opening(
    small: Index, change: object, pointer: str
) -> None:
    whole = fidx.write(small)
    plain, _, start = parse_head(memoryview(whole))
    change(plain["periods"][0]["tracks"][0]["tables"]["fragments"])
    changed = build_head(plain, len(whole) - start)[0] + whole[start:]
    with pytest.raises(DamagedIndex) as caught:
        fidx.read(changed)
    assert caught.value.path == "/periods/0/tracks/0/tables/fragments" + pointer
    with pytest.raises(DamagedIndex, match=r"tables/fragments"):
        fidx.verify(changed)


@pytest.mark.parametrize(
    "copied",
    [copy.copy, copy.deepcopy, lambda index: pickle.loads(pickle.dumps(index))],  # noqa: S301
)
def test_an_opened_index_can_be_copied_and_sent(
    small: Index, tmp_path: Path, copied: Callable[[object], Index]
) -> None:
    fidx.save(small, tmp_path / "a.fidx", samples=True)
    opened = fidx.open_index(tmp_path / "a.fidx")
    assert same(small, copied(opened), samples=True)
    assert same(small, opened, samples=True)


def test_the_tables_of_a_track_are_taken_once(small: Index) -> None:
    opened = fidx.read(fidx.write(small)).track(1)
    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(lambda _: opened.seek(0.1) == small.track(1).seek(0.1), range(64)))
    assert opened.fragments is opened.fragments
    with pytest.raises(AttributeError):
        _ = opened.fragment


def test_tables_that_contradict_each_other_are_found_by_verify(small: Index) -> None:
    track = small.tracks[0]
    bad = [
        ("sync", replace(track.sync_samples, fragment=track.sync_samples.fragment + 5)),
        ("sync", replace(track.sync_samples, count=track.sync_samples.count * 0)),
        ("sync", replace(track.sync_samples, cts=-track.sync_samples.cts)),
        ("sync", replace(track.sync_samples, step=track.sync_samples.step - 1)),
        ("fragments", replace(track.fragments, size=-track.fragments.size)),
        ("fragments", replace(track.fragments, sample_start=track.fragments.sample_start + 1)),
    ]
    for name, table in bad:
        parts = {"fragments": track.fragments, "sync": track.sync_samples, name: table}
        wrong = Track(track.info, parts["fragments"], parts["sync"], samples=track.samples)
        period = replace(small.periods[0], tracks=(wrong,))
        data = fidx.write(Index(small.file, small.how, [period]), samples=True)
        fidx.read(data)
        with pytest.raises(DamagedIndex, match=r"contradict|numbers that no file has"):
            fidx.verify(data)
        with pytest.raises(DamagedIndex):
            _ = fidx.read(data).track(1).fragments


def test_columns_are_views_of_the_file_and_cannot_be_written(small: Index, tmp_path: Path) -> None:
    fidx.save(small, tmp_path / "a.fidx", samples=True)
    track = fidx.open_index(tmp_path / "a.fidx").track(1)
    for table in (track.fragments, track.sync_samples, track.samples):
        for column in table.columns().values():
            assert not column.flags.owndata
            assert column.ctypes.data % 64 == 0
            with pytest.raises(ValueError, match="read-only"):
                column[:1] = 0


def test_an_opened_index_answers_like_the_one_that_was_saved(small: Index, tmp_path: Path) -> None:
    fidx.save(small, tmp_path / "a.fidx")
    opened = fidx.open_index(str(tmp_path / "a.fidx"))
    for time in (0, 0.05, 0.1, 3):
        assert opened.track(1).seek(time) == small.track(1).seek(time)
    with pytest.raises(InexactIndex, match="not in this index"):
        _ = opened.track(1).samples


def test_saving_replaces_the_file_and_keeps_its_mode(small: Index, tmp_path: Path) -> None:
    path = tmp_path / "a.fidx"
    path.write_bytes(b"old")
    path.chmod(0o640)
    (tmp_path / "link").symlink_to(path)
    fidx.save(small, tmp_path / "link")
    assert fidx.open_index(path).file == small.file
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    assert (tmp_path / "link").is_symlink()
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a.fidx", "link"]


def test_a_new_file_has_the_mode_that_the_umask_gives(small: Index, tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        fidx.save(small, tmp_path / "a.fidx")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "a.fidx").stat().st_mode) == 0o640


def test_saving_that_fails_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    info = fidx.TrackInfo.unknown(1)
    fragments, sync = tables_from_samples(SampleTable.empty(), [])
    track = Track(info, fragments, sync)  # it holds no samples
    index = Index(
        FileInfo(), How("sidx", False), [Period(0, (), fidx.Movie(0, 0, True, ()), (track,))]
    )
    path = tmp_path / "a.fidx"
    path.write_bytes(b"old")
    with pytest.raises(InexactIndex):
        fidx.save(index, path, samples=True)
    assert path.read_bytes() == b"old"
    assert [p.name for p in tmp_path.iterdir()] == ["a.fidx"]


def test_an_index_stays_good_when_its_file_is_replaced(small: Index, tmp_path: Path) -> None:
    path = tmp_path / "a.fidx"
    fidx.save(small, path, samples=True)
    opened = fidx.open_index(path)
    fidx.save(Index(FileInfo("other"), small.how, ()), path)
    assert same(small, opened, samples=True)
    assert fidx.open_index(path).file.name == "other"


def test_a_missing_file_and_an_empty_one(tmp_path: Path) -> None:
    with pytest.raises(SourceNotFound):
        fidx.open_index(tmp_path / "none.fidx")
    (tmp_path / "empty.fidx").touch()
    with pytest.raises(DamagedIndex):
        fidx.open_index(tmp_path / "empty.fidx")


@given(sample_tables(), track_infos())
def test_a_track_met_in_fragments_alone_is_spelled_out(samples: SampleTable, info: object) -> None:
    fragments, sync = tables_from_samples(samples, [])
    track = Track(info, fragments, sync, samples=samples)
    index = Index(
        FileInfo(), How("boxes", True), [Period(0, (), fidx.Movie(0, 0, True, ()), (track,))]
    )
    assert same(index, fidx.read(fidx.write(index, samples=True)), samples=True)


def test_the_page_of_the_format_is_true() -> None:
    text = index_format_page.PAGE.read_text(encoding="utf-8")
    assert index_format_page.page(text) == text
    assert fidx.read(index_format_page.example()).track(1).seek(0).range.start == 700


@pytest.mark.parametrize("heading", index_format_page.RECORDS)
def test_the_page_lists_every_member(heading: str) -> None:
    kind = index_format_page.RECORDS[heading]
    assert index_format_page.listed(heading) == index_format_page.members(kind)


def test_the_page_lists_the_members_of_what_is_inside() -> None:
    text = index_format_page.PAGE.read_text(encoding="utf-8")
    for kind in index_format_page.INSIDE:
        names = ", ".join(name for name, _ in index_format_page.members(kind))
        assert f"`{{{names}}}`" in text, kind


def test_the_page_lists_the_columns_of_the_set() -> None:
    pa = pytest.importorskip("pyarrow")
    from fragdex.data.set_file import schema

    def flat(fields: Any, before: str = "") -> Iterator[tuple[str, str]]:
        for one in fields:
            is_list = pa.types.is_list(one.type)
            yield before + one.name, "list" if is_list else str(one.type)
            if is_list:
                inner = one.type.value_type
                yield from flat(map(inner.field, range(inner.num_fields)), f"{before}{one.name}.")

    assert index_format_page.set_columns() == list(flat(schema()))
