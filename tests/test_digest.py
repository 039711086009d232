"""md5: RFC 1321's own test suite, pieces of any size, and both written forms."""

import hashlib
import io
import json
import pickle
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

import fragdex
from fragdex import sources
from fragdex.byterange import ByteRange
from fragdex.digest import Digest, Md5, md5, parse_digest
from fragdex.errors import InvalidDigest, SourceNotFound, TruncatedInput
from fragdex.testing import movie

# RFC 1321, A.5
SUITE = {
    b"": "d41d8cd98f00b204e9800998ecf8427e",
    b"a": "0cc175b9c0f1b6a831c399e269772661",
    b"abc": "900150983cd24fb0d6963f7d28e17f72",
    b"message digest": "f96b697d7cb7938d525a2f31aaf161d0",
    b"abcdefghijklmnopqrstuvwxyz": "c3fcd3d76192e4007dfb496cca67e13b",
}


@pytest.mark.parametrize("content", SUITE, ids=repr)
def test_the_suite_of_the_rfc(content, tmp_path):
    path = tmp_path / "file"
    path.write_bytes(content)
    for what in (content, path, str(path), io.BytesIO(content), bytearray(content)):
        assert sources.md5(what).hex == SUITE[content]
    assert md5(content).hex == SUITE[content]


@given(st.lists(st.binary(max_size=300)))
def test_pieces_of_any_size_give_the_digest_of_the_whole(pieces):
    running = Md5()
    for piece in pieces:
        running.update(memoryview(piece))
    whole = b"".join(pieces)
    assert running.hexdigest() == hashlib.md5(whole).hexdigest()
    assert bytes(running.digest()) == hashlib.md5(whole).digest()
    assert running.size == len(whole)


@given(st.binary(min_size=16, max_size=16).map(Digest))
def test_both_forms_in_either_case_are_read_back(digest):
    for text in (digest.hex, digest.dashed, digest.hex.upper(), digest.dashed.upper()):
        assert parse_digest(text) == digest
    assert str(digest) == digest.hex
    assert digest.dashed.replace("-", "") == digest.hex


@pytest.mark.parametrize(
    "text",
    [
        "",
        "d41d8cd98f00b204e9800998ecf8427",
        "d41d8cd98f00b204e9800998ecf8427e0",
        "d41d8cd98f00b204e9800998ecf8427g",
        " d41d8cd98f00b204e9800998ecf8427e",
        "d41d8cd98f00b204e9800998ecf8427e\n",
        "d41d8cd98-f00-b204-e980-0998ecf8427e",
        "d41d8cd98f00-b204-e980-0998ecf8427e",
        "{d41d8cd9-8f00-b204-e980-0998ecf8427e}",
        "x" * 1_000_000,
    ],
    ids=lambda text: text[:40],
)
def test_other_text_is_no_digest(text):
    with pytest.raises(InvalidDigest):
        parse_digest(text)
    with pytest.raises(InvalidDigest):
        Digest(text.encode()[:5])


def test_a_digest_is_the_text_of_its_digits():
    digest = md5(b"")
    assert digest == SUITE[b""] == f"{digest}" == json.loads(json.dumps(digest))
    assert {digest: 1}[SUITE[b""]] == 1
    again = pickle.loads(pickle.dumps(digest))  # noqa: S301
    assert (again, type(again), again.dashed) == (digest, Digest, digest.dashed)
    index = fragdex.index(movie(), md5=True)
    saved = fragdex.open_index(index.export("fidx"))
    assert index.file.md5 == saved.file.md5 == md5(movie())
    assert saved.file.md5.dashed == md5(movie()).dashed


def test_a_copy_goes_its_own_way():
    one = Md5(b"ab")
    other = one.copy()
    other.update(b"c")
    assert (one.size, other.size) == (2, 3)
    assert one.dashed() == md5(b"ab").dashed
    assert other.digest() == md5(b"abc")


def test_ranges_are_taken_in_the_order_given():
    asked = [ByteRange(4, 6), ByteRange(0, 2), ByteRange(0, 2)]
    assert md5(b"abcdef", asked) == md5(b"efabab")
    assert sources.md5(b"abcdef", asked) == md5(b"efabab")
    assert md5(b"abcdef", []) == md5(b"")


@pytest.mark.parametrize("kind", ["bytes", "path", "file"])
def test_ranges_past_the_end_are_refused(kind, tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"abcdef")
    what = {"bytes": b"abcdef", "path": path, "file": io.BytesIO(b"abcdef")}[kind]
    with pytest.raises(TruncatedInput):
        sources.md5(what, [ByteRange(5, 7)])
    with pytest.raises(TruncatedInput):
        md5(b"abcdef", [ByteRange(5, 7)])


def test_progress_is_told_after_each_piece(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(bytes(3_000_000))
    steps = []
    sources.md5(path, progress=lambda done, total: steps.append((done, total)))
    assert steps == [(1 << 20, 3_000_000), (2 << 20, 3_000_000), (3_000_000, 3_000_000)]
    steps.clear()
    sources.md5(path, [ByteRange(0, 10)], progress=lambda done, total: steps.append((done, total)))
    assert steps == [(10, 10)]


def test_a_source_that_was_open_stays_open(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"abc")
    with sources.open_source(path) as source:
        assert sources.md5(source) == md5(b"abc")
        assert not source.closed
    with pytest.raises(SourceNotFound):
        sources.md5(tmp_path / "none")


def test_every_use_says_that_it_is_not_for_security():
    program = """
import hashlib
kept = hashlib.md5
def strict(*arguments, usedforsecurity=True, **options):
    if usedforsecurity:
        raise ValueError("disabled for FIPS")
    return kept(*arguments, **options)
hashlib.md5 = strict
from fragdex.sources import md5
print(md5(b"abc"))
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert done.stdout.strip() == SUITE[b"abc"], done.stderr
