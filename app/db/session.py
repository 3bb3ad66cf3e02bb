"""Sessions that carry permission, and the only commit in the service.

``ReadSession`` refuses to flush; ``WriteSession`` is what a function asks for when it changes rows.
Messages are queued by ``after_commit`` and sent only once the transaction is durable.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from sqlalchemy import Engine
from sqlalchemy.orm import Session

from app.db.engine import empty_log


class ReadSession(Session):
    """A session for reading: flushing a change is a programming error."""

    def flush(self, objects: Any = None) -> None:
        if self.new or self.dirty or self.deleted:
            raise RuntimeError("a read session was asked to write")


class WriteSession(ReadSession):
    """A session inside a write transaction; committed by :class:`Database`, never by a service."""

    def flush(self, objects: Any = None) -> None:
        Session.flush(self, objects)

    def after_commit(self, action: Callable[[], None]) -> None:
        """Run ``action`` once this transaction is durable (never if it rolls back)."""
        self.info.setdefault("after_commit", []).append(action)

    def after_rollback(self, action: Callable[["WriteSession"], None]) -> None:
        """Run ``action`` in a transaction of its own if this one rolls back: for what must be kept all the same."""
        self.info.setdefault("after_rollback", []).append(action)


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
        if self._guard is not None:
            self._guard(self)
        with WriteSession(self._writer, expire_on_commit=False) as session:
            try:
                yield session
                session.commit()
            except BaseException:
                session.rollback()
                self._after_rollback(session)
                raise
            for action in session.info.pop("after_commit", []):
                action()

    def _after_rollback(self, failed: WriteSession) -> None:
        for action in failed.info.pop("after_rollback", []):
            with self.write() as session:
                action(session)

    def forget(self) -> bool:
        """Make sure that what was deleted is gone from the disk too: see :func:`app.db.engine.empty_log`."""
        return empty_log(self.engine)

    def dispose(self) -> None:
        self.engine.dispose()
