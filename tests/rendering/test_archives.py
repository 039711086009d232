"""Packed sites: what is taken, what is refused, and that nothing is written outside."""

import contextlib
import gzip
import io
import itertools
import os
import stat
import struct
import tarfile
import zipfile

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fragdex.errors import ServiceError, TooLarge, Unprocessable
from fragdex.rendering.archives import Bounds, examine, unpack

NUMBERS = itertools.count()
SITE = {"index.html": b"<h1>Hi", "a/b.css": b"p{}", "a/c.js": b"1"}


def tar_of(*members, gz=True):
    """A .tar.gz of (TarInfo or name, bytes)."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz" if gz else "w") as archive:
        for member, data in members:
            info = tarfile.TarInfo(member) if isinstance(member, str) else member
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return out.getvalue()


def zip_of(*members, compression=zipfile.ZIP_DEFLATED):
    """A .zip of (ZipInfo or name, bytes)."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", compression) as archive:
        for member, data in members:
            archive.writestr(member, data)
    return out.getvalue()


def special(name, kind, link=""):
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, link
    return info


def zipped_as(name, mode):
    info = zipfile.ZipInfo(name)
    info.create_system, info.external_attr = 3, mode << 16
    return info


@pytest.fixture
def packed(tmp_path):
    def write(data):
        path = tmp_path / "packed"
        path.write_bytes(data)
        return path

    return write


def files_in(folder):
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


@pytest.mark.parametrize("pack", [tar_of, zip_of, lambda *m: tar_of(*m, gz=False)])
def test_a_site_comes_out_as_it_went_in(packed, tmp_path, pack):
    path, folder = packed(pack(*SITE.items())), tmp_path / "out"
    assert examine(path, Bounds()) == unpack(path, folder, Bounds())
    assert files_in(folder) == SITE


def test_what_tar_and_zip_programs_write_of_a_folder(packed, tmp_path):
    root = tmp_path / "site"
    for name, data in SITE.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(data)
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as archive:
        archive.add(root, ".")  # as `tar -C site -czf site.tgz .` does
    unpack(packed(out.getvalue()), tmp_path / "out", Bounds())
    assert files_in(tmp_path / "out") == SITE


REFUSED = {
    "a zip's name of nothing": (
        zip_of(*SITE.items(), ("QQ", b"")).replace(b"QQ", b"\0Q"),
        "leads outside",
    ),
    "no archive": (b"<h1>Hi", "no .tar.gz and no .zip"),
    "nothing": (b"", "no .tar.gz and no .zip"),
    "no index": (tar_of(("main.html", b"")), "no index.html"),
    "index in a folder": (tar_of(("site/index.html", b"")), "pack what is in 'site'"),
    "parent": (tar_of(("index.html", b""), ("../x", b"")), "leads outside"),
    "parent inside": (tar_of(("index.html", b""), ("a/../../x", b"")), "leads outside"),
    "absolute": (tar_of(("index.html", b""), ("/etc/x", b"")), "leads outside"),
    "backslash": (zip_of(("index.html", b""), ("..\\x", b"")), "leads outside"),
    "drive": (zip_of(("index.html", b""), ("C:x", b"")), "leads outside"),
    "zip parent": (zip_of(("index.html", b""), ("../x", b"")), "leads outside"),
    "symbolic link": (
        tar_of(("index.html", b""), (special("a", tarfile.SYMTYPE, "/etc/passwd"), b"")),
        "is a link",
    ),
    "hard link": (
        tar_of(("index.html", b""), (special("a", tarfile.LNKTYPE, "/etc/passwd"), b"")),
        "is a link",
    ),
    "zip link": (
        zip_of(("index.html", b""), (zipped_as("a", stat.S_IFLNK | 0o777), b"/etc/passwd")),
        "is a link",
    ),
    "device": (tar_of((special("index.html", tarfile.CHRTYPE), b"")), "not a regular file"),
    "pipe": (tar_of((special("index.html", tarfile.FIFOTYPE), b"")), "not a regular file"),
    "zip device": (zip_of((zipped_as("a", stat.S_IFCHR | 0o600), b"")), "not a regular file"),
    "file and folder": (tar_of(("index.html", b""), ("index.html/x", b"")), "a file and a folder"),
    "folder and file": (tar_of(("a/index.html", b""), ("a", b"")), "a file and a folder"),
    "long name": (tar_of(("index.html", b""), ("x" * 300, b"")), "not a file name"),
    "endless name": (tar_of(("x" * (2 << 20), b"")), "longer than any name"),
    "bzip2 inside": (
        zip_of(("index.html", b"x" * 999), compression=zipfile.ZIP_BZIP2), "other than deflate"
    ),
    "cut gzip": (tar_of(*SITE.items(), ("d", os.urandom(9999)))[:5000], "broken"),
    "cut zip": (zip_of(*SITE.items())[:-30], "broken"),
    "ratio": (tar_of(("index.html", bytes(64 << 20))), "times its size"),
    "zip ratio": (zip_of(("index.html", bytes(64 << 20))), "times its size"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused(packed, tmp_path, name):
    data, reason = REFUSED[name]
    folder = tmp_path / "below" / "out"
    for read in (lambda p: examine(p, Bounds()), lambda p: unpack(p, folder, Bounds())):
        with pytest.raises(Unprocessable) as caught:
            read(packed(data))
        assert reason in str(caught.value)
    assert {path.name for path in tmp_path.iterdir()} <= {"packed", "below"}
    assert not [path for path in tmp_path.rglob("*") if path.is_symlink()]


@pytest.mark.parametrize("pack", [tar_of, zip_of])
def test_bounds_of_size_and_number(packed, pack):
    many = pack(*((f"{n}.txt", b"") for n in range(30)), ("index.html", b""))
    with pytest.raises(TooLarge) as caught:
        examine(packed(many), Bounds(files=20))
    assert caught.value.more == {"limit": 20}
    large = pack(("index.html", os.urandom(10_000)))
    with pytest.raises(TooLarge) as caught:
        examine(packed(large), Bounds(unpacked_bytes=9_999))
    assert caught.value.more == {"limit": 9_999}
    assert examine(packed(large), Bounds(unpacked_bytes=10_000)).byte_size == 10_000


@pytest.mark.parametrize("pack", [tar_of, zip_of])
def test_folders_that_names_make_are_bounded_too(packed, pack):
    deep = pack(("index.html", b""), *((f"{n}/" + "d/" * 400 + "x", b"") for n in range(10)))
    assert examine(packed(deep), Bounds(files=5000)).files == 11
    with pytest.raises(TooLarge):
        examine(packed(deep), Bounds(files=1000))


def test_a_zip_that_lies_about_its_sizes_is_counted(packed):
    data = bytearray(zip_of(("index.html", bytes(40 << 20))))
    at = data.rfind(b"PK\x01\x02")
    struct.pack_into("<L", data, at + 24, 10)  # the unpacked size in the directory
    with pytest.raises(ServiceError):
        examine(packed(bytes(data)), Bounds(unpacked_bytes=1 << 20))


def test_a_gzip_of_zeros_without_end_is_given_up(packed):
    """Where a tar's reader looks for the next member, it is given no more than a name needs."""
    site = tar_of(("index.html", b"x"), gz=False)[:1024]
    endless = gzip.compress(site + tar_of(("y" * 70_000, b""), gz=False)[:1024] + bytes(100 << 20))
    with pytest.raises(Unprocessable):
        examine(packed(endless), Bounds())


def test_a_broken_head_is_not_the_end_of_the_archive(packed):
    whole = tar_of(("index.html", b"x"), ("picture.png", b"y"), gz=False)
    broken = whole.replace(b"picture.png", b"picture.jpg")  # the checksum tells
    assert broken != whole
    assert examine(packed(whole), Bounds()).files == 2
    for archive in (broken, whole[: 1024 + 300]):
        with pytest.raises(Unprocessable, match="broken"):
            examine(packed(archive), Bounds())


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    st.sampled_from([tar_of(*SITE.items(), gz=False), zip_of(*SITE.items())]),
    st.lists(st.tuples(st.integers(0, 10_000), st.integers(0, 255)), min_size=1, max_size=8),
)
def test_damaged_archives_are_refused_or_read_and_stay_inside(packed, tmp_path, data, changes):
    data = bytearray(data)
    for at, value in changes:
        data[at % len(data)] = value
    folder = tmp_path / "below" / str(next(NUMBERS))
    with contextlib.suppress(Unprocessable, TooLarge):
        unpack(packed(bytes(data)), folder, Bounds(unpacked_bytes=1 << 20))
    assert {path.name for path in tmp_path.iterdir()} <= {"packed", "below"}
