"""``/v1/datasets/{id}/what-if``, and the verification of a ledger."""

from collections.abc import Mapping
from typing import Any

import httpx
import pytest
import sqlalchemy as sa

from app.budgets import service
from tests.factories import rows
from tests.factories.datasets import everything, problem
from tests.factories.tampering import drop_triggers, table
from tests.factories.worker import House


@pytest.fixture
def dataset(house: House, owner: rows.Key, analyst: rows.Key) -> str:
    dataset = house.ready_dataset(owner, shared_with=(analyst.id,))
    house.run(house.job(dataset, owner))
    return dataset


def _ask(api: httpx.Client, key: rows.Key, dataset: str, kind: str, **body: Any) -> httpx.Response:
    return api.post(f"/v1/datasets/{dataset}/what-if/{kind}", json=body, headers=key.headers)


def test_a_job_has_the_price_and_the_room_of_the_ledger(
    house: House, api: httpx.Client, analyst: rows.Key, dataset: str
) -> None:
    found = _ask(api, analyst, dataset, "job", epsilon=0.5).json()
    with house.database.read() as session:
        budget = house.ledger.budget(session, dataset)
    assert found["cost"]["epsilon"] == pytest.approx(0.5, rel=1e-3)
    assert (found["affordable"], found["reason"]) == (True, None)
    assert found["epsilon_before"] == budget.spent.epsilon < found["epsilon_after"] < budget.spent.epsilon + 0.5
    assert found["risk_before"]["odds"] < found["risk_after"]["odds"]
    dear = _ask(api, analyst, dataset, "job", epsilon=2.5).json()
    assert (dear["affordable"], dear["reason"], dear["more_like_this"]) == (False, "limit", 0)


@pytest.mark.parametrize(
    ("kind", "body"),
    [("job", {"epsilon": 0.5}), ("limit", {"epsilon": 3.0, "delta": 1e-7}), ("limit", {"epsilon": 1.0})],
)
def test_a_question_changes_nothing(
    house: House, api: httpx.Client, owner: rows.Key, dataset: str, kind: str, body: Mapping[str, Any]
) -> None:
    before = everything(house.database, house.areas)
    assert _ask(api, owner, dataset, kind, **body).status_code == 200
    assert everything(house.database, house.areas) == before


def test_the_consequence_of_a_limit_is_what_then_happens(api: httpx.Client, owner: rows.Key, dataset: str) -> None:
    body = {"epsilon": 3.0, "delta": 1e-7}
    found, place = _ask(api, owner, dataset, "limit", **body).json(), f"/v1/datasets/{dataset}/budget"
    now = api.get(place, headers=owner.headers).json()
    then = api.put(place, json=body, headers=owner.headers).json()
    for name in ("limit", "spent", "reserved", "remaining"):
        assert (found["before"][name], found["after"][name]) == (now[name], then[name])
    assert found["after"]["more_like_last"] > found["before"]["more_like_last"] > 0
    assert found["after"]["risk"]["epsilon"] > found["before"]["risk"]["epsilon"]


def test_an_allocation_is_compared_for_its_key(
    api: httpx.Client, owner: rows.Key, analyst: rows.Key, dataset: str
) -> None:
    found = _ask(api, owner, dataset, "allocation", key_id=analyst.id, epsilon=0.7).json()
    assert found["before"]["allocation"] is None
    assert found["after"]["allocation"]["limit"]["epsilon"] == 0.7
    listed = {"allocations": [{"key_id": analyst.id, "epsilon": 0.7}]}
    assert api.patch(f"/v1/datasets/{dataset}", json=listed, headers=owner.headers).status_code == 200
    then = api.get(f"/v1/datasets/{dataset}/budget", headers=analyst.headers).json()
    assert found["after"]["remaining"] == then["remaining"]
    ended = _ask(api, owner, dataset, "allocation", key_id=analyst.id).json()
    assert ended["before"] == found["after"]
    assert ended["after"]["allocation"] is None
    problem(_ask(api, owner, dataset, "allocation", key_id="key_none", epsilon=0.7), 422, "invalid_request")


def test_a_verification_finds_an_altered_entry(house: House, api: httpx.Client, owner: rows.Key, dataset: str) -> None:
    place = f"/v1/datasets/{dataset}/ledger"
    found = api.get(f"{place}/verification", headers=owner.headers).json()
    newest = api.get(place, headers=owner.headers).json()["items"][0]
    assert found == {"verifies": True, "newest": newest}
    chain = api.get(f"{place}/chain", headers=owner.headers).json()
    assert chain["entries"][-1]["entry_hash"] == chain["head"]["end"]["entry_hash"] == newest["entry_hash"]
    rest = api.get(f"{place}/chain", params={"after": 1}, headers=owner.headers).json()
    assert rest["entries"] == chain["entries"][1:]
    with house.database.write() as tx:
        drop_triggers(tx)
        tx.execute(sa.update(table("ledger_entries")).where(sa.text("sequence = 3")).values(epsilon_after=0.001))
    assert api.get(f"{place}/verification", headers=owner.headers).json()["verifies"] is False


def test_the_api_verifies_one_chain_at_a_time(api: httpx.Client, owner: rows.Key, dataset: str) -> None:
    with service.VERIFYING:
        answer = api.get(f"/v1/datasets/{dataset}/ledger/verification", headers=owner.headers)
    problem(answer, 429, "rate_limited")
