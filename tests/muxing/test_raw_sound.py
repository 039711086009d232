"""Sound that is not coded: long tracks are made into fragments in memory that rows do not cost."""

import os
import tracemalloc

import numpy as np
import pytest

import fragdex
from fragdex.boxes import build, make_box
from fragdex.errors import LimitExceeded
from fragdex.origin.titles import IndexFiles
from fragdex.sources import Source

RATE = 48_000


AT = 1 << 20
"""Where the media begin."""


def film(samples, *, each=24_000, apart=0, edit=None):
    """A movie of 16 bit sound in chunks with bytes between them, as a file whose media are made."""
    starts = np.arange(0, samples, each)
    places = AT + starts * 2 + np.arange(len(starts)) * apart
    entry = make_box(
        "sowt", parent="stsd", data_reference_index=1, channelcount=1, samplesize=16,
        samplerate=RATE << 16,
    )  # fmt: skip
    rest = samples % each
    stbl = make_box(
        "stbl",
        children=[
            make_box("stsd", children=[entry]),
            make_box("stts", entries=[(samples, 1)]),
            make_box("stsc", entries=[(1, each, 1)] + [(len(starts), rest, 1)] * bool(rest)),
            make_box("stsz", sample_size=2, sample_count=samples),
            make_box("co64", entries=[(place,) for place in places.tolist()]),
        ],
    )
    mdia = [
        make_box("mdhd", timescale=RATE, duration=samples),
        make_box("hdlr", handler_type="soun", name=""),
        make_box("minf", children=[make_box("smhd"), stbl]),
    ]
    children = [make_box("tkhd", track_ID=1)]
    if edit is not None:
        elst = make_box("elst", entries=[(edit[1] - edit[0], edit[0], 1, 0)])
        children.append(make_box("edts", children=[elst]))
    trak = make_box("trak", children=[*children, make_box("mdia", children=mdia)])
    moov = make_box("moov", children=[make_box("mvhd", timescale=RATE), trak])
    head = build(make_box("ftyp", major_brand="qt  ")) + build(moov)
    free = AT - 16 - len(head)
    head += free.to_bytes(4, "big") + b"free" + bytes(free - 8)
    size = int(places[-1]) + 2 * (rest or each)
    return Made(head + (1).to_bytes(4, "big") + b"mdat" + (size - AT + 16).to_bytes(8, "big"), size)


class Made(Source):
    """A file larger than the memory that a test may use: each two bytes tell their place."""

    def __init__(self, head, size):
        super().__init__("made", size=size)
        self.head = head

    def read_up_to(self, range):
        range = self._spend(range)
        low = range.start - range.start % 2
        media = np.arange(low // 2, range.stop // 2 + 1).astype(np.uint16).tobytes()
        data = bytearray(media[range.start - low : range.stop - low])
        inside = self.head[range.start : range.stop]
        data[: len(inside)] = inside
        return bytes(data)


def sound_of(data):
    """The bytes of each sample of the only track, and their times."""
    track = fragdex.index(data, exact=True).track(1)
    samples = track.samples
    at = samples.offset[:, None] + np.arange(2)
    shown = samples.cts + round(track.shift)
    return np.frombuffer(data, np.uint8)[at].tobytes(), shown, samples.duration


@pytest.mark.parametrize(
    ("apart", "edit"), [(0, None), (6, None), (6, (1000, 479_999)), (0, (5, 440_000))]
)
def test_a_long_track_has_each_sample_once_at_its_time(apart, edit, monkeypatch):
    monkeypatch.setattr("fragdex.muxing.media.GROUPED_FROM", 1 << 30)
    monkeypatch.setattr("fragdex.muxing.media._MOST_AT_ONCE", 1 << 18)
    source = film(480_000, each=2_000, apart=apart, edit=edit)
    index = fragdex.index(source, exact=True)
    plain = fragdex.view(index, source=source).read(source=source)
    monkeypatch.setattr("fragdex.muxing.media.GROUPED_FROM", 1 << 18)
    view = fragdex.view(index, source=source)
    data = view.read(source=source)
    assert len(data) == view.size
    for one, other in zip(sound_of(data), sound_of(plain), strict=True):
        assert np.array_equal(one, other)
    package = fragdex.package(index, source=source, segment_duration=1)
    (rendition,) = package.title.renditions
    times = rendition.made.time.tolist()
    parts = b"".join(package[f"a1/{time}.m4s"].read(source=source) for time in times[5:8])
    sound = sound_of(package["a1/init.mp4"].read() + parts)
    assert len(sound[1]) == times[8] - times[5]
    assert sound[1][0] == times[5]


def test_an_hour_is_packaged_in_bounded_memory():
    source = film(3600 * RATE, apart=2)
    index = fragdex.index(source, exact=True)
    tracemalloc.start()
    try:
        package = fragdex.package(index, source=source)
        (rendition,) = package.title.renditions
        assert sum(segment.seconds for segment in rendition.segments) == 3600
        last = rendition.made.time.tolist()[-1]
        assert package[f"a1/{last}.m4s"].read(source=source)[4:8] == b"styp"
        assert fragdex.view(index, source=source).size > source.size - AT
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 256 << 20


def test_an_index_of_an_hour_is_not_kept_with_its_samples(tmp_path):
    source = film(3600 * RATE)
    path = tmp_path / "film.mov"
    path.write_bytes(source.head)
    os.truncate(path, source.size)
    with fragdex.open_source(path) as opened:
        index = IndexFiles(tmp_path / "kept").index(str(path), opened)
    assert index.track(1).sample_count == 3600 * RATE
    assert not (tmp_path / "kept").exists()


def test_samples_that_are_not_there_are_not_made():
    """A few bytes may claim a day of sound."""
    whole = film(24 * 3600 * RATE, each=1 << 30)
    source = Made(whole.head, AT + 2 * RATE)
    index = fragdex.index(source, exact=True)
    view = fragdex.view(index, source=source)
    assert view.size < 4 * RATE
    assert len(sound_of(view.read(source=source))[1]) == RATE


def test_a_timeline_of_long_raw_sound_is_refused():
    source = film(900 * RATE)
    index = fragdex.index(source, exact=True)
    with pytest.raises(LimitExceeded, match="track 1 has more samples"):
        fragdex.join([index, index], source=[source, source])
