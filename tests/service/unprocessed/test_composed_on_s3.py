"""In an object store, too, what is composed is what would be stored, for whoever reads it."""

from dataclasses import replace

import fragdex
from fragdex.service.isobmff import operations as isobmff
from fragdex.service.records import blobs
from fragdex.service.renders.workspaces import OwnFiles
from fragdex.service.store.composing import is_composed
from fragdex.service.transcriptions.records import sound_of
from fragdex.service.unprocessed import worker
from service.serving import API, serving
from service.unprocessed.test_worker import job_of, order
from service.working import JSON, fixture_bytes, uploaded

SITE = f"http://site.localhost{API}"


def what_readers_get(served, file_id):
    """What clients, pages of renders and speech engines get of the tracks, and which they are."""
    client, context, tenant = served.client, served.context, served.tenant
    contents, composed = {}, 0
    page = OwnFiles(context, tenant)
    for track in client.get(f"{API}/isobmff_files/{file_id}", headers=JSON).json()["tracks"]:
        number, size = track["track_id"], track["byte_size"]
        with context.database.read() as connection:
            blob = blobs.used_by(connection, tenant, "tracks", f"{file_id}/{number}")
        composed += is_composed(blob.store_key)
        place = f"isobmff_tracks/{file_id}/{number}"
        ranges = ("bytes=0-", f"bytes={size // 3}-{2 * size // 3}", "bytes=-99")
        answers = [client.get(f"{API}/{place}", headers={"Range": one}) for one in ranges]
        drawn = [page.fetch(f"{SITE}/{place}", {"range": one}) for one in ranges]
        assert [one.content for one in answers] == [one.body for one in drawn]
        parts = [(one.status_code, one.headers["ETag"], one.content) for one in answers]
        contents[number] = (track["md5"], size, parts)
    sound = sound_of(context, tenant, file_id, None)
    with context.store.source(sound.blob.store_key) as source:
        heard = fragdex.decoding.audio(sound.index, source, 0, 2, track=sound.track_id)
        assert heard.any()
        contents["heard"] = heard.tobytes()
    return contents, composed


def test_tracks_are_the_same_on_s3_for_clients_renders_and_transcriptions(tmp_path, s3_url):
    with serving(tmp_path, store_url=s3_url) as served:
        context, tenant = served.context, served.tenant
        film = uploaded(served.client, fixture_bytes("faststart.mp4", salt="s3"))["id"]
        contents, composed = {}, {}
        for keep in ("both", "original"):
            settings = context.settings.model_copy(update={"keep": keep})
            process = order(context, tenant, film)
            worker._run(replace(context, settings=settings), job_of(process))
            record = served.client.get(f"{API}/process_isobmff/{process}").json()
            file_id = record["isobmff_file_id"]
            contents[keep], composed[keep] = what_readers_get(served, file_id)
            isobmff.delete_file(context, tenant, file_id)
        assert composed == {"both": 0, "original": 2}
        assert contents["both"] == contents["original"]
