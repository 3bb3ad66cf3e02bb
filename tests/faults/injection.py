"""The plugs that seeded runs pull: crash points, commits, the store and the clocks of one process."""

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
    """Stands in for SIGKILL: nothing that catches exceptions sees it."""


class Unplugged(sa.exc.OperationalError):
    """The database went away in the middle of a commit."""

    def __init__(self) -> None:
        super().__init__("COMMIT", None, Exception("server closed the connection"))


@dataclass
class Plugs:
    """What is pulled next. Each is pulled once and then in its place again, but for ``disk_full``."""

    point: str | None = None
    after: int = 1  # how often the point is reached before
    action: Callable[[], None] = lambda: None
    commit: str | None = None  # "lost": it never happened; "answer lost": it did, and nobody was told
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
        """What time the database has it."""
        return datetime.now(UTC) + self.database_ahead

    def clear(self) -> None:
        self.point = self.commit = None
        self.disk_full = False


class LyingStore:
    """A store whose disk may be full."""

    def __init__(self, store: ObjectStore, plugs: Plugs) -> None:
        self._store, self._plugs = store, plugs
        self.url = store.url

    def create(self, name: str | None = None) -> ObjectWriter:
        writer = self._store.create(name)
        if self._plugs.disk_full:
            full = mock.Mock(side_effect=DependencyUnavailable)
            place = "publish" if (name or "0")[0] in "01234567" else "write"  # sometimes only the last block is missing
            setattr(writer, place, full)
        return writer

    def open(self, name: str) -> BinaryIO:
        return self._store.open(name)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)


@contextmanager
def plugged(plugs: Plugs) -> Iterator[None]:
    """Let this process run by ``plugs``."""
    commit = WriteSession.commit

    def committing(session: WriteSession) -> None:
        if plugs.commit is not None:
            plugs.commits -= 1
        if plugs.commit is None or plugs.commits:
            commit(session)
            return
        lost, plugs.commit = plugs.commit, None
        if lost == "answer lost":
            commit(session)
        raise Unplugged

    class Clock:
        @staticmethod
        def now(tz: tzinfo) -> datetime:
            return datetime.now(tz) + plugs.machine_ahead

    with (
        mock.patch.object(crashpoints, "reach", plugs.reach),
        mock.patch.object(lifecycle, "moment", plugs.moment),
        mock.patch.object(sweeper, "moment", plugs.moment),
        mock.patch.object(base, "datetime", Clock),
        mock.patch.object(WriteSession, "commit", committing),
        mock.patch.object(os, "fsync"),
        mock.patch.object(heartbeat, "TICK_SECONDS", 3600.0),  # beats are too far apart to come in between by chance
    ):
        yield
