"""W15: every accepted request ends with a release, and a refused one neither charges nor freezes."""

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, event, given, note, settings

from app.auth.caller import Caller
from app.datasets import declaration
from app.datasets.facts import digest_facts
from app.datasets.schemas import DatasetBody
from app.datasets.service import default_delta
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
from tests.properties.requests import Case, cases
from tests.workers.support import kinds

pytestmark = [pytest.mark.sqlite, pytest.mark.slow]

EXAMPLES = int(os.environ.get("EXAMPLES", "40"))
SLOTS = 1_000_000


@pytest.fixture(scope="module")
def house() -> Iterator[House]:
    """One house for all examples, each of which makes a dataset and an account.

    Descents take few steps, so that an example is quick; their number has no effect on the test.
    """
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patched:
        for name in ("_BUDGET", "_BUDGET_WITHIN_BOUNDS"):
            patched.setattr(fit, name, 0)
        shutil.copy(migrated(), folder)
        database = Database(make_engine(f"sqlite:///{folder}/corevault.sqlite3"))
        yield make_house(database, Path(folder))
        database.dispose()


@pytest.fixture(scope="module")
def owner(house: House) -> rows.Key:
    with house.database.write() as tx:
        return rows.api_key(tx, "owner")


@pytest.mark.timeout(0)
@given(case=cases())
@settings(
    max_examples=EXAMPLES,
    deadline=None,
    database=None,
    phases=[Phase.generate, Phase.shrink] if EXAMPLES < 1000 else [Phase.generate],
    suppress_health_check=list(HealthCheck),
)
def test_accepted_request_ends_with_a_release(house: House, owner: rows.Key, case: Case) -> None:
    """W15: for random declarations and requests, degenerate ones included."""
    dataset_id = _declare(house, owner, case)
    if dataset_id is None:
        event("declaration refused")
        return
    before = budget(house, dataset_id)
    who, body = Caller(owner.id, "owner", "a key"), JobBody.model_validate({**case.request, "dataset_id": dataset_id})
    try:
        with house.database.write() as tx:
            job_id = service.submit(tx, house.ledger, house.lifecycle, who, body).id
    except (InvalidRequest, BudgetExceeded) as refusal:
        event(f"refused: {refusal.code}")
        refused: str | None = refusal.detail
    else:
        refused = None
    if refused is not None:
        assert refused != IMPOSSIBLE, "every design here is possible"
        assert budget(house, dataset_id) == before
        return
    event(f"accepted: {body.method}")
    note(house.read(job_id).plan)
    house.runner(declared_tables(share=case.share, extreme=case.extreme, state=case.state)).run(job_id)
    job = house.read(job_id)
    assert (job.status, house.charge(job_id)) == ("succeeded", "settled")
    assert kinds(house, dataset_id) == ["account_opened", "reserved", "opened", "settled"]


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
            delta=default_delta(body.slots),
        )
        return dataset.id
