"""The helper: a worker that takes parts of a query which another worker runs, as messages come."""

from app.datasets.models import Dataset
from app.db import Database, ReadSession, now
from app.errors import CorevaultError
from app.inference.core.problems import problem_for
from app.inference.core.query import Integers
from app.jobs import repository as jobs
from app.jobs.lifecycle import Claim
from app.jobs.terms import read_terms
from app.ledger import Ledger
from app.vault.areas import WorkerAreas
from workers.assignments import Assignment, Tables, assignment
from workers.enclave import OpeningKey
from workers.split_queries.mailbox import Exchange, Task
from workers.split_queries.part_id import PartId
from workers.split_queries.resident_parts import Memory, Parts

IDLE_SECONDS = 10.0
"""How long a helper keeps a part's rows in memory for the next query of the same attempt."""


class Helper:
    """Takes parts of other workers' queries. A message that comes twice, late or from nobody opens no table."""

    def __init__(
        self, database: Database, ledger: Ledger, areas: WorkerAreas, opening_key: OpeningKey, tables: Tables
    ) -> None:
        self._database = database
        self._ledger = ledger
        self._areas = areas
        self._opening_key = opening_key
        self._tables = tables
        self._memory = Memory(IDLE_SECONDS)

    def run(self, identifier: str) -> None:
        """Hand in the part if it is still wanted.

        Raises:
            VaultError, DependencyUnavailable, MemoryError: nothing is handed in; who asked will take the part.
        """
        wanted = PartId.parse(identifier)
        if wanted is None:
            return
        with self._database.read() as session:
            held = self._find_attempt(session, wanted)
        exchange = Exchange(self._areas.vault, self._opening_key, wanted.job_id, wanted.token)
        task = None if held is None else exchange.read_task(wanted.query)
        if held is None or task is None or wanted.part >= task.parts:
            return
        exchange.hand_in(wanted.query, task, wanted.part, self._sums(held, task, wanted.part))
        if exchange.read_task(wanted.query) is None:
            exchange.withdraw(wanted.query, wanted.part)

    def _find_attempt(self, session: ReadSession, wanted: PartId) -> Assignment | None:
        """The attempt that asks, if it is still running and its reservation is open."""
        job = jobs.get(session, wanted.job_id)
        if job is None or (job.status, job.fencing_token) != ("running", wanted.token):
            return None
        if job.lease_until is None or job.lease_until < now():
            return None
        if not self._ledger.is_opened(session, job.id, read_terms(job, session.get_one(Dataset, job.dataset_id))):
            return None
        box = self._areas.keys.box(job.dataset_id)
        return assignment(session, Claim(job.id, wanted.token, job.attempts), job, box)

    def _sums(self, held: Assignment, task: Task, part: int) -> Integers | None:
        """The part's sums; None for a fault among the rows, which ends the job and freezes the account."""
        run, claim = held.run, held.claim
        parts = self._memory.of(
            (claim.job_id, claim.fencing_token),
            lambda: Parts(problem_for(run.plan.model, run.facts), run.facts.rows_per_unit),
        )
        try:
            return parts.sum(task.query, task.units(part), lambda: self._tables(held))
        except (CorevaultError, MemoryError):
            raise
        except Exception:  # noqa: BLE001  (whatever it is, it may reveal a row)
            return None
        finally:
            self._memory.keep()
