"""Every byte is in one piece, and damage is named by its fragment: that one always, no other."""

from __future__ import annotations

import hashlib
import itertools
import pickle
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fragdex
from forged_indexes import forged_columns, forged_values
from fragdex.byterange import ByteRange
from fragdex.errors import DamagedIndex, FragdexError, InexactIndex, SourceChanged
from fragdex.formats import fidx
from fragdex.formats.fidx_head import build_head, parse_head
from fragdex.fragments.pieces import leaves_of, path_of, root_of, root_of_path
from fragdex.fragments.table import NULL, FragmentFlags
from fragdex.indexing.piece_digests import damage, digest_pieces, edges_of
from fragdex.seeking.model import FileInfo, How, Index
from fragdex.seeking.origin import CheckedSource
from fragdex.testing import RangeServer, movie
from strategies.files import files


def damaged(index: Index, data: bytes) -> list[fragdex.Finding]:
    findings = damage(index, fragdex.open_source(data))
    assert all(finding.code == "damaged-bytes" for finding in findings)
    return list(findings)


def rows_in(findings: list[fragdex.Finding]) -> set[tuple[int | None, int]]:
    """Track and row of every fragment that is named."""
    named = ((f.track, re.match(r"fragment (\d+) ", f.message)) for f in findings)
    return {(track, int(row[1])) for track, row in named if row}


def rows_of_byte(index: Index, at: int) -> set[tuple[int | None, int]]:
    """The fragments that have a byte: its samples, or their boxes outside of all samples."""
    inside, around = set(), set()
    for track in index.tracks:
        for row in range(len(track.fragments)):
            one = track.fragments.rows(slice(row, row + 1))
            if one.flags[0] & FragmentFlags.VIRTUAL:
                continue
            if one.data_start[0] != NULL and one.data_start[0] <= at < one.data_stop[0]:
                inside.add((track.id, row))
            if one.offset[0] <= at < one.offset[0] + one.size[0]:
                around.add((track.id, row))
    return inside or around


@given(files(), st.data())
def test_pieces_are_the_file_and_a_flipped_bit_is_named_where_it_is(film, data) -> None:
    index = fragdex.index(film.data, digests=True, md5=True)
    table, pieces = index.digests.table, [bytes(film.data[s : s + n]) for s, n in places(index)]
    assert b"".join(pieces) == film.data
    assert table.digest.tolist() == [hashlib.sha256(piece).digest() for piece in pieces]
    assert index.file.md5 == hashlib.md5(film.data).hexdigest()
    assert damaged(index, film.data) == []
    at = data.draw(st.integers(0, len(film.data) - 1))
    broken = bytearray(film.data)
    broken[at] ^= 1 << data.draw(st.integers(0, 7))
    findings = damaged(index, bytes(broken))
    assert findings
    assert rows_in(findings) == rows_of_byte(index, at)


def places(index: Index) -> list[tuple[int, int]]:
    table = index.digests.table
    return list(zip(table.start.tolist(), table.size.tolist(), strict=True))


@pytest.mark.parametrize("bit", [0, 3, 7])
def test_ten_thousand_fragments_each_with_a_bit_of_its_own(bit: int) -> None:
    """Every other fragment is damaged, each in another place of its boxes and samples."""
    one = movie(1, samples=1)
    start = int(fragdex.index(one).track(1).fragments.offset[0])
    data = one[:start] + one[start:] * 10_000
    index = fragdex.index(data, digests=True)
    rows = index.track(1).fragments
    hit = np.arange(bit % 2, len(rows), 2)
    broken = np.frombuffer(data, np.uint8).copy()
    at = rows.offset + (np.arange(len(rows)) * 7 + bit) % rows.size
    broken[at[hit]] ^= 1 << bit
    assert rows_in(damaged(index, broken.tobytes())) == {(1, row) for row in hit.tolist()}


def test_damage_of_a_progressive_film_is_named_by_its_times() -> None:
    data = bytearray(movie(4, samples=5, fps=5, tracks=2, fragmented=False))
    index = fragdex.index(bytes(data), digests=True)
    sample = index.track(1).samples.rows(slice(7, 8))
    data[int(sample.offset[0])] ^= 0x80
    # Its megabyte is the whole film.
    assert [str(finding) for finding in damaged(index, bytes(data))] == [
        f"damaged-bytes: 0 s to {end} s has other bytes than when it was indexed "
        f"(track {track}, byte {int(index.track(track).samples.offset[0]):,})"
        for track, end in ((1, "4"), (2, f"{float(index.track(2).stop.seconds):.10g}"))
    ]


def test_a_file_that_was_cut_or_has_grown() -> None:
    data = movie(3, samples=5, fps=5)
    index = fragdex.index(data, digests=True)
    assert rows_in(damaged(index, data[:-1])) == {(1, 2)}
    grown = damaged(index, data + b"more")
    assert [(f.message, f.offset) for f in grown] == [
        ("4 bytes follow that were not there when indexed", len(data))
    ]


@given(st.lists(st.integers(0, 5 << 20), max_size=4), st.integers(0, 5 << 20))
def test_no_piece_is_longer_than_a_megabyte(starts: list[int], size: int) -> None:
    edges = edges_of(Index(FileInfo(), How("boxes", True), ()), size).tolist()
    assert edges[0] == 0
    assert edges[-1] == size
    assert all(0 < b - a <= 1 << 20 for a, b in itertools.pairwise(edges))


def test_pieces_over_the_edges_of_buffers() -> None:
    data = np.random.default_rng(5).bytes(9 << 20)
    edges = np.array([0, 5, (4 << 20) - 1, 4 << 20, (4 << 20) + 3, 8 << 20, 9 << 20])
    digests = digest_pieces(fragdex.open_source(data), edges, md5 := fragdex.digest.Md5())
    whole = [data[a:b] for a, b in itertools.pairwise(edges)]
    assert digests.table.digest.tolist() == [hashlib.sha256(piece).digest() for piece in whole]
    assert md5.hexdigest() == hashlib.md5(data).hexdigest()


# ---- the tree


@given(st.lists(st.binary(min_size=32, max_size=32), min_size=1, max_size=40), st.data())
def test_a_path_leads_to_the_root_from_its_leaf_alone(digests: list[bytes], data) -> None:
    leaves = leaves_of(digests)
    number = data.draw(st.integers(0, len(digests) - 1))
    path, root, count = path_of(leaves, number), root_of(leaves), len(digests)
    assert root_of_path(digests[number], number, count, path) == root
    other = data.draw(st.binary(min_size=32, max_size=32).filter(lambda d: d != digests[number]))
    assert root_of_path(other, number, count, path) != root
    if path:
        assert root_of_path(digests[number], number, count, path[:-1]) is None
    assert root_of_path(digests[number], number, count, (*path, other)) is None
    assert root_of_path(digests[number], count, count, path) is None


def test_the_root_is_that_of_the_rule() -> None:
    def pair(left: bytes, right: bytes) -> bytes:
        return hashlib.sha256(left + right).digest()

    a, b, c = (bytes([n]) * 32 for n in range(3))
    assert root_of(leaves_of([a, b, c])) == pair(pair(a, b), c)
    assert root_of(leaves_of([])) == hashlib.sha256().digest()


# ---- checked reads


@given(st.data())
def test_a_checked_read_gives_the_bytes_or_says_that_they_changed(data) -> None:
    start = data.draw(st.integers(0, len(SMALL)))
    asked = ByteRange(start, data.draw(st.integers(start, len(SMALL) + 9)))
    at = data.draw(st.integers(0, len(SMALL) - 1))
    broken = bytearray(SMALL)
    broken[at] ^= 4
    index = fragdex.index(SMALL, digests=True)
    assert index.checked(SMALL).read_up_to(asked) == SMALL[asked.start : asked.stop]
    source = index.checked(bytes(broken))
    piece = next(p for p in map(ByteRange.of, *zip(*places(index), strict=True)) if at in p)
    if asked.size and asked.start < piece.stop and piece.start < asked.stop:
        with pytest.raises(SourceChanged) as caught:
            source.read_up_to(asked)
        assert caught.value.offset == piece.start
    else:
        assert source.read_up_to(asked) == SMALL[asked.start : asked.stop]


SMALL = movie(5, tracks=2, samples=3)


def test_a_remote_clip_is_checked_and_reads_little_more(tmp_path) -> None:
    data = movie(60, samples=25)
    with RangeServer(data) as server:
        index = fragdex.index(server.url, digests=True, exact=True)
        with fragdex.open_source(server.url) as plain:
            clip = fragdex.clip(index, start=20, stop=22, source=plain)
            expected = clip.read(source=plain)
            cost = plain.bytes_read
        with fragdex.open_source(server.url) as remote:
            checked = index.checked(remote)
            assert isinstance(checked, CheckedSource)
            clip = fragdex.clip(index, start=20, stop=22, source=checked)
            assert clip.read(source=checked) == expected
            assert checked.bytes_read == remote.bytes_read <= 2 * cost


def test_without_digests_nothing_can_be_checked() -> None:
    index = fragdex.index(SMALL)
    for asking in (
        lambda: index.checked(SMALL),
        lambda: damage(index, fragdex.open_source(SMALL)),
    ):
        with pytest.raises(InexactIndex, match="no digests of pieces"):
            asking()


# ---- saved


@given(files())
def test_digests_are_saved_and_sent(film) -> None:
    index = fragdex.index(film.data, digests=True)
    data = fidx.write(index)
    assert data[10] == 1
    fidx.verify(data)
    again = fidx.read(data)
    assert again.digests == index.digests
    assert again.digests.root == index.digests.root
    assert pickle.loads(pickle.dumps(again)).digests == index.digests  # noqa: S301
    assert fidx.write(again) == data
    # An index without them is of the version before, byte for byte.
    index.digests = None
    assert fidx.write(index)[10] == 0


def test_forged_digests_are_refused_or_give_no_wrong_answer() -> None:
    film = movie(1, samples=1)
    saved = fidx.write(fragdex.index(film, digests=True))
    forged = [*forged_values(saved), *forged_columns(saved)]
    mine = [(what, data) for what, data in forged if what.startswith(PIECES)]
    assert len(mine) > 100
    for what, data in mine:
        try:
            fidx.verify(data)
            digests = fidx.read(data).digests
        except DamagedIndex:
            continue
        assert digests is None or (digests.size == len(film) and len(digests.root) == 32), what


PIECES = ("digest", "start", "size")


def test_a_false_root_and_an_unknown_algorithm() -> None:
    saved = fidx.write(fragdex.index(SMALL, digests=True))
    plain, _, start = parse_head(memoryview(saved))
    plain["digests"]["root"] = "00" * 32
    forged = build_head(plain, len(saved) - start)[0] + saved[start:]
    with pytest.raises(DamagedIndex, match="Merkle root"):
        fidx.verify(forged)
    plain["digests"]["algorithm"] = "sha3-256"
    later = build_head(plain, len(saved) - start)[0] + saved[start:]
    assert fidx.read(later).digests is None


def test_the_command_names_damage_of_a_film_that_no_reader_opens(tmp_path, monkeypatch, capfd):
    from fragdex.__main__ import main

    monkeypatch.chdir(tmp_path)
    path = tmp_path / "a.mp4"
    path.write_bytes(SMALL)
    assert main(["index", "a.mp4", "--digests", "--md5"]) == 0
    assert main(["verify", "a.mp4", "a.fidx"]) == 0
    index = fragdex.open_index("a.fidx")
    broken = bytearray(SMALL)
    broken[int(index.track(1).fragments.data_start[3])] ^= 1
    broken[4:8] = b"\xff\xff\xff\xff"
    broken[0:4] = b"\0\0\0\3"
    path.write_bytes(broken)
    with pytest.raises(FragdexError):
        fragdex.index(str(path))
    capfd.readouterr()
    assert main(["verify", "a.mp4", "a.fidx"]) == 1
    lines = capfd.readouterr().out.splitlines()
    assert "a.fidx: damaged-bytes: fragment 3 (" in lines[1]
    assert "track 1" in lines[1]
    assert "outside of fragments" in lines[0]
    assert lines[-1].endswith("FAILED, 3 differences")
