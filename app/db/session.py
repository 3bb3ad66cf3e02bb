"""Sessions whose type is a permission, and their commit; :mod:`app.db.group_commit` joins several.

``ReadSession`` refuses to flush. A function that changes rows takes a ``WriteSession``.
Functions queue messages by ``after_commit``; they are sent only once the transaction is durable.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from types import TracebackType
from typing import Any, Self, TypeVar

from sqlalchemy import Connection, Engine, event
from sqlalchemy.exc import DBAPIError
from sqlalchemy.orm import Session, SessionTransaction

from app.db import hooks
from app.db.engine import empty_log
from app.db.hooks import Hook
from app.errors import DependencyUnavailable

T = TypeVar("T")
ATTEMPTS = 3
ROLLED_BACK = frozenset({"40001", "40P01"})
"""PostgreSQL's codes for a serialization failure and a deadlock."""
UNANSWERED = (
    "The connection to the database was lost during the commit, so the outcome is unknown. Repeat the request with the "
    "same Idempotency-Key, or check first whether it took effect."
)


class ReadSession(Session):
    """A session for reading: flushing a change is a programming error."""

    @property
    def shared(self) -> dict[Any, Any]:
        """State that parts of one transaction share, also across sessions that :class:`GroupCommit` joins."""
        notes: dict[Any, Any] = self.info.setdefault("shared", {})
        return notes

    def flush(self, objects: Any = None) -> None:
        if self.new or self.dirty or self.deleted:
            raise RuntimeError("a read session was asked to write")


class WriteSession(ReadSession):
    """A session inside a write transaction; committed by :class:`Database`, never by a service."""

    def flush(self, objects: Any = None) -> None:
        Session.flush(self, objects)

    def after_commit(self, action: Callable[[], None], *, vital: bool = False) -> None:
        """Run ``action`` once this transaction is durable (never if it rolls back).

        ``vital``: the action must succeed before anything may follow from the transaction. If it fails, the caller gets
        the error: see :func:`app.db.hooks.run`.
        """
        self.info.setdefault("after_commit", []).append(Hook(action, vital))

    def after_rollback(self, action: Callable[["WriteSession"], None]) -> None:
        """Run ``action`` in a new transaction if this one rolls back."""
        self.info.setdefault("after_rollback", []).append(action)


@event.listens_for(WriteSession, "after_soft_rollback")
def _forget(session: WriteSession, _: SessionTransaction) -> None:
    """Drop state that may describe undone changes."""
    session.shared.clear()


def commit(transaction: WriteSession | Connection) -> None:
    """Commit; report an unknown outcome as such.

    Raises:
        DependencyUnavailable: the connection was lost before the answer came.
    """
    try:
        transaction.commit()
    except DBAPIError as error:
        if error.connection_invalidated:
            raise DependencyUnavailable(UNANSWERED) from None
        raise


def _was_rolled_back(error: DBAPIError) -> bool:
    return error.connection_invalidated or getattr(error.orig, "sqlstate", None) in ROLLED_BACK


class Database:
    """Hands out sessions on one engine.

    ``guard`` is called before each write transaction; it raises if writing is not allowed.
    """

    def __init__(self, engine: Engine, guard: Callable[["Database"], None] | None = None) -> None:
        self.engine = engine
        self._guard = guard
        self._writer = engine.execution_options(corevault_writes=True)

    @contextmanager
    def read(self) -> Iterator[ReadSession]:
        """A consistent snapshot; rolled back at the end."""
        with ReadSession(self.engine, autoflush=False, expire_on_commit=False) as session:
            yield session

    @contextmanager
    def write(self) -> Iterator[WriteSession]:
        """One transaction: committed when the block ends, rolled back when it raises."""
        later: list[Hook] = []
        with self._transaction(later) as session:
            yield session
        hooks.run(later)

    @contextmanager
    def _transaction(self, later: list[Hook]) -> Iterator[WriteSession]:
        """Collect the hooks to run after the commit in ``later``."""
        self._check()
        with WriteSession(self._writer, expire_on_commit=False) as session:
            try:
                yield session
                commit(session)
            except BaseException:
                session.rollback()
                hooks.run(self.hooks(session, kept=False))
                raise
            later += self.hooks(session, kept=True)

    @contextmanager
    def dry_run(self) -> Iterator[WriteSession]:
        """One transaction that is always rolled back, to show the effect of a change."""
        self._check()
        with WriteSession(self._writer, expire_on_commit=False) as session:
            try:
                yield session
            finally:
                session.rollback()
                hooks.run(self.hooks(session, kept=False))

    @contextmanager
    def connection(self) -> Iterator[Connection]:
        """One write transaction of several sessions: rolled back, unless the caller commits it."""
        self._check()
        with self._writer.connect() as connection:
            connection.begin()
            yield connection

    def transact(self, action: Callable[[WriteSession], T], later: list[Hook] | None = None) -> T:
        """Run ``action`` in one transaction; repeat it if the database certainly rolled it back.

        This is so after a serialization failure or a deadlock, and if the connection was lost before the commit. If
        that happens during the commit, only the caller can decide: see :data:`UNANSWERED`.

        ``later``: collects the hooks to run after the commit; without it they run at once.
        """
        queued: list[Hook] = []
        value = self._repeat(action, queued)
        if later is not None:
            later += queued
        else:
            hooks.run(queued)
        return value

    def _repeat(self, action: Callable[[WriteSession], T], later: list[Hook]) -> T:
        for _ in range(ATTEMPTS - 1):
            try:
                with self._transaction(later) as tx:
                    return action(tx)
            except DBAPIError as error:
                if not _was_rolled_back(error):
                    raise
        with self._transaction(later) as tx:
            return action(tx)

    def hooks(self, session: WriteSession, *, kept: bool) -> list[Hook]:
        """Take the session's hooks for its outcome: ``kept`` if it was committed."""
        if kept:
            return list(session.info.pop("after_commit", []))
        return [Hook(partial(self._write_once, action)) for action in session.info.pop("after_rollback", [])]

    def _write_once(self, action: Callable[[WriteSession], None]) -> None:
        with self.write() as session:
            action(session)

    def _check(self) -> None:
        if self._guard is not None:
            self._guard(self)

    def forget(self) -> bool:
        """Remove deleted rows from the disk too: see :func:`app.db.engine.empty_log`."""
        return empty_log(self.engine)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.dispose()

    def dispose(self) -> None:
        """Close all connections."""
        self.engine.dispose()
