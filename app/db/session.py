"""Sessions that carry permission, and their commit; :mod:`app.db.group_commit` joins several under one.

``ReadSession`` refuses to flush; ``WriteSession`` is what a function asks for when it changes rows.
Messages are queued by ``after_commit`` and sent only once the transaction is durable.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, TypeVar

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
    "The database was lost before it said whether it kept this. Ask again under the same Idempotency-Key, or look "
    "first whether it happened."
)


class ReadSession(Session):
    """A session for reading: flushing a change is a programming error."""

    @property
    def shared(self) -> dict[Any, Any]:
        """What one part of the transaction leaves to the next, also among those that :class:`GroupCommit` joins."""
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

        ``vital``: for what has to be there before anything may follow from the transaction. Whoever asked for it is
        told if that fails, and else is not: see :func:`app.db.hooks.run`.
        """
        self.info.setdefault("after_commit", []).append(Hook(action, vital))

    def after_rollback(self, action: Callable[["WriteSession"], None]) -> None:
        """Run ``action`` in a transaction of its own if this one rolls back: for what must be kept all the same."""
        self.info.setdefault("after_rollback", []).append(action)


@event.listens_for(WriteSession, "after_soft_rollback")
def _forget(session: WriteSession, _: SessionTransaction) -> None:
    """What was noted may be of what has just been undone."""
    session.shared.clear()


def commit(transaction: WriteSession | Connection) -> None:
    """Commit, and never say that nothing happened where that is not known.

    Raises:
        DependencyUnavailable: the connection was lost before the answer came.
    """
    try:
        transaction.commit()
    except DBAPIError as error:
        if error.connection_invalidated:
            raise DependencyUnavailable(UNANSWERED) from None
        raise


def _kept_nothing(error: DBAPIError) -> bool:
    return error.connection_invalidated or getattr(error.orig, "sqlstate", None) in ROLLED_BACK


class Database:
    """Hands out sessions on one engine.

    ``guard`` is asked before anything is written, and raises where nothing may be.
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
        """``later`` is given what has to be done once it is committed."""
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
    def connection(self) -> Iterator[Connection]:
        """One write transaction of several sessions: rolled back, unless the caller commits it."""
        self._check()
        with self._writer.connect() as connection:
            connection.begin()
            yield connection

    def transact(self, action: Callable[[WriteSession], T], later: list[Hook] | None = None) -> T:
        """``action`` in one transaction; again, a few times, where the database is known to have kept nothing of it.

        That is: it chose this transaction to end a deadlock, or was lost before it was told to commit. Once it was
        told, only the caller can know what to do: see :data:`UNANSWERED`.

        ``later``: is given what is to be done after the commit, which else is done at once.
        """
        asked: list[Hook] = []
        value = self._repeat(action, asked)
        if later is not None:
            later += asked
        else:
            hooks.run(asked)
        return value

    def _repeat(self, action: Callable[[WriteSession], T], later: list[Hook]) -> T:
        for _ in range(ATTEMPTS - 1):
            try:
                with self._transaction(later) as tx:
                    return action(tx)
            except DBAPIError as error:
                if not _kept_nothing(error):
                    raise
        with self._transaction(later) as tx:
            return action(tx)

    def hooks(self, session: WriteSession, *, kept: bool) -> list[Hook]:
        """What was asked to be done once it is known whether the transaction was kept."""
        if kept:
            return list(session.info.pop("after_commit", []))
        return [Hook(partial(self._apart, action)) for action in session.info.pop("after_rollback", [])]

    def _apart(self, action: Callable[[WriteSession], None]) -> None:
        with self.write() as session:
            action(session)

    def _check(self) -> None:
        if self._guard is not None:
            self._guard(self)

    def forget(self) -> bool:
        """Make sure that what was deleted is gone from the disk too: see :func:`app.db.engine.empty_log`."""
        return empty_log(self.engine)

    def dispose(self) -> None:
        self.engine.dispose()
