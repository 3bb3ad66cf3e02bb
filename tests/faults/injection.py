"""Fault injection for seeded runs: crash points, commits, the store and clocks of one process."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Any, BinaryIO
from unittest import mock

import sqlalchemy as sa

from app import crashpoints
from app.db import WriteSession, base
from app.errors import DependencyUnavailable
from app.jobs import lifecycle
from app.vault.store import ObjectStore, ObjectWriter
from workers import heartbeat, sweeper


class ProcessLost(BaseException):
    """Simulates SIGKILL: no handler of ``Exception`` catches it."""


class DatabaseLost(sa.exc.OperationalError):
    """The database went away during a commit."""

    def __init__(self) -> None:
        super().__init__("COMMIT", None, Exception("server closed the connection"))


@dataclass
class Faults:
    """The next faults. Each occurs once, except for ``disk_full``, which lasts."""

    point: str | None = None
    after: int = 1  # the fault occurs when the point is reached for this time
    action: Callable[[], None] = lambda: None
    commit: str | None = None  # "lost": the commit fails; "answer lost": it succeeds, but raises an error
    commits: int = 1
    disk_full: bool = False
    database_ahead: timedelta = timedelta()
    machine_ahead: timedelta = timedelta()

    def reach(self, point: str) -> None:
        if point != self.point:
            return
        self.after -= 1
        if self.after == 0:
            self.point = None
            self.action()

    def moment(self, _: object) -> datetime:
        """Return the time of the database's clock."""
        return datetime.now(UTC) + self.database_ahead

    def clear(self) -> None:
        self.point = self.commit = None
        self.disk_full = False


class FaultyStore:
    """A store whose disk may be full."""

    def __init__(self, store: ObjectStore, faults: Faults) -> None:
        self._store, self._faults = store, faults
        self.url = store.url

    def create(self, name: str | None = None) -> ObjectWriter:
        writer = self._store.create(name)
        if self._faults.disk_full:
            full = mock.Mock(side_effect=DependencyUnavailable)
            place = "publish" if (name or "0")[0] in "01234567" else "write"  # sometimes only the last block is missing
            setattr(writer, place, full)
        return writer

    def open(self, name: str) -> BinaryIO:
        return self._store.open(name)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)


@contextmanager
def inject(faults: Faults) -> Iterator[None]:
    """Inject ``faults`` into this process."""
    commit = WriteSession.commit

    def commit_or_fail(session: WriteSession) -> None:
        if faults.commit is not None:
            faults.commits -= 1
        if faults.commit is None or faults.commits:
            commit(session)
            return
        lost, faults.commit = faults.commit, None
        if lost == "answer lost":
            commit(session)
        raise DatabaseLost

    class Clock:
        @staticmethod
        def now(tz: tzinfo) -> datetime:
            return datetime.now(tz) + faults.machine_ahead

    with (
        mock.patch.object(crashpoints, "reach", faults.reach),
        mock.patch.object(lifecycle, "read_time", faults.moment),
        mock.patch.object(sweeper, "read_time", faults.moment),
        mock.patch.object(base, "datetime", Clock),
        mock.patch.object(WriteSession, "commit", commit_or_fail),
        mock.patch.object(os, "fsync"),
        mock.patch.object(heartbeat, "TICK_SECONDS", 3600.0),  # no heartbeat occurs by chance during a run
    ):
        yield
