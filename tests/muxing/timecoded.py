"""Movies with timecode tracks and chapter lists, and what they say at a time."""

from fractions import Fraction

import numpy as np

from fragdex.boxes import build, find, make_box, parse
from fragdex.testing import movie

DROP, DAY, NEGATIVE, COUNTER = 1, 2, 4, 8
TIMECODE = 9
"""track_ID of the timecode track."""


def film(samples, *, scale, duration, frames, flags=0, late=None, chapters=(), **options):
    """A progressive movie with a timecode track, whose samples are (value, ticks)."""
    data = movie(fragmented=False, **options)
    boxes = parse(data)
    moov = find(boxes, "moov")
    values = b"".join((value % (1 << 32)).to_bytes(4, "big") for value, _ in samples)
    at = len(data) + 8
    children = [_refers(box) for box in moov if box.type != "udta"]
    children.append(_trak(samples, at, scale, duration, frames, flags, late))
    if chapters:
        rows = [{"start": start, "title": title} for start, title in chapters]
        listed = make_box("chpl", version=1, reserved=0, chapters=rows)
        children.append(make_box("udta", children=[listed]))
    # the old moov becomes free space, so that nothing moves
    old = data[moov.offset : moov.stop]
    free = old[:4] + b"free" + old[8:]
    mdat = (8 + len(values)).to_bytes(4, "big") + b"mdat" + values
    last = build(moov.replace(children=children))
    return data[: moov.offset] + free + data[moov.stop :] + mdat + last


def _refers(box):
    if box.type != "trak" or box.find("tkhd")["track_ID"] != 1:
        return box
    tref = make_box("tref", children=[make_box("tmcd", parent="tref", track_IDs=[TIMECODE, 77])])
    return box.replace(children=[*box, tref])


def _trak(samples, at, scale, duration, frames, flags, late):
    length = sum(ticks for _, ticks in samples)
    entry = make_box(
        "tmcd", parent="stsd", time_code_flags=flags, timescale=scale,
        frame_duration=duration, number_of_frames=frames,
    )  # fmt: skip
    stbl = make_box(
        "stbl",
        children=[
            make_box("stsd", children=[entry]),
            make_box("stts", entries=[(1, ticks) for _, ticks in samples]),
            make_box("stsc", entries=[(1, len(samples), 1)]),
            make_box("stsz", sample_size=4, sample_count=len(samples)),
            make_box("stco", entries=[(at,)]),
        ],
    )
    minf = make_box("minf", children=[make_box("gmhd", children=[make_box("gmin")]), stbl])
    mdia = [
        make_box("mdhd", timescale=scale, duration=length),
        make_box("hdlr", handler_type="tmcd", name=""),
        minf,
    ]
    head = [make_box("tkhd", flags=0, track_ID=TIMECODE)]
    if late is not None:
        head.append(make_box("edts", children=[make_box("elst", entries=[(0, late, 1, 0)])]))
    return make_box("trak", children=[*head, make_box("mdia", children=mdia)])


def counter_at(data, index, time):
    """What the timecode track counts at a presentation time; None where it has nothing."""
    track = next((one for one in index.tracks if one.kind == "timecode"), None)
    if track is None:
        return None
    moov = find(parse(data), "moov")
    trak = next(one for one in moov.find_all("trak") if one.find("tkhd")["track_ID"] == track.id)
    entry = trak.find("mdia/minf/stbl/stsd").children[0]
    shown = next(
        (
            one
            for one in track.segments
            if one.media_time >= 0 and one.start <= time and (one.stop is None or time < one.stop)
        ),
        None,
    )
    start = shown.start if shown else Fraction(0)
    if track.segments and shown is None:
        return None
    media = (shown.media_time if shown else -track.shift) + (time - start) * track.timescale
    begun = np.flatnonzero(track.samples.cts <= media)
    if not len(begun):
        return None
    place = int(begun[-1])
    if media >= track.samples.cts[place] + track.samples.duration[place]:
        return None
    at = int(track.samples.offset[place])
    value = int.from_bytes(data[at : at + 4], "big", signed=bool(entry["time_code_flags"] & 4))
    seconds = (media - int(track.samples.cts[place])) / track.timescale
    passed = int(seconds * entry["timescale"] // entry["frame_duration"])
    if entry["time_code_flags"] & COUNTER:
        passed //= entry["number_of_frames"]
    if entry["time_code_flags"] & DAY:
        many = 24 * 3600 * entry["number_of_frames"]
        if entry["time_code_flags"] & DROP:
            many -= 24 * 54 * 2 * (entry["number_of_frames"] // 30)
        return (value + passed) % many
    return value + passed


def chapter_at(chapters, time):
    """The title of the chapter that is on at a time."""
    begun = [one for one in chapters if one.seconds <= time]
    return max(begun, key=lambda one: one.start).title if begun else None
