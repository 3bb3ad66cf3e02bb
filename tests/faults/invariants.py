"""What must hold once everything has come to rest, whatever went wrong on the way: one function for all faults."""

import math
from collections import Counter
from collections.abc import Iterable

from dp_accounting import dp_event
from dp_accounting.rdp import RdpAccountant
from sqlalchemy import select

from app.db import Database, ReadSession
from app.inference.core import plan_json
from app.inference.core.plan import MechanismPlan
from app.jobs.models import Job
from app.ledger import Budget, Ledger, LedgerEntry
from app.privacy.events import GaussianEvent, PoissonSampledEvent, flatten
from app.releases import publication
from app.releases.models import Release

ENDED = ("succeeded", "failed", "cancelled")
_CHARGES = {"succeeded": {"settled"}, "failed": {"settled", "voided"}, "cancelled": {"settled", "voided"}}


def check(database: Database, ledger: Ledger, dataset_ids: Iterable[str]) -> None:
    """W8 to W11, from the database alone: balances, limits, ends, charges and releases of these datasets."""
    with database.read() as session:
        assert ledger.verify(session) == (), "entries and cached balances disagree"
        for dataset_id in dataset_ids:
            jobs = session.scalars(select(Job).where(Job.dataset_id == dataset_id)).all()
            entries = ledger.entries(session, dataset_id, limit=10_000, before=None)
            assert "frozen" not in {entry.kind for entry in entries}
            every_job_has_ended(jobs)
            every_job_has_its_entries(jobs, entries)
            every_release_has_one_settled_charge(session, jobs)
            the_limit_holds(session, ledger, dataset_id, jobs)


def check_reconciled(
    database: Database, ledger: Ledger, dataset_id: str, outcome: str | None, released: Iterable[MechanismPlan]
) -> None:
    """W8 to W11 after a restore, whatever the database forgot: all that was ever ``released`` is paid for."""
    with database.read() as session:
        assert ledger.verify(session) == (), "entries and cached balances disagree"
        jobs = session.scalars(select(Job).where(Job.dataset_id == dataset_id)).all()
        entries = ledger.entries(session, dataset_id, limit=10_000, before=None)
        assert ("frozen" in {entry.kind for entry in entries}) == (outcome == "frozen")
        every_job_has_ended(jobs)
        every_job_has_its_entries(jobs, [entry for entry in entries if not (entry.job_id or "").startswith("lost_")])
        every_release_has_one_settled_charge(session, jobs)
        budget = ledger.budget(session, dataset_id)
    cost = composed(released, budget.limit.delta)
    assert cost <= budget.limit.epsilon, "more was released than the limit allows"
    if outcome != "frozen":
        assert is_paid(budget, cost), "something was released that nobody is charged for"


def every_job_has_ended(jobs: Iterable[Job]) -> None:
    for job in jobs:
        assert job.status in ENDED, (job.id, job.status, job.stage)
        assert job.ended_at is not None
        assert job.lease_until is None
        assert (job.error_code is not None) == (job.status == "failed")
        assert (job.release_id is not None) == (job.status == "succeeded")


def every_job_has_its_entries(jobs: Iterable[Job], entries: Iterable[LedgerEntry]) -> None:
    """Reserved once, opened at most once, and then closed once: settled if it was opened, voided if not."""
    kinds: dict[str, list[str]] = {}
    for entry in sorted(entries, key=lambda entry: entry.sequence):
        if entry.job_id is not None:
            kinds.setdefault(entry.job_id, []).append(entry.kind)
    assert kinds.keys() == {job.id for job in jobs}, "a charge without a job, or a job without a charge"
    for job in jobs:
        assert kinds[job.id] in (["reserved", "voided"], ["reserved", "opened", "settled"]), (job.id, kinds[job.id])
        assert kinds[job.id][-1] in _CHARGES[job.status]


def every_release_has_one_settled_charge(session: ReadSession, jobs: Iterable[Job]) -> None:
    by_id = {job.id: job for job in jobs}
    releases = session.scalars(select(Release).where(Release.job_id.in_(by_id))).all()
    assert all(count == 1 for count in Counter(release.job_id for release in releases).values())
    assert {release.job_id for release in releases} == {job.id for job in jobs if job.status == "succeeded"}
    for release in releases:
        job = by_id[release.job_id]
        assert job.release_id == release.id
        assert _came_from(release, job.fencing_token), "published by an attempt that was not the last"
        stated = release.certificate["statement"]["privacy"]
        assert stated["epsilon"] == job.cost_epsilon


def _came_from(release: Release, token: int) -> bool:
    stored = release.representations.items()
    return all(each["object"] == publication._object_name(release.job_id, token, name) for name, each in stored)


def the_limit_holds(session: ReadSession, ledger: Ledger, dataset_id: str, jobs: Iterable[Job]) -> None:
    """By a second derivation: the library composes what was charged, over its own orders."""
    charged = [job for job in jobs if ledger.state(session, job.id) != "voided"]
    budget = ledger.budget(session, dataset_id)
    cost = composed((plan_json.from_json(job.plan) for job in charged), budget.limit.delta)
    assert cost <= budget.limit.epsilon, "what was charged is over the limit"
    assert budget.jobs.settled == len(charged)
    assert (budget.jobs.reserved, budget.reserved.epsilon) == (0, 0.0)
    assert is_paid(budget, cost)


def composed(done: Iterable[MechanismPlan], delta: float) -> float:
    """The epsilon of all plans together, by the library."""
    accountant = RdpAccountant()
    events = [each for plan in done for each in flatten(plan.events)]
    for event, count in events:
        sampled = isinstance(event, PoissonSampledEvent)
        gaussian = event.event if isinstance(event, PoissonSampledEvent) else event
        assert isinstance(gaussian, GaussianEvent)
        made = dp_event.GaussianDpEvent(gaussian.noise_multiplier)
        rate = event.sampling_rate if isinstance(event, PoissonSampledEvent) else 1.0
        accountant.compose(dp_event.PoissonSampledDpEvent(rate, made) if sampled else made, count)
    return float(accountant.get_epsilon(delta)) if events else 0.0


def is_paid(budget: Budget, cost: float) -> bool:
    """Whether so much epsilon is spent, but for what two sets of orders make of it."""
    return budget.spent.epsilon >= cost * (1 - 1e-9) or math.isclose(budget.spent.epsilon, cost, rel_tol=0.02)


def nothing_is_left_behind(database: Database, stored: Iterable[str], others: Iterable[str] = ()) -> None:
    """The store holds what releases name (and ``others``), and nothing else that could be read."""
    with database.read() as session:
        releases = session.scalars(select(Release)).all()
    named = {each["object"] for release in releases for each in release.representations.values()}
    assert set(stored) == named | set(others)
