"""The command line: results on standard output, errors as one sentence, and exit codes."""

import io
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from corevault import CorevaultError, InvalidArgument
from corevault.cli import commands
from corevault.cli.failures import describe_error, find_exit_code
from corevault.cli.main import main
from corevault.connection import read_file
from corevault.errors import BY_CODE, ConnectionFailed, VerificationError, WaitTimeout, api_error

from tests.client.fake import DATASET, Published, Script, Start, job, make_page, ok, problem
from tests.client.test_client_texts import BUDGET

QUOTE: dict[str, Any] = {
    "cost": {"epsilon": 0.5, "delta": 1e-6},
    "mechanism": None,
    "affordable": True,
    "epsilon_after": 0.7,
    "more_like_this": 4,
    "size": {"requested": 50, "smallest_exact": 12},
    "warnings": [],
}
MODEL = ["--features", "age, sex", "--target", "seen"]


def test_lists_have_three_forms(start: Start, capsys: pytest.CaptureFixture[str]) -> None:
    start(make_page(DATASET, DATASET | {"id": "ds_2"}))
    assert main(["datasets"]) == 0
    assert capsys.readouterr().out.splitlines()[0].split() == ["id", "name", "status", "slots", "rejection"]
    assert main(["datasets", "-q"]) == 0
    assert capsys.readouterr().out == "ds_1\nds_2\n"
    assert main(["datasets", "--json", "--limit", "1"]) == 0
    assert json.loads(capsys.readouterr().out) == [DATASET]


def test_an_empty_list_leaves_standard_output_empty(start: Start, capsys: pytest.CaptureFixture[str]) -> None:
    start(make_page())
    assert main(["releases"]) == 0
    assert capsys.readouterr() == ("", "There are no entries.\n")


def test_the_budget_is_shown(start: Start, capsys: pytest.CaptureFixture[str]) -> None:
    start(ok(BUDGET))
    assert main(["budget", "ds_1"]) == 0
    assert "remaining" in capsys.readouterr().out
    assert main(["budget", "ds_1", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == BUDGET


def test_allocations_are_shown_below_the_budget(start: Start, capsys: pytest.CaptureFixture[str]) -> None:
    limit = {"epsilon": 0.5, "delta": 1e-6}
    allocation = {"key_id": "key_1", "limit": limit, "spent": limit, "reserved": limit}
    start(ok({**BUDGET, "allocations": [allocation]}))
    assert main(["budget", "ds_1"]) == 0
    shown = capsys.readouterr().out.splitlines()[-2:]
    assert [line.split()[0] for line in shown] == ["key_id", "key_1"]
    assert "ε=0.5, δ=1e-06" in shown[1]
    assert main(["budget", "ds_1", "--quiet"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 1


def test_a_refusal_by_the_budget_states_its_figures(start: Start, capsys: pytest.CaptureFixture[str]) -> None:
    requested, remaining = ({"epsilon": epsilon, "delta": 1e-6} for epsilon in (9.0, 0.25))
    start(problem(409, "budget_exceeded", requested=requested, remaining=remaining))
    assert main(["run", "ds_1", *MODEL, "--epsilon", "9"]) == 3
    shown = capsys.readouterr().err
    assert "A sentence about budget_exceeded. Requested ε=9, δ=1e-06, remaining ε=0.25, δ=1e-06 [budget_" in shown


def test_faults_name_the_option_in_one_line(start: Start, capsys: pytest.CaptureFixture[str]) -> None:
    faults = [{"pointer": "/model/features/0", "message": "Name a declared column."}]
    start(problem(422, "invalid_request", errors=faults))
    assert main(["quote", "ds_1", *MODEL, "--epsilon", "1"]) == 2
    assert "corevault: --features age: Name a declared column. [invalid_request]" in capsys.readouterr().err


def test_a_decimal_comma_is_explained(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["quote", "ds_1", *MODEL, "--epsilon", "0,5"])
    assert ended.value.code == 2
    assert "write a number with a point, such as 0.5, not '0,5'" in capsys.readouterr().err


def test_quotes_over_several_epsilons(start: Start, capsys: pytest.CaptureFixture[str]) -> None:
    script = start(ok({"quotes": [QUOTE, QUOTE]}))
    assert main(["quote", "ds_1", *MODEL, "--epsilon", "0.1", "0.5"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 3
    sent = [json.loads(body) for body in script.bodies]
    assert [body["privacy"]["epsilon"] for body in sent] == [[0.1, 0.5]]
    assert sent[0]["model"] == {
        "family": "logistic-regression",
        "features": ["age", "sex"],
        "target": "seen",
        "prior": {"scale": 1.0},
    }


def test_a_model_can_be_a_formula(start: Start) -> None:
    script = start(ok(QUOTE))
    assert main(["quote", "ds_1", "--formula", "sick ~ age + C(sex)"]) == 0
    model = json.loads(script.bodies[0])["model"]
    assert (model["features"], model["target"]) == (["age", "sex"], "sick")


def test_faults_of_a_formula_name_the_formula(start: Start, capsys: pytest.CaptureFixture[str]) -> None:
    faults = [
        {"pointer": f"/model/{place}", "message": "Name a declared column."} for place in ("features/0", "target")
    ]
    start(problem(422, "invalid_request", errors=faults))
    assert main(["quote", "ds_1", "--formula", "sik ~ aeg"]) == 2
    printed = capsys.readouterr().err
    assert "--formula aeg: Name a declared column." in printed
    assert "--formula sik: Name a declared column." in printed


def test_a_model_can_come_from_a_file(start: Start, tmp_path: Path) -> None:
    script = start(ok(QUOTE))
    model = {"family": "topics", "features": ["a"]}
    (tmp_path / "model.json").write_text(json.dumps(model))
    assert main(["quote", "ds_1", "--model", str(tmp_path / "model.json")]) == 0
    assert json.loads(script.bodies[0])["model"] == model


def test_run_buys_waits_and_saves(start: Start, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    published, ended = Published(), ok(job("succeeded", release_id="rel_1"))
    script = start(ok(job("queued"), 202), ended, *[published] * 9)
    path = tmp_path / "points.npz"
    given = ["run", "ds_1", *MODEL, "--epsilon", "0.5", "--key", "once", "-o", str(path), "-q"]
    assert main(given) == 0
    assert capsys.readouterr() == ("rel_1\n", "Submitted job_1.\n")
    assert path.read_bytes() == published.bodies["npz"]
    assert script.seen[0].headers["Idempotency-Key"] == "once"


def test_nothing_is_bought_if_the_result_cannot_be_saved(start: Start, capsys: pytest.CaptureFixture[str]) -> None:
    script = start(ok({}))
    assert main(["run", "ds_1", *MODEL, "--epsilon", "0.5", "-o", "points.xlsx"]) == 2
    assert script.seen == []
    assert "must end in one of .json, .csv" in capsys.readouterr().err


def test_run_without_wait_prints_the_job(start: Start, capsys: pytest.CaptureFixture[str]) -> None:
    start(ok(job("queued"), 202))
    assert main(["run", "ds_1", *MODEL, "--epsilon", "0.5", "--no-wait", "-q"]) == 0
    assert capsys.readouterr().out == "job_1\n"


def test_a_failed_job_is_an_answer_of_no(start: Start, capsys: pytest.CaptureFixture[str]) -> None:
    start(ok(job("failed", error={"code": "run_failed"})))
    assert main(["watch", "job_1"]) == 1
    assert capsys.readouterr().err.startswith("corevault: Job job_1 failed (run_failed")


def test_downloads_are_verified(
    start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    published = Published()
    published.release["reliability"] = {"grade": "centre-only", "reasons": []}
    published.statement["reliability"] = published.release["reliability"]
    start(published)
    assert main(["download", "rel_1"]) == 0
    assert Path("rel_1.csv").read_bytes() == published.bodies["csv"]
    assert "corevault: The release is centre-only" in capsys.readouterr().err
    published.bodies["csv"] = b"changed"
    assert main(["download", "rel_1", "-o", "other.csv"]) == 1
    assert not Path("other.csv").exists()
    assert capsys.readouterr().err.endswith("[verification_error]\n")


def test_verify_says_whose_key_it_trusts(start: Start, capsys: pytest.CaptureFixture[str]) -> None:
    published = Published()
    start(published)
    assert main(["verify", "rel_1", "--json"]) == 0
    shown = capsys.readouterr()
    assert json.loads(shown.out)["release_id"] == "rel_1"
    assert "comes from the server itself" in shown.err
    assert main(["verify", "rel_1", "--pin", published.public_key, "-q"]) == 0
    shown = capsys.readouterr()
    assert (shown.out, "comes from the server" in shown.err) == ("rel_1\n", False)


def test_a_check_knows_the_column_of_the_unit(start: Start, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Both ways: the dataset's unit, and that of a file with the declaration."""
    declared = DATASET | {"privacy_unit": {"kind": "column", "column": "age", "max_rows": 2}}
    start(ok(declared))
    schema, table = tmp_path / "schema.json", tmp_path / "t.csv"
    schema.write_text(json.dumps(declared))
    table.write_text("age\n1\n2000\n")
    for way in (["--dataset", "ds_1"], ["--schema", str(schema)]):
        assert main(["check", str(table), *way]) == 1
        assert "1 of 2 rows would be null.\nage: 1 value is outside" in capsys.readouterr().err


def test_a_check_says_no_by_its_exit_code(start: Start, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    start(ok(DATASET))
    (tmp_path / "schema.json").write_text(json.dumps(DATASET["columns"]))
    table = tmp_path / "t.csv"
    table.write_text("age\n1\n2\n")
    assert main(["check", str(table), "--dataset", "ds_1"]) == 0
    assert capsys.readouterr().err == "0 of 2 rows would be null.\n"
    table.write_text("age\n1\nx\n")
    assert main(["check", str(table), "--schema", str(tmp_path / "schema.json")]) == 1
    assert main(["check", str(table), "--schema", str(tmp_path / "schema.json"), "--max-null-share", "0.5"]) == 0
    capsys.readouterr()
    assert main(["check", str(table), "--dataset", "ds_1", "--json"]) == 1
    assert json.loads(capsys.readouterr().out) == {
        "rows": 2,
        "null_rows": 1,
        "absent": [],
        "unknown": [],
        "columns": [{"column": "age", "missing": 1, "clamped": 0}],
        "advice": ["age: 1 cell is no number such as 0.5."],
    }
    table.write_text("Age\n1\n")
    assert main(["check", str(table), "--dataset", "ds_1"]) == 1
    assert "no declared column. Its header must have these names" in capsys.readouterr().err
    table.write_text("age\n" + "1\n" * 101)
    assert main(["check", str(table), "--dataset", "ds_1"]) == 1
    assert "more rows than the 100 slots" in capsys.readouterr().err


def test_upload_waits_for_the_server(start: Start, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "t.csv").write_text("age\n1\n")
    script = start(ok(DATASET))
    assert main(["upload", "ds_1", str(tmp_path / "t.csv"), "-q"]) == 0
    assert capsys.readouterr().out == "ds_1\n"
    assert "PUT" in {request.method for request in script.seen}


@pytest.mark.parametrize(
    ("status", "code", "expected"),
    [
        (409, "budget_exceeded", 3),
        (404, "not_found", 4),
        (403, "forbidden", 4),
        (422, "invalid_request", 2),
        (409, "state_conflict", 1),
        (500, "internal", 5),
    ],
)
def test_errors_are_one_sentence_with_a_code(
    status: int, code: str, expected: int, start: Start, capsys: pytest.CaptureFixture[str]
) -> None:
    faults = [{"pointer": "/size", "message": "Use an integer."}] if status == 422 else []
    start(problem(status, code, errors=faults))
    assert main(["run", "ds_1", *MODEL, "--epsilon", "0.5"]) == expected
    shown = capsys.readouterr()
    assert shown.out == ""
    words = {"invalid_request": "--size: Use an integer.", "not_found": "There is no dataset ds_1"}
    start_of_it = words.get(code, f"A sentence about {code}.")
    assert shown.err.startswith(f"corevault: {start_of_it}")
    assert shown.err.endswith(f"[{code}] (request req_1)\n")
    assert shown.err.count("\n") == 1


def test_every_error_has_an_exit_code() -> None:
    for code in BY_CODE:
        error = api_error({"code": code, "detail": "A sentence."}, status=400)
        assert find_exit_code(error) in {1, 2, 3, 4, 5}
    others: list[tuple[CorevaultError, int]] = [
        (ConnectionFailed("A."), 5),
        (WaitTimeout("A."), 5),
        (InvalidArgument("A."), 2),
        (VerificationError("A."), 1),
    ]
    assert [find_exit_code(error) for error, _ in others] == [code for _, code in others]
    assert describe_error(ConnectionFailed("No answer.")) == "corevault: No answer. [connection_failed]"


def test_wrong_usage_ends_with_two(capsys: pytest.CaptureFixture[str]) -> None:
    for arguments in ([], ["datasets", "-q", "--json"], ["check"], ["budget"], ["unknown"]):
        with pytest.raises(SystemExit) as caught:
            main(arguments)
        assert caught.value.code == 2
    for arguments in (["quote", "ds_1"], ["quote", "ds_1", "--features", "a"], ["download", "rel_1", "-o", "x"]):
        assert main([*arguments, "--url", "http://vault.test"]) == 2
    assert "Traceback" not in capsys.readouterr().err


def test_a_fault_of_the_program_shows_no_traceback(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(error: BaseException) -> Callable[..., Any]:
        def connect(url: str | None) -> None:
            raise error

        return connect

    monkeypatch.setattr(commands, "connect", fail(ZeroDivisionError("secret")))
    assert main(["datasets"]) == 5
    assert (
        capsys.readouterr().err
        == "corevault: A fault of this program (ZeroDivisionError); please report it. [internal]\n"
    )
    monkeypatch.setattr(commands, "connect", fail(KeyboardInterrupt()))
    assert main(["datasets"]) == 130


def test_login_stores_the_key_after_the_server_has_accepted_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "credentials.json"
    monkeypatch.setenv("COREVAULT_CREDENTIALS", str(path))
    me = {"id": "key_1", "name": "ana", "role": "analyst", "items": []}
    script = Script([problem(401, "unauthenticated"), ok(me)])
    monkeypatch.setattr(commands, "Client", lambda url, key: script.client(key))
    monkeypatch.setattr(sys, "stdin", io.StringIO("cv_1\n"))
    assert main(["login", "--url", "https://vault.test", "--key-file", "-"]) == 4
    assert not path.exists()
    (tmp_path / "key").write_text("cv_2\n")
    assert main(["login", "--url", "https://vault.test", "--key-file", str(tmp_path / "key"), "-q"]) == 0
    assert read_file(path) == ("https://vault.test", "cv_2")
    shown = capsys.readouterr()
    assert (shown.out, "cv_2" in shown.err) == ("key_1\n", False)
    assert main(["login", "--url", "https://vault.test"]) == 2  # no terminal
    assert main(["login", "--url", "https://vault.test", "--key-file", str(tmp_path)]) == 2
    assert main(["login", "--public"]) == 0  # the stored address
    assert read_file(path) == ("https://vault.test", None)


def test_the_module_is_the_command() -> None:
    done = subprocess.run([sys.executable, "-m", "corevault", "--version"], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("corevault 0.")
