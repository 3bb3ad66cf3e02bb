"""Whether this API can do its work: database, migrations, ledger, store."""

from collections.abc import Callable
from threading import Lock

from sqlalchemy import select
from sqlalchemy.exc import SQLAlchemyError

from app.db import WriteSession
from app.db.migrations import at_head
from app.errors import DependencyUnavailable
from app.services import Services


class Readiness:
    """Checks on demand. The ledger is verified once for each process, before anything is served."""

    def __init__(self, services: Services, audit: Callable[[WriteSession], object]) -> None:
        """``audit`` freezes every account that does not hold; the composition root knows what that takes."""
        self._services = services
        self._audit = audit
        self._migrated = False
        self._verified = False
        self._lock = Lock()

    def check(self) -> tuple[str, ...]:
        """Return if every dependency answers without which calls fail; names those that can be done without.

        Without the broker jobs are accepted all the same: they wait in the database, and their messages are sent once
        it is back.

        Raises:
            DependencyUnavailable: naming the one that does not answer.
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
        """Recompute chains and balances in full; accounts that do not hold are frozen.

        Raises:
            DependencyUnavailable: where the database does not answer.
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
        """Anew each time: the database under a running service may be swapped."""
        try:
            with self._services.database.read() as session:
                self._services.ledger.check_mark(session)
        except SQLAlchemyError:
            raise DependencyUnavailable("The database does not answer.") from None

    def _check_database(self) -> None:
        if self._migrated:  # code and revision only part ways when this process is replaced
            with self._services.database.read() as session:
                session.execute(select(1))
        elif at_head(self._services.database.engine):
            self._migrated = True
        else:
            raise DependencyUnavailable("The database is not migrated; run 'corevaultd migrate'.")

    def _probe_store(self) -> None:
        with self._services.areas.incoming.create() as probe:  # never published: discarded at the end
            probe.write(b"\0")
