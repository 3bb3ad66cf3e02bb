"""State machine of jobs under random interleavings.

Workers die, return, repeat their calls and are late.
"""

import shutil
import tempfile
from datetime import timedelta
from functools import cache
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    MultipleResults,
    RuleBasedStateMachine,
    initialize,
    invariant,
    multiple,
    precondition,
    rule,
)

from app.db import Database, generate_id, make_engine, now
from app.db.migrations import upgrade
from app.inference.core import plan_json
from app.jobs import repository
from app.jobs.lifecycle import MAX_ATTEMPTS, Claim, Hold, JobError, Stage
from app.jobs.models import Job
from tests.factories import rows
from tests.factories.worker import make_house

pytestmark = pytest.mark.sqlite
ENDED = {"succeeded", "failed", "cancelled"}


@cache
def migrated() -> Path:
    """Return the path of a migrated, empty database, which is created once."""
    path = Path(tempfile.mkdtemp()) / "corevault.sqlite3"
    engine = make_engine(f"sqlite:///{path}")
    upgrade(engine)
    engine.dispose()
    return path


class Lives(RuleBasedStateMachine):
    """W8, W10: in every order of events, an ended job is charged once if its data was opened, else never."""

    jobs: Bundle[str] = Bundle("jobs")
    claims: Bundle[Claim] = Bundle("claims")

    def __init__(self) -> None:
        super().__init__()
        self._folder = tempfile.TemporaryDirectory()
        shutil.copy(migrated(), self._folder.name)
        self.database = Database(make_engine(f"sqlite:///{self._folder.name}/corevault.sqlite3"))
        self.house = make_house(self.database, Path(self._folder.name))
        with self.database.write() as tx:
            self.owner = rows.api_key(tx, "owner")
        self.dataset_id = self.house.ready_dataset(self.owner)
        self.opened: set[str] = set()
        self.ends: dict[str, str] = {}
        self.submitted: list[str] = []
        self.newest: dict[str, Claim] = {}

    def teardown(self) -> None:
        with self.database.read() as session:
            assert self.house.ledger.verify(session) == ()
        self.database.dispose()
        self._folder.cleanup()

    @initialize(target=jobs)
    def submit(self) -> MultipleResults[str]:
        privacy = {"noise_multiplier": 80.0, "sampling_rate": 1.0, "iterations": 5}
        self.submitted = [self.house.job(self.dataset_id, self.owner, privacy=privacy) for _ in range(2)]
        return multiple(*self.submitted)

    @rule(target=claims, job=jobs, lost=st.booleans())
    def claim(self, job: str, lost: bool) -> Claim:
        """A new worker claims the job; with ``lost``, after the previous worker died."""
        if lost:
            self.lose_worker(job)
        with self.database.write() as tx:
            claim = self.house.lifecycle.claim(tx, job)
        if claim is not None:
            self.newest[job] = claim
        return claim or Claim(job, 0, 0)  # a token that no attempt has

    @rule(claim=claims)
    def open(self, claim: Claim) -> None:
        with self.database.write() as tx:
            if self.house.lifecycle.open(tx, claim) is not None:
                assert self.newest[claim.job_id] == claim
                self.opened.add(claim.job_id)

    @rule(claim=claims, steps=st.integers(0, 5))
    def heartbeat(self, claim: Claim, steps: int) -> None:
        with self.database.write() as tx:
            hold = self.house.lifecycle.heartbeat(tx, claim, stage=Stage.RUNNING, steps_done=steps)
        assert hold is Hold.LOST or self.newest[claim.job_id] == claim

    @rule(claim=claims)
    def publish(self, claim: Claim) -> None:
        if claim.job_id not in self.opened:
            return
        with self.database.write() as tx:
            executed = plan_json.from_json(self.house.read(claim.job_id).plan).events
            if self.house.lifecycle.settle(tx, claim, executed) is Hold.HELD:
                assert self.newest[claim.job_id] == claim
                release = rows.release(tx, self.dataset_id, claim.job_id, id=generate_id("rel"))
                self.house.lifecycle.finish(tx, claim, release.id)

    @rule(claim=claims)
    def fail(self, claim: Claim) -> None:
        with self.database.write() as tx:
            ended = self.house.lifecycle.fail(tx, claim, JobError.RUN_FAILED)
        assert not ended or self.newest[claim.job_id] == claim

    @rule(job=jobs)
    def cancel(self, job: str) -> None:
        with self.database.write() as tx:
            self.house.lifecycle.request_cancel(tx, job)

    def lose_worker(self, job: str) -> None:
        with self.database.write() as tx:
            repository.change(tx, job, Job.status == "running", lease_until=now() - timedelta(seconds=1))
            self.house.lifecycle.recover(tx, job)

    @precondition(lambda self: len(self.newest) == 2)
    @rule()
    def delete_dataset(self) -> None:
        with self.database.write() as tx:
            self.house.lifecycle.dataset_deleted(tx, self.dataset_id)

    @invariant()
    def every_job_and_its_charge_agree(self) -> None:
        for job_id in self.submitted:
            job, charge = self.house.read(job_id), self.house.charge(job_id)
            assert job.attempts <= MAX_ATTEMPTS
            if_opened, if_not = ("settled", "voided") if job.status in ENDED else ("opened", "reserved")
            assert charge == (if_opened if job_id in self.opened else if_not)
            assert (job.ended_at is not None) == (job.status in ENDED)
            assert (job.release_id is not None) == (job.status == "succeeded")
            assert (job.error_code is not None) == (job.status == "failed")
            assert self.ends.setdefault(job_id, job.status) == job.status or self.ends[job_id] not in ENDED
            self.ends[job_id] = job.status


Lives.TestCase.settings = settings(
    max_examples=20, stateful_step_count=25, derandomize=True, deadline=None, suppress_health_check=list(HealthCheck)
)
test_lives = pytest.mark.long(pytest.mark.timeout(120)(Lives.TestCase))
