"""`./dev` brings browsers up to date: here with an apt of ours, which writes what it did."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

DEV = Path(__file__).parent.parent / "dev"
PROGRAMS = ("awk", "cat", "dirname", "find", "grep", "head", "ls", "mkdir", "printf", "rm", "sh",
            "sort", "uniq", "wc")  # fmt: skip
SHELL = "chromium-headless-shell"
DAY = 86_400

pytestmark = pytest.mark.skipif(not shutil.which("sh"), reason="no shell")


class Machine:
    """A Debian machine of a user."""

    def __init__(self, folder, *, user=0, updated_days=None):
        self.folder, self.lists = folder, folder / "lists"
        self.bin = folder / "bin"
        self.bin.mkdir()
        self.lists.mkdir()
        self.log = folder / "log"
        self.log.touch()
        for name in PROGRAMS:
            (self.bin / name).symlink_to(shutil.which(name))
        self.program("id", f"echo {user}")
        self.program("apt-get", f'echo "$*" >> {self.log}')
        if updated_days is not None:
            (self.lists / "deb_main_binary-amd64_Packages.lz4").touch()
            (self.lists / "partial").mkdir()
            before = (self.lists / "partial").stat().st_mtime - updated_days * DAY
            os.utime(self.lists / "partial", (before, before))

    def program(self, name, script):
        path = self.bin / name
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)

    def has(self, package, installed, candidate):
        """Has apt installed a package, and offer another version of it."""
        self.program(package, "true")
        self.program("dpkg-query", f'case "$*" in *Version*) printf {installed} ;; esac; true')
        self.program("apt-cache", f"echo 'x:\n  Installed: {installed}\n  Candidate: {candidate}'")

    def run(self, call, **environment):
        """What is said where a function of `dev` is called."""
        functions, *_ = DEV.read_text("utf-8").split("\ncommand=${1:-help}")
        text = functions.replace("apt_lists=/var/lib/apt/lists", f"apt_lists={self.lists}")
        assert text != functions
        words = [shutil.which("sh"), "-c", f"{text}\n{call}", "./dev"]
        done = subprocess.run(
            words, cwd=self.folder, capture_output=True, text=True,
            env={"PATH": str(self.bin), **environment}, check=False, timeout=60,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        return done.stderr

    @property
    def calls(self):
        """What apt-get was asked for, without its options."""
        lines = self.log.read_text("utf-8").splitlines()
        return [[word for word in line.split() if word[0] != "-"] for line in lines]


@pytest.mark.parametrize("updated_days", [None, 0, 30])
def test_nothing_is_installed_from_old_lists(tmp_path, updated_days):
    machine = Machine(tmp_path, updated_days=updated_days)
    machine.run("need_browser")
    assert machine.calls == [["update"], ["install", SHELL, "fonts-dejavu-core"]]


def test_what_cannot_be_updated_is_installed_from_what_there_is(tmp_path):
    machine = Machine(tmp_path)
    machine.program("apt-get", f'echo "$*" >> {machine.log}; case "$*" in *update*) exit 1 ;; esac')
    assert "apt-get update failed" in machine.run("need_browser")
    assert machine.calls[-1][0] == "install"


@pytest.mark.parametrize(
    ("updated_days", "candidate", "wanted"),
    [
        (0, "150", []),
        (0, "156", [["install", SHELL]]),
        (2, "150", [["update"]]),
        (2, "156", [["update"], ["install", SHELL]]),
        (None, "156", [["update"], ["install", SHELL]]),
    ],
)
def test_a_browser_of_apt_is_brought_up_to_date(tmp_path, updated_days, candidate, wanted):
    machine = Machine(tmp_path, updated_days=updated_days)
    machine.has(SHELL, "150", candidate)
    machine.run("need_browser")
    assert machine.calls == wanted


def test_a_whole_chromium_does_not_stand_in_for_the_shell(tmp_path):
    machine = Machine(tmp_path, updated_days=0)
    machine.has("chromium", "150", "156")
    machine.program(
        "apt-get", f'echo "$*" >> {machine.log}; case "$*" in *{SHELL}*) exit 1 ;; esac'
    )
    assert "no Chromium" in machine.run("need_browser")
    assert not any("chromium" in call for call in machine.calls)


@pytest.mark.parametrize(
    ("user", "environment"), [(1000, {}), (0, {"FRAGDEX_CHROMIUM": "/opt/chromium"})]
)
def test_a_browser_that_is_not_ours_stays_as_it_is(tmp_path, user, environment):
    machine = Machine(tmp_path, user=user, updated_days=9)
    machine.has(SHELL, "150", "156")
    machine.run("need_browser", **environment)
    assert machine.calls == []


def test_the_oldest_browser_is_unpacked_beside_the_installed_one(tmp_path):
    if not shutil.which("dpkg-deb"):
        pytest.skip("no dpkg-deb")
    machine = Machine(tmp_path, user=1000)
    for name in ("dpkg", "dpkg-deb", "tar"):
        (machine.bin / name).symlink_to(shutil.which(name))
    for name, path in ((SHELL, f"usr/lib/chromium/{SHELL}"), ("chromium-common", "usr/share/x")):
        file = tmp_path / name / path
        file.parent.mkdir(parents=True)
        file.write_text("#!/bin/sh\n")
        control = tmp_path / name / "DEBIAN" / "control"
        control.parent.mkdir()
        control.write_text(
            f"Package: {name}\nVersion: 9.1\nArchitecture: all\nMaintainer: x <x@example.org>\n"
            "Description: x\n"
        )
        subprocess.run(["dpkg-deb", "-b", name, "."], cwd=tmp_path, check=True, capture_output=True)
    (machine.bin / "cp").symlink_to(shutil.which("cp"))
    machine.program("apt-get", f'echo "$*" >> {machine.log}; cp {tmp_path}/*.deb .')
    machine.program("apt-cache", f"for one in 10.1 9.1 11.0; do echo '{SHELL} | '$one' | x'; done")
    for _ in range(2):
        machine.run("fetch_oldest_browser")
    assert (tmp_path / ".chromium-oldest/usr/lib/chromium" / SHELL).is_file()
    assert not list((tmp_path / ".chromium-oldest").glob("*.deb"))
    (call,) = machine.calls
    assert call[-2:] == [f"{SHELL}=9.1", "chromium-common=9.1"]


def test_renders_are_tested_with_the_oldest_browser_where_there_is_one(tmp_path):
    machine = Machine(tmp_path, user=1000)
    tests = 'run() { echo "$FRAGDEX_CHROMIUM $*" >&2; }; '
    machine.program("apt-cache", "true")
    assert "not tested with the oldest" in machine.run(f"{tests} render_tests_with_oldest_browser")
    fetched = (
        "fetch_oldest_browser() { mkdir -p $oldest_browser; echo 9.1 > $oldest_browser/.stamp; }"
    )
    machine.program("dpkg-query", "printf 10.1")
    output = machine.run(f"{tests} {fetched}; render_tests_with_oldest_browser -k moving")
    assert f"{tmp_path}/.chromium-oldest/usr/lib/chromium/{SHELL} -m pytest" in output
    assert "tests/rendering tests/service/renders" in output
    assert "-k moving" in output
    machine.program("dpkg-query", "printf 9.1")
    output = machine.run(f"{tests} {fetched}; render_tests_with_oldest_browser")
    assert "pytest" not in output


@pytest.mark.parametrize(("gibibytes", "is_used"), [(5, True), (3, False)])
def test_browsers_keep_their_profiles_in_memory_that_is_there(tmp_path, gibibytes, is_used):
    machine = Machine(tmp_path, user=7)
    (machine.bin / "awk").unlink()
    (machine.bin / "chmod").symlink_to(shutil.which("chmod"))
    for name, script in (("df", "true"), ("awk", f"echo {gibibytes}")):
        machine.program(name, script)
    memory = tmp_path / "memory"
    memory.mkdir()
    call = (
        f"shared_memory={memory}; profiles_in_memory; "
        'echo "${TMPDIR:-none}" "${PYTEST_DEBUG_TEMPROOT:-none}" >&2'
    )
    used = [f"{memory}/fragdex-tests-7", "/tmp"] if is_used else ["none", "none"]
    assert machine.run(call).split() == used
    assert machine.run(call, TMPDIR="/x").split() == ["/x", "none"]
