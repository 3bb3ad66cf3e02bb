"""Refusals by a budget state which one it was: the account's limit, the dataset's cap or the caller's allocation."""

import httpx
import pytest
import sqlalchemy as sa
from sqlalchemy.exc import DBAPIError

from app.audit import chain, journal
from app.context import RequestContext
from app.db import now
from tests.audit.test_audit_log import _log
from tests.factories import rows
from tests.factories.datasets import problem
from tests.factories.tampering import drop_triggers, table
from tests.factories.worker import House, job_body


@pytest.fixture
def three_obstacles(house: House, api: httpx.Client, owner: rows.Key, analyst: rows.Key) -> tuple[str, str]:
    """Two datasets with jobs refused by an allocation, a cap and the limit."""
    first, second = (house.ready_dataset(owner, population="people", shared_with=(analyst.id,)) for _ in range(2))
    with house.database.write() as tx:
        house.ledger.change_limit(tx, first, 5.0, 1e-7)
    body = {"allocations": [{"key_id": analyst.id, "epsilon": 0.1}]}
    assert api.patch(f"/v1/datasets/{first}", headers=owner.headers, json=body).status_code == 200
    for dataset, key, epsilon, reason in (
        (first, analyst, 1.0, "allocation"),
        (second, owner, 2.5, "cap"),
        (first, owner, 15.0, "limit"),
    ):
        answer = api.post("/v1/jobs", headers=key.headers, json=job_body(dataset, privacy={"epsilon": epsilon}))
        assert problem(answer, 409, "budget_exceeded")["reason"] == reason
    return first, second


def test_a_refused_job_states_which_budget_did_not_cover_it(
    api: httpx.Client, three_obstacles: tuple[str, str], owner: rows.Key, analyst: rows.Key, auditor: rows.Key
) -> None:
    """W3: the word follows from budgets. Each obstacle is a separate item, as in the refusal itself."""
    logged = sorted(each["obstacle"] for each in _log(api, auditor, outcome="refused"))
    assert logged == ["allocation", "cap", "limit"]
    first, second = three_obstacles
    expected = {(first, owner.id, "limit"), (second, owner.id, "cap"), (first, analyst.id, "allocation")}
    for key in (owner, auditor):
        items = api.get(f"/v1/datasets/{first}/refusals", headers=key.headers).json()["items"]
        assert {(each["dataset_id"], each["submitted_by"]["id"], each["reason"]) for each in items} == expected
        assert len(items) == 3
    problem(api.get(f"/v1/datasets/{first}/refusals", headers=analyst.headers), 403, "forbidden")


def test_other_refusals_and_older_entries_have_no_obstacle(
    house: House, api: httpx.Client, owner: rows.Key, auditor: rows.Key
) -> None:
    dataset = house.ready_dataset(owner)
    api.get("/v1/datasets/ds_none", headers=owner.headers)
    assert [each["obstacle"] for each in _log(api, auditor)] == [None]
    with house.database.write() as tx:
        older = RequestContext("req_1", "POST", "/v1/jobs", actor=owner.id, target=dataset)
        journal.add(tx, older, status=409, code="budget_exceeded", target=dataset, count=1, at=now())
    (item,) = api.get(f"/v1/datasets/{dataset}/refusals", headers=owner.headers).json()["items"]
    assert item["reason"] is None


def test_the_chain_covers_the_obstacle(
    house: House, api: httpx.Client, three_obstacles: tuple[str, str], auditor: rows.Key
) -> None:
    _log(api, auditor)
    ring = house.services.signer.ring
    with house.database.read() as session:
        assert list(chain.find_faults(session, ring)) == []
    changed = sa.update(table("audit_entries")).where(table("audit_entries").c.obstacle == "cap")
    with pytest.raises(DBAPIError), house.database.write() as tx:
        tx.execute(changed.values(obstacle="limit"))
    with house.database.write() as tx:
        drop_triggers(tx)
        tx.execute(changed.values(obstacle="limit"))
    with house.database.read() as session:
        assert any("altered" in fault for fault in list(chain.find_faults(session, ring)))
