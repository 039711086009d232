"""Operations over both databases: indexes of tracks apart, what is kept open, what is let go."""

import json
import threading
from datetime import UTC, datetime

import pytest
import sqlalchemy as sa

import fragdex
from fragdex.errors import RecordNotFound, SourceNotFound, TrackNotFound
from fragdex.formats import fidx
from fragdex.service.isobmff import indexing, opened, operations, tracks
from fragdex.service.isobmff.operations import NewFile, NewTrack
from fragdex.service.records import blobs, trash
from fragdex.service.records import tables as all_tables
from fragdex.service.records.identifiers import instant, new_id
from fragdex.testing import movie
from service.isobmff.conftest import FILM, fresh_md5, index_json

SOUND = movie(fragments=3, samples=25, fps=25, tracks=1)


@pytest.fixture
def file_id(context, tenant):
    new = NewFile(md5=fresh_md5(new_id()), filename="film.mp4")
    return operations.create_file(context, tenant, new)[0].id


def send(context, tenant, file_id, content):
    if not isinstance(content, bytes):
        content = json.dumps(content).encode()
    return indexing.receive_index(context, tenant, file_id, iter([content]))


def put_track(context, tenant, file_id, track_id, data):
    """A track with an index of its own, as processing leaves it."""
    key = f"indexes/{tenant}/{new_id()}.fidx"
    with context.database.write() as connection:
        trash.expect(connection, key)
    context.store.write(key, [fidx.write(fragdex.index(data), samples=True)])
    with context.database.write() as connection:
        assert trash.claim(connection, key)
        row = {
            "file_id": file_id,
            "track_id": track_id,
            "tenant_id": tenant,
            "type": "video",
            "byte_size": len(data),
            "index_key": key,
            "created_at": instant(),
            "completed_at": instant(),
        }
        connection.execute(all_tables.isobmff_tracks.insert().values(**row))
    return key


def sweep_all(context):
    with context.database.write() as connection:
        due = {"delete_after": datetime(2020, 1, 1, tzinfo=UTC)}
        connection.execute(all_tables.trash.update().values(**due))
    blobs.sweep(context.database, context.store)


def test_tracks_apart_are_one_index(context, tenant, file_id):
    put_track(context, tenant, file_id, 2, SOUND)
    put_track(context, tenant, file_id, 1, FILM)
    put_track(context, tenant, file_id, -1, FILM)
    index_keys = operations.index_keys(context, tenant, file_id)
    document = json.loads(opened.exported(context, index_keys, "json"))
    assert list(document) == ["-1", "1", "2"]
    film, sound = index_json(FILM)["1"], index_json(SOUND)["1"]
    assert document["1"] == film
    assert document["2"] == sound | {"track": 2}
    assert document["-1"] == film | {"track": -1}
    for track_id, data in ((1, FILM), (2, SOUND), (-1, FILM)):
        hit = fragdex.index(data).track(1).seek(2.5)
        answer = tracks.seek(context, tenant, file_id, track_id, 2500)
        assert (answer.track, answer.offset, answer.size) == (track_id, hit.offset, hit.size)
    assert tracks.seek(context, tenant, file_id, None, 0).track == 1
    spans = tracks.seek(context, tenant, file_id, 2, 0, 2000).ranges
    media = fragdex.index(SOUND).span(0, 2).media
    assert [(one.offset, one.size) for one in spans] == [(part.start, part.size) for part in media]
    for form in ("sidx", "hls"):
        of = opened.shown(context, file_id, index_keys, form, 2)
        assert of == opened.ShownForm((2,), True)
        of_track = opened.exported(context, index_keys, form, of, lambda track_id: "a")
        alone = fragdex.index(SOUND).export(form, **({"uri": "a"} if form == "hls" else {}))
        assert of_track == alone
    again = fidx.read(opened.exported(context, index_keys, "fidx"))
    fidx.verify(opened.exported(context, index_keys, "fidx"))
    assert [track.id for track in again.tracks] == [-1, 1, 2]
    assert again.track(2).seek(2.5).offset == fragdex.index(SOUND).track(1).seek(2.5).offset
    with pytest.raises(TrackNotFound):
        tracks.seek(context, tenant, file_id, 9, 0)


def test_the_last_word_on_a_track_counts(context, tenant, file_id):
    """A client's index stands until processing makes tracks, and the other way round."""
    sent = index_json(FILM) | {"note": "kept"}
    sent["2"] = sent["1"] | {"track": 2}
    send(context, tenant, file_id, sent)
    key = put_track(context, tenant, file_id, 1, SOUND)
    index_keys = operations.index_keys(context, tenant, file_id)
    document = json.loads(opened.exported(context, index_keys, "json"))
    assert document == sent | index_json(SOUND)
    second = tracks.seek(context, tenant, file_id, 2, 9000)
    assert second.offset == fragdex.index(FILM).track(1).seek(9).offset
    first = tracks.seek(context, tenant, file_id, 1, 2500)
    assert first.offset == fragdex.index(SOUND).track(1).seek(2.5).offset
    send(context, tenant, file_id, index_json(SOUND))
    assert operations.index_keys(context, tenant, file_id).tracks == ()
    sweep_all(context)
    with pytest.raises(SourceNotFound):
        context.store.size(key)
    assert json.loads(
        opened.exported(context, operations.index_keys(context, tenant, file_id), "json")
    ) == index_json(SOUND)


def test_what_no_record_names_is_swept(context, tenant, file_id):
    send(context, tenant, file_id, index_json())
    send(context, tenant, file_id, index_json())
    send(context, tenant, file_id, fidx.write(fragdex.index(FILM)))
    before = operations.index_keys(context, tenant, file_id)
    assert before.json is None
    sweep_all(context)
    assert list(context.store.keys("indexes/")) == [before.file]
    put_track(context, tenant, file_id, 1, FILM)
    operations.delete_file(context, tenant, file_id)
    sweep_all(context)
    assert list(context.store.keys()) == []


def test_who_dies_on_the_way_leaves_the_old_index(context, tenant, file_id, monkeypatch):
    send(context, tenant, file_id, index_json())
    before = operations.index_keys(context, tenant, file_id)

    def die(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(indexing, "set_index", die)
    with pytest.raises(KeyboardInterrupt):
        send(context, tenant, file_id, index_json(SOUND))
    monkeypatch.undo()
    assert operations.index_keys(context, tenant, file_id) == before
    sweep_all(context)
    assert set(context.store.keys("indexes/")) == {before.file, before.json}


def test_a_body_that_breaks_off_changes_nothing(context, tenant, file_id):
    def broken():
        yield json.dumps(index_json()).encode()[:-100]
        raise ConnectionResetError

    with pytest.raises(ConnectionResetError):
        indexing.receive_index(context, tenant, file_id, broken())
    assert not operations.FILES.get(context, tenant, file_id).fragment_index_complete
    assert list(context.store.keys()) == []


def test_several_send_an_index_at_once(context, tenant, file_id):
    films = [movie(fragments=n, samples=25, fps=25) for n in range(1, 7)]
    threads = [
        threading.Thread(target=send, args=(context, tenant, file_id, index_json(film)))
        for film in films
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    index_keys = operations.index_keys(context, tenant, file_id)
    assert json.loads(opened.exported(context, index_keys, "json")) in [
        index_json(f) for f in films
    ]
    sweep_all(context)
    assert set(context.store.keys("indexes/")) == {index_keys.file, index_keys.json}


def test_several_register_the_same_file_at_once(context, tenant):
    new = NewFile(md5=fresh_md5("once"), filename="a.mp4")
    records = []
    threads = [
        threading.Thread(
            target=lambda: records.append(operations.create_file(context, tenant, new))
        )
        for _ in range(6)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({record.id for record, _ in records}) == 1
    assert sorted(is_new for _, is_new in records) == [False] * 5 + [True]


def test_an_index_is_opened_once_and_few_are_kept(context, tenant, monkeypatch):
    limit = 3
    small = context.settings.model_copy(update={"open_indexes": limit})
    context = type(context)(small, context.database, context.store, context.jobs)
    opens = []
    real = opened.open_index
    monkeypatch.setattr(opened, "open_index", lambda what: opens.append(what) or real(what))
    ids = []
    for number in range(limit + 1):
        new = NewFile(md5=fresh_md5(f"kept {number}"), filename="a.mp4")
        ids.append(operations.create_file(context, tenant, new)[0].id)
        send(context, tenant, ids[-1], index_json())
    for _ in range(3):
        for file_id in ids[:limit]:
            tracks.seek(context, tenant, file_id, 1, 1000)
    assert len(opens) == limit
    tracks.seek(context, tenant, ids[-1], 1, 1000)
    tracks.seek(context, tenant, ids[1], 1, 1000)
    assert len(opens) == limit + 1
    tracks.seek(context, tenant, ids[0], 1, 1000)  # the one used least lately had to go
    assert len(opens) == limit + 2


def test_an_index_of_very_many_fragments_is_read_as_little_as_a_small_one(context, tenant, file_id):
    """Opening maps the file: what a seek makes is the same work for 100 and for 100,000 rows."""
    import tracemalloc

    import numpy as np

    film = fragdex.index(movie(fragments=100, samples=1, fps=25)).export("json")
    document = json.loads(film)
    first = document["1"]["segments"][0]
    size, duration = first["size"], first["duration"]
    document["1"]["segments"] = [
        first | {"cts": n * duration, "dts": n * duration, "offset": first["offset"] + n * size}
        for n in range(138_000)
    ]
    send(context, tenant, file_id, document)
    tracks.seek(context, tenant, file_id, 1, 0)
    tracemalloc.start()
    for n in np.linspace(0, 137_999, 50, dtype=int).tolist():
        time_ms = n * duration * 1000 / document["1"]["timescale"]
        answer = tracks.seek(context, tenant, file_id, 1, time_ms + 1e-3)
        assert (answer.fragment, answer.offset) == (n, first["offset"] + n * size)
    used = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert used < 400_000, "a seek copies columns"


def test_a_track_is_told_by_its_own_upload(context, tenant, file_id):
    new = NewTrack(file_id=file_id, track_id=3, type="audio", byte_size=10, duration_ms=1.6)
    record, is_new = tracks.create_track(context, tenant, new)
    assert (is_new, record.duration_ms, record.next_byte) == (True, 2, 0)
    from fragdex.service.uploads.operations import receive

    name = tracks.track_name(file_id, 3)
    receive(
        context,
        tenant,
        tracks.FAMILY,
        name,
        "bytes 0-3/10",
        iter([b"abcd"]),
        arrival=tracks.ARRIVAL,
    )
    assert tracks.track_by_id(context, tenant, file_id, 3).next_byte == 4
    receive(
        context, tenant, tracks.FAMILY, name, "bytes 4-9/10", iter([b"efghij"]),
        arrival=tracks.ARRIVAL,
    )  # fmt: skip
    assert tracks.track_by_id(context, tenant, file_id, 3).complete
    blob = tracks.track_bytes(context, tenant, file_id, 3)
    assert b"".join(context.store.read(blob.store_key, fragdex.ByteRange(0, 10))) == b"abcdefghij"
    assert blob.mime_type == "audio/mp4"
    with pytest.raises(RecordNotFound):
        tracks.track_by_id(context, new_id(), file_id, 3)
    tracks.delete_track(context, tenant, file_id, 3)
    with context.database.read() as connection:
        assert connection.execute(sa.select(all_tables.uploads)).all() == []
        assert connection.execute(sa.select(all_tables.blobs)).all() == []


def test_an_index_in_an_object_store_is_copied_and_mapped(context, tenant, file_id, tmp_path):
    import shutil
    from contextlib import contextmanager

    from fragdex.service.store.disk import DiskStore

    class Away(DiskStore):
        """Its objects lie elsewhere."""

        def path(self, key):
            return None

        @contextmanager
        def local(self, key):
            with super().local(key) as original:
                copy = shutil.copy(original, tmp_path / "copy")
            try:
                yield copy
            finally:
                copy.unlink()

    context = type(context)(
        context.settings, context.database, Away(tmp_path / "away"), context.jobs
    )
    send(context, tenant, file_id, index_json())
    for form in opened.FORMS:
        index_keys = operations.index_keys(context, tenant, file_id)
        assert opened.exported(
            context, index_keys, form, opened.shown(context, file_id, index_keys, form, None)
        )
    hit = fragdex.index(FILM).track(1).seek(5)
    assert tracks.seek(context, tenant, file_id, 1, 5000).offset == hit.offset
    assert not (tmp_path / "copy").exists()
