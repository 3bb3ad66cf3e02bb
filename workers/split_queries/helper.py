"""The helper: a worker that sums parts of another worker's query on request."""

from app.datasets.models import Dataset
from app.db import Database, ReadSession, now
from app.errors import CorevaultError
from app.inference.conjugate import make_run_problem
from app.inference.core.query import Integers
from app.jobs import repository as jobs
from app.jobs.lifecycle import Claim
from app.jobs.terms import read_terms
from app.ledger import Ledger
from app.vault.areas import WorkerAreas
from workers.assignments import Assignment, OpenTable, make_assignment
from workers.enclave import OpeningKey
from workers.split_queries.mailbox import Mailbox, Task
from workers.split_queries.part_id import PartId
from workers.split_queries.resident_parts import PartSummer, SummerCache

IDLE_SECONDS = 10.0
"""How long a helper keeps a part's rows in memory for the next query of the same attempt."""


class Helper:
    """Sums parts of other workers' queries.

    A message that arrives twice, late or without a running attempt opens no table.
    """

    def __init__(
        self, database: Database, ledger: Ledger, areas: WorkerAreas, opening_key: OpeningKey, tables: OpenTable
    ) -> None:
        self._database = database
        self._ledger = ledger
        self._areas = areas
        self._opening_key = opening_key
        self._tables = tables
        self._summers = SummerCache(IDLE_SECONDS)

    def run(self, identifier: str) -> None:
        """Put the sums of a part into the mailbox, if its task is current.

        Raises:
            VaultError, DependencyUnavailable, MemoryError: no part is put; the coordinator will sum it.
        """
        part_id = PartId.parse(identifier)
        if part_id is None:
            return
        with self._database.read() as session:
            assignment = self._read_assignment(session, part_id)
        mailbox = Mailbox(self._areas.vault, self._opening_key, part_id.job_id, part_id.token)
        task = None if assignment is None else mailbox.read_task(part_id.query)
        if assignment is None or task is None or part_id.part >= task.parts:
            return
        mailbox.put_part(part_id.query, task, part_id.part, self._sum_part(assignment, task, part_id.part))
        if mailbox.read_task(part_id.query) is None:
            mailbox.delete_part(part_id.query, part_id.part)

    def _read_assignment(self, session: ReadSession, part_id: PartId) -> Assignment | None:
        """Read the coordinator's assignment, if its attempt is running and its reservation is open."""
        job = jobs.get(session, part_id.job_id)
        if job is None or (job.status, job.fencing_token) != ("running", part_id.token):
            return None
        if job.lease_until is None or job.lease_until < now():
            return None
        if not self._ledger.is_opened(session, job.id, read_terms(job, session.get_one(Dataset, job.dataset_id))):
            return None
        box = self._areas.keys.box(job.dataset_id)
        return make_assignment(session, Claim(job.id, part_id.token, job.attempts), job, box)

    def _sum_part(self, assignment: Assignment, task: Task, part: int) -> Integers | None:
        """Compute the part's sums; None if the computation on rows failed.

        Such a failure ends the job and freezes the account.
        """
        run, claim = assignment.run, assignment.claim
        summer = self._summers.get(
            (claim.job_id, claim.fencing_token),
            lambda: PartSummer(make_run_problem(run.plan, run.facts), run.facts.rows_per_unit),
        )
        try:
            return summer.sum(task.query, task.units(part), lambda: self._tables(assignment))
        except (CorevaultError, MemoryError):
            raise
        except Exception:  # noqa: BLE001  (any other error may reveal a row)
            return None
        finally:
            self._summers.start_timer()
