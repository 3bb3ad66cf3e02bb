"""The background work of the audit log: it writes refusals in batches and chains entries.

A refusal is in the log within a second. Repeated refusals (the same key, route, status and code) become one entry with
a count per minute, so a flood does not fill the disk. Refusals by two budgets are two entries. A killed
process loses the refusals of its last second. It loses no changes of state, because these are recorded in the
transactions that make them.
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
from app.errors import BudgetExceeded
from app.http.middleware.outer_middleware import Exchange
from app.vault.signing import Signer

EVERY_SECONDS: Final = 1.0
GROUP_SECONDS: Final = 60.0
_CHANGING: Final = frozenset({"POST", "PUT", "PATCH", "DELETE"})
_READS_BY_POST: Final = frozenset(
    {
        *("/v1/quotes", "/dashboard/price"),
        *(f"/dashboard/populations/{{dataset_id}}/what-if/{kind}" for kind in ("job", "limit", "allocation")),
        *(f"/v1/datasets/{{dataset_id}}/what-if/{kind}" for kind in ("job", "limit", "allocation")),
    }
)
_PUBLIC: Final = ("/v1/releases", "/v1/keys", "/health/", "/metrics", "/openapi.json", "/docs", "/dashboard")
_SIGN_IN: Final = "/dashboard/sign-in"
"""The one page without a caller whose refusals matter: a wrong key."""

Kind = tuple[str | None, str, int, str | None, str | None, str | None]
"""The attributes by which calls are grouped: actor, action, status, code, and the dataset and obstacle of a refusal.

The last two are of refusals by a budget.
"""


@dataclass(slots=True)
class CallGroup:
    """Calls of one kind since ``opened`` (monotonic seconds)."""

    first: RequestContext
    at: datetime
    opened: float
    target: str | None
    count: int = 0
    written: bool = False


class AuditRecorder:
    """Records exchanges that no transaction has recorded, in the background."""

    def __init__(self, database: Database, signer: Signer) -> None:
        self._database = database
        self._signer = signer
        self._groups: dict[Kind, CallGroup] = {}
        self._lock = threading.Lock()
        self._writing = threading.Lock()

    def observe(self, exchange: Exchange) -> None:
        """Count a refusal, a failed change, or the replayed response to a change."""
        request = exchange.request
        if not _matters(request, exchange.status):
            return
        kind = (request.actor, request.action, exchange.status, request.code, _find_dataset(request), request.obstacle)
        with self._lock:
            group = self._groups.get(kind)
            if group is None:
                group = self._groups[kind] = CallGroup(request, now(), time.monotonic(), request.target)
            if group.count == 0:
                group.first, group.at, group.target = request, now(), request.target
            group.count += 1
            if group.target != request.target:
                group.target = None

    def flush(self) -> None:
        """Write the counted calls and chain committed entries; if the database fails, retry in the next round."""
        with self._writing:
            try:
                self._write(self._due())
                self._chain()
            except Exception as error:  # noqa: BLE001  (the next round tries again after any error)
                structlog.get_logger().warning("audit log not written", kind=type(error).__name__)

    @contextmanager
    def run_in_background(self) -> Iterator[None]:
        """Call :meth:`flush` every second in a separate thread, and once at the end."""
        stop = threading.Event()

        def run() -> None:
            while not stop.wait(EVERY_SECONDS):
                self.flush()

        thread = threading.Thread(target=run, name="audit", daemon=True)
        thread.start()
        try:
            yield
        finally:
            stop.set()
            thread.join()
            with self._lock:
                for each in self._groups.values():
                    each.opened = -math.inf
            self.flush()

    def _due(self) -> list[tuple[Kind, CallGroup, int]]:
        """The groups to write now, with their counts: new kinds, and kinds whose minute is over."""
        horizon = time.monotonic() - GROUP_SECONDS
        with self._lock:
            for kind in [kind for kind, each in self._groups.items() if not each.count and each.opened < horizon]:
                del self._groups[kind]
            return [
                (kind, each, each.count)
                for kind, each in self._groups.items()
                if each.count and (not each.written or each.opened < horizon)
            ]

    def _write(self, due: list[tuple[Kind, CallGroup, int]]) -> None:
        if not due:
            return
        with self._database.write() as tx:
            for (_, _, status, code, _, obstacle), each, count in due:
                journal.add(
                    tx,
                    each.first,
                    status=status,
                    code=code,
                    target=each.target,
                    count=count,
                    at=each.at,
                    obstacle=obstacle,
                )
        with self._lock:
            for _, each, count in due:
                each.count -= count
                each.opened = time.monotonic() if each.written else each.opened
                each.written = True

    def _chain(self) -> None:
        with self._database.read() as session:
            if not chain.has_waiting(session):
                return
        with self._database.write() as tx:
            while chain.extend(tx, self._signer) == chain.BATCH:
                pass


def _find_dataset(request: RequestContext) -> str | None:
    """Find the dataset whose budget refused the call, because its owner reads these entries.

    A key sees few datasets, so this does not make many entries.
    """
    return request.target if request.code == BudgetExceeded.code else None


def _matters(request: RequestContext, status: int) -> bool:
    if request.recorded or status == 0:
        return False
    if status >= 400:
        return request.actor is not None or request.route == _SIGN_IN or not request.route.startswith(_PUBLIC)
    return request.method in _CHANGING and request.route not in _READS_BY_POST
