"""Tenants, what their keys open and how these change, and the secrets of this installation.

A key is shown once, when it is made: `ef_<secret>_<id>`. Only the HMAC-SHA-256 of its secret part
is stored, keyed by a secret of the installation. 32 random bytes need no slow hash: nobody guesses
them.
"""

from __future__ import annotations

import hashlib
import hmac
import math
import re
import secrets as randomness
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Row

from fragdex.errors import InvalidRequest, Obstructed, RecordNotFound, Unauthenticated
from fragdex.record import record
from fragdex.service.records import tables
from fragdex.service.records.database import Database, insert
from fragdex.service.records.identifiers import first_id, instant, new_id
from fragdex.service.records.pages import page
from fragdex.service.records.tenant_limits import lock_tenant

DEFAULT_TENANT = "default"
READ, WRITE, ADMIN = "read", "write", "admin"
SCOPES = (READ, WRITE, ADMIN)
"""What a key may do; each includes those before it. `admin` is for the keys of its tenant."""

MOST_KEYS = 1000
"""Of one tenant, those that were revoked not counted."""

_SECRET_SIZE = 32  # bytes
# What published clients take apart with: ^(ef_[^_]+)_(.+)$
_BEARER = re.compile(r"ef_([0-9a-zA-Z-]{1,128})_([0-9a-f-]{36})")
_API_KEYS = "api-keys"
KEY_OVER = "the time of this key, or of its secret before a rotation, is over"


@record(frozen=True, slots=True)
class Key:
    """Whose a request is: the id of the key and of its tenant.

    Attributes:
        scope: one of SCOPES.
        ends: seconds since 1970: from then on the secret that was sent opens nothing.
    """

    id: str
    tenant_id: str
    scope: str = WRITE
    ends: float = math.inf


def create_tenant(database: Database, name: str) -> str:
    """The id of the tenant of that name, which is made where there is none."""
    table = tables.tenants
    with database.write() as connection:
        row = {"id": new_id(), "name": name, "created_at": instant()}
        connection.execute(
            insert(connection, table).values(**row).on_conflict_do_nothing(index_elements=["name"])
        )
        tenant_id: str = connection.execute(
            sa.select(table.c.id).where(table.c.name == name)
        ).scalar_one()
        return tenant_id


def create_key(
    database: Database,
    tenant_name: str = DEFAULT_TENANT,
    name: str = "",
    *,
    scope: str = WRITE,
    expires_at: datetime | None = None,
) -> str:
    """Make a key of the tenant of a name, which is made where there is none; else as `add_key`."""
    _need_scope(scope)
    return add_key(
        database, create_tenant(database, tenant_name), name, scope=scope, expires_at=expires_at
    )


def add_key(
    database: Database,
    tenant_id: str,
    name: str = "",
    *,
    scope: str = WRITE,
    expires_at: datetime | None = None,
    secret_of: Callable[[str], str | None] = lambda _: None,
) -> str:
    """Make a key; the bearer text `ef_<secret>_<id>` that is returned is never shown again.

    Args:
        name: what the key is for.
        secret_of: the secret part for an id, in hexadecimal; None: chance decides.

    Raises:
        InvalidRequest: no such scope.
        Obstructed: the tenant has MOST_KEYS.
    """
    _need_scope(scope)
    # hexadecimal: no underscore in it, which parts the secret from the id
    key_id = new_id()
    secret_part = secret_of(key_id) or randomness.token_hex(_SECRET_SIZE)
    hashed, table = _hash(database, secret_part), tables.keys
    living = sa.select(table.c.id).where(
        table.c.tenant_id == tenant_id, table.c.revoked_at.is_(None)
    )
    with database.write() as connection:
        lock_tenant(connection, tenant_id)
        if len(connection.scalars(living.limit(MOST_KEYS)).all()) >= MOST_KEYS:
            raise Obstructed(
                f"a tenant has {MOST_KEYS} keys at most",
                more={"limit": MOST_KEYS},
                advice="revoke one that is not needed",
            )
        connection.execute(
            table.insert().values(
                id=key_id,
                tenant_id=tenant_id,
                secret_hash=hashed,
                name=name,
                scope=scope,
                created_at=instant(),
                expires_at=expires_at,
            )
        )
    return f"ef_{secret_part}_{key_id}"


def find_key(database: Database, bearer: str) -> Key:
    """Whose key this is.

    An unknown id takes the same steps as a wrong secret.

    Raises:
        Unauthenticated: it is no key, an unknown one, or a revoked one; which, is no told. Or it
            is a key whose time is over.
    """
    parts = _BEARER.fullmatch(bearer)
    if not parts:
        raise Unauthenticated("this is not a key of this service")
    given = _hash(database, parts[1])
    table = tables.keys
    row = database.first(sa.select(table).where(table.c.id == parts[2]))
    none = bytes(32)  # no hash is that
    current = hmac.compare_digest(given, none if row is None else row.secret_hash)
    before = hmac.compare_digest(given, (None if row is None else row.previous_hash) or none)
    if row is None or not (current or before) or row.revoked_at is not None:
        raise Unauthenticated("this is not a key of this service")
    times = (row.expires_at, None if current else row.previous_until)
    ends = min((at.timestamp() for at in times if at is not None), default=math.inf)
    if ends <= instant().timestamp():
        raise Unauthenticated(KEY_OVER)
    return Key(row.id, row.tenant_id, row.scope, ends)


def has_keys(database: Database) -> bool:
    """Whether any key opens anything."""
    return database.first(sa.select(tables.keys.c.id).where(_opens()).limit(1)) is not None


def revoke_key(database: Database, key_id: str, tenant_id: str | None = None) -> None:
    """End a key: nothing opens with it from now on. Repeating it is harmless.

    Args:
        tenant_id: whose key it is, and whose last key for administration is not ended; None: any
            key is.

    Raises:
        RecordNotFound: there is no such key.
        Obstructed: it is the last key with the scope `admin` that opens anything.
    """
    table = tables.keys
    with database.write() as connection:
        if tenant_id is not None:
            _need_other_admin(connection, tenant_id, key_id)
        # a second time leaves the first instant as it is
        at = sa.func.coalesce(table.c.revoked_at, sa.literal(instant(), tables.Instant()))
        done = connection.execute(
            table.update().where(_of(key_id, tenant_id)).values(revoked_at=at)
        )
        if not done.rowcount:
            raise RecordNotFound("there is no such key")


def forget_ended(database: Database, before: datetime, limit: int = 1000) -> list[tuple[str, str]]:
    """Delete keys that were revoked, or had expired, before a moment; at most `limit`.

    What names them then opens nothing, as before.

    Returns:
        The ids of their tenants, and their own.
    """
    row = tables.keys.c
    # of keys that began then: ids begin with the time
    ended = (row.id < first_id(before)) & ((row.revoked_at <= before) | (row.expires_at <= before))
    some = sa.select(row.id).where(ended).order_by(row.id).limit(limit)
    ids = database.scalars(some)
    gone: list[tuple[str, str]] = []
    for key_id in ids:
        with database.write() as connection:
            delete = tables.keys.delete().where(row.id == key_id).returning(row.tenant_id)
            # of two processes that do this, one says so
            gone += [(tenant_id, key_id) for tenant_id in connection.scalars(delete)]
    return gone


def rotate_key(
    database: Database,
    key_id: str,
    previous: timedelta = timedelta(days=1),
    tenant_id: str | None = None,
) -> str:
    """Give a key a new secret; returns the bearer text, which is shown here and never again.

    The id, the tenant and the scope stay, and URL tokens stay valid.

    Args:
        previous: how long the secret before is accepted, too; an earlier one ends at once.
        tenant_id: whose key it is; None: anybody's.

    Raises:
        RecordNotFound: there is no such key, or it was revoked.
    """
    secret_part, table = randomness.token_hex(_SECRET_SIZE), tables.keys
    values = {
        # the right side is the row as it was
        "previous_hash": table.c.secret_hash,
        "previous_until": instant() + previous,
        "secret_hash": _hash(database, secret_part),
    }
    living = _of(key_id, tenant_id) & table.c.revoked_at.is_(None)
    with database.write() as connection:
        if not connection.execute(table.update().where(living).values(**values)).rowcount:
            raise RecordNotFound("there is no such key, or it was revoked")
    return f"ef_{secret_part}_{key_id}"


def secret(database: Database, name: str) -> bytes:
    """32 random bytes of this installation, under a name; made on first use, the same ever after.

    Processes that ask at the same moment get the same.
    """
    if name in database.secrets:
        return database.secrets[name]
    table = tables.secrets
    query = sa.select(table.c.value).where(table.c.name == name)
    stored: bytes | None = database.scalar(query)
    if stored is None:
        with database.write() as connection:
            row = {"name": name, "value": randomness.token_bytes(_SECRET_SIZE)}
            connection.execute(
                insert(connection, table)
                .values(**row)
                .on_conflict_do_nothing(index_elements=["name"])
            )
            stored = connection.execute(query).scalar_one()
    return database.secrets.setdefault(name, bytes(stored))


def _hash(database: Database, secret_part: str) -> bytes:
    return hmac.new(secret(database, _API_KEYS), secret_part.encode(), hashlib.sha256).digest()


def _need_scope(scope: str) -> None:
    if scope not in SCOPES:
        raise InvalidRequest(
            "there is no such scope", expected=" or ".join(SCOPES), found=repr(scope)
        )


def _of(key_id: str, tenant_id: str | None) -> sa.ColumnElement[bool]:
    row = tables.keys.c
    return (row.id == key_id) & (sa.true() if tenant_id is None else row.tenant_id == tenant_id)


def _opens() -> sa.ColumnElement[bool]:
    """That a key was not revoked and has not expired."""
    row = tables.keys.c
    return row.revoked_at.is_(None) & (row.expires_at.is_(None) | (row.expires_at > instant()))


def _need_other_admin(connection: Connection, tenant_id: str, key_id: str) -> None:
    """Refuse to end the last key that administers a tenant; of two at once, one is refused."""
    row = tables.keys.c
    lock_tenant(connection, tenant_id)
    admins = sa.select(row.id).where(row.tenant_id == tenant_id, row.scope == ADMIN, _opens())
    if connection.scalars(admins.limit(2)).all() == [key_id]:
        raise Obstructed(
            "this is the last key with the scope admin",
            advice="create another one first; or `fragdex key revoke`, where the service runs",
        )


@record(frozen=True, slots=True)
class ListedKey:
    """A key without its secret.

    Attributes:
        last_used_at: to about a minute; by itself or by a URL token that it signed.
        previous_until: how long the secret before the last rotation is accepted.
    """

    id: str
    tenant_name: str
    name: str
    scope: str
    created_at: datetime
    expires_at: datetime | None
    revoked_at: datetime | None
    previous_until: datetime | None
    last_used_at: datetime | None

    @property
    def status(self) -> str:
        """`valid`, `expired` or `revoked`."""
        if self.revoked_at is not None:
            return "revoked"
        over = self.expires_at is not None and self.expires_at <= instant()
        return "expired" if over else "valid"


_KEY, _TENANT = tables.keys.c, tables.tenants.c
_COLUMNS: list[sa.ColumnElement[Any]] = [
    _KEY.id, _TENANT.name.label("tenant_name"), _KEY.name, _KEY.scope, _KEY.created_at,
    _KEY.expires_at, _KEY.revoked_at, _KEY.previous_until, _KEY.last_used_at,
]  # fmt: skip
_ROWS: sa.Select[Any] = sa.select(*_COLUMNS).join_from(
    tables.keys, tables.tenants, _TENANT.id == _KEY.tenant_id
)


def list_keys(database: Database) -> list[ListedKey]:
    """All keys of all tenants, revoked ones too, oldest first."""
    with database.read() as connection:
        return [_listed(row) for row in connection.execute(_ROWS.order_by(_KEY.id))]


def page_of_keys(
    database: Database, tenant_id: str, limit: int, cursor: str | None
) -> tuple[list[ListedKey], str | None]:
    """Keys of a tenant, revoked ones too, newest first, and the cursor of the next page.

    Raises:
        InvalidRequest: as `page`.
    """
    mine = _ROWS.where(_KEY.tenant_id == tenant_id)
    with database.read() as connection:
        listed = page(connection, mine, tables.keys, limit, cursor)
    return [_listed(row) for row in listed.rows], listed.next_cursor


def read_key(database: Database, tenant_id: str, key_id: str) -> ListedKey:
    """A key of a tenant.

    Raises:
        RecordNotFound: it has none of this id.
    """
    mine = _ROWS.where(_KEY.tenant_id == tenant_id, _KEY.id == key_id)
    row = database.first(mine)
    if row is None:
        raise RecordNotFound("there is no such key")
    return _listed(row)


def tenant_of(database: Database, key_id: str) -> str:
    """The id of the tenant of a key.

    Raises:
        RecordNotFound: there is no such key.
    """
    tenant_id = database.scalar(sa.select(_KEY.tenant_id).where(_KEY.id == key_id))
    if tenant_id is None:
        raise RecordNotFound("there is no such key")
    return str(tenant_id)


def _listed(row: Row[Any]) -> ListedKey:
    return ListedKey(**row._mapping)


_USED_AT = sa.bindparam("used_at", type_=tables.Instant())
_WRITE_USES = (
    tables.keys.update()
    # another process may have seen it later
    .where(
        _KEY.id == sa.bindparam("used"),
        _KEY.last_used_at.is_(None) | (_KEY.last_used_at < _USED_AT),
    )
    .values(last_used_at=_USED_AT)
)


class KeyUses:
    """The keys that this process has seen since it last wrote them down."""

    def __init__(self) -> None:
        self._seen: dict[str, datetime] = {}

    def note(self, key_id: str) -> None:
        """A key was used now, or a URL token that it signed."""
        self._seen[key_id] = instant()

    def write(self, database: Database) -> None:
        """Write down what was seen. A crash costs what was not written.

        Raises:
            Unavailable: the database does not answer; the next time writes the same.
            StoreFull: no room is left.
        """
        seen, self._seen = self._seen, {}
        if not seen:
            return
        # in one order, as other processes do, so that none waits for one that waits for it
        rows = [{"used": key_id, "used_at": seen[key_id]} for key_id in sorted(seen)]
        try:
            with database.write(passing=True) as connection:
                connection.execute(_WRITE_USES, rows)
        except Exception:
            self._seen = {**seen, **self._seen}
            raise

    def close(self) -> None:
        """Forget them."""
        self._seen.clear()
