"""Tenants, their keys, and the secrets of this installation.

A key is told once, when it is made: `ef_<secret>_<id>`. Only the HMAC-SHA-256 of its secret part
is stored, keyed by a secret of the installation. 32 random bytes need no slow hash: nobody guesses
them.
"""

from __future__ import annotations

import hashlib
import hmac
import math
import re
import secrets as randomness
from dataclasses import dataclass
from datetime import datetime, timedelta

import sqlalchemy as sa

from fragdex.service.errors import InvalidRequest, RecordNotFound, Unauthenticated
from fragdex.service.records import tables
from fragdex.service.records.database import Database, insert
from fragdex.service.records.identifiers import instant, new_id

__all__ = [
    "DEFAULT_TENANT",
    "KEY_OVER",
    "READ",
    "SCOPES",
    "WRITE",
    "Key",
    "ListedKey",
    "create_key",
    "create_tenant",
    "find_key",
    "has_keys",
    "list_keys",
    "revoke_key",
    "rotate_key",
    "secret",
]

DEFAULT_TENANT = "default"
READ, WRITE = "read", "write"
SCOPES = (READ, WRITE)
"""What a key may do; `write` includes `read`."""

_SECRET_SIZE = 32  # bytes
# What published clients take apart with: ^(ef_[^_]+)_(.+)$
_BEARER = re.compile(r"ef_([0-9a-zA-Z-]{1,128})_([0-9a-f-]{36})")
_API_KEYS = "api-keys"
KEY_OVER = "the time of this key, or of its secret before a rotation, is over"


@dataclass(frozen=True, slots=True)
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


@dataclass(frozen=True, slots=True)
class ListedKey:
    """A key as lists tell it: all but its secret."""

    id: str
    tenant_id: str
    tenant_name: str
    note: str
    scope: str
    created_at: datetime
    expires_at: datetime | None
    revoked_at: datetime | None
    previous_until: datetime | None


def create_tenant(database: Database, name: str) -> str:
    """The id of the tenant of that name, which is made where there is none."""
    table = tables.tenants
    with database.write() as connection:
        row = {"id": new_id(), "name": name, "created_at": instant()}
        connection.execute(
            insert(connection, table).values(**row).on_conflict_do_nothing(index_elements=["name"])
        )
        found: str = connection.execute(
            sa.select(table.c.id).where(table.c.name == name)
        ).scalar_one()
        return found


def create_key(
    database: Database,
    tenant_name: str = DEFAULT_TENANT,
    note: str = "",
    *,
    scope: str = WRITE,
    expires_at: datetime | None = None,
) -> str:
    """Make a key; the bearer text `ef_<secret>_<id>` that is returned is told here and never again.

    The tenant is made where there is none of that name.

    Raises:
        InvalidRequest: no such scope.
    """
    if scope not in SCOPES:
        raise InvalidRequest(
            "there is no such scope", expected=" or ".join(SCOPES), found=repr(scope)
        )
    tenant_id = create_tenant(database, tenant_name)
    # hexadecimal: no underscore in it, which parts the secret from the id
    secret_part, key_id = randomness.token_hex(_SECRET_SIZE), new_id()
    hashed = _hash(database, secret_part)
    with database.write() as connection:
        connection.execute(
            tables.keys.insert().values(
                id=key_id,
                tenant_id=tenant_id,
                secret_hash=hashed,
                note=note,
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
        Unauthenticated: it is no key, an unknown one, or a revoked one; which, is not told. Or it
            is a key whose time is over.
    """
    parts = _BEARER.fullmatch(bearer)
    if not parts:
        raise Unauthenticated("this is not a key of this service")
    given = _hash(database, parts[1])
    table = tables.keys
    with database.read() as connection:
        row = connection.execute(sa.select(table).where(table.c.id == parts[2])).one_or_none()
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
    with database.read() as connection:
        query = sa.select(tables.keys.c.id).where(tables.keys.c.revoked_at.is_(None)).limit(1)
        return connection.execute(query).first() is not None


def list_keys(database: Database) -> list[ListedKey]:
    """All keys, revoked ones too, oldest first."""
    key, tenant = tables.keys, tables.tenants
    query = (
        sa.select(
            key.c.id,
            key.c.tenant_id,
            tenant.c.name,
            key.c.note,
            key.c.scope,
            key.c.created_at,
            key.c.expires_at,
            key.c.revoked_at,
            key.c.previous_until,
        )
        .join(tenant, tenant.c.id == key.c.tenant_id)
        .order_by(key.c.id)
    )
    with database.read() as connection:
        return [ListedKey(*row) for row in connection.execute(query)]


def revoke_key(database: Database, key_id: str) -> None:
    """End a key: nothing opens with it from now on. Repeating it is harmless.

    Raises:
        RecordNotFound: there is no such key.
    """
    table = tables.keys
    with database.write() as connection:
        # a second time leaves the first instant as it is
        at = sa.func.coalesce(table.c.revoked_at, sa.literal(instant(), tables.Instant()))
        done = connection.execute(table.update().where(table.c.id == key_id).values(revoked_at=at))
        if not done.rowcount:
            raise RecordNotFound("there is no such key")


def rotate_key(database: Database, key_id: str, previous: timedelta = timedelta(days=1)) -> str:
    """Give a key a new secret; returns the bearer text, which is told here and never again.

    The id, the tenant and the scope stay, and URL tokens stay valid.

    Args:
        previous: how long the secret before is accepted, too; an earlier one ends at once.

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
    living = (table.c.id == key_id) & table.c.revoked_at.is_(None)
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
    with database.read() as connection:
        found: bytes | None = connection.scalar(query)
    if found is None:
        with database.write() as connection:
            row = {"name": name, "value": randomness.token_bytes(_SECRET_SIZE)}
            connection.execute(
                insert(connection, table)
                .values(**row)
                .on_conflict_do_nothing(index_elements=["name"])
            )
            found = connection.execute(query).scalar_one()
    return database.secrets.setdefault(name, bytes(found))


def _hash(database: Database, secret_part: str) -> bytes:
    return hmac.new(secret(database, _API_KEYS), secret_part.encode(), hashlib.sha256).digest()
