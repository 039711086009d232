"""Transcriptions of a service that works on them, and files whose sound can be heard at once."""

import json
import re

import fragdex
from fragdex.formats import fidx
from service.serving import API
from service.working import FIXTURES, Slices, md5_of

SPEECH = FIXTURES / "speech"
TRUTH = {one["file"]: one for one in json.loads((SPEECH / "MANIFEST.json").read_text())["files"]}


def sound_file(client, data, filename="speech.mp4"):
    """The id of an ISOBMFF file whose tracks and indexes are published, one by one."""
    index = fragdex.index(data)
    body = {"md5": md5_of(data), "filename": filename}
    file = _sent(client, "/isobmff_files", json=body)["id"]
    for track in index.tracks:
        body = {"file_id": file, "track_id": track.id, "type": track.kind, "byte_size": len(data)}
        _sent(client, "/isobmff_tracks", json=body)
        _sent(client, f"/isobmff_tracks/{file}/{track.id}/upload", content=data)
    _sent(client, f"/isobmff_files/{file}/index/upload", content=packed(index))
    return file


def first_seconds(path, seconds):
    """The beginning of a fragmented file, as if its recording had ended there."""
    data = path.read_bytes()
    track = fragdex.index(data).tracks[0]
    ends = track.fragments.cts_end / track.timescale
    return data[: int(track.fragments.moof_offset[ends > seconds].min())]


def packed(index):
    """An index in our binary form."""
    return b"".join(map(bytes, fidx.pieces(index)))


def _sent(client, path, **body):
    prefix = "" if client.base_url.path.startswith(API) else API
    answer = client.post(prefix + path, **body)
    assert answer.is_success, answer.text
    return answer.json()


class Transcriber(Slices):
    """Asks a service for transcriptions."""

    family = "/transcriptions"
    counted = "slices"

    def begin(self, file_id, track_id=1, **more):
        """The id of a transcription that is queued."""
        record = self.asked(file_id=file_id, track_id=track_id, **more)
        assert record["status"] == "pending"
        return record["id"]

    def fragment(self, id, n):
        return self.client.get(self.path(f"/{id}/fragments/{n}"))

    def document(self, id):
        """The whole as JSON."""
        answer = self.client.get(self.path(f"/{id}.json"))
        assert answer.status_code == 200, answer.text
        return answer.json()

    def words(self, id):
        """(text, start, end) of all words, in milliseconds."""
        return in_ms(self.document(id))


def in_ms(document):
    return [
        (word["text"], round(word["start"] * 1000), round(word["end"] * 1000))
        for word in document["word_segments"]
    ]


def by_itself(path, **how):
    """What the library hears in a file, in one piece."""
    from fragdex.speech.transcribe import transcribe

    heard = transcribe(path, work_slice_ms=60_000, **how)
    return [(word.text, word.start_ms, word.end_ms) for word in heard.words]


def cue_times(text):
    """Start and end of each cue of a WebVTT file, in milliseconds."""
    clock = r"(\d\d):(\d\d):(\d\d)\.(\d{3})"
    cues = re.findall(rf"^{clock} --> {clock}$", text, re.MULTILINE)
    times = []
    for cue in cues:
        h, m, s, ms, h2, m2, s2, ms2 = map(int, cue)
        times.append(((h * 3600 + m * 60 + s) * 1000 + ms, (h2 * 3600 + m2 * 60 + s2) * 1000 + ms2))
    return times
