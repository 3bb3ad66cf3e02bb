"""What the audit log does beside requests: refusals are gathered and written in batches, entries are chained.

A refusal is in the log within a second. Those that repeat (the same key, route and code) are one entry with a count a
minute, so that a flood does not fill the disk. A process that is killed loses what it gathered in its last second;
changes of state are never among that, since they are recorded in their own transactions.
"""

import math
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Final

import structlog

from app.audit import chain, journal
from app.context import RequestContext
from app.db import Database, now
from app.http.middleware.outer_middleware import Exchange
from app.vault.signing import Signer

EVERY_SECONDS: Final = 1.0
GATHERED_SECONDS: Final = 60.0
_CHANGING: Final = frozenset({"POST", "PUT", "PATCH", "DELETE"})
_READS_BY_POST: Final = frozenset({"/v1/quotes"})
_PUBLIC: Final = ("/v1/releases", "/v1/keys", "/health/", "/metrics", "/openapi.json", "/dashboard")

Kind = tuple[str | None, str, int, str | None]
"""Calls that are alike: actor, action, status, code."""


@dataclass(slots=True)
class Gathered:
    """Calls of one kind since ``opened`` (monotonic seconds)."""

    first: RequestContext
    at: datetime
    opened: float
    target: str | None
    count: int = 0
    written: bool = False


class Keeper:
    """Observes exchanges, and writes down in its own time what no transaction has recorded."""

    def __init__(self, database: Database, signer: Signer) -> None:
        self._database = database
        self._signer = signer
        self._gathered: dict[Kind, Gathered] = {}
        self._lock = threading.Lock()
        self._writing = threading.Lock()

    def observe(self, exchange: Exchange) -> None:
        """Gather a refusal, a failed change, or a change that was answered without event again (a replay)."""
        request = exchange.request
        if not _matters(request, exchange.status):
            return
        kind = (request.actor, request.action, exchange.status, request.code)
        with self._lock:
            known = self._gathered.get(kind)
            if known is None:
                known = self._gathered[kind] = Gathered(request, now(), time.monotonic(), request.target)
            if known.count == 0:
                known.first, known.at, known.target = request, now(), request.target
            known.count += 1
            if known.target != request.target:
                known.target = None

    def keep(self) -> None:
        """Write what was gathered, and chain what has been committed. A database that is away costs time only."""
        with self._writing:
            try:
                self._write(self._due())
                self._chain()
            except Exception as error:  # noqa: BLE001  (whatever ails the database, the next round tries again)
                structlog.get_logger().warning("audit log not written", kind=type(error).__name__)

    @contextmanager
    def running(self) -> Iterator[None]:
        """Keep the log every second in a thread of its own, and a last time at the end."""
        stop = threading.Event()

        def run() -> None:
            while not stop.wait(EVERY_SECONDS):
                self.keep()

        thread = threading.Thread(target=run, name="audit", daemon=True)
        thread.start()
        try:
            yield
        finally:
            stop.set()
            thread.join()
            with self._lock:
                for each in self._gathered.values():
                    each.opened = -math.inf
            self.keep()

    def _due(self) -> list[tuple[Kind, Gathered, int]]:
        """What to write now, with its count: kinds that are new, and those whose minute is over."""
        horizon = time.monotonic() - GATHERED_SECONDS
        with self._lock:
            for kind in [kind for kind, each in self._gathered.items() if not each.count and each.opened < horizon]:
                del self._gathered[kind]
            return [
                (kind, each, each.count)
                for kind, each in self._gathered.items()
                if each.count and (not each.written or each.opened < horizon)
            ]

    def _write(self, due: list[tuple[Kind, Gathered, int]]) -> None:
        if not due:
            return
        with self._database.write() as tx:
            for (_, _, status, code), each, count in due:
                journal.add(tx, each.first, status=status, code=code, target=each.target, count=count, at=each.at)
        with self._lock:
            for _, each, count in due:
                each.count -= count
                each.opened = time.monotonic() if each.written else each.opened
                each.written = True

    def _chain(self) -> None:
        with self._database.read() as session:
            if not chain.waiting(session):
                return
        with self._database.write() as tx:
            while chain.extend(tx, self._signer) == chain.BATCH:
                pass


def _matters(request: RequestContext, status: int) -> bool:
    if request.recorded or status == 0:
        return False
    if status >= 400:
        return request.actor is not None or not request.route.startswith(_PUBLIC)
    return request.method in _CHANGING and request.route not in _READS_BY_POST
