"""The declarative base, the column types and the identifiers that every table uses."""

import secrets
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import JSON, DateTime, Dialect, MetaData
from sqlalchemy.orm import DeclarativeBase
from sqlalchemy.types import TypeDecorator

UNREADABLE = "unreadable"
"""The only member of an object that replaces unreadable text."""
_CROCKFORD = "0123456789abcdefghjkmnpqrstvwxyz"
NAMING = {
    "ix": "ix_%(column_0_label)s",
    "uq": "uq_%(table_name)s_%(column_0_name)s",
    "ck": "ck_%(table_name)s_%(constraint_name)s",
    "fk": "fk_%(table_name)s_%(column_0_name)s",
    "pk": "pk_%(table_name)s",
}


class UtcDateTime(TypeDecorator[datetime]):
    """Timezone-aware instants, stored and read in UTC. SQLite does not store the zone."""

    impl = DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        return None if value is None else value.astimezone(UTC)

    def process_result_value(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        if value is None:
            return None
        return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)


class JsonObject(TypeDecorator[dict[str, Any]]):
    """A JSON object of a row that is verified after it was read.

    An attacker may store any text. Text that is no JSON object is read as an object that no verification accepts. So
    the fault is found in its row, and all other rows can be verified.
    """

    impl = JSON
    cache_ok = True

    def result_processor(self, dialect: Dialect, coltype: object) -> Callable[[Any], dict[str, Any]]:
        parse = super().result_processor(dialect, coltype)

        def read(value: Any) -> dict[str, Any]:
            try:
                document = value if parse is None else parse(value)
            except (ValueError, RecursionError):
                document = None
            return document if isinstance(document, dict) else {UNREADABLE: True}

        return read


class Base(DeclarativeBase):
    metadata = MetaData(naming_convention=NAMING)
    type_annotation_map = {datetime: UtcDateTime, dict[str, Any]: JSON, list[Any]: JSON}


def generate_id(prefix: str) -> str:
    """A time-sortable identifier: 48 bits of milliseconds and 80 random bits, in Crockford's base 32."""
    number = (time.time_ns() // 1_000_000) << 80 | secrets.randbits(80)
    digits = "".join(_CROCKFORD[(number >> shift) & 31] for shift in range(125, -1, -5))
    return f"{prefix}_{digits}"


def now() -> datetime:
    return datetime.now(UTC)
