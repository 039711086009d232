"""What a process has of its renders: not taken away from who uses it, and gone in the end."""

import tempfile
import threading
from pathlib import Path
from types import SimpleNamespace

import pytest

from fragdex.rendering.site import Blocked, Folder
from fragdex.rendering.web import AllowedHosts
from fragdex.service.renders.workspaces import RenderWorkspace, ResourceFetcher, Workspaces
from service.serving import serving

ROW = SimpleNamespace(id="r1")


@pytest.fixture
def workspaces(tmp_path, monkeypatch):
    def made(context, row):
        folder = Path(tempfile.mkdtemp(dir=tmp_path))
        return RenderWorkspace(key=row.id, site=None, outside=None, folder=folder)

    monkeypatch.setattr("fragdex.service.renders.workspaces._made", made)
    return Workspaces()


def nothing():
    pass


class Meddling:
    """A lock; whenever it is released, somebody else lets go of the render at once."""

    def __init__(self, leave):
        self.leave, self.lock, self.busy = leave, threading.Lock(), False

    def __enter__(self):
        self.lock.acquire()

    def __exit__(self, *_):
        self.lock.release()
        if not self.busy:
            self.busy = True
            self.leave()
            self.busy = False


def test_nobody_lets_go_between_finding_and_using(workspaces):
    with workspaces.opened(None, ROW, nothing):
        pass
    workspaces._lock = Meddling(lambda: workspaces.leave(ROW.id))
    with workspaces.opened(None, ROW, nothing) as workspace:
        assert workspace.folder.exists()
    assert not workspace.folder.exists()


def test_what_is_used_by_many_is_made_once_and_goes_with_the_last(workspaces, tmp_path):
    wrong = []

    def work():
        for _ in range(200):
            with workspaces.opened(None, ROW, nothing) as workspace:
                if not workspace.folder.exists():
                    wrong.append(workspace)
            workspaces.leave(ROW.id)

    threads = [threading.Thread(target=work) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
    assert list(tmp_path.iterdir()) == []


def test_closing_leaves_nothing(workspaces, tmp_path):
    for name in "abc":
        with workspaces.opened(None, SimpleNamespace(id=name), nothing):
            pass
    assert len(list(tmp_path.iterdir())) == 3
    workspaces.close()
    assert list(tmp_path.iterdir()) == []


def test_who_gives_up_while_it_is_made_leaves_nothing(workspaces, tmp_path):
    def give_up():
        raise InterruptedError

    with pytest.raises(InterruptedError), workspaces.opened(None, ROW, give_up):
        pass
    workspaces.leave(ROW.id)
    assert workspaces._entries == {}


def test_a_context_has_its_own_and_closes_it(tmp_path, workspaces):
    with serving(tmp_path / "one") as one, serving(tmp_path / "two") as other:
        own = one.context.part(Workspaces)
        assert own is one.context.part(Workspaces)
        assert own is not other.context.part(Workspaces)
        with own.opened(one.context, ROW, nothing) as workspace:
            pass
        assert workspace.folder.exists()
    assert not workspace.folder.exists()


def test_a_slice_is_taken_until_something_that_was_read_changes(tmp_path):
    (tmp_path / "index.html").write_text("<link rel=stylesheet href=a.css>")
    (tmp_path / "a.css").write_text("p {}")
    (tmp_path / "unread.css").write_text("p {}")
    site = Folder(tmp_path)
    reads = {path: site.read(path).sha256 for path in ("", "a.css")} | {"missing.js": None}

    def same():
        own = SimpleNamespace(own=SimpleNamespace(holds=lambda reads: not reads))
        workspace = RenderWorkspace(key="r1", site=Folder(tmp_path), outside=own, folder=None)
        return workspace.reads_the_same(reads, {})

    assert same()
    (tmp_path / "unread.css").write_text("b {}")
    assert same()
    # what was looked for in vain must still be missing
    (tmp_path / "missing.js").write_text("")
    assert not same()
    (tmp_path / "missing.js").unlink()
    (tmp_path / "a.css").write_text("b {}")
    assert not same()
    (tmp_path / "a.css").unlink()
    assert not same()


def no_address(*_, **__):
    raise OSError("the resolver took too long")


@pytest.mark.parametrize(
    ("url", "may_pass"),
    [
        ("https://fonts.example.org/a.css", True),  # has no address just now
        ("https://other.example.org/a.css", True),  # the operator may allow it
        ("http://fonts.example.org/a.css", False),
        ("https://me:secret@fonts.example.org/a.css", False),
        ("http://site.localhost/api/v1/image_files/01890a5d-ac96-774b-bcce-b302099a8057", False),
    ],
)
def test_what_a_page_missed_for_now_is_remembered(tmp_path, url, may_pass):
    with serving(tmp_path) as served:
        asked = ResourceFetcher(served.context, served.tenant)
        asked._hosts = AllowedHosts(["fonts.example.org"], resolve=no_address)
        try:
            answer = asked.fetch(url, {})
        except Blocked:
            answer = None
        assert answer is None or answer.status == 404
        assert asked.network is may_pass


def test_a_store_that_does_not_answer_is_remembered(tmp_path, monkeypatch):
    with serving(tmp_path) as served:
        asked = ResourceFetcher(served.context, served.tenant)
        monkeypatch.setattr(asked.own, "_find", no_address)
        with pytest.raises(OSError, match="resolver"):
            asked.fetch("http://site.localhost/api/v1/image_files/x", {})
        assert asked.network
