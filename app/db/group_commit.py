"""Short transactions that come at the same time, as one: they are begun once, and the disk is waited for once.

To whoever wrote it, each call is a transaction of its own: it sees what those before it did, and fails alone. None is
told its outcome before the whole is durable, and if the whole fails, none of them has happened.
"""

import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from contextvars import Context, copy_context
from dataclasses import dataclass, field
from typing import Any, Generic, Literal, TypeVar, cast

from sqlalchemy import Connection, event
from sqlalchemy.exc import DBAPIError
from sqlalchemy.orm import SessionTransaction

from app.db import hooks
from app.db.hooks import Hook
from app.db.leader_follower import LeaderFollowerQueue
from app.db.session import Database, WriteSession, commit
from app.errors import CorevaultError, DependencyUnavailable

T = TypeVar("T")
PATIENCE_MS = 50
"""How long a call waits for a lock while it keeps the locks of those before it: else two groups could each hold what
the other one wants. It is then called again, alone."""
ALONE_PATIENCE_MS = 250
"""The same for one that is in front of the line alone: others gather behind it, and most want another lock."""
TOGETHER_SECONDS = 0.025
"""No call joins a transaction that has been open for longer."""
LOCK_NOT_AVAILABLE = "55P03"
Prepare = Callable[[WriteSession, Sequence[str]], None]
_Mode = Literal["create_savepoint", "rollback_only"]


@dataclass(slots=True, eq=False)
class Call(Generic[T]):
    """What is to happen in one transaction, and what came of it. Unless it is ``settled``, it is called alone."""

    action: Callable[[WriteSession], T]
    name: str | None = None
    context: Context = field(default_factory=copy_context)
    attempted: bool = False
    settled: bool = False
    value: T | None = None
    error: Exception | None = None
    hooks: list[Hook] = field(default_factory=list)


class _Failed(Exception):
    """A call failed without a savepoint of its own; nothing of the others can be kept either."""


class GroupCommit:
    """Runs what several threads say at a time in one transaction.

    Args:
        prepare: takes the locks that the calls are going to ask for by name, all at once and in an order of its own.
    """

    def __init__(self, database: Database, prepare: Prepare | None = None) -> None:
        self._database = database
        self._prepare = prepare
        self._line: LeaderFollowerQueue[Call[Any]] = LeaderFollowerQueue(self._serve)

    def transact(self, action: Callable[[WriteSession], T], name: str | None = None) -> T:
        """Like :meth:`app.db.Database.transact`: ``action`` may be called several times, and is kept once.

        ``name``: of the lock that it will ask for first, if the caller may hold up others there.
        """
        call = Call(action, name)
        self._line.stand(call)
        if not call.settled:
            return self._database.transact(action)
        hooks.run(call.hooks)
        if call.error is not None:
            raise call.error
        return cast(T, call.value)

    def waiting(self) -> int:
        """How many calls stand in line, those that are being served included."""
        return len(self._line)

    def _serve(self, calls: Sequence[Call[Any]]) -> int:
        """How many calls are done with: what they did was kept, or they have to be called alone.

        Savepoints cost a third of a call, and most calls succeed; they are set once one has failed.
        """
        if len(calls) == 1:
            self._alone(calls[0])
            return 1
        with suppress(_Failed):
            return self._share(calls, "rollback_only")
        with suppress(_Failed):
            return self._share(calls, "create_savepoint")
        return len(calls)

    def _alone(self, call: Call[Any]) -> None:
        """In front of the line, so that others gather behind it until it is committed, and no longer."""
        call.hooks = []  # there are some of an attempt that was not kept, perhaps

        def action(session: WriteSession) -> Any:
            event.listen(session, "after_begin", _limit_waiting_alone, once=True)
            return call.action(session)

        try:
            call.value = self._database.transact(action, later=call.hooks)
        except Exception as error:  # noqa: BLE001  (raised again to whoever said it)
            if _gave_up(error):
                return
            call.error = error
        call.settled = True

    def _share(self, calls: Sequence[Call[Any]], mode: _Mode) -> int:
        number, until = 0, time.monotonic() + TOGETHER_SECONDS
        try:
            with self._database.connection() as connection:
                shared: dict[Any, Any] = {}
                limit_waiting(connection, PATIENCE_MS)
                if mode == "rollback_only":
                    self._take_locks(connection, calls, shared)
                while number < len(calls) and (number == 0 or time.monotonic() < until):
                    calls[number].context.run(self._attempt, connection, calls[number], shared, mode)
                    number += 1
                _end(connection, [call for call in calls[:number] if call.attempted])
        except Exception as error:
            if not any(call.settled for call in calls):  # else it was kept, and only the connection failed afterwards
                raise _Failed from error
        return number

    def _take_locks(self, connection: Connection, calls: Sequence[Call[Any]], shared: dict[Any, Any]) -> None:
        names = sorted({call.name for call in calls if call.name is not None})
        if self._prepare is None or len(names) < 2:
            return
        with WriteSession(connection, join_transaction_mode="rollback_only") as session:
            session.info["shared"] = shared
            self._prepare(session, names)

    def _attempt(self, connection: Connection, call: Call[Any], shared: dict[Any, Any], mode: _Mode) -> None:
        call.attempted = False
        with WriteSession(connection, expire_on_commit=False, join_transaction_mode=mode) as session:
            session.info["shared"] = shared
            try:
                call.value, call.error = call.action(session), None
                session.commit()
            except Exception as error:
                if mode == "rollback_only":
                    raise
                session.rollback()
                if not isinstance(error, CorevaultError) or connection.invalidated:
                    return
                call.error = error
            call.hooks = self._database.hooks(session, kept=call.error is None)
            call.attempted = True


def limit_waiting(connection: Connection, milliseconds: int) -> None:
    """Set PostgreSQL's lock timeout until the transaction ends; SQLite has no such locks."""
    if connection.dialect.name == "postgresql":
        connection.exec_driver_sql(f"SET LOCAL lock_timeout = {milliseconds}")


def _limit_waiting_alone(_: WriteSession, __: SessionTransaction, connection: Connection) -> None:
    limit_waiting(connection, ALONE_PATIENCE_MS)


def _gave_up(error: Exception) -> bool:
    return isinstance(error, DBAPIError) and getattr(error.orig, "sqlstate", None) == LOCK_NOT_AVAILABLE


def _end(connection: Connection, calls: Sequence[Call[Any]]) -> None:
    """Commit, and only then let anybody know what came of it."""
    try:
        commit(connection)
    except DependencyUnavailable as error:  # perhaps it was kept: nobody may be told that it was not
        for call in calls:
            call.hooks = [] if call.error is None else call.hooks  # what a refusal asked for holds in any case
            call.error = DependencyUnavailable(error.detail)
    for call in calls:
        call.settled = True
