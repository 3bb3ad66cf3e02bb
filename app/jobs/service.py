"""Jobs: access rules, prices, and the reservation of a job."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

from app import crashpoints, tracing
from app.auth.caller import Caller
from app.auth.service import take_turn
from app.context import get_current, note_target
from app.continuous_audit import alarm
from app.datasets import access
from app.datasets import repository as datasets
from app.datasets.declaration import find_plain_text_faults
from app.datasets.facts import make_declared_facts
from app.datasets.models import Dataset
from app.datasets.service import compute_default_delta
from app.db import ReadSession, WriteSession, generate_id, now
from app.errors import Forbidden, InvalidRequest, NotFound, StateConflict
from app.inference import registry
from app.inference.core import plan_json
from app.inference.core.facts import DeclaredFacts
from app.inference.core.plan import MechanismPlan
from app.jobs import repository
from app.jobs.dry_runs import DryRuns
from app.jobs.lifecycle import Lifecycle, Stage
from app.jobs.models import Job
from app.jobs.planning import NoiseCache, make_charge, make_plan
from app.jobs.repository import JobNames
from app.jobs.schemas import JobBody
from app.jobs.terms import make_commitment
from app.ledger import Ledger
from app.ledger.entries.charge import Charge
from app.tracing import open_span

RUNNERS = frozenset({"owner", "analyst"})
_NOT_OWN = "Only the key that submitted the job or the dataset's owner may cancel it; yours is of the role {}."
_NOT_REGISTERED = (
    "The ledger has no register of people for this table, so no release could name its place in the series. This call "
    "charged nothing. Ask the operator."
)
_NOISE = NoiseCache()
_DRY_RUNS = DryRuns()


@dataclass(frozen=True, slots=True)
class Submitted:
    """A new job, and the names that its caller sees."""

    job: Job
    names: JobNames


@dataclass(frozen=True, slots=True)
class Priced:
    """A plan with the dataset and the declared facts that it was made from."""

    dataset: Dataset
    facts: DeclaredFacts
    plan: MechanismPlan


def price(session: ReadSession, ledger: Ledger, caller: Caller, body: JobBody) -> Priced:
    """Make the plan of a job, calibrated against the account as ``session`` sees it.

    Raises:
        Forbidden: the caller's role may not run jobs.
        NotFound: there is no such dataset, or the caller may not see it.
        StateConflict: the dataset has no content in force, or is deleted.
        InvalidRequest: the body is not valid, or the dry run of its plan fails.
        MethodNotAllowedOnPrivateData: the method has no privacy, and the dataset is private.
    """
    if caller.role not in RUNNERS:
        raise Forbidden.to(caller.role, RUNNERS)
    dataset = access.find_visible(session, caller, body.dataset_id)
    private = dataset.sensitivity == "private"
    delta = ledger.limit(session, dataset.id)[1] if private else compute_default_delta(dataset.slots)
    facts = make_declared_facts(dataset, delta if private else None)
    _check_purpose(body)
    _check_privacy(body, ledger.max_epsilon)
    _check_ready(session, ledger, caller, dataset)
    size = body.size or registry.choose_size(body.model.spec(), facts)
    plan = make_plan(body.wish(size), facts, delta, _NOISE, _admission(session, ledger, dataset, caller))
    _DRY_RUNS.check(plan, facts)
    return Priced(dataset, facts, plan)


def submit(tx: WriteSession, ledger: Ledger, lifecycle: Lifecycle, caller: Caller, body: JobBody) -> Submitted:
    """Reserve the job's price and queue the job in one transaction.

    Raises:
        BudgetExceeded: the account does not admit the job. The caller must count the refusal with
            ``ledger.record_refusal`` in another transaction.
        PrivacyAlarm: the continuous audit has raised an alarm, or its state is damaged.
        Forbidden, NotFound, StateConflict, InvalidRequest, MethodNotAllowedOnPrivateData: as :func:`price`.
    """
    access.find_visible(tx, caller, body.dataset_id)
    dataset = datasets.lock(tx, body.dataset_id)
    if dataset is not None and dataset.sensitivity == "private":
        ledger.lock(tx, dataset.id)
    priced = price(tx, ledger, caller, body)
    job = _new_job(priced, caller, body)
    if priced.dataset.sensitivity == "private":
        alarm.check(tx)
        crashpoints.reach("before-reserve")
        with open_span("ledger.reserve", job_id=job.id):
            charge, pinned = make_charge(priced.plan), make_commitment(job.plan, priced.dataset)
            preview = ledger.reserve(tx, priced.dataset.id, job.id, charge, commitment=pinned, caller_id=caller.id)
        crashpoints.reach("after-reserve")
        job.cost_epsilon, job.cost_delta = preview.cost_epsilon, preview.cost_delta
    tx.add(job)
    tx.flush()
    lifecycle.enqueue(tx, job.id)
    return Submitted(job, JobNames(caller.name, priced.dataset.name))


def check_room(tx: WriteSession, caller: Caller, most: int) -> None:
    """Check that the caller has fewer than ``most`` jobs waiting or running.

    Raises:
        StateConflict: it has that many.
    """
    take_turn(tx, caller.id)
    if repository.count_active(tx, caller.id) >= most:
        raise StateConflict(
            f"You have {most} jobs waiting or running, the most that this server allows. Wait until one has ended."
        )


def find_visible(session: ReadSession, caller: Caller, job_id: str) -> Job:
    """Return the job, if the caller may see it.

    Jobs are visible to the key that submitted them, the dataset's owner and overseers.

    Raises:
        NotFound: there is no such job, or the caller may not see it.
    """
    job = repository.get(session, job_id)
    if job is None or not (caller.role in access.OVERSEERS or may_cancel(session, caller, job)):
        raise NotFound
    note_target(job.id)
    return job


def read_names(session: ReadSession, caller: Caller, jobs: Sequence[Job]) -> dict[str, JobNames]:
    """Map visible jobs to the names that the caller may see."""
    return repository.read_names(session, [job.id for job in jobs], access.choose_key_filter(caller))


def cancel(tx: WriteSession, lifecycle: Lifecycle, caller: Caller, job_id: str) -> Job:
    """Cancel the caller's job, or one on the caller's dataset; an ended job is returned unchanged.

    Raises:
        NotFound: there is no such job, or the caller may not see it.
        Forbidden: the caller may see the job only as an overseer.
    """
    job = find_visible(tx, caller, job_id)
    if not may_cancel(tx, caller, job):
        raise Forbidden(_NOT_OWN.format(caller.role))
    lifecycle.request_cancel(tx, job_id)
    tx.refresh(job)
    return job


def list_page(
    session: ReadSession, caller: Caller, *, dataset_id: str | None, status: str | None, before: str | None, limit: int
) -> Sequence[Job]:
    """List the caller's jobs and all jobs on its datasets, newest first; overseers see every job."""
    return repository.list_page(
        session, access.choose_key_filter(caller), dataset_id=dataset_id, status=status, before=before, limit=limit
    )


def list_visible(session: ReadSession, caller: Caller, job_ids: Collection[str]) -> Sequence[Job]:
    """List the jobs with these ids that the caller may see."""
    return repository.list_by_ids(session, access.choose_key_filter(caller), job_ids)


def may_cancel(session: ReadSession, caller: Caller, job: Job) -> bool:
    """Whether the caller may cancel the job: its submitter, and the dataset's owner."""
    if job.caller_id == caller.id:
        return True
    dataset = datasets.get(session, job.dataset_id)
    return dataset is not None and dataset.owner_id == caller.id


def _check_purpose(body: JobBody) -> None:
    if faults := tuple(find_plain_text_faults("/purpose", body.purpose or "")):
        raise InvalidRequest(faults=faults)


def _check_privacy(body: JobBody, max_epsilon: float) -> None:
    method = registry.find_method(body.method)
    if method.private and body.privacy is None:
        raise InvalidRequest.at(
            "/privacy", "This method is private. State the epsilon that the job may cost, such as 0.5, or a mechanism."
        )
    target = None if body.privacy is None else body.privacy.epsilon
    if target is not None and target > max_epsilon:
        raise InvalidRequest.at("/privacy/epsilon", f"Use a number of at most {max_epsilon:g}.")


def _check_ready(session: ReadSession, ledger: Ledger, caller: Caller, dataset: Dataset) -> None:
    if dataset.deleted_at is not None:
        raise StateConflict("The dataset is deleted.")
    content = datasets.find_in_force(session, dataset.id)
    if content is None:
        raise StateConflict(access.explain_not_ready(session, caller, dataset))
    if dataset.series is not None:
        register = content.register_object
        registration = None if register is None else ledger.registration(session, dataset.id, register)
        if registration is None or registration.series != dataset.series:
            raise StateConflict(_NOT_REGISTERED)


def _admission(session: ReadSession, ledger: Ledger, dataset: Dataset, caller: Caller) -> Callable[[Charge], bool]:
    if dataset.sensitivity == "public":
        return lambda _: True
    return lambda charge: ledger.admits(session, dataset.id, charge, caller_id=caller.id)


def _new_job(priced: Priced, caller: Caller, body: JobBody) -> Job:
    at = now()
    return Job(
        id=generate_id("job"),
        dataset_id=priced.dataset.id,
        caller_id=caller.id,
        request=body.model_dump(mode="json", exclude={"purpose"}),
        plan=plan_json.to_json(priced.plan),
        purpose=body.purpose,
        status="queued",
        stage=Stage.QUEUED,
        steps_planned=priced.plan.steps,
        created_at=at,
        queued_at=at,
        request_id=None if (request := get_current()) is None else request.request_id,
        trace=tracing.find_context(),
    )
