"""An upload that ends holds its own row before that of its record; so does whoever deletes."""

import time
from concurrent.futures import ThreadPoolExecutor

import pytest
import sqlalchemy as sa

from fragdex.service.records import tables
from service.serving import API
from service.working import md5_of, serving_over

WAITING = sa.text("SELECT count(*) FROM pg_locks WHERE NOT granted")


@pytest.fixture(scope="module")
def served(request, tmp_path_factory):
    with serving_over("postgresql", request, tmp_path_factory) as served:
        yield served


def announced(client, family):
    """The path of a record whose bytes are announced, and its upload's name."""
    if family == "isobmff_tracks":
        file = client.post(
            f"{API}/isobmff_files", json={"md5": md5_of(b""), "filename": "a.mp4"}
        ).json()
        new = {"file_id": file["id"], "track_id": 1, "type": "video", "byte_size": 9}
        assert client.post(f"{API}/isobmff_tracks", json=new).status_code == 201
        return f"{API}/isobmff_tracks/{file['id']}/1", f"{file['id']}/1"
    name = {"caption_files": "a.vtt", "image_files": "a.png"}.get(family, "a.mp4")
    new = {"filename": name, "byte_size": 9, "md5": md5_of(family.encode())}
    new |= {"type": "video"} if family == "files" else {}
    answer = client.post(f"{API}/{family}", json=new)
    assert answer.status_code == 201, answer.text
    return f"{API}/{family}/{answer.json()['id']}", answer.json()["id"]


@pytest.mark.parametrize(
    ("family", "table"),
    [
        ("unprocessed_files", tables.files),
        ("files", tables.files),
        ("image_files", tables.files),
        ("caption_files", tables.files),
        ("isobmff_tracks", tables.isobmff_tracks),
    ],
)
def test_an_upload_that_ends_and_a_deletion_do_not_wait_for_each_other(served, family, table):
    client, database, upload = served.client, served.context.database, tables.uploads
    path, name = announced(client, family)
    with ThreadPoolExecutor(1) as other:
        with database.write() as connection:
            mine = upload.c.record_id == name
            connection.execute(upload.update().where(mine).values(next_byte=9))
            answer = other.submit(client.delete, path)
            while not connection.scalar(WAITING):
                time.sleep(0.01)
            own = table.c.file_id == name[:36] if "file_id" in table.c else table.c.id == name
            connection.execute(table.update().where(own).values(byte_size=9))
        assert answer.result().status_code == 204, answer.result().text
