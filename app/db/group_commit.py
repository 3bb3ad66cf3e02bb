"""Group commit: short transactions that arrive together share one begin and one fsync.

To its caller, each call is a separate transaction: it sees the changes of earlier calls, and it fails alone. A caller
learns the outcome only once the shared transaction is durable. If that fails, all calls are rolled back.
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
LOCK_TIMEOUT_MS = 50
"""How long a call waits for a lock while it holds the locks of earlier calls. Otherwise two groups could each hold a
lock that the other one needs. After that time the call is repeated alone."""
ALONE_LOCK_TIMEOUT_MS = 250
"""The same for a call that runs alone at the head of the queue: most calls behind it need another lock."""
JOIN_SECONDS = 0.025
"""No call joins a transaction that has been open for longer."""
LOCK_NOT_AVAILABLE = "55P03"
Prepare = Callable[[WriteSession, Sequence[str]], None]
_Mode = Literal["create_savepoint", "rollback_only"]


@dataclass(slots=True, eq=False)
class Call(Generic[T]):
    """An action for one transaction, and its outcome. A call that is not ``settled`` has to run alone."""

    action: Callable[[WriteSession], T]
    name: str | None = None
    context: Context = field(default_factory=copy_context)
    attempted: bool = False
    settled: bool = False
    value: T | None = None
    error: Exception | None = None
    hooks: list[Hook] = field(default_factory=list)


class _Failed(Exception):
    """A call failed without a savepoint, so the shared transaction is rolled back."""


class GroupCommit:
    """Runs the simultaneous calls of several threads in one transaction.

    Args:
        prepare: takes the named locks of all calls at once, in a fixed order.
    """

    def __init__(self, database: Database, prepare: Prepare | None = None) -> None:
        self._database = database
        self._prepare = prepare
        self._queue: LeaderFollowerQueue[Call[Any]] = LeaderFollowerQueue(self._serve)

    def transact(self, action: Callable[[WriteSession], T], name: str | None = None) -> T:
        """Like :meth:`app.db.Database.transact`: ``action`` may run several times and is committed once.

        ``name``: of the first lock that the action takes, if the caller may block others there.
        """
        call = Call(action, name)
        self._queue.submit(call)
        if not call.settled:
            return self._database.transact(action)
        hooks.run(call.hooks)
        if call.error is not None:
            raise call.error
        return cast(T, call.value)

    def waiting(self) -> int:
        """The number of calls in the queue, including running ones."""
        return len(self._queue)

    def _serve(self, calls: Sequence[Call[Any]]) -> int:
        """Run the calls and return how many leave the queue: committed ones, and ones that have to run alone.

        A savepoint costs a third of a call, and most calls succeed. So savepoints are only used after a failure.
        """
        if len(calls) == 1:
            self._run_alone(calls[0])
            return 1
        with suppress(_Failed):
            return self._share(calls, "rollback_only")
        with suppress(_Failed):
            return self._share(calls, "create_savepoint")
        return len(calls)

    def _run_alone(self, call: Call[Any]) -> None:
        """Run one call at the head of the queue; others wait behind it until it is committed."""
        call.hooks = []  # an attempt that was rolled back may have left some

        def action(session: WriteSession) -> Any:
            event.listen(session, "after_begin", _limit_waiting_alone, once=True)
            return call.action(session)

        try:
            call.value = self._database.transact(action, later=call.hooks)
        except Exception as error:  # noqa: BLE001  (raised again in the caller's thread)
            if _is_lock_timeout(error):
                return
            call.error = error
        call.settled = True

    def _share(self, calls: Sequence[Call[Any]], mode: _Mode) -> int:
        number, until = 0, time.monotonic() + JOIN_SECONDS
        try:
            with self._database.connection() as connection:
                shared: dict[Any, Any] = {}
                limit_waiting(connection, LOCK_TIMEOUT_MS)
                if mode == "rollback_only":
                    self._take_locks(connection, calls, shared)
                while number < len(calls) and (number == 0 or time.monotonic() < until):
                    calls[number].context.run(self._attempt, connection, calls[number], shared, mode)
                    number += 1
                _end(connection, [call for call in calls[:number] if call.attempted])
        except Exception as error:
            if not any(
                call.settled for call in calls
            ):  # otherwise it was committed, and the connection failed afterwards
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
    limit_waiting(connection, ALONE_LOCK_TIMEOUT_MS)


def _is_lock_timeout(error: Exception) -> bool:
    return isinstance(error, DBAPIError) and getattr(error.orig, "sqlstate", None) == LOCK_NOT_AVAILABLE


def _end(connection: Connection, calls: Sequence[Call[Any]]) -> None:
    """Commit, then settle the calls."""
    try:
        commit(connection)
    except DependencyUnavailable as error:  # it may be committed, so no call may report a rollback
        for call in calls:
            call.hooks = [] if call.error is None else call.hooks  # the hooks of a refusal run in any case
            call.error = DependencyUnavailable(error.detail)
    for call in calls:
        call.settled = True
