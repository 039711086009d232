"""A compressed movie header (moov/cmov) is read as if it were plain, or why it is not is told."""

import zlib

import pytest

import fragdex
from fragdex.errors import FormatError, NotISOBMFF
from fragdex.indexing import scan
from fragdex.muxing.kinds import described
from fragdex.testing import movie
from laws import brute


def box(kind, *parts):
    body = b"".join(parts)
    return (8 + len(body)).to_bytes(4, "big") + kind + body


def compressed(moov, method=b"zlib"):
    packed = len(moov).to_bytes(4, "big") + zlib.compress(moov)
    return box(b"moov", box(b"cmov", box(b"dcom", method), box(b"cmvd", packed)))


def behind(**options):
    """A progressive movie up to its moov, which stands at its end, and the moov."""
    data = movie(3, fragmented=False, **options)
    moov = next(part for part in fragdex.boxes.parse(data) if part.type == "moov")
    place = slice(moov.offset, moov.offset + moov.size)
    head = bytearray(data)
    head[moov.offset + 4 : moov.offset + 8] = b"free"
    return bytes(head), data[place]


@pytest.mark.parametrize("tracks", [1, 2])
def test_it_is_the_plain_movie(tracks):
    head, moov = behind(tracks=tracks)
    data = head + compressed(moov)
    index, plain = fragdex.index(data), fragdex.index(head + moov)
    assert not index.findings
    for mine, theirs in zip(index.tracks, plain.tracks, strict=True):
        assert mine.info == theirs.info
        brute.same_tables(mine, theirs)
    for kind in ("fragmented", "clip", "tracks", "faststart", "init"):
        views = [
            described(one, kind, source=bytes_of).read(source=bytes_of)
            for one, bytes_of in ((index, data), (plain, head + moov))
        ]
        assert views[0] == views[1]


@pytest.mark.parametrize(
    ("broken", "why"),
    [
        (lambda moov: compressed(moov, b"adec"), "a way that is not known"),
        (lambda moov: compressed(moov)[:-9] + bytes(9), "is damaged"),
        (lambda moov: compressed(b"\0\0\0\x08free"), "holds is not a moov"),
        (lambda moov: compressed(moov[:90]), "holds is not a moov"),
        (lambda moov: box(b"moov", box(b"cmov")), "a way that is not known"),
    ],
)
def test_what_cannot_be_read_is_told(broken, why):
    head, moov = behind()
    data = head + broken(moov)
    index = fragdex.index(data)
    assert not index.tracks
    assert why in next(f.message for f in index.findings if f.code == "compressed-moov")
    with pytest.raises(FormatError, match=why):
        fragdex.index(data, strict=True)


def test_it_takes_no_more_memory_than_a_limit_allows(monkeypatch):
    head, moov = behind()
    monkeypatch.setattr(scan, "MAX_PLAIN", 100)
    bomb = compressed(moov[:8] + bytes(1 << 27))
    index = fragdex.index(head + bomb)
    assert "too large" in index.findings[0].message
    assert not index.tracks


def test_a_picture_with_a_film_inside_says_where_it_begins():
    film = movie(3)
    picture = box(b"ftyp", b"heic", bytes(4)) + box(b"meta", bytes(4)) + box(b"mdat", bytes(99))
    data = picture + box(b"mpvd", film)
    (finding,) = fragdex.index(data).findings
    assert finding.code == "film-inside"
    assert data[finding.offset :] == film
    assert f"{len(film):,} bytes" in finding.message
    assert [f.code for f in fragdex.index(picture).findings] == ["no-movie"]


@pytest.mark.parametrize("size", [10, (1 << 20) - 3, 3 << 20])
def test_a_jpeg_with_a_film_behind_it_says_where_it_begins(size, tmp_path):
    film = movie(2)
    path = tmp_path / "photo.jpg"
    path.write_bytes(b"\xff\xd8\xff\xe1\0\x20Exif" + bytes(size) + b"\xff\xd9" + film)
    with pytest.raises(NotISOBMFF, match="followed by a complete MP4") as raised:
        fragdex.index(path)
    assert raised.value.offset == size + 12
    path.write_bytes(b"\xff\xd8\xff\xe1" + bytes(size))
    with pytest.raises(NotISOBMFF, match="not an ISO base media file"):
        fragdex.index(path)


def test_no_tracks_are_never_exact_without_a_reason():
    index = fragdex.index(box(b"ftyp", b"isom", bytes(4)) + box(b"moov"))
    assert [f.code for f in index.findings] == ["no-tracks"]
    segment = box(b"styp", b"msdh", bytes(4)) + box(b"moof", box(b"mfhd", bytes(8))) + box(b"mdat")
    (finding,) = fragdex.index(segment).findings
    assert (finding.code, finding.path) == ("no-tracks", "moof")
    assert segment[finding.offset + 4 :].startswith(b"moof")
