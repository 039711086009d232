"""Transcriptions over HTTP: a service that waits with them, and one that works on them."""

import pytest

from service.transcriptions.working import SPEECH, Transcriber, sound_file


@pytest.fixture(scope="module")
def transcriber(working):
    """A service of its own process that hears."""
    pytest.importorskip("pocketsphinx")
    return Transcriber(working.client, working)


@pytest.fixture(scope="module")
def spoken(transcriber):
    """The id of ten seconds of speech, of which the service has a track's file and its index."""
    return sound_file(transcriber.client, (SPEECH / "pauses-flac.mp4").read_bytes())
