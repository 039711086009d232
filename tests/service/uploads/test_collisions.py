"""Two files of one md5 are two files: nobody gets the other's bytes."""

import hashlib
import itertools
import threading
import uuid

import pytest
import sqlalchemy as sa

from fragdex import ByteRange
from fragdex.service.isobmff import operations as isobmff
from fragdex.service.records import blobs, tables
from fragdex.service.unprocessed.records import UNPROCESSED
from service.serving import API

# The pair that X. Wang and others published in 2004: six bits apart.
_FIRST = bytes.fromhex(
    "d131dd02c5e6eec4693d9a0698aff95c2fcab58712467eab4004583eb8fb7f89"
    "55ad340609f4b30283e488832571415a085125e8f7cdc99fd91dbdf280373c5b"
    "d8823e3156348f5bae6dacd436c919c6dd53e2b487da03fd02396306d248cda0"
    "e99f33420f577ee8ce54b67080a80d1ec69821bcb6a8839396f9652b6ff72a70"
)
_APART = (19, 45, 59, 83, 109, 123)
_SECOND = bytes(byte ^ (0x80 if at in _APART else 0) for at, byte in enumerate(_FIRST))


def pair():
    """Two files of one md5, of which no other test has one: what follows both changes nothing."""
    mark = uuid.uuid4().bytes
    first, second = _FIRST + mark, _SECOND + mark
    assert first != second
    assert hashlib.md5(first).digest() == hashlib.md5(second).digest()
    return first, second


def md5_of(data):
    return hashlib.md5(data).hexdigest()


def track(client, data, track_id=1, film_id=None):
    """Announce a track, which no md5 is told of; where it is uploaded and downloaded."""
    if film_id is None:
        film = {"md5": uuid.uuid4().hex, "filename": "a.mp4"}
        film_id = client.post(f"{API}/isobmff_files", json=film).json()["id"]
    new_track = {"file_id": film_id, "track_id": track_id, "type": "video", "byte_size": len(data)}
    answer = client.post(f"{API}/isobmff_tracks", json=new_track)
    assert answer.status_code == 201, answer.text
    return f"{API}/isobmff_tracks/{film_id}/{track_id}"


def announce(client, data, **more):
    body = {"filename": "a.mov", "type": "video", "byte_size": len(data), **more}
    answer = client.post(f"{API}/files", json=body)
    assert answer.status_code in (200, 201), answer.text
    return f"{API}/unprocessed_files/{answer.json()['id']}"


def send(client, place, data, start=0, stop=None):
    stop = len(data) if stop is None else stop
    chunk = {"Content-Range": f"bytes {start}-{stop - 1}/{len(data)}"}
    return client.post(f"{place}/upload", content=data[start:stop], headers=chunk)


def kept_for(server, place):
    """The bytes of an unprocessed file, which nobody can ask for as they came."""
    blob = UNPROCESSED.stored(server.context, server.tenant, place.rpartition("/")[2])
    return b"".join(server.context.store.read(blob.store_key, ByteRange(0, blob.byte_size)))


def swept(server):
    """Delete what the trash holds, as if its hour were over."""
    with server.context.database.write() as connection:
        connection.execute(tables.trash.update().values(delete_after=sa.func.current_timestamp()))
    blobs.sweep(server.context.database, server.context.store)


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
@pytest.mark.parametrize("tenants", ["one", "two"])
def test_each_downloads_its_own_and_outlives_the_other(server, order, tenants):
    files = pair()
    other = server.client if tenants == "one" else server.stranger
    clients = [server.client, other]
    places = [track(clients[i], files[i]) for i in order]
    for place, i in zip(places, order, strict=True):
        assert send(clients[i], place, files[i]).status_code == 201
    for place, i in zip(places, order, strict=True):
        assert clients[i].get(place).content == files[i]
    first, last = order
    assert clients[first].delete(places[0]).status_code == 204
    swept(server)
    assert clients[last].get(places[1]).content == files[last]
    assert clients[last].delete(places[1]).status_code == 204
    swept(server)
    hashes = [hashlib.sha256(data).hexdigest() for data in files]
    assert not [
        key for key in server.context.store.keys("blobs/") if any(one in key for one in hashes)
    ]


def test_chunks_that_alternate_and_go_on_after_a_restart(server):
    from fragdex.service.uploads import hashing

    files = pair()
    places = [track(server.client, data) for data in files]
    for start, stop in itertools.pairwise([0, 50, 100, len(files[0])]):
        hashing.held.clear()  # what a restart forgets
        for place, data in zip(places, files, strict=True):
            assert send(server.client, place, data, start, stop).status_code in (201, 202)
    for place, data in zip(places, files, strict=True):
        assert server.client.get(place).content == data


def test_uploads_at_the_same_moment(server):
    files = pair() * 3
    places = [track(server.client, data) for data in files]
    begin, answers = threading.Barrier(len(files)), []

    def upload(place, data):
        begin.wait()
        answers.append(send(server.client, place, data).status_code)

    threads = [threading.Thread(target=upload, args=one) for one in zip(places, files, strict=True)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers == [201] * len(files)
    for place, data in zip(places, files, strict=True):
        assert server.client.get(place).content == data


def test_who_announces_by_md5_is_not_told_that_other_bytes_are_kept(server):
    """The md5 alone says that the file is here; its sender must learn that it is not."""
    files = pair()
    place = announce(server.client, files[0], md5=md5_of(files[0]))
    assert announce(server.client, files[1], md5=md5_of(files[1])) == place
    assert send(server.client, place, files[0]).status_code == 201
    refused = send(server.client, place, files[1])
    assert refused.status_code == 422
    assert "without its md5" in refused.json()["detail"]
    assert send(server.client, place, files[0]).status_code == 201
    assert kept_for(server, place) == files[0]
    own = announce(server.client, files[1])
    assert send(server.client, own, files[1]).status_code == 201
    assert kept_for(server, own) == files[1]


def test_a_larger_file_of_a_known_md5_is_another_file(server):
    files = pair()
    place = announce(server.client, files[0], md5=md5_of(files[0]))
    assert send(server.client, place, files[0]).status_code == 201
    assert announce(server.client, files[0] + b"more", md5=md5_of(files[0])) != place


def test_tracks_of_one_film(server):
    files = pair()
    first = track(server.client, files[0])
    places = [first, track(server.client, files[1], 2, first.split("/")[-2])]
    for place, data in zip(places, files, strict=True):
        assert send(server.client, place, data).is_success
    for place, data in zip(places, files, strict=True):
        assert server.client.get(place).content == data


def test_a_film_is_not_taken_for_another_of_its_md5(server):
    md5, first, second = uuid.uuid4().bytes, b"1" * 32, b"2" * 32
    with server.context.database.write() as connection:

        def registered(**values):
            row, is_new = isobmff.register(connection, server.tenant, md5, "a.mp4", **values)
            return row.id, is_new

        named, is_new = registered()
        assert is_new
        assert registered(sha256=first) == registered(sha256=first) == (named, False)
        other, is_new = registered(sha256=second)
        assert is_new
        assert registered(sha256=second) == registered() == (other, False)
