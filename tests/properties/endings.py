"""How random requests end: the check of W15 for one :class:`~tests.properties.requests.Case`."""

import shutil
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import note
from pydantic import ValidationError

from app.auth.caller import Caller
from app.datasets import declaration
from app.datasets.facts import digest_facts
from app.datasets.schemas import DatasetBody
from app.datasets.service import compute_default_delta
from app.db import Database, make_engine
from app.errors import BudgetExceeded, CorevaultError, InvalidRequest
from app.inference.fitting import fit
from app.jobs import service
from app.jobs.dry_runs import IMPOSSIBLE
from app.jobs.schemas import JobBody
from tests.factories import rows
from tests.factories.declared_rows import declared_tables
from tests.factories.worker import House, make_house
from tests.jobs.support import budget
from tests.jobs.test_lifecycle_machine import migrated
from tests.properties.requests import Case
from tests.workers.support import kinds
from workers.run_task import Pace

ACCEPTED, RELEASED, FROZEN, CHARGED = "accepted", "released", "frozen", "charged without a release"
SLOTS = 1_000_000
_UNHURRIED = Pace(lease_seconds=3600.0, heartbeat_seconds=60.0)
"""A busy machine may keep a worker from its default lease. The job would then wait for another worker."""


@contextmanager
def random_house() -> Iterator[tuple[House, rows.Key]]:
    """Make a house for many cases; yield it with an owner for their datasets.

    Descents take few steps, so that a case is quick; their number has no effect on how it ends.
    """
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patched:
        for name in ("_BUDGET", "_LARGE_BUDGET"):
            patched.setattr(fit, name, 0)
        shutil.copy(migrated(), folder)
        database = Database(make_engine(f"sqlite:///{folder}/corevault.sqlite3"))
        house = make_house(database, Path(folder))
        with database.write() as tx:
            owner = rows.api_key(tx, "owner")
        yield house, owner
        database.dispose()


def check_ending(house: House, owner: rows.Key, case: Case, tally: Counter[str]) -> str:
    """Submit a request and run its job: an accepted one ends with a release, a refused one changes no account.

    Counts in ``tally`` requests that are :data:`ACCEPTED`, :data:`RELEASED`, :data:`FROZEN` and :data:`CHARGED`, before
    it asserts.

    Returns:
        The result, in a few words.
    """
    dataset_id = _declare(house, owner, case)
    if dataset_id is None:
        return "declaration refused"
    before, who = budget(house, dataset_id), Caller(owner.id, "owner", "a key")
    try:
        body = JobBody.model_validate({**case.request, "dataset_id": dataset_id})
    except ValidationError:  # as the API does, before it looks at any account
        return "refused: the body"
    try:
        with house.database.write() as tx:
            job_id = service.submit(tx, house.ledger, house.lifecycle, who, body).job.id
    except (InvalidRequest, BudgetExceeded) as error:
        refusal = error
    else:
        tally[ACCEPTED] += 1
        note(house.read(job_id).plan)
        tables = declared_tables(share=case.share, extreme=case.extreme, state=case.state)
        house.runner(tables, _UNHURRIED).run(job_id)
        _check_release(house, dataset_id, job_id, tally)
        return f"accepted: {body.method}"
    tally[FROZEN] += "frozen" in kinds(house, dataset_id)
    tally[CHARGED] += budget(house, dataset_id) != before
    assert refusal.detail != IMPOSSIBLE, "every design here is possible"
    assert budget(house, dataset_id) == before
    return f"refused: {refusal.code}"


def _check_release(house: House, dataset_id: str, job_id: str, tally: Counter[str]) -> None:
    job, charge, entries = house.read(job_id), house.charge(job_id), kinds(house, dataset_id)
    released = job.status == "succeeded"
    tally[RELEASED] += released
    tally[FROZEN] += "frozen" in entries
    tally[CHARGED] += not released and "opened" in entries
    assert (job.status, job.error_code, charge) == ("succeeded", None, "settled")
    assert entries == ["account_opened", "reserved", "opened", "settled"]


def _declare(house: House, owner: rows.Key, case: Case) -> str | None:
    """Declare a dataset with a ready content; return its id, or None if the declaration is refused."""
    body = DatasetBody.model_validate(case.declaration)
    try:
        declaration.check(body, SLOTS)
    except CorevaultError:
        return None
    assert body.budget is not None
    with house.database.write() as tx:
        columns = [column.model_dump(exclude_none=True) for column in body.columns]
        unit = body.privacy_unit.model_dump()
        dataset = rows.dataset(tx, owner.id, columns=columns, privacy_unit=unit, slots=body.slots)
        house.areas.keys.keep(dataset.id, b"sealed")
        rows.content(tx, dataset.id, table_object="0" * 32, wrapped_key=b"wrapped")
        house.ledger.open_account(
            tx,
            owner_id=owner.id,
            population=dataset.population,
            dataset_id=dataset.id,
            unit=unit,
            slots=body.slots,
            facts=digest_facts(dataset),
            epsilon=body.budget.epsilon,
            delta=compute_default_delta(body.slots),
        )
        return dataset.id
