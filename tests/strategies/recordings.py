"""Recordings: where their fragments begin, and a strategy of some whose clock jumps."""

from __future__ import annotations

from random import Random

from hypothesis import strategies as st

from fragdex.boxes import build, make_box, parse
from fragdex.testing import make_file
from fragdex.testing.files import Brand
from fragdex.testing.fragments import Fragment
from fragdex.testing.tracks import NON_SYNC, SYNC, Moov, Run, Sample, Track, Traf


def fragment_starts(index):
    """Where the moofs of a file begin, in its order."""
    return sorted({int(at) for track in index.tracks for at in track.fragments.moof_offset})


@st.composite
def recordings(draw, *, seconds, jumps, fragments, late=0):
    """Fragments whose key frames are anywhere, and whose clock jumps.

    Args:
        seconds: of a fragment, at most.
        jumps: seconds by which the clock may jump before one.
        fragments: least and greatest number of them; None: no greatest one.
        late: pictures by which every other one may be shown late.
    """
    fps, with_sound = draw(st.sampled_from([1, 2, 5])), draw(st.booleans())
    shape = st.tuples(
        st.booleans(),
        st.integers(1, seconds * fps),
        st.sampled_from(jumps),
        st.integers(0, late),
    )
    least, most = fragments
    return recording(fps, draw(st.lists(shape, min_size=least, max_size=most)), with_sound)


def recording(fps, shapes, with_sound=True):
    """A recording of given fragments.

    Args:
        shapes: of each fragment whether it begins with a key frame, its pictures, the seconds by
            which the clock jumps before it, and by how many every other picture is shown late.
    """
    parts, at, heard = [], 0, 0
    for number, (key, count, jump, delay) in enumerate(shapes):
        jump = jump if number and at + jump * fps * 1000 > 1000 * fps else 0
        at, heard = at + jump * fps * 1000, heard + jump * 8000
        pictures = [Sample(40, 1000, NON_SYNC, delay * n % 2 * 1000) for n in range(count)]
        if key or not number:
            pictures[0] = Sample(60, 1000, SYNC)
        trafs = [Traf(1, (Run(tuple(pictures)),), tfdt=at)]
        at += 1000 * count
        sounds = max((at * 8 // fps - heard) // 1024, 0)
        if with_sound and sounds:
            trafs.append(Traf(2, (Run((Sample(9, 1024),) * sounds),), tfdt=heard))
        heard += 1024 * sounds
        parts.append(Fragment(tuple(trafs)))
    tracks = [Track(1, "video", fps * 1000), Track(2, "audio", 8000)][: 1 + with_sound]
    return make_file(Brand(), Moov(tuple(tracks)), *parts).data


@st.composite
def eventful(draw, movies):
    """Movies with event messages in front of some moofs, two in front of others, and at the end."""
    boxes, number = [], 0
    often = draw(st.sampled_from([0.05, 0.3, 0.6]))
    places = Random(draw(st.integers(0, 1 << 16)))
    for box in [*parse(draw(movies)), None]:
        while (box is None or box.type == "moof") and places.random() < often:
            version, number = places.randint(0, 1), number + 1
            time = "presentation_time" if version else "presentation_time_delta"
            about = {"scheme_id_uri": f"urn:{number % 3}", "value": "1", "timescale": 10}
            about |= {"event_duration": 5, "id": number, "message_data": b"x" * number}
            boxes.append(make_box("emsg", version=version, **about, **{time: number}))
        if box is not None:
            boxes.append(box)
    return build(boxes)
