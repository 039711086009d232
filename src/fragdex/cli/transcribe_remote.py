"""`fragdex transcribe --server`: the file is sent to a service, which recognizes its speech."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fragdex.cli import remote
from fragdex.cli.inputs import is_url
from fragdex.cli.output import byte_progress, part_progress
from fragdex.cli.remote import wait_until_processed
from fragdex.errors import FragdexError

if TYPE_CHECKING:
    from fragdex.client.api import TranscriptionRecord

__all__ = ["transcribe_remotely"]


def transcribe_remotely(
    client: Any, file: str, form: str | None, output: str | None, **wanted: Any
) -> Any:
    """Send a file, have it transcribed, and receive the captions.

    Args:
        form: vtt, srt, json or mp4; None: no captions are received.
        output: the file that they are written to.
        wanted: engine, language, track_id and work_slice_ms, as of the interface.

    Raises:
        FragdexError: the file or its transcription failed.
        ClientError: the service refuses, or does not answer.
    """
    from fragdex.client import api

    if is_url(file):
        raise FragdexError(f"{file}: only files can be sent to a service")
    with byte_progress(file) as progress:
        sent = client.push(file, type="video", progress=progress)
    sent = wait_until_processed(client, sent, file)
    if sent.problem:
        raise FragdexError(f"{file}: {sent.problem.detail}")
    asked = client.send(api.create_transcription(file_id=sent.id, **wanted))
    cancelled = remote.cancelled_by_ctrl_c(
        client, api.cancel_transcription(asked.id), f"transcription {asked.id}"
    )
    with cancelled, part_progress(file, "slices") as shown:
        remote.follow(client, api.get_transcription_progress(asked.id), shown)
    record = client.send(api.get_transcription(asked.id))
    if record.problem:
        raise FragdexError(f"{file}: {record.problem.detail}")
    if form == "mp4":
        record = _copied(client, record)
    if form is not None and output is not None:
        download = getattr(api, f"download_transcription_{form}")
        with byte_progress(output) as progress:
            client.download(download(record.id), output, progress=progress)
    return record


def _copied(client: Any, record: TranscriptionRecord) -> TranscriptionRecord:
    """The record once the copy of the file with its captions is there."""
    import time

    from fragdex.client import api

    client.send(api.copy_transcription(record.id))
    pause = 0.2
    while True:
        record = client.send(api.get_transcription(record.id))
        copy = record.copy_with_captions
        if copy is not None and copy.problem:
            raise FragdexError(f"no copy with captions: {copy.problem.detail}")
        if copy is not None and copy.status == "complete":
            return record
        time.sleep(pause)  # there are no events of copies
        pause = min(2 * pause, 5.0)
