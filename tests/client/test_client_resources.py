"""Requests, replies and pages follow the HTTP contract."""

import json
from datetime import UTC, datetime
from typing import Any

import httpx
import pytest
from corevault import (
    ContentRejected,
    LogisticRegression,
    Mechanism,
    Schema,
    UnexpectedReply,
    WaitTimeout,
    WrongType,
    binary,
    categorical,
    integer,
    real,
)

from tests.client.fake import DATASET, TIME, Script, job, ok

SCHEMA = Schema(
    integer("age", 17, 90, impute=38),
    real("hours", 1, 99),
    categorical("sex", ["Female", "Male"]),
    binary("rich", impute=False),
)
MODEL = LogisticRegression(features=("age", "sex"), target="rich", prior_scale=2.0)
LIMIT = {"epsilon": 2, "delta": 1e-6}
BUDGET = {
    "dataset_id": "ds_1",
    "population": "p",
    "accountant": "rdp",
    "relation": "zero_out",
    "unit": "row",
    "slots": 100,
    "limit": LIMIT,
    "spent": LIMIT,
    "reserved": LIMIT,
    "remaining": LIMIT,
    "used_share": 0.21,
    "jobs": {"settled": 3, "reserved": 0, "refused": 1},
    "version": 7,
}


def _body(script: Script, index: int = 0) -> Any:
    return json.loads(script.bodies[index])


def test_a_schema_has_the_json_of_the_contract() -> None:
    assert SCHEMA.to_json() == [
        {"name": "age", "type": "integer", "lower": 17, "upper": 90, "missing": {"impute": 38}},
        {"name": "hours", "type": "real", "lower": 1, "upper": 99},
        {"name": "sex", "type": "categorical", "categories": ["Female", "Male"]},
        {"name": "rich", "type": "binary", "missing": {"impute": False}},
    ]
    assert SCHEMA.names == ["age", "hours", "sex", "rich"]
    with pytest.raises(ValueError, match="twice"):
        Schema(real("a", 0, 1), binary("a"))


def test_a_dataset_is_declared_in_full() -> None:
    script = Script([ok(DATASET, 201)])
    with script.client() as client:
        client.datasets.create(
            "adult", SCHEMA, slots=33_000, epsilon=2.0, delta=1e-6, population="census", shared_with=["key_1"]
        )
    assert _body(script) == {
        "name": "adult",
        "description": "",
        "sensitivity": "private",
        "population": "census",
        "columns": SCHEMA.to_json(),
        "privacy_unit": {"kind": "row"},
        "slots": 33_000,
        "budget": {"epsilon": 2.0, "delta": 1e-6},
        "shared_with": ["key_1"],
        "releases_public": True,
    }


def test_public_data_is_declared_without_a_budget() -> None:
    script = Script([ok(DATASET | {"sensitivity": "public", "budget": None}, 201)])
    with script.client() as client:
        client.datasets.create("adult", SCHEMA, slots=10, sensitivity="public")
    assert "budget" not in _body(script)


def test_unknown_members_of_a_reply_are_kept_in_raw() -> None:
    with Script([ok(DATASET)]).client() as client:
        dataset = client.datasets.get("ds_1")
    assert dataset.raw["invented_later"] == {"a": 1}
    assert dataset.content is not None
    assert dataset.content.version == 1
    assert dataset.created_at == datetime(2026, 11, 20, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    "body",
    [
        [],
        "text",
        {"id": "ds_1"},
        DATASET | {"slots": "many"},
        DATASET | {"slots": True},
        DATASET | {"columns": {}},
        DATASET | {"created_at": "yesterday"},
        DATASET | {"content": 3},
    ],
)
def test_a_reply_outside_the_contract_is_an_error(body: object) -> None:
    with Script([ok(body)]).client() as client, pytest.raises(UnexpectedReply):
        client.datasets.get("ds_1")


def test_an_answer_that_is_not_json_is_an_error() -> None:
    with Script([httpx.Response(200, text="<html>")]).client() as client, pytest.raises(UnexpectedReply):
        client.me()


def test_update_sends_only_what_is_given() -> None:
    script = Script([ok(DATASET)])
    with script.client() as client:
        client.datasets.update("ds_1", shared_with=[], releases_public=False)
    assert (script.seen[0].method, _body(script)) == ("PATCH", {"shared_with": [], "releases_public": False})


def test_the_budget_has_every_figure() -> None:
    with Script([ok(BUDGET)]).client() as client:
        budget = client.datasets.budget("ds_1")
    assert (budget.limit.epsilon, budget.jobs.refused, budget.used_share) == (2.0, 1, 0.21)


def test_a_new_limit_is_sent_and_the_budget_read() -> None:
    script = Script([ok({}), ok(BUDGET)])
    with script.client() as client:
        client.datasets.set_budget("ds_1", epsilon=3.0, delta=1e-7)
    assert (script.seen[0].method, _body(script)) == ("PUT", {"epsilon": 3.0, "delta": 1e-7})
    assert script.seen[1].method == "GET"


def test_unfreeze_sends_its_reason_and_returns_the_budget() -> None:
    script = Script([ok(BUDGET)])
    with script.client() as client:
        budget = client.datasets.unfreeze("ds_1", reason="A fault of the service.")
    assert (script.seen[0].method, script.seen[0].url.path) == ("POST", "/v1/datasets/ds_1/unfreeze")
    assert _body(script) == {"reason": "A fault of the service."}
    assert "Idempotency-Key" in script.seen[0].headers
    assert budget.version == 7


def test_deletion_returns_the_receipt() -> None:
    receipt = {"statement": {}, "signature": "s", "key_id": "k"}
    with Script([ok(receipt)]).client() as client:
        assert client.datasets.delete("ds_1") == receipt


def test_a_wait_for_a_new_content_ignores_the_old_one(naps: list[float]) -> None:
    received = DATASET | {"status": "ready", "content": {"version": 2, "status": "received", "rejection": None}}
    ready = DATASET | {"content": {"version": 2, "status": "ready", "rejection": None}}
    with Script([ok(received), ok(ready)]).client() as client:
        dataset = client.datasets.wait_until_ready("ds_1", poll_seconds=0.5)
    assert dataset.content is not None
    assert (dataset.content.version, naps) == (2, [0.5])


def test_a_rejection_is_raised_with_its_reason() -> None:
    rejected = DATASET | {"content": {"version": 2, "status": "rejected", "rejection": "missing_column"}}
    with Script([ok(rejected)]).client() as client, pytest.raises(ContentRejected) as caught:
        client.datasets.wait_until_ready("ds_1")
    assert (caught.value.reason, caught.value.columns) == ("missing_column", ())


def test_a_rejection_names_its_columns_in_reply_and_error() -> None:
    content = {"version": 2, "status": "rejected", "rejection": "wrong_type"}
    rejection = {"code": "wrong_type", "columns": ["born", "seen"]}
    with Script([ok(DATASET | {"content": content, "rejection": rejection})]).client() as client:
        dataset = client.datasets.get("ds_1")
        with pytest.raises(ContentRejected) as caught:
            client.datasets.wait_until_ready("ds_1")
    assert dataset.rejection is not None
    assert dataset.rejection.columns == ("born", "seen")
    assert "columns=('born', 'seen')" in repr(dataset)
    assert caught.value.columns == ("born", "seen")
    assert "wrong_type" in str(caught.value)
    assert "columns: born, seen" in str(caught.value)


def test_a_dataset_without_a_rejection_has_none() -> None:
    with Script([ok(DATASET)]).client() as client:
        assert client.datasets.get("ds_1").rejection is None


def test_a_wait_for_a_content_ends_after_its_timeout(naps: list[float]) -> None:
    waiting = DATASET | {"status": "received", "content": None}
    with Script([ok(waiting)]).client() as client, pytest.raises(WaitTimeout):
        client.datasets.wait_until_ready("ds_1", timeout_seconds=-1.0)


def test_a_job_states_its_purpose_and_leaves_its_size_to_the_server() -> None:
    shown = {"purpose": "Table 2", "dataset_name": "census", "submitted_by": {"id": "key_1", "name": "Ana"}}
    script = Script([ok(job("queued") | shown, 202)])
    with script.client() as client:
        found = client.jobs.submit("ds_1", MODEL, epsilon=0.5, purpose="Table 2")
        with pytest.raises(WrongType, match="purpose must be text"):
            client.jobs.submit("ds_1", MODEL, epsilon=0.5, purpose=2)  # type: ignore[arg-type]
    assert _body(script)["purpose"] == "Table 2"
    assert "size" not in _body(script)
    assert (found.purpose, found.dataset_name, str(found.submitted_by)) == ("Table 2", "census", "Ana")


def test_a_quote_states_why_a_job_is_not_affordable() -> None:
    quote = {"affordable": False, "reason": "cap", "size": {"requested": 20, "smallest_exact": 9}}
    with Script([ok(quote)]).client() as client:
        found = client.quote("ds_1", MODEL, epsilon=0.5)
    assert found.size is not None
    assert (found.affordable, found.reason, found.size.requested) == (False, "cap", 20)


def test_a_quote_and_a_job_send_the_same_body() -> None:
    quote = {"cost": {"epsilon": 0.5, "delta": 1e-6}, "affordable": True, "size": {"requested": 9, "smallest_exact": 3}}
    script = Script([ok(quote), ok(job("queued"), 202)])
    with script.client() as client:
        answer = client.quote("ds_1", MODEL, size=9, epsilon=0.5, parameters={"iterations": 10})
        client.jobs.submit("ds_1", MODEL, size=9, epsilon=0.5, parameters={"iterations": 10})
    assert answer.size is not None
    assert (answer.affordable, answer.size.smallest_exact) == (True, 3)
    assert _body(script, 0) == _body(script, 1)
    assert _body(script) == {
        "dataset_id": "ds_1",
        "method": "dp-psvi-surrogate",
        "size": 9,
        "model": {
            "family": "logistic-regression",
            "features": ["age", "sex"],
            "target": "rich",
            "prior": {"scale": 2.0},
        },
        "privacy": {"epsilon": 0.5},
        "parameters": {"iterations": 10},
    }


def test_a_mechanism_replaces_the_target() -> None:
    script = Script([ok(job("queued"), 202)])
    mechanism = Mechanism(noise_multiplier=5.0, sampling_rate=0.02, iterations=500)
    with script.client() as client:
        client.jobs.submit("ds_1", MODEL, size=9, mechanism=mechanism)
        with pytest.raises(ValueError, match="not both"):
            client.jobs.submit("ds_1", MODEL, size=9, mechanism=mechanism, epsilon=1.0)
    assert _body(script)["privacy"] == {"noise_multiplier": 5.0, "sampling_rate": 0.02, "iterations": 500}


def test_iterating_over_a_page_continues_through_later_pages() -> None:
    script = Script(
        [
            ok({"items": [job("queued", id="job_3"), job("queued", id="job_2")], "next_cursor": "c1"}),
            ok({"items": [job("queued", id="job_1")], "next_cursor": None}),
        ]
    )
    with script.client() as client:
        page = client.jobs.list(dataset_id="ds_1", limit=2)
        assert [item.id for item in page.items] == ["job_3", "job_2"]
        assert [item.id for item in page] == ["job_3", "job_2", "job_1"]
    assert dict(script.seen[0].url.params) == {"dataset_id": "ds_1", "limit": "2"}
    assert dict(script.seen[1].url.params) == {"dataset_id": "ds_1", "limit": "2", "cursor": "c1"}


def test_a_malformed_list_is_an_error() -> None:
    with Script([ok([])]).client() as client, pytest.raises(UnexpectedReply):
        client.jobs.list()


def test_ledger_and_keys_are_lists() -> None:
    entry = {"sequence": 1, "at": TIME, "kind": "reserved", "job_id": "job_1", "event": [{"kind": "gaussian"}]}
    chained = entry | {"epsilon_after": 0.5, "entry_hash": "a", "previous_hash": "b"}
    key = {"id": "key_1", "name": "ana", "role": "analyst", "created_at": TIME}
    with Script([ok({"items": [chained], "next_cursor": None})]).client() as client:
        assert next(iter(client.datasets.ledger("ds_1"))).epsilon_after == 0.5
    with Script([ok({"items": [key], "next_cursor": None})]).client() as client:
        assert next(iter(client.keys.list())).key is None


def test_a_new_key_has_a_secret_that_its_repr_omits() -> None:
    script = Script([ok({"id": "key_1", "name": "ana", "role": "analyst", "key": "cv_new"}, 201)])
    with script.client() as client:
        created = client.keys.create("ana", "analyst", expires_at=datetime(2027, 1, 1, tzinfo=UTC))
    assert created.key == "cv_new"
    assert "cv_new" not in repr(created)
    assert _body(script) == {"name": "ana", "role": "analyst", "expires_at": "2027-01-01T00:00:00+00:00"}


@pytest.mark.parametrize("code", [204, 200])
def test_a_revocation_may_have_no_body(code: int) -> None:
    script = Script([httpx.Response(code)])
    with script.client() as client:
        client.keys.revoke("key_1")
    assert (script.seen[0].method, script.seen[0].url.path) == ("DELETE", "/v1/api-keys/key_1")


def test_the_catalogue_marks_private_and_default_methods() -> None:
    method = {"id": "dp-psvi", "may_run_on_private_data": True, "parameters": {"type": "object"}, "description": "…"}
    usual = method | {"id": "dp-psvi-surrogate", "default": True}
    with Script([ok({"methods": [usual, method], "models": [{"family": "logistic-regression"}]})]).client() as client:
        catalogue = client.methods()
    private = [(entry.id, entry.may_run_on_private_data, entry.default) for entry in catalogue.methods]
    assert private == [("dp-psvi-surrogate", True, True), ("dp-psvi", True, False)]
    assert [entry.family for entry in catalogue.models] == ["logistic-regression"]


@pytest.mark.parametrize("stray", ["ds_/../../api-keys", "ds_1/../ds_2", "ds_1?limit=1", "ds_1#"])
def test_an_id_never_leads_to_another_address(stray: str) -> None:
    script = Script([ok(DATASET)])
    with script.client() as client:
        client.datasets.get(stray)
    raw = script.seen[0].url.raw_path.decode()
    assert raw.startswith("/v1/datasets/")
    assert raw.count("/") == 3
    assert "?" not in raw


@pytest.mark.parametrize("nothing", ["", ".", ".."])
def test_an_empty_id_is_refused_without_a_request(nothing: str) -> None:
    script = Script([ok(DATASET)])
    with script.client() as client, pytest.raises(ValueError, match="id"):
        client.datasets.delete(nothing)
    assert script.seen == []


def test_a_single_feature_name_is_refused() -> None:
    with pytest.raises(TypeError, match="list"):
        LogisticRegression(features="age", target="rich")  # type: ignore[arg-type]


def test_an_empty_idempotency_key_is_refused() -> None:
    script = Script([ok(job("queued"))])
    with script.client() as client, pytest.raises(ValueError, match="idempotency_key"):
        client.jobs.submit("ds_1", MODEL, size=5, epsilon=0.5, idempotency_key="")
    assert script.seen == []


def test_the_line_break_of_a_key_file_is_ignored() -> None:
    script = Script([ok(DATASET)])
    with script.client(api_key="cv_secret\n") as client:
        client.datasets.get("ds_1")
    assert script.seen[0].headers["Authorization"] == "Bearer cv_secret"


@pytest.mark.parametrize("key", ["", "cv_a\ncv_b", "cv_a cv_b", "cv_\N{SNOWMAN}"])
def test_a_malformed_key_is_refused_without_quoting_it(key: str) -> None:
    with pytest.raises(ValueError, match="api_key") as caught:
        Script([ok(DATASET)]).client(api_key=key)
    assert "cv_" not in str(caught.value)


def test_warnings_of_a_declaration_name_the_column_and_the_line() -> None:
    warnings = [
        {"code": "reserved_column", "pointer": "/columns/0/name", "message": "Rename it."},
        {"code": "weak_guarantee", "pointer": "/budget/epsilon", "message": "Use a lower limit."},
    ]
    script = Script([ok(DATASET | {"warnings": warnings}, 201)])
    with script.client() as client, pytest.warns(UserWarning, match="Rename it|Use a lower") as seen:
        client.datasets.create("visits", Schema(binary("weight")), slots=10, epsilon=9.0)
    assert [str(each.message) for each in seen] == ["weight: Rename it.", "epsilon: Use a lower limit."]
    assert {each.filename for each in seen} == {__file__}


def test_misfits_of_a_table_are_warnings_of_its_upload() -> None:
    script = Script([ok(DATASET), ok(DATASET, 202)])
    table = {"age": [5.0] * 99 + ["x"]}
    with script.client() as client, pytest.warns(UserWarning, match="age: 1 cell is no number") as seen:
        client.datasets.upload("ds_1", table)
    assert {each.filename for each in seen} == {__file__}
