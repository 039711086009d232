"""What all tables are made of."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from sqlalchemy import (
    BigInteger,
    Column,
    Computed,
    DateTime,
    Dialect,
    ForeignKey,
    Index,
    LargeBinary,
    MetaData,
    String,
    Table,
    TypeDecorator,
)

__all__ = [
    "PREFIX",
    "Instant",
    "at",
    "by_time_and_md5",
    "md5",
    "metadata",
    "of",
    "of_tenant",
    "own_id",
    "row_bytes",
    "sha256",
    "table",
]

PREFIX = "fragdex_"
# Named constraints, so that migrations can name what they change on every database.
metadata = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "fk": "fk_%(table_name)s_%(column_0_name)s",
        "pk": "pk_%(table_name)s",
    }
)


class Instant(TypeDecorator[datetime]):
    """A UTC instant. SQLite keeps no zone: it is taken off and put back."""

    impl = DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        """An aware instant for the database."""
        if value is None:
            return None
        value = value.astimezone(UTC)
        return value.replace(tzinfo=None) if dialect.name == "sqlite" else value

    def process_result_value(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        """An aware instant from the database."""
        if value is None:
            return None
        return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)


def table(name: str, *parts: Any) -> Table:
    """A table of the service, by its name without the prefix."""
    return Table(PREFIX + name, metadata, *parts)


def own_id() -> Column[str]:
    """The UUIDv7 of a record."""
    return Column("id", String(36), primary_key=True)


def of(table: str, name: str, **more: Any) -> Column[str]:
    """The record of another table that a row goes with."""
    key = ForeignKey(f"{PREFIX}{table}.id", ondelete="CASCADE")
    return Column(name, String(36), key, nullable=False, **more)


def of_tenant(**more: Any) -> Column[str]:
    """Whose a record is; it goes with its tenant."""
    return of("tenants", "tenant_id", **more)


def at(name: str, *, needed: bool = False) -> Column[datetime]:
    """An instant; `needed`: never null."""
    return Column(name, Instant, nullable=not needed)


def md5(name: str = "md5", *, needed: bool = False) -> Column[bytes]:
    """A digest; `needed`: never null."""
    return Column(name, LargeBinary(16), nullable=not needed)


def sha256() -> Column[bytes]:
    """What tells bytes of one md5 apart; null until it is known."""
    return Column("sha256", LargeBinary(32))


def row_bytes(*names: str) -> Column[int]:
    """What a row of a tenant counts with; the database works it out, whoever writes the row.

    Args:
        names: its columns of no set length: texts, JSON and bytes. 256 more stand for the rest.
    """
    # as PostgreSQL has it; the steps of the migrations say it to SQLite as well
    sizes = (f"coalesce(octet_length({name}), 0)" for name in names)
    return Column("row_bytes", BigInteger, Computed(" + ".join(["256", *sizes]), persisted=True))


def by_time_and_md5(of: Table) -> None:
    """Index the records of a tenant as they are listed, and as they are looked up."""
    Index(None, of.c.tenant_id, of.c.id)
    Index(None, of.c.tenant_id, of.c.md5)
