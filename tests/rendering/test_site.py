"""Sites: files by the paths that a page asks for, and nothing beside them."""

import hashlib
import os

import pytest

from fragdex.rendering.site import Folder, Page


@pytest.fixture
def folder(tmp_path):
    site = tmp_path / "site"
    (site / "sub").mkdir(parents=True)
    (site / "index.html").write_text("<p>one")
    (site / "a b.css").write_text("p{}")
    (site / "sub" / "index.html").write_text("<p>two")
    (site / "LICENSE").write_text("free")
    (tmp_path / "secret").write_text("SECRET")
    return site


@pytest.mark.parametrize(
    ("path", "data", "media_type"),
    [
        ("", b"<p>one", "text/html; charset=utf-8"),
        ("index.html", b"<p>one", "text/html; charset=utf-8"),
        ("/index.html", b"<p>one", "text/html; charset=utf-8"),
        ("a b.css", b"p{}", "text/css; charset=utf-8"),
        ("sub", b"<p>two", "text/html; charset=utf-8"),
        ("sub/", b"<p>two", "text/html; charset=utf-8"),
        ("sub/../index.html", b"<p>one", "text/html; charset=utf-8"),
        ("LICENSE", b"free", "application/octet-stream"),
    ],
)
def test_files_are_read_by_path(folder, path, data, media_type):
    asset = Folder(folder).read(path)
    assert (asset.data, asset.media_type) == (data, media_type)
    assert asset.sha256 == hashlib.sha256(data).hexdigest()
    with Folder(folder).open(path).file as file:
        assert file.read() == data


@pytest.mark.parametrize(
    "path",
    ["none", "../secret", "sub/../../secret", "/../secret", "..\\secret", "a\0b", "x" * 5000,
     "index.html/x", "link", "round", "out/secret"],
)  # fmt: skip
def test_nothing_else_is(folder, path):
    os.symlink("../secret", folder / "link")
    os.symlink("round", folder / "round")
    os.symlink("..", folder / "out")
    assert Folder(folder).read(path) is None
    assert Folder(folder).open(path) is None


def test_links_inside_are_followed(folder):
    os.symlink("a b.css", folder / "c.css")
    assert Folder(folder).read("c.css").data == b"p{}"


def test_a_page_is_a_site_of_one_file():
    page = Page("<p>ü")
    assert page.read("").data == page.read("index.html").data == "<p>ü".encode()
    assert page.read("x") is None
    assert page.open("x") is None
    assert page.open("").file.read() == "<p>ü".encode()
