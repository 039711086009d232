"""Films without any other that is like them: parameter sets among the samples say what they are."""

from __future__ import annotations

import pytest
from tests.repairing.broken import Film, check_spans, film

import fragdex
from fragdex.errors import Unprocessable
from fragdex.muxing.movie import traks_of
from fragdex.repairing.pattern import parameter_sets


def with_sets(good: Film) -> tuple[bytes, list[int]]:
    """An ftyp and an mdat of pictures alone, parameter sets in front of each sync sample.

    Returns: its bytes, and where samples begin and the last one ends.
    """
    track = next(t for t in good.index.tracks if t.kind == "video")
    init = b"".join(good.data[part.start : part.stop] for part in good.index.periods[0].init)
    trak = traks_of(fragdex.boxes.parse(init))[track.id]
    stsd = trak.find("mdia/minf/stbl/stsd")
    assert stsd is not None
    sets = b"".join(
        len(unit).to_bytes(4, "big") + unit for unit in parameter_sets(stsd.children[0])
    )
    start, stop = good.box(b"ftyp")
    data, places = good.data[start:stop] + bytes(4) + b"mdat", []
    samples = track.samples
    for at, size, sync in zip(
        samples.offset.tolist(), samples.size.tolist(), samples.sync.tolist(), strict=True
    ):
        places.append(len(data))
        data += (sets if sync else b"") + good.data[at : at + size]
    return data, [*places, len(data)]


@pytest.mark.parametrize("name", ["moov-last.mp4", "hevc-aac.mp4", "ntsc.mp4", "one-gop.mp4"])
def test_pictures_are_found_with_the_sets_among_them(name: str) -> None:
    good = film(name)
    broken, places = with_sets(good)
    track = next(t for t in good.index.tracks if t.kind == "video")
    repair = fragdex.repair(broken, rate="30000/1001" if name == "ntsc.mp4" else 25)
    check_spans(broken, repair)
    (repaired_track,) = repair.tracks
    table = repaired_track.table()
    # where the mdat has no size, the last picture may go on behind the end
    count = len(places) - 2
    assert table.offset.tolist() == places[:count]
    assert (table.offset + table.size).tolist() == places[1 : count + 1]
    assert repaired_track.codec is not None
    assert repaired_track.codec[4:] == (track.codec or "")[4:]
    rate = track.timescale / int(track.samples.duration[0])
    assert repaired_track.seconds == pytest.approx(count / rate)
    mended_track = repair.index(broken).track(1)
    assert mended_track.info.width == track.info.width
    assert mended_track.samples.sync.tolist() == track.samples.sync.tolist()[:count]
    assert "no good file says what they are" in repair.findings[-1]


def test_the_rate_of_the_stream_goes_before_a_guess() -> None:
    broken, _ = with_sets(film("moov-last.mp4"))
    repair = fragdex.repair(broken)  # VUI: 25 pictures a second
    assert repair.tracks[0].seconds == pytest.approx(49 / 25)
    assert not any("no rate is known" in sentence for sentence in repair.findings)


def test_a_rate_that_is_none_is_refused() -> None:
    with pytest.raises(ValueError, match="above 0"):
        fragdex.repair(b"", rate=0)


def test_without_sets_a_good_film_is_asked_for() -> None:
    with pytest.raises(Unprocessable, match="like="):
        fragdex.repair(film("avc3.mp4").without_moov())
