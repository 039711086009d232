"""Where the bytes of records are: on a disk or in an object store, as a setting says."""

from __future__ import annotations

import os
import urllib.parse
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

from fragdex.errors import ConfigError
from fragdex.service.store.contract import Store
from fragdex.service.store.disk import DiskStore
from fragdex.service.store.disk_files import PRIVATE, SHARED
from fragdex.sources.opening import OBJECT_STORE_SCHEMES

# Options that say how to ask, not whom.
CLIENT_OPTIONS = {
    "allow_http",
    "allow_invalid_certificates",
    "connect_timeout",
    "timeout",
    "proxy_url",
}


def open_store(
    where: str | os.PathLike[str],
    options: Mapping[str, str] | None = None,
    *,
    direct: bool = True,
    shared: bool = False,
) -> Store:
    """Open the store that a path or a URL names.

    A path or a `file://` URL is a folder on the local disk, made where it is missing. `s3://`,
    `gs://` and `az://` name a bucket (or container) and a prefix in it; credentials, region and
    endpoint come from the environment, as the object store's own tools read them. `memory://` is
    lost with the process. No object store is asked before its first use.

    `options` of an object store go before the environment: `endpoint`, `region`, `access_key_id`,
    `secret_access_key`, `skip_signature` … as it names them, and `allow_http`, `timeout`,
    `connect_timeout`, `proxy_url` of the requests. An `endpoint` of `http://` allows http.

    `shared` lets the group of a folder read new files in it.

    `direct` lets large pieces of drafts on the local disk go past the system's cache.

    Raises:
        ConfigError: no store can be made of this.
        Unavailable, StoreFull: the folder cannot be made.

    >>> open_store("memory://").draft("a").size()
    0
    """
    modes = SHARED if shared else PRIVATE
    if not isinstance(where, str):
        return DiskStore(where, direct=direct, modes=modes)
    scheme, separator, rest = where.partition("://")
    scheme = scheme.lower()
    if not separator:
        return DiskStore(where, direct=direct, modes=modes)
    if scheme == "file":
        parts = urllib.parse.urlsplit(where)
        if parts.netloc not in ("", "localhost") or not parts.path.strip("/"):
            raise _unusable(where, "file:///an/absolute/path")
        return DiskStore(Path(urllib.request.url2pathname(parts.path)), direct=direct, modes=modes)
    if scheme not in OBJECT_STORE_SCHEMES:
        raise _unusable(
            where, "a path, file://, " + ", ".join(f"{s}://" for s in sorted(OBJECT_STORE_SCHEMES))
        )
    from obstore.exceptions import BaseError
    from obstore.store import MemoryStore, from_url

    from fragdex.service.store.objects import RETRIES, ObjectStore

    if scheme == "memory":
        return ObjectStore(MemoryStore())
    if not rest.partition("/")[0]:
        raise _unusable(where, f"{scheme}://bucket/prefix")
    config = {name: text for name, text in (options or {}).items() if name not in CLIENT_OPTIONS}
    client = {name: text for name, text in (options or {}).items() if name in CLIENT_OPTIONS}
    if any(text.startswith("http://") for name, text in config.items() if "endpoint" in name):
        client.setdefault("allow_http", "true")
    try:
        bucket = from_url(
            where.rstrip("/") + "/",
            config=cast("Any", config or None),
            # given at all, these replace what the environment says of the client
            client_options=cast("Any", client or None),
            retry_config=RETRIES,
        )
    except (BaseError, ValueError, TypeError) as error:
        raise _unusable(where, f"{scheme}://bucket/prefix") from error
    return ObjectStore(bucket)


def _unusable(where: str, expected: str) -> ConfigError:
    # a URL may carry credentials: only its scheme is shown
    return ConfigError(
        "the setting store_url names no store that can be used",
        expected=expected,
        found=where.partition("://")[0] + "://…",
    )
