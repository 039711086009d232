"""`fragdex serve`, `worker`, `key`, `db`, `config` as a user meets them: as processes."""

import getpass
import json
import os
import platform
import re
import select
import signal
import socket
import sqlite3
import subprocess
import sys
import time
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

import forkserver
from service.serving import client_of


def environment(**more):
    kept = {k: v for k, v in os.environ.items() if not k.startswith("FRAGDEX_")}
    return {**kept, **more}


def fragdex(*arguments, **more):
    return subprocess.run(
        [sys.executable, "-m", "fragdex", *map(str, arguments)],
        check=False,
        capture_output=True,
        text=True,
        env=environment(**more),
        timeout=120,
    )


@contextmanager
def running(*arguments):
    command = [sys.executable, "-m", "fragdex", *map(str, arguments)]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment()
    )
    try:
        yield process
    finally:
        if process.poll() is None:
            process.kill()
        process.communicate()


def url_of(process):
    lines = []
    for line in process.stdout:
        lines.append(line)
        if match := re.match(r"Serving (http://\S+)", line):
            return match[1], "".join(lines)
    raise AssertionError(process.stderr.read())


def end(process):
    process.send_signal(signal.SIGTERM)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    assert "Traceback" not in err
    return err


@pytest.mark.true_start
def test_the_first_start_makes_a_key_and_tells_it_once(tmp_path):
    with running("serve", "--port", 0, "--data", tmp_path / "data") as process:
        url, output = url_of(process)
        key = re.search(r"^ef_[^_]+_.+$", output, re.MULTILINE)[0]
        with client_of(url, key) as client:
            image = {"filename": "a.png", "byte_size": 3}
            answer = client.post("/api/v1/image_files", json=image)
            assert answer.status_code == 201
        output = end(process)
    assert f"fragdex.audit: key.create {key.rpartition('_')[2]} of tenant " in output
    assert key not in output
    with running("serve", "--port", 0, "--data", tmp_path / "data") as process:
        url, output = url_of(process)
        assert "ef_" not in output
        with client_of(url, key) as client:
            assert client.get(answer.headers["location"]).json() == answer.json()
        end(process)


def test_serve_where_others_can_reach_it_wants_a_key_first(tmp_path):
    arguments = ("serve", "--host", "0.0.0.0", "--port", 0, "--data", tmp_path)
    done = fragdex(*arguments)
    assert done.returncode == 2
    assert done.stdout == ""
    assert "fragdex key create" in done.stderr.splitlines()[-1]
    key = fragdex("key", "create", "--data", tmp_path).stdout.splitlines()[-1]
    with running(*arguments) as process:
        url, output = url_of(process)
        assert "ef_" not in output
        with client_of(url.replace("0.0.0.0", "127.0.0.1"), key) as client:
            assert client.get("/api/v1/image_files").status_code == 200
        end(process)


def test_keys_are_made_listed_and_revoked(tmp_path):
    with forkserver.turned_off():
        creation = fragdex("key", "create", "--tenant", "acme", "--name", "ann", "--data", tmp_path)
    assert creation.returncode == 0
    key = creation.stdout.splitlines()[-1]
    secret, key_id = re.fullmatch(r"(ef_[^_]+)_(.+)", key).groups()
    with closing(sqlite3.connect(tmp_path / "fragdex.db")) as database:
        (tenant_id,) = database.execute("SELECT tenant_id FROM fragdex_keys").fetchone()
    (audit_line,) = creation.stderr.splitlines()
    assert re.fullmatch(
        rf"\S+ \S+ INFO fragdex.audit: key.create {key_id} of tenant {tenant_id} by .+", audit_line
    )
    assert secret not in audit_line
    listed = fragdex("key", "list", "--json", "--data", tmp_path)
    (record,) = [json.loads(line) for line in listed.stdout.splitlines()]
    assert (record["id"], record["tenant"], record["name"], record["revoked_at"]) == (
        key_id,
        "acme",
        "ann",
        None,
    )
    assert secret not in listed.stdout
    assert record["scope"] == "write"
    limited = ["--scope", "read", "--expires-days", "30", "--data", tmp_path]
    reader = fragdex("key", "create", *limited).stdout.splitlines()[-1]
    rotated = fragdex("key", "rotate", reader, "--data", tmp_path).stdout.splitlines()[-1]
    assert rotated != reader
    assert rotated.split("_")[2] == reader.split("_")[2]
    assert "\tread\t" in fragdex("key", "list", "--data", tmp_path).stdout
    revoked = fragdex("key", "revoke", key, "--data", tmp_path, FRAGDEX_LOG_FORMAT="json")
    assert revoked.returncode == 0
    line = json.loads(revoked.stderr)
    user = getpass.getuser()
    assert {name: line[name] for name in ("event", "action", "tenant", "key", "object", "by")} == {
        "event": "audit", "action": "key.revoke", "tenant": tenant_id, "key": None,
        "object": key_id, "by": f"fragdex key revoke, user {user}",
    }  # fmt: skip
    assert "revoked" in fragdex("key", "list", "--data", tmp_path).stdout
    unknown = fragdex("key", "revoke", "nobody", "--data", tmp_path)
    assert (unknown.returncode, unknown.stderr) == (2, "fragdex: there is no such key\n")


def test_config_tells_values_and_origins(tmp_path):
    done = fragdex("config", "--data", tmp_path, FRAGDEX_PORT="9000")
    assert done.returncode == 0
    assert re.search(r"^port +9000 +\(environment FRAGDEX_PORT\)$", done.stdout, re.MULTILINE)
    assert f"{tmp_path}  (flag --data)" in done.stdout
    settings = json.loads(fragdex("config", "--json").stdout)
    assert settings["max_image_bytes"] == {"value": str(16 << 20), "origin": "default"}
    refused = fragdex("config", FRAGDEX_PORT="many")
    assert refused.returncode == 2
    assert "port (environment FRAGDEX_PORT)" in refused.stderr
    assert refused.stderr.count("\n") == 1
    for command in ("config", "serve"):
        refused = fragdex(command, "--data", tmp_path, FRAGDEX_PROT="9000")
        assert refused.returncode == 2
        assert "did you mean FRAGDEX_PORT?" in refused.stderr


def test_db_upgrade_can_be_repeated(tmp_path):
    for _ in range(2):
        assert fragdex("db", "upgrade", "--data", tmp_path).returncode == 0
    assert (tmp_path / "fragdex.db").is_file()


@pytest.mark.true_start
def test_a_worker_works_until_it_is_told_to_end(tmp_path):
    with running("worker", "--data", tmp_path) as process:
        for line in process.stderr:
            if "working as" in line:
                break
        end(process)
    refused = fragdex("worker", "--data", tmp_path, "--job-workers", 0)
    assert refused.returncode == 2
    assert "job_workers (flag --job-workers)" in refused.stderr


SIGNALLED = """
import os, signal, sys, threading
from fragdex.cli.serve import until_signal
at = 0
while True:
    wait, lines = until_signal(), 0
    def line(frame, event, argument):
        global lines
        lines += 1
        if lines == at + 1:
            signal.raise_signal(signal.SIGTERM)
        return line
    later = threading.Timer(2, os.kill, (os.getpid(), signal.SIGTERM))
    later.start()
    sys.settrace(line)
    wait()
    sys.settrace(None)
    later.cancel()
    print(at, lines, flush=True)
    if lines <= at:
        break
    at += 1
"""


def test_a_signal_ends_a_worker_in_whatever_line_of_waiting_it_comes():
    """A lock that the handler takes may be held by what it interrupts: it waited forever."""
    done = subprocess.run(
        [sys.executable, "-c", SIGNALLED], check=True, capture_output=True, text=True, timeout=60
    )
    assert done.stderr == ""
    assert done.stdout.splitlines()


SIGNALLED_AT_ONCE = """
import os, sys, threading
from fragdex.cli.serve import until_signal
sys.setswitchinterval(0.0005)
wait = until_signal()
for _ in range(4):
    threading.Thread(target=lambda: [None for _ in iter(int, 1)], daemon=True).start()
for _ in range(200):
    print(flush=True)
    wait()
os._exit(0)
"""


def test_a_signal_ends_a_worker_whose_other_threads_are_busy():
    """It came while the thread that was to wait gave the interpreter away: it waited forever."""
    with subprocess.Popen([sys.executable, "-c", SIGNALLED_AT_ONCE], stdout=subprocess.PIPE) as it:
        for at in range(200):
            came, _, _ = select.select([it.stdout], [], [], 30)
            if not came:
                it.kill()
            assert came, f"signal {at} was not seen"
            os.read(it.stdout.fileno(), 1)
            it.send_signal(signal.SIGTERM)
        assert it.wait(30) == 0


def test_a_folder_that_cannot_be_made_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    done = fragdex("serve", "--data", tmp_path / "file" / "below")
    assert done.returncode == 2
    assert "data folder" in done.stderr.splitlines()[-1]


@pytest.mark.parametrize("command", [["serve"], ["worker"], ["key", "list"], ["config"]])
def test_without_the_extra_it_says_what_to_install(tmp_path, command):
    blocker = tmp_path / "pydantic_settings.py"
    blocker.write_text("raise ModuleNotFoundError('no', name='pydantic_settings')")
    done = fragdex(*command, PYTHONPATH=str(tmp_path))
    assert done.returncode == 2
    assert done.stderr == (
        "fragdex: the service needs the package pydantic_settings; pip install 'fragdex[service]'\n"
    )


def test_help_lists_the_commands_without_loading_the_service():
    program = (
        "import sys; sys.argv = ['fragdex', '--help']\n"
        "from fragdex.__main__ import main; code = main()\n"
        "heavy = {'fastapi', 'sqlalchemy', 'pydantic_settings', 'dbos'} & set(sys.modules)\n"
        "print(code, sorted(heavy), file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], check=False, capture_output=True, text=True
    )
    assert done.stderr.splitlines()[-1] == "0 []"
    for command in ("serve", "worker", "key", "db", "config"):
        assert f"\n  {command} " in done.stdout


def unread(url):
    """How many bytes that were sent to a server wait in each of its connections, as Linux says."""
    port = f":{int(url.rpartition(':')[2]):04X}"
    for line in Path("/proc/net/tcp").read_text().splitlines()[1:]:
        _, local, _, _, queues, *_ = line.split()
        if local.endswith(port):
            yield int(queues.partition(":")[2], 16)


@pytest.mark.true_start
@pytest.mark.skipif(sys.platform != "linux", reason="nothing tells what a server has read")
def test_SIGTERM_lets_a_running_upload_finish(tmp_path):
    with running("serve", "--port", 0, "--data", tmp_path) as process:
        url, output = url_of(process)
        key = re.search(r"^ef_.+$", output, re.MULTILINE)[0]
        with client_of(url, key) as client:
            image = {"filename": "a.svg", "byte_size": 46}
            record = client.post("/api/v1/image_files", json=image).json()

            def slowly():
                yield b'<svg xmlns="http://www.w3.org/'
                while any(unread(url)):  # a connection whose request was not read yet is closed
                    time.sleep(0.01)
                process.send_signal(signal.SIGTERM)
                time.sleep(1)
                yield b'2000/svg"/>     '

            answer = client.post(f"/api/v1/image_files/{record['id']}/upload", content=slowly())
            assert answer.status_code == 201
        _, err = process.communicate(timeout=60)
        assert process.returncode == 0, err


ARENAS = """
import ctypes, sys, threading
from fragdex.cli.admin import share_one_arena
share_one_arena()
both = threading.Barrier(4)
def take():
    kept = [bytes(2000) for _ in range(100)]
    both.wait()
threads = [threading.Thread(target=take) for _ in range(4)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
libc = ctypes.CDLL(None)
libc.fopen.restype = ctypes.c_void_p
file = ctypes.c_void_p(libc.fopen(sys.argv[1].encode(), b"w"))
libc.malloc_info(0, file)
libc.fclose(file)
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="of the GNU C library alone")
def test_threads_share_one_arena(tmp_path):
    path = tmp_path / "heaps"
    for more, heaps in (({}, 1), ({"MALLOC_ARENA_MAX": "4"}, 4)):
        subprocess.run(
            [sys.executable, "-c", ARENAS, path], check=True, env=environment(**more), timeout=60
        )
        assert path.read_text().count("<heap nr=") == heaps


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_serve_may_open_as_many_connections_as_the_system_allows(tmp_path):
    import resource

    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    narrow = ["bash", "-c", 'ulimit -S -n 256 && exec "$@"', "--", sys.executable, "-m", "fragdex"]
    arguments = [*narrow, "serve", "--data", str(tmp_path), "--port", "0", "--job-workers", "0"]
    process = subprocess.Popen(
        arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment()
    )
    try:
        url_of(process)
        assert resource.prlimit(process.pid, resource.RLIMIT_NOFILE) == (most, most)
        end(process)
    finally:
        if process.poll() is None:
            process.kill()
            process.communicate()


@pytest.mark.parametrize(
    ("command", "setting"), [("serve", "FRAGDEX_PORT"), ("worker", "FRAGDEX_WORKER_PORT")]
)
def test_a_port_in_use_is_found_before_anything_is_made(tmp_path, command, setting):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        refused = fragdex(command, "--data", tmp_path / "data", **{setting: str(port)})
    assert refused.returncode == 2
    assert f"port {port} is unavailable" in refused.stderr
    assert not (tmp_path / "data").exists()


def test_a_database_that_is_not_there_is_named_with_what_was_said(tmp_path):
    url = "postgres://media:secret@127.0.0.1:1/films"
    refused = fragdex("serve", "--data", tmp_path, "--database-url", url, "--port", 0)
    assert refused.returncode == 2
    assert "127.0.0.1:1/films" in refused.stderr
    assert "refused" in refused.stderr
    assert "secret" not in refused.stderr
    assert len(refused.stderr.splitlines()[-1]) < 400
