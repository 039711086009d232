"""What the service writes is its own user's, whatever the umask and the folder say."""

import os
import stat

import pytest

from fragdex.service.app import close_context, open_context
from fragdex.service.config import Settings
from fragdex.service.records import keys


@pytest.fixture(params=[0o000, 0o022, 0o077])
def umask(request):
    before = os.umask(request.param)
    yield request.param
    os.umask(before)


def modes(folder):
    """The modes of all files and of all folders, the folder itself among them."""
    files, folders = set(), {stat.S_IMODE(folder.stat().st_mode)}
    for path in folder.rglob("*"):
        (folders if path.is_dir() else files).add(stat.S_IMODE(path.stat().st_mode))
    return files, folders


def used(settings):
    """A context in which something of every kind was written; still open."""
    context = open_context(settings)
    keys.create_key(context.database, "ours")
    context.store.write("blobs/a/one", [b"bytes"])
    draft = context.store.draft("one")
    draft.append(0, b"bytes")
    draft.sync()
    fork = draft.fork("one.1", 5)
    fork.finish("blobs/b/two")
    context.work_folder("record.1")
    return context


@pytest.mark.parametrize("before", [None, 0o777])
def test_everything_in_the_data_folder_is_private(tmp_path, umask, before):
    data = tmp_path / "data"
    if before is not None:  # made by another version, or by hand
        data.mkdir()
        data.chmod(before)
        for name in ("store", "work", "store/objects", "store/drafts", "store/temporary"):
            (data / name).mkdir(exist_ok=True)
            (data / name).chmod(before)
        (data / "fragdex.db").touch()
        (data / "fragdex.db").chmod(0o666)
    context = used(Settings(data=data, job_workers=0))
    try:
        assert {path.name for path in data.iterdir()} >= {"fragdex.db", "fragdex.db-wal"}
        assert modes(data) == ({0o600}, {0o700})
    finally:
        close_context(context)


def test_a_store_of_its_own_is_readable_by_its_group(tmp_path, umask):
    """As nginx needs it that sends the bytes: the folder hands its group on."""
    store = tmp_path / "store"
    store.mkdir()
    store.chmod(0o2750)
    context = used(Settings(data=tmp_path / "data", store_url=store.as_uri(), job_workers=0))
    try:
        assert modes(store) == ({0o640}, {0o2750})
        assert modes(tmp_path / "data") == ({0o600}, {0o700})
    finally:
        close_context(context)
