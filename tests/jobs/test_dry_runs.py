"""W15: a request that fails in every run is refused before it has a price; others end with a release."""

from typing import Any

import pytest

from app.inference import dry_run, registry
from app.jobs import service
from app.jobs.dry_runs import IMPOSSIBLE, DryRuns
from tests.factories import rows
from tests.factories.declared_rows import declared_tables
from tests.factories.worker import House, job_body
from tests.jobs.support import budget
from tests.workers.support import kinds

COLUMNS: list[dict[str, Any]] = [
    {"name": "site", "type": "categorical", "categories": ["only"]},
    {"name": "sick", "type": "binary"},
    {"name": "person", "type": "integer", "lower": 0, "upper": 1000},
]
UNITS: list[dict[str, Any]] = [{"kind": "row"}, {"kind": "column", "column": "person", "max_rows": 3}]
MODEL = {"family": "logistic-regression", "features": ["site"], "target": "sick"}


@pytest.fixture
def no_results(monkeypatch: pytest.MonkeyPatch) -> None:
    """Start with an empty cache of dry runs."""
    monkeypatch.setattr(service, "_DRY_RUNS", DryRuns())


@pytest.fixture
def impossible(no_results: None, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise ZeroDivisionError("a library's words")

    monkeypatch.setattr(dry_run, "carry_out", fail)


@pytest.mark.long
@pytest.mark.parametrize("unit", UNITS, ids=["row", "people"])
@pytest.mark.parametrize("method", [each.id for each in registry.list_methods() if each.private])
def test_features_of_one_category_end_with_a_release(
    house: House, owner: rows.Key, method: str, unit: dict[str, Any]
) -> None:
    """W15: no job is charged without a release, and no account is frozen."""
    dataset_id = house.ready_dataset(owner, columns=COLUMNS, privacy_unit=unit)
    privacy, parameters = {"epsilon": 1.0}, {} if method in {registry.DEFAULT, "dp-groups"} else {"iterations": 4}
    job_id = house.job(dataset_id, owner, method=method, model=MODEL, privacy=privacy, parameters=parameters)
    house.runner(declared_tables()).run(job_id)
    assert (house.read(job_id).status, house.charge(job_id)) == ("succeeded", "settled")
    assert "frozen" not in kinds(house, dataset_id)


@pytest.mark.parametrize("path", ["/v1/quotes", "/v1/jobs"])
def test_impossible_request_is_refused_without_a_charge(
    house: House, dataset_id: str, analyst: rows.Key, impossible: None, path: str
) -> None:
    """W15: this holds for quotes and jobs; the library's message is not forwarded."""
    before = budget(house, dataset_id)
    with house.client() as client:
        answer = client.post(path, json=job_body(dataset_id), headers=analyst.headers)
    assert (answer.status_code, answer.json()["code"]) == (422, "invalid_request")
    assert answer.json()["errors"] == [{"pointer": "/model", "message": IMPOSSIBLE}]
    assert budget(house, dataset_id) == before


def test_worker_that_cannot_dry_run_a_plan_charges_nothing(
    house: House, dataset_id: str, analyst: rows.Key, monkeypatch: pytest.MonkeyPatch
) -> None:
    """W15: for example a model too large for a dry run at its quote, or a plan of another version."""
    job_id = house.job(dataset_id, analyst)

    def fail(*_: object, **__: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(dry_run, "carry_out", fail)
    house.run(job_id)
    assert (house.read(job_id).error_code, house.charge(job_id)) == ("run_failed", "voided")
    assert kinds(house, dataset_id) == ["account_opened", "reserved", "voided"]


def test_repeated_request_is_dry_run_once(
    house: House, dataset_id: str, analyst: rows.Key, no_results: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried: list[str] = []
    monkeypatch.setattr(dry_run, "carry_out", lambda plan, _, **__: tried.append(plan.method))
    with house.client() as client:
        for epsilon in (0.3, 0.5):
            body = job_body(dataset_id, privacy={"epsilon": epsilon})
            assert client.post("/v1/quotes", json=body, headers=analyst.headers).status_code == 200
        assert client.post("/v1/jobs", json=body, headers=analyst.headers).status_code == 202
    assert tried == ["dp-psvi"]


def test_large_model_is_dry_run_only_by_the_worker(
    house: House, dataset_id: str, analyst: rows.Key, impossible: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dry_run, "LARGE", 1)
    with house.client() as client:
        answer = client.post("/v1/quotes", json=job_body(dataset_id), headers=analyst.headers)
    assert answer.status_code == 200
