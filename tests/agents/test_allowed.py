"""What may be read: laws of names and URLs, whatever they say."""

import os
from urllib.parse import urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fragdex.agents import allowed as module
from fragdex.agents.allowed import Allowed
from fragdex.errors import Forbidden, FragdexError, InvalidRequest, SourceNotFound

PREFIX = "https://media.example.org/public/"
PIECES = st.sampled_from(
    ["..", ".", "", "/", "\\", "%2e", "%2E%2e", "%252e", "%2f", "%5c", "public", "private", "a.mp4",
     "@", ":", "[", "?", "#", ";", "https:", "//", "media.example.org", "\0", "\t", "é"]
)  # fmt: skip


@given(st.lists(PIECES, max_size=8).map("".join), st.booleans())
def test_an_allowed_url_names_the_host_and_stays_below_the_path(text, is_whole):
    url = text if is_whole else PREFIX + text
    if not module._is_allowed(url, [PREFIX]):
        return
    # as a browser and as Python take it apart
    parts = urlsplit(url)
    assert (parts.scheme, parts.netloc) == ("https", "media.example.org")
    path = parts.path
    for _ in range(4):
        path = module.unquote(path)
    assert os.path.normpath(path.replace("\\", "/")).startswith("/public")


@given(st.lists(PIECES, max_size=8).map("".join))
def test_a_name_opens_what_lies_below_its_folder_or_nothing(text):
    folder = os.path.dirname(__file__)
    label = os.path.basename(folder)
    for name in (text, f"{label}/{text}"):
        with pytest.raises(FragdexError), Allowed([folder]).open(name):
            pass  # there is no video here


def test_a_link_that_appears_between_looking_and_opening_is_not_followed(tmp_path):
    root = tmp_path / "root"
    (root / "folder").mkdir(parents=True)
    (root / "folder" / "a.mp4").write_bytes(b"a")
    (tmp_path / "b.mp4").write_bytes(b"b")
    number = module._opened_below(str(root), ["folder", "a.mp4"])
    assert os.read(number, 9) == b"a"
    os.close(number)
    (root / "folder" / "b.mp4").symlink_to(tmp_path / "b.mp4")
    (root / "link").symlink_to(tmp_path)
    for steps in (["folder", "b.mp4"], ["link", "b.mp4"]):
        with pytest.raises(OSError):
            module._opened_below(str(root), steps)


def test_folders_of_one_name_are_told_apart(tmp_path):
    for parent in ("a", "b"):
        (tmp_path / parent / "films").mkdir(parents=True)
        (tmp_path / parent / "films" / f"{parent}.mp4").write_bytes(parent.encode())
    allowed = Allowed([tmp_path / "a" / "films", tmp_path / "b" / "films", tmp_path / "a/films/"])
    assert [*allowed.roots] == ["films", "films-2"]
    with allowed.open("films-2/b.mp4") as source:
        assert bytes(source.read_up_to(module.ByteRange(0, 9))) == b"b"
    with pytest.raises(SourceNotFound), allowed.open("films/b.mp4"):
        pass


@pytest.mark.parametrize(
    "prefix",
    [
        "file:///etc/",
        "/etc/",
        "ftp://a.org/",
        "https://",
        "https://u:p@a.org/",
        "https://a.org/../b/",
    ],
)
def test_what_cannot_be_a_prefix_is_refused_at_start(prefix):
    with pytest.raises(InvalidRequest, match="cannot be allowed"):
        Allowed([], [prefix])


def test_a_folder_that_is_not_there_is_refused_at_start(tmp_path):
    with pytest.raises(SourceNotFound, match="no folder"):
        Allowed([tmp_path / "nowhere"])
    with pytest.raises(Forbidden, match="--output"):
        Allowed([tmp_path]).target("a.mp4")
