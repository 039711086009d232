"""A walk with the client that openapi-python-client writes: `python walk.py URL KEY SOUND BROWSER`.

It runs in an environment of its own, beside the package `media_client`.
"""

import hashlib
import io
import sys
import time
from pathlib import Path

from media_client import AuthenticatedClient
from media_client.api.isobmff_files import get_isobmff_file_index
from media_client.api.renders import (
    create_render,
    delete_render,
    download_render_png,
    get_render,
    get_render_progress,
)
from media_client.api.transcriptions import (
    download_transcription_vtt,
    get_transcription,
    get_transcription_fragment,
    transcribe_isobmff_file,
)
from media_client.api.unprocessed_files import (
    create_unprocessed_file,
    get_process,
    get_unprocessed_file_upload,
    process_unprocessed_file,
    upload_unprocessed_file,
)
from media_client.models import (
    NewRender,
    NewRenderMetadata,
    NewUnprocessedFile,
    Png,
    ProcessStatus,
    RenderStatus,
    TranscriptionStatus,
)
from media_client.types import File

url, key, sound, browser = sys.argv[1:]
client = AuthenticatedClient(base_url=url, token=key, timeout=60, httpx_args={"trust_env": False})


def until(ask, *ends):
    while (record := ask()).status not in ends:
        time.sleep(0.1)
    return record


def upload():
    data = Path(sound).read_bytes()
    new = NewUnprocessedFile(hashlib.md5(data).hexdigest(), "speech.mp4", len(data))
    id = create_unprocessed_file.sync(client=client, body=new).id

    def send(start, stop):
        place = f"bytes {start}-{stop - 1}/{len(data)}"
        body = File(io.BytesIO(data[start:stop]))
        return upload_unprocessed_file.sync_detailed(
            id, client=client, body=body, content_range=place
        )

    first = send(0, 5000)
    assert (first.status_code, first.parsed.complete) == (202, False)
    missing = get_unprocessed_file_upload.sync(id, client=client)
    assert (missing.status, missing.next_byte) == (404, 5000)
    last = send(missing.next_byte, len(data))
    assert (last.status_code, last.parsed.complete) == (201, True)
    return id


def transcription(file_id):
    process = process_unprocessed_file.sync(file_id, client=client)
    ends = ProcessStatus.COMPLETE, ProcessStatus.FAILED
    ended_process = until(lambda: get_process.sync(process.id, client=client), *ends)
    assert ended_process.status == ProcessStatus.COMPLETE, ended_process.problem
    index = get_isobmff_file_index.sync(ended_process.isobmff_file_id, client=client)
    assert index.additional_properties
    begun = transcribe_isobmff_file.sync(ended_process.isobmff_file_id, client=client)
    ends = TranscriptionStatus.COMPLETE, TranscriptionStatus.FAILED
    heard = until(lambda: get_transcription.sync(begun.id, client=client), *ends)
    assert heard.status == TranscriptionStatus.COMPLETE, heard.problem
    assert heard.words > 10
    words = get_transcription_fragment.sync(begun.id, "0", client=client)
    assert all(word.start <= word.end for word in words.word_segments)
    assert download_transcription_vtt.sync(begun.id, client=client).startswith("WEBVTT")


def render():
    new = NewRender(html="<h1>Hi", width=64, height=48, output=Png("png"))
    new.metadata = NewRenderMetadata.from_dict({"walk": "python"})
    id = create_render.sync(client=client, body=new).id
    events = get_render_progress.sync(id, client=client)
    assert events.index("event: size\n") < events.index("event: complete\n")
    record = until(lambda: get_render.sync(id, client=client), *RenderStatus)
    assert record.status == RenderStatus.COMPLETE, record.problem
    assert (record.output.container, record.metadata["walk"]) == ("png", "python")
    picture = download_render_png.sync(id, client=client).payload.read()
    assert picture.startswith(b"\x89PNG")
    assert len(picture) == record.byte_size
    part = download_render_png.sync(id, client=client, range_="bytes=1-3").payload.read()
    assert part == b"PNG"
    assert delete_render.sync_detailed(id, client=client).status_code == 204


file_id = upload()
transcription(file_id)
if browser == "browser":
    render()
print(f"walked {file_id}")
