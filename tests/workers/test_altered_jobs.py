"""W11: the terms that a certificate states are compared with the signed reservation at each step.

An attacker with write access to the database alters a column between two steps of a job. The job must end without a
release, and its account must be frozen.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import pytest
from sqlalchemy import inspect, select, update

from app.datasets.models import Content, Dataset
from app.db import Base
from app.errors import StateConflict
from app.jobs import repository
from app.jobs.models import Job
from app.ledger import Cause
from app.ledger.account import causes, locked_account
from tests.factories import rows
from tests.factories.worker import House, MemoryRows, memory_tables
from tests.workers.support import acting_tables, kinds, releases
from workers.assignments import Assignment

Change = Callable[[Any], Any]
PEOPLE: dict[str, Any] = {
    "columns": [*rows.COLUMNS, {"name": "person", "type": "integer", "lower": 0, "upper": 10**6}],
    "privacy_unit": {"kind": "column", "column": "person", "max_rows": 1},
}


def _with(*path: str | int, value: Any) -> Change:
    """Make a change that sets ``value`` at ``path`` of a JSON document."""

    def change(document: Any) -> Any:
        if not path:
            return value
        copy: Any = dict(document) if isinstance(document, dict) else list(document)
        copy[path[0]] = _with(*path[1:], value=value)(copy[path[0]])
        return copy

    return change


def _less_noise(plan: dict[str, Any]) -> dict[str, Any]:
    plan = _with("mechanism", "noise_multiplier", value=1.0)(plan)
    queries = [{**query, "event": {**query["event"], "noise_multiplier": 1.0}} for query in plan["queries"]]
    return {**plan, "queries": queries}


ALTERATIONS: dict[str, tuple[type[Base], str, Change]] = {
    "slots": (Dataset, "slots", lambda slots: 2 * slots),
    "fewer slots": (Dataset, "slots", lambda slots: slots // 2),
    "unit": (Dataset, "privacy_unit", lambda _: {"kind": "row"}),
    "max_rows": (Dataset, "privacy_unit", _with("max_rows", value=5)),
    "bound": (Dataset, "columns", _with(1, "upper", value=1_000)),
    "imputed value": (Dataset, "columns", _with(0, "missing", "impute", value=40)),
    "categories": (Dataset, "columns", _with(2, "categories", value=["Male", "Female"])),
    "column's name": (Dataset, "columns", _with(4, "name", value="somebody")),
    "sensitivity": (Dataset, "sensitivity", lambda _: "public"),
    "method": (Job, "plan", _with("method", value="dp-vi")),
    "size": (Job, "plan", _with("size", value=7)),
    "family": (Job, "plan", _with("model", "family", value="probit-regression")),
    "features": (Job, "plan", _with("model", "features", value=["age", "hours"])),
    "prior": (Job, "plan", _with("model", "prior", "scale", value=2.0)),
    "parameters": (Job, "plan", _with("parameters", value={"posterior_draws": 11})),
    "noise": (Job, "plan", _less_noise),
    "mechanism": (Job, "plan", _with("mechanism", "noise_multiplier", value=90.0)),
    "sampling rate": (Job, "plan", _with("mechanism", "sampling_rate", value=0.01)),
    "clipping": (Job, "plan", _with("clipping", value="no unit contributes anything")),
    "grid": (Job, "plan", _with("grid_bits", value=30)),
    "no plan": (Job, "plan", lambda _: {}),
    "no JSON object": (Job, "plan", lambda _: []),
    "warnings": (Job, "plan", _with("warnings", value=["all is well"])),
    "epsilon": (Job, "cost_epsilon", lambda epsilon: epsilon / 2),
    "delta": (Job, "cost_delta", lambda delta: delta / 2),
    "no cost": (Job, "cost_epsilon", lambda _: None),
}
"""Each wrong statement of a certificate, with the table, the column and the change that cause it."""

IN_MID_RUN = {**ALTERATIONS, "content version": (Content, "version", lambda version: version + 1)}
DECLARED = {
    name: (column, change)
    for name, (model, column, change) in ALTERATIONS.items()
    if model is Dataset and column != "sensitivity"  # the dataset's key is bound to its sensitivity
}


def alter(house: House, model: type[Base], column: str, change: Change) -> None:
    """Alter one column of every row of a table with SQL."""
    with house.database.write() as tx:
        for row in tx.scalars(select(model)).all():
            [identity] = inspect(model).primary_key
            values = {column: change(getattr(row, column))}
            assert values[column] != getattr(row, column)
            tx.execute(update(model).where(identity == row.id).values(values))  # type: ignore[attr-defined]


def ends_without_a_release(house: House, job_id: str, dataset_id: str) -> None:
    job = house.read(job_id)
    assert (job.status, job.error_code, job.release_id) == ("failed", "run_failed", None)
    assert releases(house) == []
    assert "frozen" in kinds(house, dataset_id)
    assert freeze_cause(house, dataset_id) == Cause.MISMATCH


def freeze_cause(house: House, dataset_id: str) -> Cause:
    """W11: an administrator may end a freeze only if a run caused it, and never one after tampering."""
    with house.database.read() as session:
        return causes.read_cause(session, locked_account.read_account(session, dataset_id))


@pytest.fixture
def dataset_id(house: House, owner: rows.Key) -> str:
    return house.ready_dataset(owner, **PEOPLE)


@pytest.mark.parametrize(("model", "column", "change"), ALTERATIONS.values(), ids=ALTERATIONS.keys())
def test_job_altered_before_opening_is_refused(
    house: House, owner: rows.Key, dataset_id: str, model: type[Base], column: str, change: Change
) -> None:
    """W11: nothing is opened or charged, the account is frozen, and the job ends."""
    job_id = house.job(dataset_id, owner)
    alter(house, model, column, change)
    house.runner(lambda _: pytest.fail("a table was opened")).run(job_id)
    ends_without_a_release(house, job_id, dataset_id)
    assert house.charge(job_id) == "voided"


@pytest.mark.long
@pytest.mark.parametrize(("model", "column", "change"), IN_MID_RUN.values(), ids=IN_MID_RUN.keys())
def test_job_altered_before_signing_is_not_released(
    house: House, owner: rows.Key, dataset_id: str, model: type[Base], column: str, change: Change
) -> None:
    """W11: no certificate is signed if the job's rows in the database changed during the run; the job stays charged."""
    job_id = house.job(dataset_id, owner)
    altered: list[str] = []

    def alter_once() -> None:
        if not altered:
            alter(house, model, column, change)
            altered.append(column)

    house.runner(acting_tables(alter_once)).run(job_id)
    assert altered == [column]
    ends_without_a_release(house, job_id, dataset_id)
    assert house.charge(job_id) in {"opened", "settled"}


@pytest.mark.parametrize(("column", "change"), DECLARED.values(), ids=DECLARED.keys())
def test_declaration_altered_before_a_job_is_refused(
    house: House, owner: rows.Key, dataset_id: str, column: str, change: Change
) -> None:
    """W11: the account has the digest of the declaration, so no job is admitted on another declaration."""
    alter(house, Dataset, column, change)
    with pytest.raises(StateConflict):
        house.job(dataset_id, owner)
    assert kinds(house, dataset_id) == ["account_opened", "frozen"]


@contextmanager
def _record_openings(opened: list[str], assignment: Assignment) -> Iterator[MemoryRows]:
    opened.append(assignment.run.dataset_id)
    with memory_tables(assignment) as table:
        yield table


@pytest.mark.parametrize("alteration", ["no cost", "another dataset"])
def test_altered_job_reads_no_row(house: House, owner: rows.Key, alteration: str) -> None:
    """W8: without a reservation in the dataset's account no table is opened, and no other account is charged."""
    dataset_id, other_id = house.ready_dataset(owner), house.ready_dataset(owner)
    job_id = house.job(dataset_id, owner)
    changes: dict[str, Any] = {"cost_epsilon": None} if alteration == "no cost" else {"dataset_id": other_id}
    with house.database.write() as tx:
        repository.change(tx, job_id, **changes)
    opened: list[str] = []
    house.runner(partial(_record_openings, opened)).run(job_id)
    assert opened == []
    assert (house.read(job_id).status, house.read(job_id).release_id) == ("failed", None)
    assert kinds(house, other_id) == ["account_opened"]
    assert "frozen" in kinds(house, dataset_id)


@pytest.mark.parametrize("method", ["uniform", "dp-psvi"])
def test_job_of_a_public_table_reads_no_private_row(house: House, owner: rows.Key, method: str) -> None:
    """W8: such a job has no cost and no reservation. Here its dataset is replaced by a private one."""
    public_id, private_id = house.ready_dataset(owner, sensitivity="public"), house.ready_dataset(owner)
    changes: dict[str, Any] = {"privacy": None, "parameters": {}} if method == "uniform" else {}
    job_id = house.job(public_id, owner, method=method, **changes)
    with house.database.write() as tx:
        repository.change(tx, job_id, dataset_id=private_id)
    opened: list[str] = []
    house.runner(partial(_record_openings, opened)).run(job_id)
    assert opened == []
    assert (house.read(job_id).status, house.read(job_id).release_id) == ("failed", None)
    assert kinds(house, private_id) == ["account_opened"]
