"""PostgreSQL databases for tests: new ones, and migrated ones that tests use in turn.

A copy of a migrated database takes a tenth of a second, and most tests need one. So a test gets a database that an
earlier test has used. It is emptied before that. If a test has changed more than rows, its database is dropped.
"""

import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from urllib.parse import urlsplit, urlunsplit

import sqlalchemy as sa

from app.db import make_engine
from app.db.migrations import upgrade

_END_OTHERS = """
    SELECT pg_terminate_backend(pid) FROM pg_stat_activity
    WHERE datname = current_database() AND pid <> pg_backend_pid()
"""
_TABLES = "SELECT tablename FROM pg_tables WHERE schemaname = 'public' ORDER BY tablename"
_RESTART_SEQUENCES = """
    SELECT setval(quote_ident(sequencename)::regclass, start_value, false) FROM pg_sequences
    WHERE last_value IS NOT NULL
"""
# The version of a catalogue's row is the transaction that wrote it.
_SCHEMA = """
    SELECT md5(string_agg(version, ' ' ORDER BY version)) FROM (
        SELECT 'class ' || oid || ' ' || xmin AS version FROM pg_class WHERE oid >= 16384
        UNION ALL SELECT 'column ' || attrelid || ' ' || attnum || ' ' || xmin FROM pg_attribute WHERE attrelid >= 16384
        UNION ALL SELECT 'constraint ' || oid || ' ' || xmin FROM pg_constraint WHERE oid >= 16384
        UNION ALL SELECT 'trigger ' || oid || ' ' || xmin FROM pg_trigger
        UNION ALL SELECT 'function ' || oid || ' ' || xmin FROM pg_proc WHERE oid >= 16384
        UNION ALL SELECT 'schema ' || oid || ' ' || xmin FROM pg_namespace
        UNION ALL SELECT 'default ' || oid || ' ' || xmin FROM pg_default_acl
        UNION ALL SELECT 'database ' || oid || ' ' || xmin FROM pg_database WHERE datname = current_database()
        UNION ALL SELECT 'setting ' || setdatabase || ' ' || setrole || ' ' || xmin FROM pg_db_role_setting
    ) AS versions
"""


@contextmanager
def fresh_database(server: str, template: str | None = None) -> Iterator[str]:
    """Create a database on a server and yield its URL; it is dropped at the end.

    Args:
        server: URL for a superuser and a maintenance database.
        template: name of the database to copy; without it the new one is empty.
    """
    name = _create(server, template)
    try:
        yield _locate(server, name)
    finally:
        _drop(server, name)


@dataclass(frozen=True)
class _Migrated:
    """A migrated database with the digest of its schema.

    Its connection stays open between tests."""

    name: str
    schema: str
    connection: sa.Connection

    def has_its_schema(self) -> bool:
        """Whether only rows changed. A test may also have ended the connection."""
        try:
            return bool(self.connection.scalar(sa.text(_SCHEMA)) == self.schema)
        except sa.exc.OperationalError:
            return False


@dataclass
class MigratedDatabases:
    """The migrated databases of one test process on one server. They exist until the server ends."""

    server: str
    _template: str = ""
    _rows: dict[str, str] = field(default_factory=dict)
    """By table, the rows that migrations inserted, as JSON."""
    _idle: list[_Migrated] = field(default_factory=list)
    """Databases that no test uses."""

    @contextmanager
    def use(self) -> Iterator[str]:
        """Yield the URL of a migrated database that no other test uses."""
        used = self._idle.pop() if self._idle else self._add()
        yield _locate(self.server, used.name)
        if used.has_its_schema():
            self._restore(used.connection)
            self._idle.append(used)
        else:
            used.connection.close()
            _drop(self.server, used.name)

    def _add(self) -> _Migrated:
        if not self._template:
            self._template = self._migrate()
        name = _create(self.server, self._template)
        connection = _make_engine(_locate(self.server, name)).connect()
        return _Migrated(name, str(connection.scalar(sa.text(_SCHEMA))), connection)

    def _migrate(self) -> str:
        name = _create(self.server)
        engine = make_engine(_locate(self.server, name))
        upgrade(engine)
        engine.dispose()
        with _connect(_locate(self.server, name)) as connection:
            for table in connection.scalars(sa.text(_TABLES)).all():
                self._rows[table] = (
                    connection.scalar(sa.text(f"SELECT json_agg(each)::text FROM {table} AS each")) or ""
                )
        return name

    def _restore(self, connection: sa.Connection) -> None:
        """Restore the rows that the migrations inserted.

        Connections that a test left open are ended."""
        connection.execute(sa.text(_END_OTHERS))
        connection.execute(sa.text("SET session_replication_role = replica"))  # triggers refuse deletions
        connection.execute(sa.text("; ".join(f"DELETE FROM {table}" for table in self._rows)))
        for table, rows in self._rows.items():
            if rows:
                insertion = (
                    f"INSERT INTO {table} SELECT * FROM json_populate_recordset(NULL::{table}, CAST(:rows AS json))"
                )
                connection.execute(sa.text(insertion), {"rows": rows})
        connection.execute(sa.text(_RESTART_SEQUENCES))


def _create(server: str, template: str | None = None) -> str:
    name = f"corevault_{secrets.token_hex(8)}"
    with _connect(server) as connection:
        connection.execute(sa.text(f"CREATE DATABASE {name}" + (f" TEMPLATE {template}" if template else "")))
    return name


def _drop(server: str, name: str) -> None:
    with _connect(server) as connection:
        connection.execute(sa.text(f"DROP DATABASE {name} WITH (FORCE)"))


def _locate(server: str, name: str) -> str:
    return urlunsplit(urlsplit(server)._replace(path=f"/{name}"))


def _make_engine(url: str) -> sa.Engine:
    return sa.create_engine(url, isolation_level="AUTOCOMMIT", poolclass=sa.NullPool)


@contextmanager
def _connect(url: str) -> Iterator[sa.Connection]:
    engine = _make_engine(url)
    try:
        with engine.connect() as connection:
            yield connection
    finally:
        engine.dispose()
