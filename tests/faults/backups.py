"""A backup of a seeded world's database: restored, refused by the high-water mark, and reconciled."""

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

from sqlalchemy import exists, select

from app.db import Database
from app.inference.core import plan_json
from app.inference.core.plan import MechanismPlan
from app.jobs.models import Job
from app.ledger.models import Checkpoint, Entry
from app.releases.models import Release
from app.vault.marks import find_newest, open_marks
from tests.factories.worker import House

Released = dict[str, MechanismPlan]
"""All published releases by id, with the plan of each."""


class Backup:
    """A backup of an SQLite database; the mark, the keys and the store are not backed up."""

    def __init__(self, house: House, mark_url: str) -> None:
        self._house, self._mark_url = house, mark_url
        self._file = Path(str(house.database.engine.url.database))
        self._saved = self._file.with_name("backup.sqlite3")
        self._saved.unlink(missing_ok=True)
        with closing(sqlite3.connect(self._file)) as source, closing(sqlite3.connect(self._saved)) as target:
            source.backup(target)

    def restore(self) -> None:
        """Restore the backup as if all processes had been stopped: caches are cleared."""
        self._house.database.dispose()
        for suffix in ("", "-wal", "-shm"):
            self._file.with_name(self._file.name + suffix).unlink(missing_ok=True)
        shutil.move(self._saved, self._file)
        context = self._house.ledger
        assert context.mark is not None
        context.mark.confirmed = False
        context.verified_heads._known.clear()

    def is_behind(self) -> bool:
        """Whether the newest mark is of a checkpoint that the database does not have."""
        top = find_newest(open_marks(self._mark_url).names())
        if top is None or top.sequence == 0:
            return False
        with self._house.database.read() as session:
            return not session.scalar(select(exists().where(Checkpoint.checkpoint_hash == top.digest)))

    def reconcile(self) -> str | None:
        """Reconcile the account that is behind; return the outcome.

        Earlier entries stay, and all new entries charge or freeze.
        """
        before = self._entries()
        with Database(self._house.database.engine).write() as tx:
            outcomes = [each.outcome for each in self._house.ledger.reconcile(tx, adopt=False)]
        added = [each for each in self._entries() if each not in before]
        assert len(outcomes) == 1
        assert set(before) < set(self._entries())
        assert {kind for _, _, kind in added} <= {"reserved", "opened", "settled", "frozen"}
        assert ("frozen" in {kind for _, _, kind in added}) == (outcomes == ["frozen"])
        assert not self.is_behind()
        return outcomes[0]

    def _entries(self) -> list[tuple[str, int, str]]:
        with self._house.database.read() as session:
            query = select(Entry.account_id, Entry.sequence, Entry.kind).order_by(Entry.account_id, Entry.sequence)
            return [(account_id, sequence, kind) for account_id, sequence, kind in session.execute(query)]


def read_released(database: Database, dataset_id: str) -> Released:
    """Read the releases of a dataset that the database has."""
    with database.read() as session:
        query = select(Release.id, Job.plan).join(Job, Job.id == Release.job_id).where(Job.dataset_id == dataset_id)
        return {release_id: plan_json.from_json(plan) for release_id, plan in session.execute(query)}
