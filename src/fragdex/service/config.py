"""Settings: where each value comes from, and what it may be.

A flag wins over the environment (`FRAGDEX_PORT`), the environment over the file (TOML, named by
`--config` or `FRAGDEX_CONFIG`), the file over the default. `Settings(…)` itself reads nothing.
"""

from __future__ import annotations

import difflib
import ipaddress
import os
import re
import tomllib
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, ClassVar
from urllib.parse import unquote, urlsplit

from pydantic import ByteSize, Field, PrivateAttr, ValidationError, field_validator, model_validator
from pydantic_settings import (
    BaseSettings,
    EnvSettingsSource,
    NoDecode,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
    SettingsError,
)

from fragdex.errors import ConfigError

DEFAULT = "default"
MOST_TOKEN_SECONDS = 30 * 24 * 3600
PREFIX = "FRAGDEX_"
# Kubernetes tells every pod of each Service this way, also of one that is named fragdex or
# fragdex-api: FRAGDEX_SERVICE_HOST, FRAGDEX_API_PORT_8000_TCP_ADDR, FRAGDEX_PORT=tcp://….
_SERVICE_LINK = re.compile(r"\w+_(SERVICE_HOST|SERVICE_PORT(_\w+)?|PORT_\d+_(TCP|UDP|SCTP)(_\w+)?)")
_PUBLIC_PATH = re.compile(r"(?:/(?!\.{1,2}(?:/|$))[A-Za-z0-9._~-]+)*", re.ASCII)
KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30

# Variables of the library and of its development, which are not settings.
NOT_SETTINGS = frozenset(
    {"CONFIG", "TRACEBACK", "PURE_PYTHON", "CORPUS", "CHROMIUM"}
    | {"KEY", "MCP_TOKEN", "URL", "ORIGIN_SECRET", "WEBHOOK_SECRET"}
)


def _bytes(default: int, description: str) -> Any:
    return Field(default=ByteSize(default), ge=1, description=description)


class Settings(BaseSettings):
    """Every setting of the service, checked, frozen.

    Byte sizes are numbers or texts such as `16MiB`. `origins` tells where each value came from.
    """

    model_config = SettingsConfigDict(frozen=True, extra="forbid", env_prefix=PREFIX)

    host: str = Field("127.0.0.1", description="address to listen on")
    port: int = Field(8000, ge=0, le=65535, description="port to listen on; 0: any free one")
    data: Path = Field(
        Path("fragdex-data"), description="folder for the database and the stored bytes"
    )
    database_url: str = Field(
        "", description="`sqlite:///…` (default: in the data folder) or `postgresql+psycopg://…`"
    )
    store_url: str = Field(
        "", description="`file:///…` (default: in the data folder) or `s3://bucket/prefix` …"
    )
    store_options: dict[str, str] = Field(
        {},
        description="of an object store: `endpoint`, `region`, `access_key_id` …; JSON in a "
        "variable, a table in the file",
    )
    presigned_uploads: bool = Field(
        False,
        description="whether clients may put parts into the object store by signed URLs; they have "
        "to reach its endpoint",
    )
    direct_writes: bool = Field(
        True, description="whether uploads to a local disk bypass the page cache, if possible"
    )
    keep: str = Field(
        "original",
        pattern="^(tracks|original|both)$",
        description="what is stored of an upload that was processed: `original`: its own bytes, of "
        "which copied tracks are composed when they are read; `tracks`; or `both`",
    )
    public_url: str = Field(
        "", description="scheme, host, port and path under which clients see the service"
    )
    forwarded_allow_ips: str = Field(
        "127.0.0.1", description="proxies whose X-Forwarded-* headers are trusted"
    )
    cors_origins: Annotated[tuple[str, ...], NoDecode] = Field(
        ("*",), description="origins whose pages may call the service; empty: none"
    )
    x_accel_prefix: str = Field(
        "", description="internal location of nginx over the store's folder; empty: off"
    )

    max_head_bytes: ByteSize = _bytes(32 * KIB, "head of a request: its target and its fields")
    max_json_bytes: ByteSize = _bytes(1 * MIB, "JSON request body")
    max_image_bytes: ByteSize = _bytes(16 * MIB, "image file")
    max_caption_bytes: ByteSize = _bytes(2 * MIB, "caption file")
    max_unprocessed_bytes: ByteSize = _bytes(1 * GIB, "unprocessed file")
    max_track_bytes: ByteSize = _bytes(1 * GIB, "track")
    max_index_bytes: ByteSize = _bytes(50 * MIB, "fragment index, as sent")
    max_chunk_bytes: ByteSize = _bytes(64 * MIB, "one chunk of an upload, with Content-Range")
    open_indexes: int = Field(256, ge=1, description="fragment indexes kept open by a process")
    derived_hours: float = Field(
        168, gt=0, description="how long thumbnails, waveforms and sample indexes are cached"
    )
    max_pixels: int = Field(100_000_000, ge=1, description="width × height of an image")

    max_html_bytes: ByteSize = _bytes(8 * MIB, "html of a render")
    max_render_upload_bytes: ByteSize = _bytes(256 * MIB, "site of a render, packed")
    max_unpacked_bytes: ByteSize = _bytes(1 * GIB, "site of a render, unpacked")
    max_unpacked_files: int = Field(20_000, ge=1, description="files of a render's site")
    max_render_side: int = Field(
        7680, ge=2, le=7680, description="width and height of a render, in pixels"
    )
    max_render_pixels: int = Field(
        7680 * 4320, ge=4, le=7680 * 7680, description="width × height of a render"
    )
    max_render_fps: float = Field(120, ge=1, le=120, description="frames a second of a render")
    max_render_ms: int = Field(3_600_000, ge=1, le=3_600_000, description="duration of a render")
    max_render_pixel_frames: int = Field(
        1_000_000_000_000,
        ge=4,
        description="width × height × frames of a video; default: 67 minutes of 3840×2160 at 30",
    )
    max_render_work_seconds: float = Field(
        21_600, gt=0, description="time that workers may spend on the slices of a render in all"
    )
    render_hosts: Annotated[tuple[str, ...], NoDecode] = Field(
        (),
        description="https hosts that pages of renders may load from: `fonts.example.org`, "
        "`*.example.org`",
    )
    max_outside_bytes: ByteSize = _bytes(64 * MIB, "response of such a host")
    render_slice_hours: float = Field(
        24, gt=0, description="how long slices of renders are cached for later renders"
    )

    speech_engine: str = Field(
        "",
        pattern="^(|moonshine|pocketsphinx|faster-whisper|sherpa-onnx)$",
        description="engine of transcriptions that name none: `moonshine`, `pocketsphinx`, "
        "`faster-whisper` or `sherpa-onnx`; empty: moonshine, or pocketsphinx without it",
    )
    moonshine_model: str = Field(
        "", description="folder of a model of moonshine-voice; empty: its built-in English one"
    )
    pocketsphinx_model: str = Field(
        "", description="folder of its acoustic model; empty: its built-in English one"
    )
    whisper_model: str = Field("", description="folder of a Whisper model in CTranslate2 format")
    sherpa_model: str = Field("", description="folder of a model of sherpa-onnx")
    speech_device: str = Field(
        "auto",
        pattern="^(auto|cpu|cuda)$",
        description="`auto`, `cpu` or `cuda`: where speech is recognized; auto: on a GPU if any",
    )
    speech_compute_type: str = Field(
        "default", description="of faster-whisper: `default`, `int8`, `float16` …"
    )
    speech_batch_size: int = Field(
        1, ge=1, le=256, description="utterances that are recognized at once, if the engine can"
    )
    speech_threads: int = Field(
        0, ge=0, le=256, description="threads of a speech engine; 0: the engine decides"
    )
    speech_download: bool = Field(
        False, description="whether a model may be a name that its engine downloads"
    )

    rate_limit: float = Field(
        0,
        ge=0,
        description="requests a second of one key: over all processes on PostgreSQL, in each on "
        "SQLite; 0: no limit",
    )
    rate_burst: int = Field(100, ge=1, description="requests of one key at once, when limited")
    webhook_attempts: int = Field(
        8,
        ge=1,
        le=10,
        description="deliveries of an event that a webhook may miss; 8: over about 32 hours",
    )
    webhook_timeout_seconds: float = Field(
        15, gt=0, le=60, description="time for a webhook to answer a delivery"
    )
    webhook_networks: Annotated[tuple[str, ...], NoDecode] = Field(
        (),
        description="networks that are not public and that webhooks may reach: `10.0.0.0/8`; to "
        "these also by `http:`",
    )
    replay_hours: float = Field(24, gt=0, description="how long an Idempotency-Key is remembered")
    upload_hours: float = Field(
        24, gt=0, description="how long an unfinished upload is kept after its last byte"
    )
    deletion_grace_seconds: float = Field(
        3600,
        ge=0,
        description="how long deleted bytes stay in the store, for downloads and back-ups that "
        "have begun; less where a disk is nearly full",
    )
    url_token_seconds: int = Field(
        3600, ge=1, description="how long a URL token is valid where it does not say"
    )
    max_url_token_seconds: int = Field(
        MOST_TOKEN_SECONDS, ge=1, le=MOST_TOKEN_SECONDS,
        description="how long a URL token may be valid that says `seconds`",
    )  # fmt: skip

    heartbeat_seconds: float = Field(
        1, gt=0, description="how often a worker reports that it is alive"
    )
    lease_seconds: float = Field(
        6, gt=0, description="silence after which a worker or an uploader counts as dead"
    )
    job_workers: int = Field(2, ge=0, description="jobs at once in this process; 0: none")
    slice_workers: int = Field(2, ge=0, description="slices of jobs at once in this process")
    poll_seconds: float = Field(
        0.1,
        gt=0,
        description="how often a worker polls for jobs while some wait; half as often for slices, "
        "a fifth as often for work that waits for other work",
    )
    max_tenant_jobs: int = Field(
        500, ge=1, description="unfinished jobs of one tenant; more get 429"
    )
    job_history_days: float = Field(30, gt=0, description="how long finished jobs are remembered")
    key_history_days: float = Field(
        90, gt=0, description="how long keys stay in lists that were revoked or have expired"
    )

    head_timeout_seconds: float = Field(
        10, gt=0, description="time for the head of a request to arrive"
    )
    body_timeout_seconds: float = Field(
        30, gt=0, description="longest pause in a request body, and in receiving a response"
    )
    keep_alive_seconds: float = Field(
        15, gt=0, description="how long an idle connection is kept open"
    )
    drain_notice_seconds: float = Field(
        0, ge=0, description="time after SIGTERM in which `/readyz` is 503 and requests are taken"
    )
    drain_seconds: float = Field(
        30, gt=0, description="time for running requests to end, after that"
    )
    ready_needs_browser: bool = Field(
        False, description="whether `/readyz` is 503 if this process runs jobs and has no browser"
    )
    max_connections: int = Field(2000, ge=1, description="requests at once; more get 503")
    threads: int = Field(
        40,
        ge=1,
        description="threads for requests that wait for the database, and as many "
        "again for those that wait for the store",
    )
    log_level: str = Field(
        "info", pattern="^(critical|error|warning|info|debug)$", description="what is logged"
    )
    log_format: str = Field(
        "text", pattern="^(text|json)$", description="lines of the log: `text` or `json`"
    )
    access_log: bool = Field(False, description="log a line for every request")
    worker_host: str = Field(
        "127.0.0.1", description="address of `/healthz`, `/readyz` and `/metrics` of a worker"
    )
    worker_port: int = Field(
        0, ge=0, le=65535, description="port of these; 0: `fragdex worker` does not listen"
    )

    _origins: dict[str, str] = PrivateAttr(default_factory=dict)
    SECRET_PARTS: ClassVar[tuple[str, ...]] = ("key", "secret", "token", "password")

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Only the given values: `load_settings` reads the environment and the file."""
        return (init_settings,)

    @model_validator(mode="before")
    @classmethod
    def _inside_data(cls, values: dict[str, Any]) -> dict[str, Any]:
        data = Path(values.get("data") or cls.model_fields["data"].default).expanduser().absolute()
        values = {**values, "data": data}
        values["database_url"] = values.get("database_url") or f"sqlite:///{data / 'fragdex.db'}"
        values["store_url"] = values.get("store_url") or (data / "store").as_uri()
        return values

    @field_validator("cors_origins", "render_hosts", "webhook_networks", mode="before")
    @classmethod
    def _listed(cls, value: Any) -> Any:
        """Origins or hosts apart by commas or blanks, as an environment variable writes them."""
        return value.replace(",", " ").split() if isinstance(value, str) else value

    @field_validator("webhook_networks")
    @classmethod
    def _networks(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for one in value:
            ipaddress.ip_network(one)  # its ValueError says what is wrong
        return value

    @field_validator("public_url")
    @classmethod
    def _origin(cls, value: str) -> str:
        if not value:
            return value
        parts = urlsplit(value)
        path = parts.path.rstrip("/")
        if (
            parts.scheme not in ("http", "https")
            or not parts.netloc
            or parts.query
            or parts.fragment
            or not _PUBLIC_PATH.fullmatch(path)
        ):
            raise ValueError(
                "give scheme and host, such as https://media.example.org, and the path that a "
                "proxy puts before those of the service, such as https://example.org/media"
            )
        return f"{parts.scheme}://{parts.netloc}".lower() + path

    @cached_property
    def public_origin(self) -> str:
        """Scheme, host and port of `public_url`; empty without one."""
        return self.public_url.removesuffix(self.public_path)

    @cached_property
    def public_path(self) -> str:
        """The path of `public_url`, which begins with a slash; empty without one."""
        return urlsplit(self.public_url).path

    @property
    def origins(self) -> dict[str, str]:
        """Where each value came from: `flag --port`, a variable, a file, or `default`."""
        return {name: self._origins.get(name, DEFAULT) for name in type(self).model_fields}

    @cached_property
    def store_folder(self) -> Path | None:
        """The folder of the store on the local disk; None for object stores."""
        parts = urlsplit(self.store_url)
        return Path(unquote(parts.path)) if parts.scheme == "file" else None

    @property
    def store_is_apart(self) -> bool:
        """Whether the store has a folder of its own, which others may be allowed to read."""
        return self.store_folder not in (None, self.data / "store")

    def shown(self) -> dict[str, str]:
        """Every value as text, passwords and other secrets masked."""
        return {name: self._masked(name) for name in type(self).model_fields}

    def _masked(self, name: str) -> str:
        value = getattr(self, name)
        if isinstance(value, tuple):
            return " ".join(value)
        if isinstance(value, dict):
            return " ".join(f"{key}=***" for key in value)
        if name.endswith("_url"):
            return _without_password(value)
        return str(value)


def _without_password(url: str) -> str:
    url = re.sub(r"(://[^/@:]*):[^@/]*@", r"\1:***@", url)
    place, mark, query = url.partition("?")
    shown = [
        f"{name}=***" if any(part in name.lower() for part in Settings.SECRET_PARTS) else whole
        for whole in query.split("&")
        for name in (whole.partition("=")[0],)
    ]
    return place + mark + "&".join(shown)


def load_settings(config: str | Path | None = None, **flags: Any) -> Settings:
    """The settings in force: flags, environment, file, defaults.

    Args:
        config: the TOML file; None: what FRAGDEX_CONFIG names, or none.
        flags: settings by name; None means not given.

    Raises:
        ConfigError: naming the setting and where its value came from; a variable or a line of the
            file that is not a setting.
    """
    config = config or os.environ.get(f"{PREFIX}CONFIG") or None
    given = {name: value for name, value in flags.items() if value is not None}
    values: dict[str, Any] = {}
    origins: dict[str, str] = {}
    for layer, origin in (
        (_of_file(Path(config)) if config else {}, f"file {config}"),
        (_of_environment(), None),
        (given, "flag"),
    ):
        for name, value in layer.items():
            values[name] = value
            if origin == "flag":
                origins[name] = f"flag --{name.replace('_', '-')}"
            else:
                origins[name] = origin or f"environment {PREFIX}{name.upper()}"
    try:
        settings = Settings(**values)
    except ValidationError as error:
        first = error.errors()[0]
        name = str(first["loc"][0]) if first["loc"] else "settings"
        raise ConfigError(
            f"{name} ({origins.get(name, DEFAULT)}): {first['msg']}", found=repr(first["input"])
        ) from None
    settings._origins.update(origins)
    return settings


def _refuse_unknown_variables() -> None:
    """A misspelt setting would be left at its default, and nobody would know."""
    known = {f"{PREFIX}{name.upper()}" for name in Settings.model_fields}
    known |= {f"{PREFIX}{name}" for name in NOT_SETTINGS}
    for name in sorted(os.environ):
        if name.startswith(PREFIX) and name not in known and not _is_service_link(name):
            near = difflib.get_close_matches(name, known, 1)
            raise ConfigError(
                f"{name} in the environment is not a setting",
                advice=f"did you mean {near[0]}?" if near else "`fragdex config` lists them",
            )


def _is_service_link(name: str) -> bool:
    return bool(_SERVICE_LINK.fullmatch(name)) or (
        name.endswith("_PORT") and "://" in os.environ.get(name, "")
    )


def _of_environment() -> dict[str, Any]:
    _refuse_unknown_variables()
    try:
        values = EnvSettingsSource(Settings)()
    except SettingsError as error:
        raise ConfigError(f"environment: {error}") from None
    return {
        name: value
        for name, value in values.items()
        if not _is_service_link(f"{PREFIX}{name.upper()}")
    }


def _of_file(path: Path) -> dict[str, Any]:
    try:
        values = tomllib.loads(path.read_text("utf-8"))
    except OSError as error:
        raise ConfigError(f"{path}: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: {error}") from None
    for name in values:
        if name not in Settings.model_fields:
            raise ConfigError(
                f"{name} (file {path}) is not a setting",
                advice="`fragdex config` lists the settings",
            )
    return values
