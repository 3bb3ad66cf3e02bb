"""Engines: SQLite tuned for durability in one folder, and PostgreSQL with timeouts."""

import math
import time
from contextlib import closing
from sqlite3 import Connection as SqliteConnection
from sqlite3 import OperationalError
from typing import TYPE_CHECKING, Any

from sqlalchemy import Connection, Engine, create_engine, event
from sqlalchemy.exc import DisconnectionError
from sqlalchemy.pool import ConnectionPoolEntry

if TYPE_CHECKING:
    from psycopg import Connection as PsycopgConnection

CONNECTIONS = 10
TIMEOUTS_MS = {"lock_timeout": 15_000, "statement_timeout": 60_000, "idle_in_transaction_session_timeout": 60_000}
POOL_TIMEOUT_SECONDS, CONNECT_TIMEOUT_SECONDS = 15, 5
SILENT_PEER = {
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 4,
    "tcp_user_timeout": 30_000,
}
"""A connection whose server does not answer is closed after about half a minute. The system's defaults take a quarter
of an hour or more, and a waiting client may block others."""
PING_AFTER_SECONDS = 2.0
BUSY_TIMEOUT_MS = 30_000
LOG_TIMEOUT_MS = 1_000
_PRAGMAS = (
    "PRAGMA journal_mode=WAL",
    "PRAGMA synchronous=FULL",
    "PRAGMA foreign_keys=ON",
    "PRAGMA secure_delete=ON",
    f"PRAGMA busy_timeout={BUSY_TIMEOUT_MS}",
)


def make_engine(url: str, connections: int = CONNECTIONS) -> Engine:
    """An engine whose write transactions start with ``BEGIN IMMEDIATE`` on SQLite.

    A deferred transaction that reads first and writes later fails at once under contention
    (SQLite cannot upgrade a stale snapshot); an immediate one queues.

    On PostgreSQL a process has at most ``connections``; further threads wait for a free one.
    """
    if not url.startswith("sqlite"):
        return _postgresql(url, connections)
    engine = create_engine(url, connect_args={"timeout": BUSY_TIMEOUT_MS / 1000, "check_same_thread": False})
    event.listen(engine, "connect", _prepare_sqlite)
    event.listen(engine, "begin", _begin_sqlite)
    return engine


def _postgresql(url: str, connections: int) -> Engine:
    """An engine with timeouts for locks, statements, idle transactions and silent servers."""
    limits = " ".join(f"-c {name}={milliseconds}" for name, milliseconds in TIMEOUTS_MS.items())
    engine = create_engine(
        url,
        isolation_level="READ COMMITTED",
        pool_size=connections,
        max_overflow=0,
        pool_timeout=POOL_TIMEOUT_SECONDS,
        connect_args={
            "options": limits,
            "connect_timeout": CONNECT_TIMEOUT_SECONDS,
            "prepare_threshold": 2,
            **SILENT_PEER,
        },
    )
    event.listen(engine, "checkin", _note_time)
    event.listen(engine, "checkout", _ping_if_idle)
    return engine


def _note_time(_: Any, record: ConnectionPoolEntry) -> None:
    record.info["used_at"] = time.monotonic()


def _ping_if_idle(connection: "PsycopgConnection[Any]", record: ConnectionPoolEntry, _: Any) -> None:
    """Test a connection that was idle for a while; the server may have closed it."""
    if time.monotonic() - record.info.get("used_at", math.inf) < PING_AFTER_SECONDS:
        return
    from psycopg import Error  # noqa: PLC0415  (loaded by now; installations on SQLite never load it)

    try:
        connection.execute("SELECT 1")
        connection.rollback()
    except Error as error:
        raise DisconnectionError from error


def _prepare_sqlite(connection: SqliteConnection, _: ConnectionPoolEntry) -> None:
    connection.isolation_level = None  # the driver sends no BEGIN; _begin_sqlite does
    for pragma in _PRAGMAS:
        connection.execute(pragma)


def _begin_sqlite(connection: Connection) -> None:
    writes = connection.get_execution_options().get("corevault_writes", False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")


def empty_log(engine: Engine) -> bool:
    """Checkpoint and truncate SQLite's write-ahead log, which still contains deleted pages.

    Returns False if others read or write for too long; then it has to be repeated. (``secure_delete`` overwrites pages
    in the database file. PostgreSQL keeps deleted rows until it vacuums and recycles its log.)
    """
    if engine.dialect.name != "sqlite":
        return True
    with closing(engine.raw_connection()) as connection:
        cursor = connection.cursor()
        cursor.execute(f"PRAGMA busy_timeout={LOG_TIMEOUT_MS}")  # a waiting checkpoint blocks every writer
        try:
            return not cursor.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]
        except OperationalError:
            return False
        finally:
            cursor.execute(f"PRAGMA busy_timeout={BUSY_TIMEOUT_MS}")
