"""Statements on the hot path: built once, and on PostgreSQL handed to the driver itself.

SQLAlchemy's way of sending a statement costs several times what the server spends on it. Here it writes the SQL, once,
and converts what is bound; the transaction is the session's, and errors are the ones that SQLAlchemy would raise.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NoReturn, TypeVar

from psycopg import Cursor
from psycopg import Error as PsycopgError
from psycopg.rows import namedtuple_row
from sqlalchemy import Connection, Delete, Dialect, Insert, Select, Update
from sqlalchemy.exc import DBAPIError

from app.db.session import ReadSession

T = TypeVar("T")
_Converter = Callable[[Any], Any]


@dataclass(frozen=True, slots=True)
class _Compiled:
    sql: str
    converters: Mapping[str, _Converter | None]
    literals: Mapping[str, Any]

    def bind(self, given: Mapping[str, Any]) -> dict[str, Any]:
        values = {**self.literals, **given}
        return {name: convert(values[name]) if convert else values[name] for name, convert in self.converters.items()}


class Prepared:
    """One statement with named parameters; rows have attributes named as its columns.

    Instants come back aware, in the connection's zone.
    """

    def __init__(self, statement: Select[Any] | Insert | Update | Delete) -> None:
        self._statement = statement
        self._compiled: _Compiled | None = None

    def rows(self, session: ReadSession, values: Mapping[str, Any]) -> Sequence[Any]:
        """All rows."""
        connection = session.connection()
        if connection.dialect.name != "postgresql":
            return connection.execute(self._statement, values).all()
        return self._send(connection, values, Cursor.fetchall)

    def count(self, session: ReadSession, values: Mapping[str, Any]) -> int:
        """How many rows it changed."""
        connection = session.connection()
        if connection.dialect.name != "postgresql":
            return connection.execute(self._statement, values).rowcount
        return self._send(connection, values, _count_changed)

    def _send(self, connection: Connection, values: Mapping[str, Any], taken: Callable[[Cursor[Any]], T]) -> T:
        if self._compiled is None:
            self._compiled = self._compile(connection.dialect)
        driver: Any = connection.connection.driver_connection
        with _translate_errors(connection, driver, self._compiled.sql):
            cursor: Cursor[Any] = driver.cursor(row_factory=namedtuple_row)
            return taken(cursor.execute(self._compiled.sql, self._compiled.bind(values)))

    def _compile(self, dialect: Dialect) -> _Compiled:
        compiled = self._statement.compile(dialect=dialect)
        binds = {name: bind for bind, name in compiled.bind_names.items()}
        converters = {name: bind.type.dialect_impl(dialect).bind_processor(dialect) for name, bind in binds.items()}
        literals = {name: bind.effective_value for name, bind in binds.items() if not bind.required}
        return _Compiled(str(compiled), converters, literals)


def _count_changed(cursor: Cursor[Any]) -> int:
    return cursor.rowcount


@contextmanager
def prepend(connection: Connection, sql: str) -> Iterator[None]:
    """Send ``sql``, which answers nothing, on the way to the first rows that the block asks for, not ahead of it.

    On PostgreSQL, where beginning a transaction and setting something in it would be two more round trips.
    """
    driver: Any = connection.connection.driver_connection
    with _translate_errors(connection, driver, sql), driver.pipeline():
        driver.execute(sql)
        yield


@contextmanager
def _translate_errors(connection: Connection, driver: Any, sql: str) -> Iterator[None]:
    try:
        yield
    except PsycopgError as error:
        _translate(connection, driver, sql, error)


def _translate(connection: Connection, driver: Any, sql: str, error: Any) -> NoReturn:
    """As SQLAlchemy does it: a typed error without parameters, and a connection that is gone leaves the pool."""
    dialect = connection.dialect
    lost = dialect.is_disconnect(error, driver, None)
    if lost:
        connection.invalidate(error)
    raise DBAPIError.instance(
        sql, None, error, PsycopgError, hide_parameters=True, connection_invalidated=lost, dialect=dialect
    ) from error
