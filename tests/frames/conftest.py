"""What several tests of frames need."""

import pytest

from fragdex.decoding.codec import TrackCodec
from fragdex.frames import decoders, frame_reader


@pytest.fixture
def on_device(monkeypatch):
    """Decoders of the processor that count as those of a device."""
    monkeypatch.setattr(
        TrackCodec,
        "_on_device",
        lambda self, av, _: (self._opened().streams[0].codec_context, ""),
    )
    monkeypatch.setattr(frame_reader, "is_of_device", lambda picture, **_: True)
    monkeypatch.setattr(decoders, "_of_devices", {})
