"""What every command shares: help, exit codes, one line an error, inputs, outputs."""

import json
import os
import re
import signal
import stat
import subprocess
import sys
import time
from functools import partial

import pytest
import typer

from fragdex.cli import options
from fragdex.cli.app import COMMANDS, SERVICE_COMMANDS, SERVICE_GROUPS, app_of
from fragdex.cli.options import parse_time
from fragdex.cli.pictures_and_sound import PictureKind
from fragdex.cli.view import ViewKind
from fragdex.decoding import picture_files
from fragdex.errors import FragdexError, MissingExtra
from fragdex.muxing import kinds

pytestmark = pytest.mark.true_start


def one_line(ran):
    assert ran.err.startswith("fragdex: ")
    assert ran.err.count("\n") == 1
    assert ran.err.endswith("\n")
    return ran.err.removeprefix("fragdex: ").rstrip()


# ---- help ------------------------------------------------------------------------------------


def test_help_imports_neither_numpy_nor_construct_nor_rich(run):
    program = (
        "import sys; sys.argv = ['fragdex', '--help']\n"
        "from fragdex.__main__ import main; code = main()\n"
        "heavy = {'numpy', 'construct', 'rich', 'httpx', 'matplotlib', 'fragdex.cli.index'}\n"
        "heavy &= set(sys.modules)\n"
        "print(code, sorted(heavy), file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], check=False, capture_output=True, text=True
    )
    assert done.stderr.splitlines()[-1] == "0 []"
    for command in COMMANDS:
        assert f"\n  {command} " in done.stdout


@pytest.mark.parametrize("command", [*COMMANDS])
def test_every_command_explains_itself_with_an_example(call, command):
    ran = call(command, "--help")
    assert ran.code == 0
    assert f"  fragdex {command} " in ran.out.split("Examples:")[1]
    if command == "origin":
        return  # a server, which prints no result
    assert "--json" in ran.out
    if command not in ("push", "status"):  # which make no file, and no document of one
        assert "-o" in ran.out


@pytest.mark.parametrize("command", [*COMMANDS, *SERVICE_COMMANDS, *SERVICE_GROUPS])
def test_a_command_that_is_made_alone_is_the_same(command):
    whole, alone = (typer.main.get_command(app_of(first)) for first in ("", command))
    assert list(alone.commands) == [command]
    helps = []
    for app in (whole, alone):
        context = app.make_context("fragdex", [command], resilient_parsing=True)
        part = app.commands[command]
        with part.make_context(command, [], parent=context, resilient_parsing=True) as own:
            helps.append((part.get_help(own), part.get_usage(own)))
    assert helps[0] == helps[1]
    assert len(whole.commands) > len(alone.commands)


def test_the_list_of_commands_needs_none_of_them():
    lists = []
    for named_only in (False, True):
        app = typer.main.get_command(app_of(named_only=named_only))
        with app.make_context("fragdex", [], resilient_parsing=True) as context:
            lists.append(app.get_help(context))
    assert lists[0] == lists[1]
    listed = re.findall(r"^  (\w+)  +[A-Z]", lists[0], re.MULTILINE)
    assert sorted(listed) == sorted([*COMMANDS, *SERVICE_COMMANDS, *SERVICE_GROUPS])


def test_flags_of_settings_tell_the_default_of_the_setting():
    config = pytest.importorskip("fragdex.service.config")
    serve = typer.main.get_command(app_of("serve")).commands["serve"]
    defaults = {
        one.name: one.show_default for one in serve.params if isinstance(one.show_default, str)
    }
    assert {"host", "port", "data", "database_url", "log_level"} <= defaults.keys()
    for name, text in defaults.items():
        default = config.Settings.model_fields[name].default
        assert text == (str(default) if default != "" else "in the data folder"), name


def test_without_a_command_the_help_comes_on_stderr(call):
    ran = call()
    assert (ran.code, ran.out) == (2, "")
    assert "Usage: fragdex" in ran.err


def test_the_version(run):
    ran = run("--version")
    assert ran.code == 0
    assert re.fullmatch(r"fragdex \d+\.\d+\.\d+\S*\n", ran.out)


def test_the_kinds_of_views_are_those_of_the_library():
    assert [kind.value for kind in ViewKind] == list(kinds.AnyKind.__args__)


def test_the_formats_of_pictures_are_those_of_the_library():
    assert {kind.value for kind in PictureKind} == picture_files.FORMATS.keys()


def options_of(command):
    options = set()
    for parameter in typer.main.get_command(app_of()).commands[command].params:
        if parameter.param_type_name == "option":
            options.update(parameter.opts + parameter.secondary_opts)
    return options


def test_every_command_and_option_is_in_the_docs(root):
    text = (root / "docs" / "cli.md").read_text("utf-8")
    section = re.compile(r"^## fragdex (\w+)\n(.*?)(?=^## |\Z)", re.MULTILINE | re.DOTALL)
    sections = dict(section.findall(text))
    assert list(sections) == [*COMMANDS]
    for command, section in sections.items():
        named = set(re.findall(r"`(--?[a-z][a-z0-9-]*)`", section))
        missing = options_of(command) - named - {"-h", "--help"}
        assert not missing, f"{command}: not documented"
        assert named <= options_of(command) | {"--"}, f"{command}: documented, but not there"
        assert f"[`{command}`](#fragdex-{command})" in text


# ---- bad usage and bad input -----------------------------------------------------------------


@pytest.mark.parametrize(
    "arguments",
    [
        ["nonsense"],
        ["seek"],
        ["seek", "a.mp4", "noon"],
        ["seek", "a.mp4", "1", "--track", "video"],
        ["seek", "a.mp4", "5", "--stop", "4"],
        ["seek", "a.mp4", "0", "--track", "9"],
        ["index", "a.mp4", "--format", "avi"],
        ["index", "a.mp4", "--json", "--format", "csv"],
        ["index", "a.mp4", "--embed"],
        ["index", "a.mp4", "--embed", "--json"],
        ["index", "a.mp4", "--presentation"],
        ["index", "a.mp4", "--samples", "-f", "csv"],
        ["index", "a.mp4", "--segment-duration", "5"],
        ["index", "a.mp4", "--uri", "x"],
        ["index", "a.mp4", "--playlist", "media"],
        ["index", "a.mp4", "--track", "1"],
        ["index", "a.mp4", "-f", "hls", "-t", "1", "-t", "2"],
        ["index", "a.mp4", "b.mp4", "-o", "x.fidx"],
        ["index", "a.mp4", "b.mp4", "-f", "csv"],
        ["index", "a.mp4", "-o", "a.mp4"],
        ["index", "a.mp4", "-o", "nowhere/x.fidx"],
        ["index", "nothing-*.mp4"],
        ["index", "missing.mp4"],
        ["index", "."],
        ["info", "text.txt"],
        ["dump", "text.txt"],
        ["dump", "a.mp4", "--path", "moov/none"],
        ["dump", "a.mp4", "--path", "moov/trak[x]"],
        ["view", "a.mp4"],
        ["view", "a.mp4", "-o", "a.mp4"],
        ["view", "a.mp4", "-o", "x.mp4", "--kind", "nothing"],
        ["view", "a.mp4", "a.mp4", "--kind", "timeline", "-o", "x.mp4", "--starts", "0"],
        ["view", "a.mp4", "-o", "x.mp4", "--start", "1"],
        ["view", "a.mp4", "-o", "x.mp4", "--kind", "faststart", "-t", "1"],
        ["view", "a.mp4", "-o", "x.mp4", "--kind", "clip", "--segment-duration", "1"],
        ["view", "a.mp4", "-o", "x.mp4", "--kind", "clip", "--start", "3", "--stop", "3"],
        ["view", "a.mp4", "-o", "x.mp4", "--segment-duration", "0"],
        ["view", "a.mp4", "-o", "x.mp4", "--segment-duration", "end"],
        ["view", "a.mp4", "-o", "x.mp4", "--number", "0"],
        ["view", "a.mp4", "-o", "x.mp4", "--kind", "segment", "--number", "99"],
        ["view", "a.mp4", "-o", "x.mp4", "--track", "9"],
        ["package", "a.mp4"],
        ["package", "a.mp4", "-o", "-"],
        ["package", "a.mp4", "-o", "text.txt"],
        ["package", "a.mp4", "text.txt", "-o", "x"],
        ["package", "a.mp4", "-o", "x", "--track", "9"],
        ["md5", "missing.mp4"],
        ["md5", "-c", "text.txt"],
        ["md5", "-c", "missing.md5"],
        ["verify", "a.mp4"],
        ["verify", "missing.mp4", "a.mp4"],
        ["verify", "a.mp4", "b.mp4"],
        ["plot", "a.mp4", "-o", "a.bmp"],
        ["plot", "a.mp4", "b.mp4", "-o", "x.png"],
        ["extract", "a.mp4", "0", "1"],
        ["extract", "a.mp4", "1", "1", "-o", "x.mp4"],
        ["extract", "a.mp4", "100", "101", "-o", "x.mp4"],
        ["extract", "a.mp4", "0", "1", "-o", "a.mp4"],
        ["extract", "a.mp4", "b.mp4", "0", "1", "-o", "x.mp4"],
        ["info", "a.mp4", "--max-bytes", "10"],
    ],
    ids=" ".join,
)
def test_bad_usage_and_bad_input_are_one_line_and_2(call, files, tmp_path, arguments):
    (tmp_path / "text.txt").write_text("This is no movie.\n")
    before = sorted(os.listdir(tmp_path))
    ran = call(*arguments)
    assert ran.code == 2
    assert "fault" not in one_line(ran)
    assert sorted(os.listdir(tmp_path)) == before, "nothing half done is left"


def test_a_bad_input_does_not_keep_the_others_from_their_turn(call, files, tmp_path):
    (tmp_path / "bad.mp4").write_bytes(b"not a movie")
    ran = call("info", "a.mp4", "bad.mp4", "b.mp4", "--json")
    assert ran.code == 2
    assert [json.loads(line)["file"] for line in ran.lines] == ["a.mp4", "b.mp4"]
    assert "bad.mp4" in one_line(ran)


def test_a_truncated_input_is_0_and_a_line_on_stderr(call, files, tmp_path):
    (tmp_path / "cut.mp4").write_bytes(files["a.mp4"][:-10])
    for command in (["index", "cut.mp4"], ["info", "cut.mp4"], ["seek", "cut.mp4", "0"]):
        ran = call(*command)
        assert ran.code == 0
        assert "cut.mp4: truncated or still growing" in one_line(ran)


def test_control_characters_of_a_name_do_not_reach_the_terminal(call, tmp_path):
    (tmp_path / "evil\x1b[31m\n.mp4").write_bytes(b"")
    ran = call("info", "evil\x1b[31m\n.mp4")
    assert ran.code == 2
    assert "\\u001b[31m\\u000a" in one_line(ran)


def test_a_fault_is_one_line_and_1(call, files, monkeypatch):
    def broken(*args, **kwargs):
        raise RuntimeError("out of\ncoffee")

    monkeypatch.setattr("fragdex.cli.info.open_any", broken)
    ran = call("info", "a.mp4")
    assert ran.code == 1
    assert "a fault in fragdex: RuntimeError: out of coffee" in one_line(ran)
    monkeypatch.setenv("FRAGDEX_TRACEBACK", "1")
    assert "Traceback" in call("info", "a.mp4").err


def test_a_full_disk_is_a_fault_of_the_machine(call, files):
    if not os.path.exists("/dev/full"):
        pytest.skip("no /dev/full")
    ran = call("info", "a.mp4", "-o", "/dev/full")
    assert ran.code == 1
    assert one_line(ran) == "/dev/full: cannot be written: No space left on device"


def test_an_interrupt_is_130(call, files, monkeypatch):
    def interrupted(*args, **kwargs):
        raise KeyboardInterrupt

    monkeypatch.setattr("fragdex.cli.info.open_any", interrupted)
    ran = call("info", "a.mp4")
    assert (ran.code, ran.err) == (130, "")


def test_a_real_interrupt_is_130(tmp_path, root):
    if os.name == "nt":
        pytest.skip("no SIGINT to a process there")
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    command = [sys.executable, "-m", "fragdex", "md5", "-"]
    # Started in the background, the tests have SIGINT ignored, and so would their children.
    heard = partial(signal.signal, signal.SIGINT, signal.SIG_DFL)
    pipes = {"stdin": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(command, **pipes, preexec_fn=heard) as process:  # noqa: PLW1509
        process.stdin.write(b"waiting")
        process.stdin.flush()
        time.sleep(1.5)  # until it stands in its read; too early would be a KeyboardInterrupt, too
        process.send_signal(signal.SIGINT)
        process.stdin.close()
        assert process.wait(30) in (130, -signal.SIGINT)


def test_a_reader_that_goes_away_is_no_complaint(files, tmp_path):
    command = f"{sys.executable} -m fragdex dump --full a.mp4 b.mp4 sidx.mp4 | head -c 5"
    done = subprocess.run(["sh", "-c", command], cwd=tmp_path, check=False, capture_output=True)
    assert (done.stdout, done.stderr) == (b"a.mp4", b"")


def test_without_the_extra_the_command_says_what_to_install(tmp_path):
    blocker = tmp_path / "typer.py"
    blocker.write_text("raise ModuleNotFoundError('no typer', name='typer')")
    done = subprocess.run(
        [sys.executable, "-m", "fragdex", "--help"],
        check=False,
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), *sys.path])},
    )
    assert done.returncode == 2
    assert done.stderr == (
        "fragdex: the command line needs the package typer: pip install 'fragdex[cli]'\n"
    )


@pytest.mark.parametrize("given", [None, "3"])
def test_imports_of_the_service_leave_the_environment_as_it_is(monkeypatch, given):
    """numpy reads there how many threads it starts; so do processes that are started later."""
    name = "OPENBLAS_NUM_THREADS"
    monkeypatch.delenv(name, raising=False)
    if given is not None:
        monkeypatch.setenv(name, given)
    with options.extra("service"):
        assert os.environ[name] == (given or "1")
    with pytest.raises(MissingExtra), options.extra("service"):
        raise ModuleNotFoundError("No module named 'x'", name="x")
    assert os.environ.get(name) == given


def test_a_broken_installation_is_not_called_a_missing_extra(monkeypatch):
    from fragdex.__main__ import main

    monkeypatch.setitem(sys.modules, "fragdex.cli.app", None)
    with pytest.raises(ModuleNotFoundError):
        main(["--help"])


# ---- inputs ----------------------------------------------------------------------------------


def test_quoted_globs_and_several_processes(call, files):
    for jobs in (1, 2):
        ran = call("info", "*.mp4", "--json", "--jobs", jobs)
        assert ran.code == 0
        names = [json.loads(line)["file"] for line in ran.lines]
        assert names == ["a.mp4", "b.mp4", "progressive.mp4", "sidx.mp4"]


def test_a_name_with_brackets_is_a_file_before_it_is_a_glob(call, files, tmp_path):
    (tmp_path / "[a].mp4").write_bytes(files["a.mp4"])
    assert call("info", "[a].mp4").out.startswith("[a].mp4:")


def test_errors_come_back_from_other_processes(call, files, tmp_path):
    (tmp_path / "bad.mp4").write_bytes(b"not a movie")
    ran = call("info", "bad.mp4", "a.mp4", "missing.mp4", "--jobs", "3")
    assert ran.code == 2
    assert ran.out.startswith("a.mp4:")
    assert [line.split(":")[1].strip() for line in ran.err.splitlines()] == [
        "bad.mp4",
        "there is no file missing.mp4",
    ]


def test_a_url_is_an_input_and_has_a_budget(call, files):
    from fragdex.testing import RangeServer

    with RangeServer({"/sidx.mp4": files["sidx.mp4"]}) as server:
        url = f"{server.url.rstrip('/')}/sidx.mp4" if "sidx.mp4" not in server.url else server.url
        ran = call("seek", url, "0", "--json")
        assert ran.code == 0, ran.err
        local = call("seek", "sidx.mp4", "0", "--json")
        assert json.loads(ran.out)["hits"] == json.loads(local.out)["hits"]
        ran = call("seek", url, "0", "--max-requests", "0")
        assert ran.code == 2
        assert "budget" in one_line(ran)


# ---- times -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("0", 0),
        ("1:30", 90),
        ("1:02:03.5", 3723.5),
        (".5", 0.5),
        ("7.", 7),
        ("90s", 90),
        ("end", float("inf")),
    ],
)
def test_times_are_read(text, seconds):
    assert parse_time(text) == seconds


@pytest.mark.parametrize(
    "text", ["", "1:2:3:4", "nan", "inf", "1e3", "1 h", "--5", "1:99", "1:60:00"]
)
def test_what_is_no_time_is_refused(text):
    with pytest.raises(typer.BadParameter):
        parse_time(text)


def test_errors_of_the_library_are_told_as_they_are(call, files, monkeypatch):
    def refuse(*args, **kwargs):
        raise FragdexError("no", path="moov", offset=8)

    monkeypatch.setattr("fragdex.cli.info.open_any", refuse)
    assert one_line(call("info", "a.mp4")) == "a.mp4: no (moov at byte 8)"


def test_a_missing_argument_brings_the_usage(call):
    ran = call("seek", "a.mp4")
    assert ran.code == 2
    assert ran.err.startswith("fragdex: an argument is missing: fragdex seek ")
    assert ran.err.count("\n") == 1
    assert "TIME" in ran.err


# ---- outputs that take no more ---------------------------------------------------------------

FULL = pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")


@FULL
@pytest.mark.parametrize(
    "command",
    ["info a.mp4", "index a.mp4", "index a.mp4 --json", "seek a.mp4 0", "md5 a.mp4", "dump a.mp4",
     "--version"],
)  # fmt: skip
def test_a_full_disk_behind_stdout(command, files, tmp_path):
    with open("/dev/full", "wb") as full:
        done = subprocess.run(
            [sys.executable, "-m", "fragdex", *command.split()],
            check=False, stdout=full, stderr=subprocess.PIPE, cwd=tmp_path,
        )  # fmt: skip
    assert done.returncode == 1
    assert done.stderr.decode() == (
        "fragdex: the output cannot be written: No space left on device\n"
    )


def test_a_device_is_written_to_and_stays_one(call, files, tmp_path):
    """No file takes its place, not even where that is allowed."""
    devices = {"null": 3, "full": 7}
    try:
        for name, minor in devices.items():
            os.mknod(tmp_path / name, stat.S_IFCHR | 0o666, os.makedev(1, minor))
            (tmp_path / name).open("wb").close()
    except (AttributeError, OSError):
        pytest.skip("this user may make no devices here")
    for command in (("index", "a.mp4"), ("index", "a.mp4", "-f", "hls"), ("info", "a.mp4")):
        assert call(*command, "-o", "null").code == 0
        ran = call(*command, "-o", "full")
        assert ran.code == 1
        assert "full: cannot be written: No space left on device" in one_line(ran)
    assert all((tmp_path / name).is_char_device() for name in devices)


def test_an_output_that_cannot_be_written_is_named(call, files, tmp_path, monkeypatch):
    """As it was asked for, and not as the temporary file beside it."""
    nowhere = str(tmp_path / "gone" / "x.part")
    monkeypatch.setattr("fragdex.sources.files._temporary", lambda target: nowhere)
    for arguments in (("index", "a.mp4"), ("extract", "a.mp4", "0", "1")):
        ran = call(*arguments, "-o", "out.bin")
        assert ran.code == 2
        assert "out.bin: cannot be written: No such file or directory" in one_line(ran)
        assert ".part" not in ran.err


def test_what_is_no_media_file(call, files, tmp_path):
    (tmp_path / "text.txt").write_text("This is a text of some length.\n")
    for command in ("info", "dump"):
        ran = call(command, "text.txt")
        assert ran.code == 2
        assert "text.txt" in one_line(ran)
        assert "this is not an ISO base media file" in ran.err.replace("text.txt is", "this is")
    assert call("index", "a.mp4", "-f", "sidx", "-o", "a.sidx").code == 0
    ran = call("verify", "a.mp4", "a.sidx")
    assert ran.code == 2
    assert "a .fidx, or JSON" in one_line(ran)


def test_a_recording_that_was_broken_off(call, fixtures, tmp_path):
    (tmp_path / "cut.mp4").write_bytes((fixtures / "moov-last.mp4").read_bytes()[:3000])
    assert "the recording stopped" in call("info", "cut.mp4").err
