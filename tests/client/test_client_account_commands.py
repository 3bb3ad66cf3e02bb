"""Commands about budgets, ledgers and the audit log."""

import json
from typing import Any

import pytest
from corevault.cli.main import main
from pydantic import BaseModel
from structlog.testing import capture_logs

from app.budgets.what_if_schemas import ComparisonView, JobOutlookView
from tests.client.fake import Start, make_page, ok, problem
from tests.factories import rows
from tests.factories.chains import Part, make_account
from tests.factories.worker import House

AUDIT = {"id": "aud_1", "at": "2026-11-20T12:00:00Z", "action": "POST /v1/jobs", "outcome": "succeeded"}


@pytest.fixture
def part(house: House, owner: rows.Key, analyst: rows.Key) -> Part:
    """The whole chain of a real account."""
    with capture_logs(), house.client() as client:
        dataset = make_account(house, owner, analyst)
        found: Part = client.get(f"/v1/datasets/{dataset}/ledger/chain", headers=owner.headers).json()
    return found


def _view(name: type[BaseModel]) -> Any:
    example: Any = name.model_config["json_schema_extra"]["examples"][0]  # type: ignore[index]
    return example


def test_what_if_shows_the_consequence_of_a_job(start: Start, capsys: pytest.CaptureFixture[str]) -> None:
    script = start(ok(_view(JobOutlookView)))
    assert main(["what-if", "ds_1", "--job", "0.5"]) == 0
    assert script.seen[0].url.path == "/v1/datasets/ds_1/what-if/job"
    assert "odds 2.3 to 1" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("given", "question", "body"),
    [
        (["--limit", "3", "--delta", "1e-7"], "limit", {"epsilon": 3.0, "delta": 1e-7}),
        (["--allocation", "key_1=0.7"], "allocation", {"key_id": "key_1", "epsilon": 0.7}),
        (["--end-allocation", "key_1"], "allocation", {"key_id": "key_1", "epsilon": None}),
    ],
)
def test_what_if_compares_before_and_after(
    given: list[str], question: str, body: object, start: Start, capsys: pytest.CaptureFixture[str]
) -> None:
    script = start(ok(_view(ComparisonView)))
    assert main(["what-if", "ds_1", *given]) == 0
    assert script.seen[0].url.path == f"/v1/datasets/ds_1/what-if/{question}"
    assert json.loads(script.bodies[0]) == body
    shown = capsys.readouterr()
    assert shown.out.splitlines()[0].split() == ["what", "before", "after"]
    assert shown.err.endswith("Nothing was changed.\n")
    assert main(["what-if", "ds_1", *given, "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == _view(ComparisonView)


@pytest.mark.parametrize("added", [0.0, 1e-7])
def test_what_if_explains_costs_at_another_delta(
    added: float, start: Start, capsys: pytest.CaptureFixture[str]
) -> None:
    view = _view(ComparisonView)
    limit = view["before"]["limit"]
    view["after"] = view["after"] | {"limit": limit | {"delta": limit["delta"] + added}}
    start(ok(view))
    assert main(["what-if", "ds_1", "--limit", "3"]) == 0
    assert ("at the larger δ" in capsys.readouterr().err) == (added > 0)


def test_mistakes_in_what_if_name_the_option(start: Start, capsys: pytest.CaptureFixture[str]) -> None:
    faults = [{"pointer": "/epsilon", "message": "Use a smaller number."}]
    start(problem(422, "invalid_request", errors=faults))
    assert main(["what-if", "ds_1", "--limit", "99"]) == 2
    assert main(["what-if", "ds_1", "--job", "98"]) == 2
    assert main(["what-if", "ds_1", "--job", "0.5", "--delta", "1e-7"]) == 2
    shown = capsys.readouterr().err
    assert "--limit 99: Use a smaller number." in shown
    assert "--job 98: Use a smaller number." in shown
    assert "--delta belongs to --limit" in shown
    with pytest.raises(SystemExit):
        main(["what-if", "ds_1", "--allocation", "key_1"])
    assert "write the id of a key and a number, as in key_01jd=0.5, not 'key_1'" in capsys.readouterr().err


def test_verify_ledger_looks_for_noted_entries(start: Start, capsys: pytest.CaptureFixture[str], part: Part) -> None:
    verified, entries = ok({"verifies": True, "newest": None}), part["entries"]
    start(ok(part), verified, ok(part), verified, ok(part), ok({"verifies": False, "newest": None}))
    noted = entries[1]["entry_hash"]
    assert main(["verify-ledger", "ds_1", "--entry", noted]) == 0
    shown = capsys.readouterr()
    assert entries[-1]["entry_hash"] in shown.out
    assert f"Verified on this machine: {len(entries)} entries" in shown.err
    assert "comes from the server itself" in shown.err
    assert main(["verify-ledger", "ds_1", "--entry", "0" * 64, "-q"]) == 1
    shown = capsys.readouterr()
    assert (shown.out, "does not contain the entry 000" in shown.err) == (entries[-1]["entry_hash"] + "\n", True)
    assert main(["verify-ledger", "ds_1"]) == 1
    assert "do not add up to the balance" in capsys.readouterr().err


def test_an_altered_ledger_is_an_answer_of_no(start: Start, capsys: pytest.CaptureFixture[str], part: Part) -> None:
    part["entries"][1]["epsilon_after"] += 1.0
    start(ok(part))
    assert main(["verify-ledger", "ds_1"]) == 1
    assert capsys.readouterr() == ("", "corevault: Entry 2 was altered. [verification_error]\n")


def test_the_audit_log_is_filtered(start: Start, capsys: pytest.CaptureFixture[str]) -> None:
    script = start(make_page(AUDIT))
    given = ["--actor", "key_1", "--outcome", "refused", "--since", "2029-01-31", "--until", "2029-02-01T12:00+01:00"]
    assert main(["audit-log", *given, "-q"]) == 0
    assert dict(script.seen[0].url.params) == {
        "actor": "key_1",
        "outcome": "refused",
        "since": "2029-01-31T00:00:00+00:00",
        "until": "2029-02-01T12:00:00+01:00",
    }
    with pytest.raises(SystemExit):
        main(["audit-log", "--since", "yesterday"])
    assert "write a time such as 2029-01-31" in capsys.readouterr().err


def test_the_audit_log_is_listed(start: Start, capsys: pytest.CaptureFixture[str]) -> None:
    start(make_page(AUDIT))
    assert main(["audit-log", "-q"]) == 0
    assert capsys.readouterr().out == "aud_1\n"
