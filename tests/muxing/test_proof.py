"""What views prove of the bytes that they keep, by the Merkle root of their source."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import fragdex
from fragdex.errors import InexactIndex
from fragdex.muxing.proof import proof_of
from fragdex.testing import movie

FIXTURES = Path(__file__).resolve().parents[2] / "fixtures"
FILM = movie(6, samples=5, fps=5, tracks=2, reordered=True)
INDEX = fragdex.index(FILM, digests=True)
VIEWS = [
    fragdex.clip(INDEX, start=1.3, stop=4.1, source=FILM),
    fragdex.clip(INDEX, start=1.3, stop=4.1, at_key_frame=True, source=FILM),
    fragdex.view(INDEX, "fragmented", source=FILM),
    fragdex.view(INDEX, "faststart", source=FILM),
    fragdex.view(INDEX, "tracks", tracks=[2], source=FILM),
]


@given(st.sampled_from(VIEWS), st.data())
def test_a_proof_holds_until_one_of_its_bits_is_flipped(view: fragdex.View, data) -> None:
    proof = proof_of(view, INDEX)
    flipped = bytearray(view.read(source=FILM))
    assert proof.root == INDEX.digests.root
    assert proof.wrong(bytes(flipped)) == ()
    for piece in proof.kept:
        source = INDEX.digests.range(piece.number)
        have = b"".join(flipped[one.start : one.stop] for one in piece.ranges)
        assert have == FILM[source.start : source.stop]
    at = data.draw(st.integers(0, len(flipped) - 1))
    flipped[at] ^= 1 << data.draw(st.integers(0, 7))
    assert proof.wrong(bytes(flipped)) == tuple(
        one for p in proof.kept if any(at in r for r in p.ranges) for one in p.ranges
    )


def test_a_package_of_a_fragmented_film_proves_every_picture() -> None:
    """And the sound of every fragment that is not divided between two segments."""
    package = fragdex.package(INDEX, source=FILM)
    proved = sum(proof_of(package[name], INDEX).size for name in package if name.endswith(".m4s"))
    video, audio = (int(track.samples.size.sum()) for track in INDEX.tracks)
    assert video + audio // 2 <= proved <= video + audio


def test_a_copy_of_a_progressive_film_proves_its_whole_megabytes() -> None:
    path = FIXTURES / "faststart.mp4"
    index = fragdex.index(str(path), digests=True)
    copy = fragdex.view(index, "faststart")
    proof = proof_of(copy, index)
    assert proof.size == copy.size
    plain = proof.to_json()
    assert plain["root"] == index.digests.root.hex()
    assert [one["piece"] for one in plain["kept"]] == list(range(plain["pieces"]))


def test_what_cannot_be_proved_is_refused() -> None:
    with pytest.raises(InexactIndex, match="no digests"):
        proof_of(VIEWS[0], fragdex.index(FILM))
    other = movie(2)
    joined = fragdex.join([INDEX, fragdex.index(movie(3))], source=[FILM, movie(3)])
    with pytest.raises(ValueError, match="not a source"):
        proof_of(joined, fragdex.index(other, digests=True))
