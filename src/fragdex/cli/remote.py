"""`fragdex push`, `pull`, `status` and `webhook`; where a service is, and with which key."""

from __future__ import annotations

import json as json_module
import mimetypes
import os
import re
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from http.server import BaseHTTPRequestHandler, HTTPServer
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

import typer

from fragdex.cli import options
from fragdex.cli.inputs import InputWork, expand, is_url
from fragdex.cli.output import byte_progress, complain, emit, json_line, part_progress
from fragdex.errors import FragdexError, MissingExtra
from fragdex.webhook_signature import secret_bytes, signature_problem

if TYPE_CHECKING:
    from fragdex.client import Client
    from fragdex.client.exchange import Request


Server = Annotated[
    str | None,
    typer.Option(
        "--server",
        metavar="URL",
        envvar="FRAGDEX_URL",
        help="The service, with any path before /api/v1.",
        show_default="http://127.0.0.1:8000",
    ),
]
Key = Annotated[
    str | None,
    typer.Option("--key", metavar="KEY", envvar="FRAGDEX_KEY", help="API key of the service."),
]


def client_of(server: str | None, key: str | None) -> Client:
    """A client of the service.

    Raises:
        MissingExtra: the extra `remote` is not installed.
    """
    try:
        from fragdex.client import Client
    except ModuleNotFoundError as error:
        raise MissingExtra(f"a client needs {error.name}", extra="remote") from error
    return Client(server, key)


@contextmanager
def cancelled_by_ctrl_c(client: Client, cancel: Request[Any], job: str) -> Iterator[None]:
    """Have the service cancel a job at Ctrl+C; a second one does not wait for its response.

    Args:
        cancel: such as `api.cancel_render(id)`.
        job: what it is, for the message.
    """
    try:
        yield
    except KeyboardInterrupt:
        complain(f"cancelling {job}; Ctrl+C again leaves at once")
        try:
            client.send(cancel)
        except FragdexError as error:
            complain(f"{job} may still be running:  {error}")
        else:
            complain(f"{job} was cancelled")
        raise


def follow(client: Client, events: Request[Any], shown: Callable[[int, int], object]) -> None:
    """Wait for the end of a job, good or bad.

    Args:
        events: of the job, such as `api.get_render_progress(id)`.
        shown: called with the parts done and those in all, once these are known.
    """
    from fragdex.client import JobFailed

    done = size = 0
    try:
        for event in client.events(events):
            size = event.data.size or size
            done += event.data.count or 0
            if size:
                shown(done, size)
    except JobFailed:
        pass  # its record says why


def push(
    files: Annotated[
        list[str],
        typer.Argument(metavar="FILE", help="Media, images, captions, or globs; no URLs."),
    ],
    server: Server = None,
    key: Key = None,
    kind: Annotated[
        Literal["video", "image", "caption"] | None,
        typer.Option(
            "--type",
            help="What each FILE is; video is any media.",
            show_default="as the suffix says",
        ),
    ] = None,
    wait: Annotated[
        bool, typer.Option("--wait", help="Wait until each file is processed.")
    ] = False,
    hash_first: Annotated[
        bool,
        typer.Option(
            "--hash-first/--hash-later", help="Search for each file by its md5 before it is sent."
        ),
    ] = True,
    json: options.Json = False,
) -> int:
    """Upload files to a service; prints the id of each.

    Bytes that the service already has are not sent, and an interrupted upload resumes, also when
    you repeat the command. A file above the service's limit is refused before it is sent.
    Needs httpx (pip install 'fragdex[remote]').

    Examples:
      fragdex push film.mp4
      fragdex push 'films/*.mp4' --server https://media.example.org --wait --json
    """
    names = expand(files)
    if urls := [name for name in names if is_url(name)]:
        raise typer.BadParameter(f"{urls[0]}: only files can be pushed")
    work = InputWork("push")
    with client_of(server, key) as client:
        sending = partial(_send, client=client, kind=kind, wait=wait, hash_first=hash_first)

        def lines() -> Iterator[str]:
            for name, record in work.each(sending, names, 1):
                if record.status == "failed":
                    work.code = 2
                if json:
                    from msgspec import to_builtins

                    yield json_line({"file": name, **to_builtins(record)})
                else:
                    yield f"{record.id}\t{record.status}\t{name}\n"

        emit(lines(), None)
    return work.code


def _send(
    name: str, client: Any, kind: Any, wait: bool, hash_first: bool
) -> tuple[Any, Sequence[str]]:
    with byte_progress(name) as progress:
        record = client.push(name, type=kind, hash_first=hash_first, progress=progress)
    if wait:
        record = wait_until_processed(client, record, name)
    return record, [record.problem.detail] if record.problem else []


def wait_until_processed(client: Any, record: Any, name: str) -> Any:
    """The record of a file once its processing has ended, well or not; `name` is shown."""
    from fragdex.client import JobFailed, api

    if record.status != "processing":
        return record
    with part_progress(name, "% processed") as progress:
        try:
            for event in client.events(api.get_file_progress(record.id)):
                if event.data.progress is not None:
                    progress(round(event.data.progress * 100), 100)
        except JobFailed:
            pass  # its record says why
    return client.send(api.get_file(record.id))


_SUFFIXES: Final = {"image/jpeg": ".jpeg", "audio/mp4": ".m4a", "video/quicktime": ".mov"}


def pull(
    ids: Annotated[
        list[str],
        typer.Argument(metavar="ID", help="Of files, renders, transcriptions or repairs."),
    ],
    output: Annotated[
        str | None,
        typer.Option(
            "--output",
            "-o",
            metavar="PATH",
            help="Write there: a file, or a folder for its files.",
            show_default="this folder, by name",
        ),
    ] = None,
    track: options.Tracks = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace existing files.")] = False,
    server: Server = None,
    key: Key = None,
    json: options.Json = False,
) -> int:
    """Download files, results of renders and captions from a service.

    A video becomes one fragmented MP4, or with --track a file for each track; a transcription
    becomes WebVTT, or the format of the suffix of -o (.srt, .json). Interrupted downloads resume;
    a file appears when it is complete. Existing files stay, unless --overwrite is given.
    Needs httpx (pip install 'fragdex[remote]').

    Examples:
      fragdex pull 0193f0a2-… -o film.mp4
      fragdex pull 0193f0a2-… 0193f0a3-… -o films/
    """
    folder = output is not None and (output.endswith(("/", os.sep)) or os.path.isdir(output))
    if output is not None and not folder and len(ids) > 1:
        raise typer.BadParameter("several IDs need a folder: -o FOLDER/")
    if folder:
        os.makedirs(str(output), exist_ok=True)
    work = InputWork("pull")
    with client_of(server, key) as client:
        receiving = partial(
            _receive,
            client=client,
            output=None if folder else output,
            folder=Path(str(output)) if folder else Path(),
            tracks=track,
            overwrite=overwrite,
        )

        def lines() -> Iterator[str]:
            for name, paths in work.each(receiving, ids, 1):
                for path in paths:
                    yield json_line({"id": name, "file": path}) if json else f"{path}\n"

        emit(lines(), None)
    return work.code


def _receive(
    id: str,
    client: Any,
    output: str | None,
    folder: Path,
    tracks: Sequence[int] | None,
    overwrite: bool,
) -> tuple[list[str], Sequence[str]]:
    kind, record = record_of(client, id)
    downloads = list(_downloads(client, kind, record, output, tracks))
    if output is not None and len(downloads) > 1:
        listed = ", ".join(name for _, name in downloads)
        raise FragdexError(f"{id} has several files: {listed}", advice="name one by --track")
    paths = []
    for request, name in downloads:
        path = output if output is not None else str(folder / name)
        if not overwrite and os.path.lexists(path):
            raise FragdexError(
                f"{path} is there already", advice="--overwrite replaces it, -o names another file"
            )
        with byte_progress(path) as progress:
            client.download(request, path, progress=progress)
        paths.append(path)
    return paths, ()


def _downloads(
    client: Any, kind: str, record: Any, output: str | None, tracks: Sequence[int] | None
) -> Iterator[tuple[Any, str]]:
    """Requests of bytes, with the names that their files get."""
    from fragdex.client import api
    from fragdex.client.procedures import bytes_of

    whole = bytes_of(record, output)
    if kind == "render":
        yield whole, f"{record.id}{_suffix_of(record.media_type)}"
    elif kind == "transcription":
        yield whole, f"{record.id}.{whole.path.rpartition('.')[2]}"
    elif kind == "repair":
        yield whole, f"{record.id}.mp4"
    elif record.type in ("image", "caption"):
        yield whole, _own_name(record)
    else:
        stem = Path(_own_name(record)).stem or record.id
        wanted = [
            one
            for one in record.tracks
            if one.byte_size is not None and (tracks is None or one.track_id in tracks)
        ]
        if not wanted:
            raise FragdexError(f"{record.id} has no such track, or none yet: it is {record.status}")
        if tracks is None:
            yield whole, f"{stem}.mp4"
            return
        for one in wanted:
            request = api.download_file_track(record.id, one.track_id)
            yield request, f"{stem}-{one.track_id if one.track_id > 0 else 'scrub'}.mp4"


def _own_name(record: Any) -> str:
    """The name of a file in a folder, whatever the service says that it is called."""
    last = re.split(r"[/\\]", record.filename)[-1]
    name = re.sub(r"[\x00-\x1f\x7f-\x9f]", "_", last).lstrip(".")
    return name or str(record.id)


def _suffix_of(media_type: str) -> str:
    return _SUFFIXES.get(media_type) or mimetypes.guess_extension(media_type) or ".bin"


def status(
    ids: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="ID",
            help="Of files, renders, transcriptions or repairs. Default: the newest of each.",
        ),
    ] = None,
    server: Server = None,
    key: Key = None,
    most: Annotated[
        int, typer.Option("--most", min=1, metavar="N", help="At most this many of each kind.")
    ] = 10,
    json: options.Json = False,
) -> int:
    """Show files, renders, transcriptions and repairs of a service: id, status and kind.

    Needs httpx (pip install 'fragdex[remote]').

    Examples:
      fragdex status
      fragdex status 0193f0a2-… --json
    """
    work = InputWork("status")
    with client_of(server, key) as client:

        def lines() -> Iterator[str]:
            if not ids:
                for kind, record in _newest(client, most):
                    yield _record_line(kind, record, json)
                return

            def asked(name: str) -> tuple[tuple[str, Any], tuple[str, ...]]:
                return record_of(client, name), ()

            for _, (kind, record) in work.each(asked, ids, 1):
                yield _record_line(kind, record, json)

        emit(lines(), None)
    return work.code


def _newest(client: Any, most: int) -> Iterator[tuple[str, Any]]:
    from fragdex.client import api

    for kind, request, member in (
        ("file", api.list_files(limit=min(most, 200)), "files"),
        ("render", api.list_renders(limit=min(most, 200)), "renders"),
        ("transcription", api.list_transcriptions(limit=min(most, 200)), "transcriptions"),
        ("repair", api.list_repairs(limit=min(most, 200)), "repairs"),
    ):
        records = (one for page in client.pages(request) for one in getattr(page, member))
        yield from ((kind, record) for record in islice(records, most))


def record_of(client: Any, id: str) -> tuple[str, Any]:
    """The kind and the record of an id.

    Raises:
        FragdexError: the tenant of the key has no such record.
    """
    from fragdex.client import NotFound, api

    try:
        record = client.record(id)
    except NotFound:
        message = f"there is no such file, render, transcription or repair: {id}"
        raise FragdexError(message) from None
    kinds: dict[type, str] = {
        api.RenderRecord: "render",
        api.TranscriptionRecord: "transcription",
        api.RepairRecord: "repair",
    }
    return kinds.get(type(record), "file"), record


def _record_line(kind: str, record: Any, json: bool) -> str:
    if json:
        from msgspec import to_builtins

        return json_line({"kind": kind, **to_builtins(record)})
    return "\t".join((record.id, kind, record.status, *_about(record))) + "\n"


def _about(record: Any) -> Sequence[str]:
    problem = getattr(record, "problem", None)
    parts = [
        getattr(record, "filename", None),
        f"{record.byte_size:,} bytes" if getattr(record, "byte_size", None) else None,
        problem.detail if problem else None,
    ]
    return [part for part in parts if part]


LONGEST_BODY = 1 << 20
NOT_CHECKED = "not checked"


def listen(
    port: Annotated[
        int,
        typer.Option(
            min=0, max=65535, metavar="PORT", help="Listen on this port; 0: any free one."
        ),
    ] = 8900,
    host: Annotated[
        str, typer.Option(metavar="HOST", help="Listen on this address.")
    ] = "127.0.0.1",
    secret: Annotated[
        str | None,
        typer.Option(
            metavar="whsec_…",
            envvar="FRAGDEX_WEBHOOK_SECRET",
            help="Check signatures with it: a delivery that fails is answered 401.",
        ),
    ] = None,
    count: Annotated[
        int, typer.Option(min=0, metavar="N", help="End after N deliveries; 0: never.")
    ] = 0,
    json: options.Json = False,
) -> int:
    """Show the deliveries of a service's webhooks as they arrive, and check their signatures.

    A service accepts a non-public URL only if its setting webhook_networks has the network. With
    --count, the exit code is 1 if a signature was wrong.

    Examples:
      fragdex webhook listen --secret whsec_…
      fragdex webhook listen --port 0 --count 1 --json
    """
    if secret is not None:
        try:
            secret_bytes(secret)
        except ValueError as error:
            raise typer.BadParameter(str(error), param_hint="--secret") from error
    seen: list[bool] = []

    def on_delivery(headers: dict[str, str], body: bytes) -> bool:
        reason = NOT_CHECKED
        if secret is not None:
            reason = signature_problem(headers, body, [secret], time.time()) or ""
        shown = _delivery(headers, body, reason)
        print(json_line(shown) if json else _line(shown), end="", flush=True)
        seen.append(reason in ("", NOT_CHECKED))
        return seen[-1]

    try:
        server = HTTPServer((host, port), _handler(on_delivery))
    except OSError as error:
        raise typer.BadParameter(
            f"cannot listen on {host}, port {port}: {error.strerror}", param_hint="--port"
        ) from error
    with server:
        where, number = server.server_address[:2]
        typer.echo(f"Listening at http://{where!s}:{number}/", err=True)
        while not count or len(seen) < count:
            server.handle_request()
    return 0 if all(seen) else 1


def _handler(on_delivery: Callable[[dict[str, str], bytes], bool]) -> type[BaseHTTPRequestHandler]:
    """What answers requests: 204, or 401 where `on_delivery` does not believe a delivery."""

    class Handler(BaseHTTPRequestHandler):
        timeout = 30

        def do_POST(self) -> None:
            length = self.headers.get("Content-Length", "")
            if not length.isascii() or not length.isdigit() or int(length) > LONGEST_BODY:
                self.send_error(413)
                return
            body = self.rfile.read(int(length))
            self.send_response(204 if on_delivery(dict(self.headers.items()), body) else 401)
            self.end_headers()

        def log_message(self, format: str, *args: Any) -> None:
            """Deliveries are printed, requests are not."""

    return Handler


def _delivery(headers: dict[str, str], body: bytes, reason: str) -> dict[str, Any]:
    named = {name.lower(): value for name, value in headers.items()}
    try:
        message = json_module.loads(body)
    except ValueError:
        message = body.decode("utf-8", "replace")
    return {
        "id": named.get("webhook-id"),
        "timestamp": named.get("webhook-timestamp"),
        "signature": reason or "valid",
        "message": message,
    }


def _line(delivery: dict[str, Any]) -> str:
    message = delivery["message"] if isinstance(delivery["message"], dict) else {}
    data = message.get("data")
    facts = data if isinstance(data, dict) else {}
    shown = " ".join(
        f"{name}={value if isinstance(value, str) else json_module.dumps(value)}"
        for name, value in facts.items()
        if value is not None
    )
    kind = message.get("type", "not an event")
    line = f"{message.get('timestamp', '-')}  {kind}  {shown}  [signature {delivery['signature']}]"
    # what anybody sends is shown: no control characters on a terminal
    return "".join(char if char.isprintable() else " " for char in line) + "\n"
