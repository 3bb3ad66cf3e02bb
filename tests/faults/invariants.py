"""The invariants of the database after any faults, once all jobs have ended."""

import math
from collections import Counter
from collections.abc import Iterable

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
    """Check W8 to W11 of these datasets from the database alone.

    These are balances, limits, ends of jobs, charges and releases.
    """
    with database.read() as session:
        assert ledger.verify(session) == (), "entries and cached balances disagree"
        for dataset_id in dataset_ids:
            jobs = session.scalars(select(Job).where(Job.dataset_id == dataset_id)).all()
            entries = ledger.entries(session, dataset_id, limit=10_000, before=None)
            assert "frozen" not in {entry.kind for entry in entries}
            check_jobs_have_ended(jobs)
            check_entries_of_jobs(jobs, entries)
            check_charges_of_releases(session, jobs)
            check_limit(session, ledger, dataset_id, jobs)


def check_reconciled(
    database: Database, ledger: Ledger, dataset_id: str, outcome: str | None, released: Iterable[MechanismPlan]
) -> None:
    """Check W8 to W11 after a restore: all plans in ``released`` must be charged.

    The restored database may have lost their entries.
    """
    with database.read() as session:
        assert ledger.verify(session) == (), "entries and cached balances disagree"
        jobs = session.scalars(select(Job).where(Job.dataset_id == dataset_id)).all()
        entries = ledger.entries(session, dataset_id, limit=10_000, before=None)
        assert ("frozen" in {entry.kind for entry in entries}) == (outcome == "frozen")
        check_jobs_have_ended(jobs)
        check_entries_of_jobs(jobs, [entry for entry in entries if not (entry.job_id or "").startswith("lost_")])
        check_charges_of_releases(session, jobs)
        budget = ledger.budget(session, dataset_id)
    cost = compose_plans(released, budget.limit.delta)
    assert cost <= budget.limit.epsilon, "the releases cost more than the limit"
    if outcome != "frozen":
        assert is_paid(budget, cost), "a release is not charged"


def check_jobs_have_ended(jobs: Iterable[Job]) -> None:
    for job in jobs:
        assert job.status in ENDED, (job.id, job.status, job.stage)
        assert job.ended_at is not None
        assert job.lease_until is None
        assert (job.error_code is not None) == (job.status == "failed")
        assert (job.release_id is not None) == (job.status == "succeeded")


def check_entries_of_jobs(jobs: Iterable[Job], entries: Iterable[LedgerEntry]) -> None:
    """Check that each job is reserved once, opened at most once, and closed once.

    An opened job must be settled, and another one voided.
    """
    kinds: dict[str, list[str]] = {}
    for entry in sorted(entries, key=lambda entry: entry.sequence):
        if entry.job_id is not None:
            kinds.setdefault(entry.job_id, []).append(entry.kind)
    assert kinds.keys() == {job.id for job in jobs}, "a charge without a job, or a job without a charge"
    for job in jobs:
        assert kinds[job.id] in (["reserved", "voided"], ["reserved", "opened", "settled"]), (job.id, kinds[job.id])
        assert kinds[job.id][-1] in _CHARGES[job.status]


def check_charges_of_releases(session: ReadSession, jobs: Iterable[Job]) -> None:
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


def check_limit(session: ReadSession, ledger: Ledger, dataset_id: str, jobs: Iterable[Job]) -> None:
    """Check the limit with a second derivation: the library composes the charged plans over its default orders."""
    charged = [job for job in jobs if ledger.state(session, job.id) != "voided"]
    budget = ledger.budget(session, dataset_id)
    cost = compose_plans((plan_json.from_json(job.plan) for job in charged), budget.limit.delta)
    assert cost <= budget.limit.epsilon, "the charges are over the limit"
    assert budget.jobs.settled == len(charged)
    assert (budget.jobs.reserved, budget.reserved.epsilon) == (0, 0.0)
    assert is_paid(budget, cost)


def compose_plans(plans: Iterable[MechanismPlan], delta: float) -> float:
    """Compute the epsilon of all plans together with the library."""
    from dp_accounting import dp_event  # noqa: PLC0415  (takes a second in each process that collects these tests)
    from dp_accounting.rdp import RdpAccountant  # noqa: PLC0415

    accountant = RdpAccountant()
    events = [each for plan in plans for each in flatten(plan.events)]
    for event, count in events:
        sampled = isinstance(event, PoissonSampledEvent)
        gaussian = event.event if isinstance(event, PoissonSampledEvent) else event
        assert isinstance(gaussian, GaussianEvent)
        library_event = dp_event.GaussianDpEvent(gaussian.noise_multiplier)
        rate = event.sampling_rate if isinstance(event, PoissonSampledEvent) else 1.0
        accountant.compose(dp_event.PoissonSampledDpEvent(rate, library_event) if sampled else library_event, count)
    return float(accountant.get_epsilon(delta)) if events else 0.0


def is_paid(budget: Budget, cost: float) -> bool:
    """Whether ``cost`` is spent, up to the difference between two sets of orders."""
    return budget.spent.epsilon >= cost * (1 - 1e-9) or math.isclose(budget.spent.epsilon, cost, rel_tol=0.02)


def check_store(database: Database, stored: Iterable[str], others: Iterable[str] = ()) -> None:
    """Check that the store has only the objects that releases name, and ``others``."""
    with database.read() as session:
        releases = session.scalars(select(Release)).all()
    named = {each["object"] for release in releases for each in release.representations.values()}
    assert set(stored) == named | set(others)
