"""Readiness of the API: database, migrations, ledger, store and broker."""

from collections.abc import Callable
from threading import Lock

from sqlalchemy import select
from sqlalchemy.exc import SQLAlchemyError

from app.db import WriteSession
from app.db.migrations import is_at_head
from app.errors import DependencyUnavailable
from app.services import Services


class Readiness:
    """Checks whether the API can serve requests.

    Each process also verifies the whole ledger once, before it serves requests.
    """

    def __init__(self, services: Services, audit: Callable[[WriteSession], object]) -> None:
        """``audit`` verifies the ledger and freezes every account with a mismatch."""
        self._services = services
        self._audit = audit
        self._migrated = False
        self._verified = False
        self._lock = Lock()

    def check(self) -> tuple[str, ...]:
        """Check all dependencies; return the names of optional ones that do not answer.

        Only the broker is optional. Without it, jobs are accepted and wait in the database. Their messages are sent
        when the broker answers again.

        Raises:
            DependencyUnavailable: a required dependency does not answer or is not in a valid state. The message names
                it.
        """
        try:
            self._check_database()
        except SQLAlchemyError:
            raise DependencyUnavailable("The database does not answer.") from None
        self._check_mark()
        self.verify_ledger()
        self._probe_store()
        return () if self._services.queue.answers() else ("broker",)

    def verify_ledger(self) -> None:
        """Recompute all chains and balances, and freeze accounts with a mismatch; later calls do nothing.

        Raises:
            DependencyUnavailable: the database does not answer.
        """
        with self._lock:
            if self._verified:
                return
            try:
                with self._services.database.write() as tx:
                    self._audit(tx)
            except SQLAlchemyError:
                raise DependencyUnavailable("The ledger could not be verified.") from None
            self._verified = True

    def _check_mark(self) -> None:
        """Check that the database is not older than the high-water mark.

        This is checked every time, because an older database may replace the present one while the service runs.
        """
        try:
            with self._services.database.read() as session:
                self._services.ledger.check_mark(session)
        except SQLAlchemyError:
            raise DependencyUnavailable("The database does not answer.") from None

    def _check_database(self) -> None:
        if self._migrated:  # one check is enough: a process needs the same revision until it ends
            with self._services.database.read() as session:
                session.execute(select(1))
        elif is_at_head(self._services.database.engine):
            self._migrated = True
        else:
            raise DependencyUnavailable("The database is not migrated; run 'corevaultd migrate'.")

    def _probe_store(self) -> None:
        with self._services.areas.incoming.create() as probe:  # not published, so it is discarded at the end
            probe.write(b"\0")
