"""Engines: SQLite tuned for one durable folder, PostgreSQL as it comes."""

from contextlib import closing
from sqlite3 import Connection as SqliteConnection
from sqlite3 import OperationalError

from sqlalchemy import Connection, Engine, create_engine, event
from sqlalchemy.pool import ConnectionPoolEntry

BUSY_TIMEOUT_MS = 30_000
LOG_TIMEOUT_MS = 1_000
_PRAGMAS = (
    "PRAGMA journal_mode=WAL",
    "PRAGMA synchronous=FULL",
    "PRAGMA foreign_keys=ON",
    "PRAGMA secure_delete=ON",
    f"PRAGMA busy_timeout={BUSY_TIMEOUT_MS}",
)


def make_engine(url: str) -> Engine:
    """An engine whose write transactions start with ``BEGIN IMMEDIATE`` on SQLite.

    A deferred transaction that reads first and writes later fails at once under contention
    (SQLite cannot upgrade a stale snapshot); an immediate one queues.
    """
    if not url.startswith("sqlite"):
        return create_engine(url, pool_pre_ping=True, isolation_level="READ COMMITTED")
    engine = create_engine(url, connect_args={"timeout": BUSY_TIMEOUT_MS / 1000, "check_same_thread": False})
    event.listen(engine, "connect", _prepare_sqlite)
    event.listen(engine, "begin", _begin_sqlite)
    return engine


def _prepare_sqlite(connection: SqliteConnection, _: ConnectionPoolEntry) -> None:
    connection.isolation_level = None  # we say BEGIN ourselves
    for pragma in _PRAGMAS:
        connection.execute(pragma)


def _begin_sqlite(connection: Connection) -> None:
    writes = connection.get_execution_options().get("corevault_writes", False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")


def empty_log(engine: Engine) -> bool:
    """Fold SQLite's log into the database and cut it off: pages as they were before a deletion still lie in it.

    False where others read or write for too long; then it has to be tried again. (``secure_delete`` sees to the
    database file itself. PostgreSQL keeps such things until it vacuums and recycles its log.)
    """
    if engine.dialect.name != "sqlite":
        return True
    with closing(engine.raw_connection()) as connection:
        cursor = connection.cursor()
        cursor.execute(f"PRAGMA busy_timeout={LOG_TIMEOUT_MS}")  # a checkpoint that waits holds up every writer
        try:
            return not cursor.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]
        except OperationalError:
            return False
        finally:
            cursor.execute(f"PRAGMA busy_timeout={BUSY_TIMEOUT_MS}")
