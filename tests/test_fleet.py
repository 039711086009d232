"""The parts of `./dev fleet`: nginx as it is deployed, and what the watch makes of the queues."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
FLEET = ROOT / "benchmarks" / "fleet"
# The programs of benchmarks/ stand beside one another on the path, with names of their own.
HEAD = f"""
import json, sys
from pathlib import Path
from types import SimpleNamespace as Row
sys.path[:0] = {[str(FLEET), str(FLEET.parent)]!r}
sys.path.append({str(FLEET.parent / "service")!r})
"""


def told(program):
    """What a program of the benchmarks prints as JSON."""
    for needed in ("psutil", "sqlalchemy", "boto3"):
        pytest.importorskip(needed)
    done = subprocess.run(
        [sys.executable, "-c", HEAD + program], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_nginx_is_the_deployed_one_with_the_addresses_of_the_fleet(tmp_path):
    text = told(f"""
from members import nginx_conf
print(json.dumps(nginx_conf(Path({str(tmp_path)!r}), 81, [82, 83])))
""")
    assert "server 127.0.0.1:82;" in text
    assert "server 127.0.0.1:83;" in text
    assert "listen 127.0.0.1:81;" in text
    # what is deployed says how a proxy has to behave
    assert "proxy_next_upstream error timeout http_503;" in text
    for left in ("api:8000", "resolver", "listen 80;", "/var/log", "/srv"):
        assert left not in text


def test_processes_of_nginx_are_killed_with_it(tmp_path):
    """They outlived it, answered on its port, and stayed when the fleet had ended."""
    alive = told(f"""
import psutil
from members import Member
log = Path({str(tmp_path)!r}) / "log"
command = ["sh", "-c", "sleep 600 & echo $!; wait"]
one = Member("nginx", "nginx", command, log, lambda one: one.said().endswith(chr(10)), whole=True)
alive = []
for end in (Member.kill, Member.end):
    one.start()
    child = psutil.Process(int(one.said()))
    end(one)
    psutil.wait_procs([child], timeout=10)
    alive.append(child.is_running() and child.status() != "zombie")
print(json.dumps(alive))
""")
    assert alive == [False, False]


def test_pick_up_leaves_out_the_time_without_a_free_slot():
    """Worker `a` dies with a slice; `b` is busy until second 5, the slice is queued at 6."""
    record = told("""
from watching import Loss, Watch
watch = Watch("sqlite://", {"slices": 1}, began=0.0)
watch.live = {"b"}
lost = Loss("s1", "slices", "a", killed=0.0, attempt=1)
watch._last = 0.0
for second in range(1, 10):
    rows = []
    if second <= 5:
        rows.append(Row(id="s2", queue="slices", status="PENDING", executor="b"))
    if second < 6:
        rows.append(Row(id="s1", queue="slices", status="PENDING", executor="a"))
    elif second < 8:
        rows.append(Row(id="s1", queue="slices", status="ENQUEUED", executor=None))
    else:
        rows.append(Row(id="s1", queue="slices", status="PENDING", executor="b"))
    open_ = [lost] if lost.begun is None else []
    watch._follow(open_, rows, {"s1": 2 if second >= 8 else 1}, float(second))
    watch._last = float(second)
print(json.dumps({**lost.as_dict(), "pick_up": lost.pick_up}))
""")
    assert (record["queued"], record["begun"], record["full"]) == (6, 8, 5)
    assert record["pick_up"] == 3


def test_the_relay_breaks_connections_when_it_is_killed(tmp_path):
    answers = told(f"""
import socket, subprocess, time
from processes import free_port
server = socket.create_server(("127.0.0.1", 0))
port = free_port()
command = [sys.executable, str(Path({str(FLEET)!r}) / "relay.py"), str(port)]
child = subprocess.Popen([*command, str(server.getsockname()[1])])
try:
    for _ in range(200):
        try:
            client = socket.create_connection(("127.0.0.1", port), 20)
            break
        except OSError:
            time.sleep(0.05)
    client.sendall(b"asked")
    behind, _ = server.accept()
    asked = behind.recv(9)
    behind.sendall(b"answered")
    answered = client.recv(9)
finally:
    child.kill()
    child.wait()
try:
    ends = client.recv(9)
except ConnectionResetError:
    ends = b""
print(json.dumps([asked.decode(), answered.decode(), ends.decode()]))
""")
    assert answers == ["asked", "answered", ""]


def test_a_killed_worker_s_work_goes_on_within_ten_seconds():
    """The bound that decision 0054 reckons: silence, the next look, and the next poll."""
    pytest.importorskip("dbos")
    from fragdex.service.config import Settings
    from fragdex.service.jobs.api import options_of
    from fragdex.service.jobs.engine import SELDOM
    from fragdex.service.jobs.work import JobOptions

    options = options_of(Settings())
    # polls and heartbeats are late by a little
    late = 1.1
    wait = options.heartbeat_seconds + SELDOM * options.poll_seconds
    assert options.dead_after_seconds + late * wait < 10
    # a worker that misses a few of them lives
    assert options.dead_after_seconds >= 5 * options.heartbeat_seconds
    for name in ("heartbeat_seconds", "dead_after_seconds", "poll_seconds"):
        assert getattr(JobOptions(), name) == getattr(options, name)


def test_operations_that_programs_name_are_there():
    """A benchmark asked for one that had another name since: it failed after three minutes."""
    from fragdex.client import api

    named = {
        (path.relative_to(ROOT).as_posix(), name)
        for folder in ("benchmarks", "demo", "tools")
        for path in (ROOT / folder).rglob("*.py")
        if "node_modules" not in path.parts
        for text in [path.read_text("utf-8")]
        if re.search(r"^from fragdex\.client import .*\bapi\b", text, re.MULTILINE)
        for name in re.findall(r"\bapi\.(\w+)", text)
    }
    assert named
    assert {one for one in named if not hasattr(api, one[1])} == set()
