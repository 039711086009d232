"""A track with holes of days in its sound: only what has sound is made into slices."""

from fractions import Fraction

import av
import numpy as np
import pytest

import fragdex
from fragdex.speech.slices import Listener
from speech.conftest import Echo

DAYS = 47 * 3600
RATE = 8000
FORMS = {
    "progressive": {},
    "one-fragment": {"movflags": "frag_custom+empty_moov+default_base_moof"},
    "fragments": {"frag_duration": "500000", "movflags": "empty_moov+default_base_moof"},
}
ENGINE = Echo()


def sound(path, starts, options, last=None):
    """Seconds of a tone that begin at these times; the last packet says it lasts `last` seconds."""
    with av.open(str(path), "w", format="mp4", options=options) as out:
        stream = out.add_stream("aac", rate=RATE, layout="mono")
        packets = []
        for first in range(0, len(starts) * RATE, 1000):
            tone = np.sin(np.arange(first, first + 1000) * 440 * 2 * np.pi / RATE) * 12000
            frame = av.AudioFrame.from_ndarray(tone.astype(np.int16)[None], "s16", "mono")
            frame.sample_rate, frame.pts = RATE, first
            packets += stream.encode(frame)
        packets += stream.encode(None)
        for packet in packets:
            second = min(max(0, int(packet.pts * packet.time_base)), len(starts) - 1)
            later = int((starts[second] - second) / packet.time_base)
            packet.pts, packet.dts = packet.pts + later, packet.dts + later
            if last is not None and packet is packets[-1]:
                packet.duration = int(last / packet.time_base)
            out.mux(packet)
    return path


def planned(path):
    with fragdex.open_source(path) as source:
        listener = Listener(fragdex.index(source), source)
        try:
            return listener.plan(30_000, ENGINE), listener
        finally:
            listener.close()


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    ("starts", "slices"),
    [
        ([0, DAYS], {0, DAYS // 30}),
        ([0, 1, 20 * 3600, DAYS], {0, 2400, DAYS // 30}),
        ([0, 1, 2], {0}),
    ],
    ids=["middle", "several", "none"],
)
def test_slices_are_where_the_sound_is(form, starts, slices, tmp_path):
    path = sound(tmp_path / "holes.mp4", starts, FORMS[form])
    plan, listener = planned(path)
    # a border may lie in the sound of both its slices
    assert slices <= set(plan.slices) <= {n + near for n in slices for near in (-1, 0, 1)}
    with fragdex.open_source(path) as source:
        listener = Listener(fragdex.index(source), source)
        for start in starts:
            heard = listener.read(100 * start + 30, 100 * start + 70)
            assert np.abs(heard.astype(int)).max() > 4000
        listener.close()


@pytest.mark.parametrize("form", FORMS)
def test_a_last_sample_that_says_it_lasts_for_days(form, tmp_path):
    plan, _ = planned(sound(tmp_path / "long.mp4", [0, 1], FORMS[form], last=DAYS))
    assert set(plan.slices) <= {0, 1}
    assert plan.last_frame <= Fraction(100 * 30)
