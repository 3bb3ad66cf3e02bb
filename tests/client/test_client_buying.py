"""Several quotes as one table, and a purchase in one call."""

import json
import sys
from typing import Any

import pytest
from corevault import (
    BudgetExceeded,
    Internal,
    InvalidArgument,
    JobFailed,
    LogisticRegression,
    UnexpectedReply,
    WrongType,
)
from corevault._show import Table

from tests.client.fake import Published, Script, job, ok, problem
from tests.client.test_client_commands import QUOTE

MODEL = LogisticRegression(features=["age", "sex"], target="seen")


def test_quotes_are_a_table_by_epsilon(monkeypatch: pytest.MonkeyPatch) -> None:
    refused = QUOTE | {"affordable": False, "reason": "limit", "more_like_this": 0}
    script = Script([ok({"quotes": [QUOTE, refused]}), ok({"quotes": [QUOTE]})])
    with script.client() as client:
        frame = client.quotes("ds_1", MODEL, size=50, epsilons=[0.5, 9.0])
        monkeypatch.setitem(sys.modules, "pandas", None)
        plain = client.quotes("ds_1", MODEL, size=50, epsilons=(0.5,))
    assert frame["affordable"].tolist() == [True, False]
    assert frame.index.tolist() == [0.5, 9.0]
    assert isinstance(plain, Table)
    assert frame["reason"].tolist()[1] == "limit"
    assert [json.loads(body)["privacy"] for body in script.bodies] == [{"epsilon": [0.5, 9.0]}, {"epsilon": [0.5]}]


def test_a_list_as_the_epsilon_of_one_quote_names_quotes() -> None:
    script = Script([])
    with script.client() as client, pytest.raises(WrongType, match=r"call client\.quotes\(epsilons="):
        client.quote("ds_1", MODEL, epsilon=[0.1, 0.2])  # type: ignore[arg-type]  # the mistake
    assert not script.seen


def test_an_empty_list_of_epsilons_is_called_empty() -> None:
    script = Script([])
    with script.client() as client, pytest.raises(InvalidArgument, match="epsilons is empty; pass at least one"):
        client.quotes("ds_1", MODEL, epsilons=[])
    assert not script.seen


def test_fewer_quotes_than_epsilons_are_unexpected() -> None:
    with Script([ok({"quotes": [QUOTE]})]).client() as client, pytest.raises(UnexpectedReply):
        client.quotes("ds_1", MODEL, epsilons=[0.1, 0.2])


def test_many_epsilons_are_asked_in_parts() -> None:
    script = Script([ok({"quotes": [QUOTE] * 20}), ok({"quotes": [QUOTE]})])
    epsilons = [0.1 * number for number in range(1, 22)]
    with script.client() as client:
        rows = client.quote_rows("ds_1", MODEL, epsilons=epsilons)
    assert [row["epsilon"] for row in rows] == epsilons
    assert [len(json.loads(body)["privacy"]["epsilon"]) for body in script.bodies] == [20, 1]


@pytest.mark.parametrize("wrong", [0.5, "0.5", ["a"]])
def test_epsilons_must_be_numbers(wrong: Any) -> None:
    script = Script([ok(QUOTE)])
    with script.client() as client, pytest.raises(InvalidArgument, match="epsilons"):
        client.quotes("ds_1", MODEL, size=50, epsilons=wrong)
    assert script.seen == []


def test_buy_returns_the_verified_points() -> None:
    script = Script([ok(job("queued"), 202), ok(job("succeeded", release_id="rel_1")), *[Published()] * 1])
    with script.client() as client:
        core = client.buy("ds_1", MODEL, size=50, epsilon=0.5, idempotency_key="once", progress=False)
    assert core.release.id == "rel_1"
    assert script.seen[0].headers["Idempotency-Key"] == "once"


def test_buy_stops_before_or_after_the_job() -> None:
    with Script([problem(409, "budget_exceeded")]).client() as client, pytest.raises(BudgetExceeded):
        client.buy("ds_1", MODEL, size=50, epsilon=0.5, progress=False)
    failed = Script([ok(job("queued"), 202), ok(job("failed", error={"code": "run_failed"}))])
    with failed.client() as client, pytest.raises(JobFailed):
        client.buy("ds_1", MODEL, size=50, epsilon=0.5, progress=False)
    unsent = Script([ok({})])
    with unsent.client() as client, pytest.raises(InvalidArgument):
        client.buy("ds_1", MODEL, size=50, epsilon=0.5, pinned_keys=[], progress=False)
    assert unsent.seen == []


def test_errors_after_a_purchase_name_its_job_and_release() -> None:
    ended = ok(job("succeeded", release_id="rel_1"))
    lost = Script([ok(job("queued"), 202), ended, problem(500, "internal")])
    with lost.client() as client, pytest.raises(Internal) as caught:
        client.buy("ds_1", MODEL, size=50, epsilon=0.5, progress=False)
    (note,) = caught.value.__notes__
    assert note.startswith("Job job_1 bought release rel_1. Do not buy it again:")
    assert "client.releases.download('rel_1')" in note
    unheard = Script([ok(job("queued"), 202), problem(500, "internal")])
    with unheard.client() as client, pytest.raises(Internal) as caught:
        client.buy("ds_1", MODEL, size=50, epsilon=0.5, progress=False)
    assert caught.value.__notes__ == [
        "Job job_1 was submitted. Do not buy it again: client.jobs.wait('job_1') waits for it."
    ]
    failed = Script([ok(job("queued"), 202), ok(job("failed", error={"code": "run_failed"}))])
    with failed.client() as client, pytest.raises(JobFailed) as ended_badly:
        client.buy("ds_1", MODEL, size=50, epsilon=0.5, progress=False)
    assert not hasattr(ended_badly.value, "__notes__")
