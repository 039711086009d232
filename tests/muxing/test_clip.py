"""Clips: what a move breaks is mended, the rest is copied to the byte."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

import fragdex
from fragdex.boxes import build, find_all, make_box, parse, parse_box
from fragdex.byterange import ByteRange
from fragdex.errors import BuildError, LimitExceeded, MalformedBox, NoSyncSample, TrackNotFound
from fragdex.muxing.clip import clip, clip_range
from fragdex.muxing.clip_fragments import Move, decode_times, moved_fragment
from fragdex.muxing.movie import clip_init
from fragdex.muxing.spans import movie_timescale
from fragdex.testing import movie
from repeats import repeated


def made(data, start, stop, **options):
    index = fragdex.index(data, exact=True)
    got = clip(index, lambda part: bytes(data[part.start : part.stop]), start, stop, **options)
    return got, b"".join(
        piece if isinstance(piece, bytes) else data[piece.start : piece.stop]
        for piece in got.pieces
    )


def reader(data):
    return lambda part: bytes(data[part.start : part.stop])


def test_an_init_that_needs_no_change_is_copied_to_the_byte():
    data = movie(fragments=3, tracks=2)
    _, out = made(data, 0, 10, keep_times=True)
    assert out == data


def test_what_can_not_be_cut():
    data = movie(fragments=3)
    with pytest.raises(ValueError, match="must end"):
        made(data, 2, 1)
    with pytest.raises(ValueError, match="not a number"):
        made(data, float("nan"), 1)
    with pytest.raises(NoSyncSample):
        made(data, 50, 51)
    with pytest.raises(TrackNotFound):
        made(data, 0, 1, tracks=[9])
    with pytest.raises(BuildError, match="no initialization segment"):
        made(movie(fragments=2, moov=False), 0, 1)
    with pytest.raises(BuildError, match="no moov"):
        clip_init(build(make_box("free")), None, delays=False, from_samples=False)


@pytest.mark.parametrize("fragmented", [False, True])
def test_what_begins_where_the_clip_ends_is_not_in_it(fragmented):
    data = movie(fragments=3, samples=5, fps=25)
    got, out = made(data, 0, Fraction(1, 5), fragmented=fragmented)
    assert got.stop == Fraction(1, 5)
    assert fragdex.index(out, exact=True).track(1).sample_count == 5


@pytest.mark.parametrize("source", [{}, {"reordered": True}, {"edit": 2000}, {"fragmented": False}])
def test_a_clip_in_fragments_begins_at_zero_with_what_comes_along(source):
    """Pictures in the first fragment of the sound, too: none of them is decoded before 0."""
    data = movie(fragments=4, tracks=2, **source)
    for keep_times in (False, True):
        got, out = made(data, 0.5, 0.7, fragmented=True, keep_times=keep_times)
        tracks = fragdex.index(out, exact=True).tracks
        decoded = min(Fraction(int(t.samples.dts[0]), t.timescale) for t in tracks)
        shown = min(t.start.fraction for t in tracks)
        if keep_times:
            assert shown == got.start > 0
        else:
            assert min(decoded, shown) == 0 <= decoded


@pytest.mark.parametrize("fragmented", [False, True])
def test_a_source_of_unknown_size_gives_the_same_clip(fragmented):
    data = movie(fragments=4, tracks=2, fragmented=False)
    index = fragdex.index(data)
    source = replace(index.file, size=None)
    unknown = fragdex.Index(source, index.how, index.periods)
    files = []
    for one in (index, unknown):
        pieces = clip(one, reader(data), 0.1, 0.5, fragmented=fragmented).pieces
        files.append([bytes(p) if isinstance(p, bytes) else p for p in pieces])
    assert files[0] == files[1]


def test_a_track_that_has_ended_is_not_in_a_clip():
    data = movie(fragments=4, tracks=2)
    index = fragdex.index(data, exact=True)
    period = index.periods[0]
    long, short = period.tracks
    rows = short.fragments.rows(slice(1))
    sync = type(short.sync_samples).of(short.sync_samples.columns() | {"count": rows.sample_count})
    ended = fragdex.Track(short.info, rows, sync)
    period = type(period)(0, period.init, period.movie, (long, ended))
    index = fragdex.Index(index.file, index.how, [period])
    assert ended.stop.fraction < Fraction(1, 2) < long.stop.fraction
    for start, tracks in ((0, (1, 2)), (Fraction(1, 2), (1,))):
        got = clip(index, reader(data), start, 1, keep_times=True)
        assert got.tracks == tracks


def test_the_bytes_of_a_clip_are_those_of_its_tracks():
    data = movie(fragments=3, tracks=2, fragmented=False)
    index = fragdex.index(data)
    pictures, sound = (track.fragments for track in index.tracks)
    alone = [clip_range(index, 0, 10, [number]) for number in (1, 2)]
    assert alone == [
        ByteRange(int(rows.offset.min()), int((rows.offset + rows.size).max()))
        for rows in (pictures, sound)
    ]
    assert clip_range(index, 0, 10) == ByteRange(alone[0].start, alone[1].stop)


@pytest.mark.parametrize(
    ("scales", "ticks"), [((1001, 0), 1001), ((1001, 3), 3003), ((24, 0), 1008), ((24, 25), 1200)]
)
def test_times_of_a_clip_are_whole_in_a_thousand_ticks_a_second_or_little_more(scales, ticks):
    track = fragdex.index(movie()).track(1)
    info = replace(track.info, timescale=scales[0])
    track = fragdex.Track(info, track.fragments, track.sync_samples, movie_timescale=scales[1])
    assert movie_timescale([track]) == ticks


def test_the_length_of_the_whole_movie_goes():
    boxes = list(parse(movie(fragments=2)))
    at = next(n for n, box in enumerate(boxes) if box.type == "moov")
    mvex = boxes[at].find("mvex")
    longer = mvex.replace(children=[make_box("mehd", fragment_duration=9999), *mvex.children])
    children = [longer if box.type == "mvex" else box for box in boxes[at].children]
    boxes[at] = boxes[at].replace(children=children)
    (moov,) = find_all(parse(made(build(boxes), 0, 0.1, fragmented=True)[1]), "moov")
    assert moov.find("mvex/mehd") is None
    assert moov.find("mvex/trex") is not None


@pytest.mark.parametrize("media_time", [0, 1000])
def test_a_clip_keeps_the_delay_and_the_media_time_of_an_edit_list(media_time):
    """And no length, since what follows may be of any."""

    def longer(box):
        if box.type == "elst":
            rows = [(500, -1, 1, 0), (9000, media_time, 1, 0), (300, 4000, 1, 0)]
            return box.replace(entries=rows)
        return box.replace(children=[longer(child) for child in box.children])

    (moov,) = find_all(parse(movie(fragments=1, edit=1000)), "moov")
    for delays, kept in ((True, [(500, -1), (0, media_time)]), (False, [(0, media_time)])):
        made_init = clip_init(build(longer(moov)), None, delays=delays, from_samples=False)
        (elst,) = find_all(parse(b"".join(made_init)), "moov/trak/edts/elst")
        rows = elst["entries"]
        pairs = zip(rows["segment_duration"].tolist(), rows["media_time"].tolist(), strict=True)
        assert list(pairs) == kept


def test_boxes_that_speak_of_the_source_become_free_space_or_move():
    data = movie(fragments=3, samples=25)
    boxes = []
    for box in parse(data):
        if box.type == "moof":
            boxes += [
                make_box("styp", major_brand="msdh", compatible_brands=("msdh",)),
                make_box("sidx"),
                make_box("prft", version=1, reference_track_ID=1, media_time=50000),
                make_box(
                    "emsg",
                    version=1,
                    timescale=1000,
                    presentation_time=2500,
                    scheme_id_uri="urn:x",
                ),
                make_box(
                    "emsg",
                    version=0,
                    timescale=1000,
                    presentation_time_delta=5,
                    scheme_id_uri="urn:y",
                ),
            ]
        boxes.append(box)
    whole = build(boxes)
    out = parse(made(whole, 2.1, 2.2, fragmented=True)[1])
    kinds = ["styp", "free", "prft", "emsg", "emsg", "moof", "mdat"]
    assert [box.type for box in out[2:]] == kinds
    assert out[4]["media_time"] == 0
    assert out[5]["presentation_time"] == 500
    assert out[6]["presentation_time_delta"] == 5
    assert out[-1] == boxes[-1]


def fragment(*trafs, before=()):
    """moof and mdat with these trafs; four bytes of data each."""
    moof = make_box("moof", children=[make_box("mfhd", sequence_number=1), *trafs])
    return build([*before, moof, make_box("mdat", data=bytes(range(4 * len(trafs))))])


def traf(track, *boxes, base=None, offset=0, **tfhd):
    flags = 0x020000 if base is None else 0x000001
    more = {} if base is None else {"base_data_offset": base}
    return make_box(
        "traf",
        children=[
            make_box("tfhd", flags=flags, track_ID=track, **more, **tfhd),
            *boxes,
            make_box("trun", flags=0x201, data_offset=offset, samples=[(4,)]),
        ],
    )


def moved(data, to, move):
    place = ByteRange(0, len(data))
    return b"".join(
        piece if isinstance(piece, bytes) else data[piece.start : piece.stop]
        for piece in moved_fragment(reader(data), place, to, move)
    )


def test_a_tfdt_is_put_in_where_none_is_and_what_lies_behind_is_pushed_on():
    tfxd = make_box(
        "6d1d9b0542d544e680e2141daff757b2",
        version=1,
        fragment_absolute_time=900,
        fragment_duration=10,
    )
    saio = make_box("saio", entries=[(70,)])
    head = len(fragment(traf(1, saio, tfxd), traf(2))) - 8
    data = fragment(traf(1, saio, tfxd, offset=head), traf(2, offset=head + 4))
    out = moved(data, 5000, Move(Fraction(1), {1: 600, 2: 300}, {1: 900, 2: 400}, set(), False))
    (moof, mdat) = parse(out)
    one, two = moof.find_all("traf")
    assert [one.find("tfdt")["baseMediaDecodeTime"], two.find("tfdt")["baseMediaDecodeTime"]] == [
        300,
        100,
    ]
    assert one.find("uuid")["fragment_absolute_time"] == 300
    grown = len(out) - len(data)
    assert grown == 40
    assert one.find("trun")["data_offset"] == head + grown
    assert two.find("trun")["data_offset"] == head + 4 + grown
    assert one.find("saio")["entries"]["offset"].tolist() == [70 + 20]
    assert mdat == parse(data)[1]
    assert decode_times(reader(out), ByteRange(0, len(out))) == {1: 300, 2: 100}


@pytest.mark.parametrize(("version", "bits"), [(0, 32), (1, 64)])
def test_a_time_before_zero_is_counted_from_the_end_of_its_field(version, bits):
    tfdt = make_box("tfdt", version=version, baseMediaDecodeTime=50)
    head = len(fragment(traf(1, tfdt))) - 4
    data = fragment(traf(1, tfdt, offset=head))
    moof = parse(moved(data, 0, Move(Fraction(1), {1: 60}, {}, set(), False)))[0]
    assert moof.find("traf/tfdt")["baseMediaDecodeTime"] == (1 << bits) - 10


def test_declared_bases_go_and_stale_ones_are_mended():
    head = len(fragment(traf(1, base=0), traf(2, base=0))) - 8
    tfdt = make_box("tfdt", version=0, baseMediaDecodeTime=50)
    head += len(build(tfdt))
    for base in (0, 40):
        data = fragment(traf(1, tfdt, base=base, offset=head), traf(2, base=base, offset=head + 4))
        out = moved(data, 7000, Move(Fraction(0), {}, {}, set(), True))
        moof = parse(out)[0]
        assert [tfhd["flags"] for tfhd in moof.find_all("traf/tfhd")] == [0x20000, 0x20000]
        offsets = [trun["data_offset"] for trun in moof.find_all("traf/trun")]
        assert offsets == [moof.size + 8, moof.size + 12]
    with pytest.raises(BuildError, match="are outside it"):
        moved(data, 7000, Move(Fraction(0), {}, {}, set(), False))


def test_a_traf_without_a_header_stays_as_it_is():
    data = fragment(traf(1, offset=0), make_box("traf"))
    head = len(data) - 8
    data = fragment(traf(1, offset=head), make_box("traf"))
    assert moved(data, 0, Move(Fraction(1), {}, {}, {(0, 9)}, True)) == data


def test_samples_may_have_the_size_that_the_trex_says():
    sizeless = make_box("trun", flags=1, sample_count=2, data_offset=0)
    header = make_box("tfhd", flags=1, track_ID=1, base_data_offset=0)
    moof = make_box("moof", children=[make_box("traf", children=[header, sizeless])])
    base = len(build(moof)) + 8
    header = header.replace(base_data_offset=base)
    moof = moof.replace(children=[make_box("traf", children=[header, sizeless])])
    data = build([moof, make_box("mdat", data=bytes(8))])
    out = parse(moved(data, 0, Move(Fraction(0), {}, {}, set(), False, {1: 4})))
    assert out[0].find("traf/trun")["data_offset"] == out[0].size + 8
    with pytest.raises(BuildError, match="are outside it"):
        moved(data, 0, Move(Fraction(0), {}, {}, set(), False, {1: 5}))


def test_media_data_in_front_of_their_moof_come_along(root):
    data = (root / "fixtures" / "made" / "mdat-first.mp4").read_bytes()
    source = fragdex.index(data, exact=True).track(1).samples
    for keep_times in (False, True):
        _, out = made(data, 0.15, 0.2, keep_times=keep_times, fragmented=True)
        table = fragdex.index(out, exact=True, strict=True).track(1).samples
        got = [out[a : a + n] for a, n in zip(table.offset, table.size, strict=True)]
        rows = zip(source.offset[3:6], source.size[3:6], strict=True)
        assert got == [data[a : a + n] for a, n in rows]


def test_a_fragment_that_is_not_there_is_an_error():
    with pytest.raises(MalformedBox, match="not where the index says"):
        moved(b"\0\0\0\3moof" + bytes(20), 0, Move(Fraction(0), {}, {}, set(), False))
    data = bytes.fromhex("00000000 6d646174 01020304")
    assert moved(data, 0, Move(Fraction(0), {}, {}, set(), False)) == data
    large = build(make_box("mdat", data=b"abc", size_form="large"))
    assert moved(large, 0, Move(Fraction(0), {}, {}, set(), False)) == large


def test_samples_keep_their_description(root):
    data = (root / "fixtures" / "faststart.mp4").read_bytes()
    boxes = list(parse(data))
    at = next(n for n, box in enumerate(boxes) if box.type == "moov")

    def twice(box):
        """Every stsd with a second entry, which the chunks after the first are said to use."""
        if box.type == "stsd":
            return box.replace(children=[*box.children, *box.children])
        if box.type == "stsc":
            entries = box["entries"].copy()
            entries["sample_description_index"][1:] = 2
            return box.replace(entries=entries)
        return (
            box.replace(children=[twice(child) for child in box.children]) if box.children else box
        )

    moov = twice(boxes[at])
    grown = len(build(moov)) - boxes[at].size

    def further(box):
        if box.type == "stco":
            entries = box["entries"].copy()
            entries["chunk_offset"] += grown
            return box.replace(entries=entries)
        if not box.children or box.type == "stsd":
            return box
        return box.replace(children=[further(child) for child in box.children])

    boxes[at] = further(moov)
    changed = build(boxes)
    _, out = made(changed, -1, float("inf"), fragmented=True)
    index = fragdex.index(changed, exact=True)
    for track in index.tracks:
        trak = next(t for t in boxes[at].find_all("trak") if t.find("tkhd")["track_ID"] == track.id)
        stsc = trak.find("mdia/minf/stbl/stsc")["entries"]
        first = int(stsc["samples_per_chunk"][0]) * (
            int(stsc["first_chunk"][1]) - 1 if len(stsc) > 1 else 10**6
        )
        described = []
        for traf_ in find_all(parse(out), "moof/traf"):
            tfhd = traf_.find("tfhd")
            if tfhd["track_ID"] == track.id:
                described += [tfhd["sample_description_index"]] * traf_.find("trun")["sample_count"]
        expected = np.where(np.arange(len(described)) < first, 1, 2)
        assert described == expected.tolist()


def test_a_value_that_does_not_fit_is_an_error():
    data = movie(fragments=2, fragmented=False)
    index = fragdex.index(data)
    track = index.track(1)
    columns = track.samples.columns()
    columns["duration"] = columns["duration"] + (1 << 33)
    long = fragdex.Track(
        track.info, track.fragments, track.sync_samples, samples=type(track.samples).of(columns)
    )
    period = index.periods[0]
    other = type(period)(0, period.init, period.movie, (long,))
    wrong = fragdex.Index(index.file, index.how, [other])
    with pytest.raises(BuildError, match="sample_duration of track 1 does not fit"):
        list(clip(wrong, reader(data), 0, 1, fragmented=True).pieces)


def test_a_period_of_its_own(root):
    data = (root / "fixtures" / "two-inits.mp4").read_bytes()
    index = fragdex.index(data, exact=True)
    start = min(float(track.start) for track in index.periods[0].tracks)
    with pytest.raises(BuildError, match="several periods"):
        clip(index, reader(data), start, start + 0.5)
    for period in index.periods:
        got = clip(index, reader(data), start, start + 0.5, period=period.number)
        assert got.tracks == tuple(track.id for track in period.tracks)


def test_the_moov_of_a_clip_is_a_box_like_any_other():
    data = movie(fragments=3, tracks=2, fragmented=False, edit=1000)
    _, out = made(data, 0.1, 0.3, fragmented=True)
    boxes = parse(out)
    assert build(boxes) == out
    moov = next(box for box in boxes if box.type == "moov")
    assert parse_box(build(moov)) == moov
    assert [trex["track_ID"] for trex in moov.find_all("mvex/trex")] == [1, 2]
    (source,) = find_all(parse(data), "moov")
    for child in ("vmhd", "smhd", "dinf", "stbl/stsd"):
        path = f"trak/mdia/minf/{child}"
        assert moov.find_all(path) == source.find_all(path) != ()
    for stbl in moov.find_all("trak/mdia/minf/stbl"):
        assert stbl.find("stsz")["sample_count"] == 0


def test_a_truncated_file_may_claim_more_samples_than_it_has():
    data = repeated("samples-of-one-number", 1)
    got, out = made(data, 0, float("inf"))
    assert got.tracks == (1,)
    (stsz,) = find_all(parse(out), "moov/trak/mdia/minf/stbl/stsz")
    assert 0 < stsz["sample_count"] < len(data)


@pytest.mark.parametrize("fragmented", [False, True])
def test_tracks_that_share_their_bytes_are_not_all_written_out(fragmented):
    """Twenty-six million samples of one byte came of a file of one megabyte."""
    data = repeated("long-samples", 700)
    with pytest.raises(LimitExceeded, match="more samples than the file has bytes") as caught:
        made(data, 0, 10, fragmented=fragmented)
    assert caught.value.advice == "take a shorter clip, or fewer tracks"
    assert made(data, 0, 10, tracks=[1], fragmented=fragmented)[0].tracks == (1,)
