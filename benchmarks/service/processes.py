"""The servers of a run, each a process on loopback, ended at the end."""

from __future__ import annotations

import os
import re
import select
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx

HERE = Path(__file__).parent
PATIENCE_S = 60


@dataclass(frozen=True, slots=True)
class Server:
    """A server that answers, its process, its key where it has one, and its folder."""

    url: str
    pid: int
    key: str = ""
    folder: Path = Path()

    @property
    def headers(self) -> dict[str, str]:
        """What a request needs to be let in."""
        return {"Authorization": f"Bearer {self.key}"}

    def client(self) -> httpx.Client:
        """A client with the key; proxies of the environment have no say on loopback."""
        return httpx.Client(
            base_url=f"{self.url}/api/v1", headers=self.headers, trust_env=False, timeout=120
        )

    def peak_mb(self) -> float | None:
        """The most resident memory so far, in MB; None where the system does not tell."""
        return self._status("VmHWM")

    def now_mb(self) -> float | None:
        """Resident memory now, in MB."""
        return self._status("VmRSS")

    def busy_s(self) -> float:
        """Processor time so far, in seconds; 0 where the system does not tell."""
        try:
            text = Path(f"/proc/{self.pid}/stat").read_text()
        except OSError:
            return 0.0
        # user and system time, counted behind the name in brackets (proc(5))
        user, system = text.rpartition(")")[2].split()[11:13]
        return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")

    def _status(self, name: str) -> float | None:
        try:
            text = Path(f"/proc/{self.pid}/status").read_text()
        except OSError:
            return None
        match = re.search(rf"{name}:\s+(\d+) kB", text)
        return int(match[1]) * 1024 / 1e6 if match else None

    def forget_peak(self) -> None:
        """Let the peak begin anew, where the system can."""
        try:
            Path(f"/proc/{self.pid}/clear_refs").write_text("5")
        except OSError:
            return


def _environment() -> dict[str, str]:
    """That of this process, without settings of a service."""
    return {k: v for k, v in os.environ.items() if not k.startswith("FRAGDEX_")}


@contextmanager
def _running(command: Sequence[str], **more: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A process that prints `Serving URL`; gives it and its URL."""
    child = subprocess.Popen(
        command, stdout=subprocess.PIPE, text=True, env={**_environment(), **more}
    )
    try:
        assert child.stdout
        url = None
        while url is None:
            if not select.select([child.stdout], [], [], PATIENCE_S)[0]:
                raise SystemExit(f"{command[1:3]} does not begin")
            line = child.stdout.readline()
            if not line:
                raise SystemExit(f"{command[1:3]} ended at once")
            url = re.match(r"Serving (http://\S+)", line)
        yield child, url[1]
    finally:
        child.terminate()
        try:
            child.wait(PATIENCE_S)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()


@contextmanager
def service(folder: Path, **settings: str) -> Iterator[Server]:
    """`fragdex key create`, then `fragdex serve`, over a new folder, as docs/operations.md has it.

    It works on no jobs, so nothing else runs beside.
    """
    more = {f"FRAGDEX_{name.upper()}": value for name, value in settings.items()}
    key = _new_key(folder, **more)
    command = [sys.executable, "-m", "fragdex", "serve", "--port", "0", "--data", str(folder)]
    with _running(
        command, **{"FRAGDEX_JOB_WORKERS": "0", "FRAGDEX_LOG_LEVEL": "warning", **more}
    ) as (child, url):
        yield Server(url, child.pid, key, folder)


def another_key(server: Server, tenant: str) -> str:
    """A key of another tenant of a service."""
    return _new_key(server.folder, "--tenant", tenant)


def _new_key(folder: Path, *more: str, **settings: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "fragdex", "key", "create", "--data", str(folder), *more],
        stdout=subprocess.PIPE,
        text=True,
        check=True,
        env={**_environment(), **settings},
    )
    return done.stdout.split()[-1]


@contextmanager
def plain(file: Path) -> Iterator[Server]:
    """FastAPI's constant and Starlette's file."""
    with _running([sys.executable, str(HERE / "plain.py"), str(file)]) as (child, url):
        yield Server(url, child.pid)


NGINX = """
{user}
worker_processes 1;
pid {folder}/pid;
error_log {folder}/error.log;
daemon off;
events {{ worker_connections 512; }}
http {{
  access_log off;
  sendfile on;
  tcp_nopush on;
  keepalive_requests 1000000;
  client_body_temp_path {folder}/body;
  proxy_temp_path {folder}/proxy;
  fastcgi_temp_path {folder}/fastcgi;
  uwsgi_temp_path {folder}/uwsgi;
  scgi_temp_path {folder}/scgi;
  {conf}
}}
"""


def _of_docs(port: int, upstream: str, store: Path, file: Path) -> str:
    """The servers that docs/operations.md gives nginx, and a file of its own beside them."""
    page = HERE.parents[1] / "docs" / "operations.md"
    blocks = re.findall(r"^```nginx\n(.*?)^```", page.read_text("utf-8"), re.MULTILINE | re.DOTALL)
    (server,) = (block for block in blocks if "internal;" in block)
    for here, there in (
        ("127.0.0.1:8000", upstream),
        ("listen 80;", f"listen 127.0.0.1:{port};\n    location = /file {{ alias {file}; }}"),
        ("/srv/fragdex/store/", f"{store}/"),
        ("keepalive 32;", "keepalive 32; keepalive_requests 1000000;"),
    ):
        if here not in server:
            raise SystemExit(f"{page.name} gives nginx no {here!r}")
        server = server.replace(here, there)
    return server


def free_port() -> int:
    """A port that nobody listens at."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
        return port


@contextmanager
def nginx(file: Path, behind: Server) -> Iterator[Server | None]:
    """A proxy before the service, with the file of its own; None where it is not installed."""
    if shutil.which("nginx") is None:
        yield None
        return
    with tempfile.TemporaryDirectory(prefix="fragdex-nginx-") as name:
        folder, port = Path(name), free_port()
        text = NGINX.format(
            # as root, nginx would read as a user who may not
            user="user root;" if os.geteuid() == 0 else "",
            folder=folder,
            conf=_of_docs(port, behind.url.removeprefix("http://"), behind.folder / "store", file),
        )
        (folder / "nginx.conf").write_text(text)
        child = subprocess.Popen(
            ["nginx", "-p", name, "-c", str(folder / "nginx.conf"), "-e", str(folder / "error.log")]
        )
        try:
            _wait_for(port, folder / "error.log")
            yield Server(f"http://127.0.0.1:{port}", child.pid, behind.key)
        finally:
            child.terminate()
            child.wait(PATIENCE_S)


def _wait_for(port: int, log: Path) -> None:
    for _ in range(100):
        with socket.socket() as trial:
            if trial.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.05)
    raise SystemExit(f"nginx does not begin: {log.read_text() if log.exists() else ''}")
