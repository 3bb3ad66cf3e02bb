"""Mistakes of newcomers on the command line: one plain sentence, the right exit code, and nothing bought."""

import json
from pathlib import Path
from typing import Any

import httpx
import pytest
from corevault import InvalidArgument
from corevault.cli import commands, main
from corevault.cli.failures import describe_error
from corevault.cli.main import main as run_main
from corevault.connection import read_file
from corevault.errors import ConnectionFailed

from tests.client.fake import DATASET, Answer, Published, Script, job, ok, problem

MODEL = ["--features", "age,sex", "--target", "sick"]
CSV = "age\n1\n2\n"
Shown = pytest.CaptureFixture[str]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, with a table, a declaration and files of other kinds. There is no stored key."""
    monkeypatch.chdir(tmp_path)
    for name in ("COREVAULT_URL", "COREVAULT_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("COREVAULT_CREDENTIALS", str(tmp_path / "credentials.json"))
    files = {
        "t.csv": CSV,
        "semicolons.csv": "age;sex\n1;f\n",
        "empty.csv": "",
        "notes.txt": "some words",
        "schema.json": json.dumps(DATASET["columns"]),
        "dataset.json": json.dumps(DATASET),
        "no_columns.json": "{}",
        "no_bounds.json": '[{"name": "age", "type": "real"}]',
        "numbers.json": "[1]",
        "model.json": '{"family": "probit-regression"}',
        "words.json": "words",
    }
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    (tmp_path / "junk.csv").write_bytes(bytes(range(128, 250)) + b"\x1b[2J\n\x00\xff")
    return tmp_path


def _run(*arguments: str) -> int:
    """The exit code of a command, also if its arguments end the program."""
    try:
        return run_main(arguments)
    except SystemExit as ended:
        return int(ended.code or 0)


def _answer(monkeypatch: pytest.MonkeyPatch, *answers: Answer) -> Script:
    script = Script(list(answers))
    monkeypatch.setattr(commands, "connect", lambda url: script.client(max_retries=0))
    return script


WRONG_USAGE: dict[str, tuple[list[str], str]] = {
    "a misspelt command": (["dataset"], "there is no command 'dataset'; did you mean datasets?"),
    "a command of no program": (["frobnicate"], "there is no command 'frobnicate'; see corevault --help. [usage]"),
    "an option before its command": (["--url", "http://a.test", "datasets"], "write --url after the command, as in"),
    "an option and its value before": (["--url=http://a.test", "datasets"], "write --url after the command, as in"),
    "no question": (["what-if", "d"], "corevault what-if needs one of these options: --job --limit --allocation"),
    "no dataset": (["budget"], "corevault budget also needs dataset; see corevault budget --help."),
    "no table": (["upload", "clinic"], "corevault upload also needs TABLE"),
    "an option without its value": (["releases", "--dataset"], "--dataset needs a value"),
    "two forms of output": (["datasets", "-q", "--json"], "--json and -q/--quiet exclude each other"),
    "features with spaces": (["quote", "d", "--features", "age", "sex"], "with commas, as in A,B"),
    "a misspelt option": (["run", "d", "--sise", "3"], "does not take this: --sise 3; did you mean --size?; see"),
    "an option of no command": (["run", "d", "--frob", "3"], "corevault run does not take this: --frob 3; see"),
    "an argument too many": (["budget", "a", "b"], "corevault budget does not take this: b; see"),
    "no limit": (["datasets", "--limit", "0"], "--limit: write a whole number of at least 1, not '0'"),
    "a limit below zero": (["datasets", "--limit", "-3"], "write a whole number of at least 1"),
    "a size in words": (["quote", "d", *MODEL, "--size", "many"], "--size: write a whole number"),
    "a decimal comma": (["quote", "d", *MODEL, "--epsilon", "0,5"], "with a point, such as 0.5, not '0,5'"),
    "a number that is none": (["run", "d", *MODEL, "--epsilon", "nan"], "--epsilon: write a finite number"),
    "an infinite number": (["quote", "d", *MODEL, "--epsilon", "inf"], "write a finite number"),
    "a share above one": (["check", "d", "t.csv", "--max-null-share", "5"], "between 0 and 1, not '5'"),
    "half a family": (["quote", "d", *MODEL, "--family", "logistic"], "did you mean logistic-regression?"),
    "an unknown family": (["quote", "d", *MODEL, "--family", "x"], "the families are logistic-regression, probit"),
    "a check without a dataset": (["check", "t.csv"], "as in corevault check clinic clinic.csv; or --schema"),
    "a check of two tables": (["check", "d", "t.csv", "u.csv"], "takes one dataset and one table"),
    "a table before its dataset": (["upload", "t.csv", "clinic"], "t.csv is a file; write the dataset first"),
    "a checked table before its dataset": (["check", "t.csv", "clinic"], "write the dataset first"),
    "a schema that does not exist": (["check", "t.csv", "--schema", "no.json"], "no.json cannot be read"),
    "a schema in words": (["check", "t.csv", "--schema", "words.json"], "words.json is not a JSON file"),
    "a schema without columns": (["check", "t.csv", "--schema", "no_columns.json"], "an array as columns"),
    "a column without bounds": (["check", "t.csv", "--schema", "no_bounds.json"], "lower must be a number"),
    "columns that are numbers": (["check", "t.csv", "--schema", "numbers.json"], 'write each column as {"name": "age"'),
    "a table that does not exist": (["check", "no.csv", "--schema", "schema.json"], "no.csv cannot be read"),
    "a folder": (["check", ".", "--schema", "schema.json"], ". is a directory"),
    "an empty file": (["check", "empty.csv", "--schema", "schema.json"], "the source is empty"),
    "a text file": (["check", "notes.txt", "--schema", "schema.json"], "rename it to end in .csv if it is CSV"),
    "no server": (["datasets"], "set COREVAULT_URL, pass --url, or run corevault login URL."),
    "no scheme": (["login", "vault.test", "--public"], "The server's address must start with http:// or https://"),
    "a page of the dashboard": (["login", "http://a.test/dashboard/jobs", "--public"], "must end before /dashboard"),
    "the page of the API": (["login", "http://a.test/v/docs", "--public"], "address must end before /docs, as in"),
    "an empty key file": (["login", "http://vault.test", "--key-file", "empty.csv"], "The API key must not be empty."),
    "no key": (["login", "http://vault.test"], "pass --key-file, or --key-file - for a pipe"),
    "no key file": (["login", "http://vault.test", "--key-file", "no.key"], "no.key cannot be read"),
    "a key file of something else": (["login", "http://vault.test", "--key-file", "t.csv"], "The API key must consist"),
    "no features": (["quote", "d"], "A model needs --features"),
    "no target": (["quote", "d", "--features", "age"], "logistic-regression needs --target"),
    "a model twice": (["quote", "d", *MODEL, "--model", "model.json"], "leave out --features, --target and --formula"),
    "a formula and features": (["quote", "d", *MODEL, "--formula", "sick ~ age"], "leave out --features and --target"),
    "a formula with a transformation": (["quote", "d", "--formula", "sick ~ log(a)"], "log(a), a transformation."),
    "a model that is an array": (["quote", "d", "--model", "numbers.json"], "must hold a JSON object"),
    "another suffix": (["run", "d", *MODEL, "-o", "points.xlsx"], "must end in one of .json, .csv, .parquet, .npz"),
    "a folder that does not exist": (["run", "d", *MODEL, "-o", "no/points.csv"], "no/points.csv cannot be written"),
    "an output without a wait": (["run", "d", *MODEL, "-o", "p.csv", "--no-wait"], "exclude each other"),
    "a release to wait for": (["watch", "rel_1"], "rel_1 is the id of a release; this command takes the id of a job."),
    "a job to download": (["download", "job_1"], "job_1 is the id of a job"),
    "a dataset to verify": (["verify", "ds_1"], "ds_1 is the id of a dataset"),
    "a folder for the points": (["download", "rel_1", "-o", "no/p.csv"], "cannot be written"),
}


@pytest.mark.parametrize("name", WRONG_USAGE)
def test_wrong_usage_ends_with_two_and_a_sentence(
    name: str, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: Shown
) -> None:
    arguments, sentence = WRONG_USAGE[name]
    if arguments != ["datasets"]:
        script = _answer(monkeypatch, ok({}))
    assert _run(*arguments) == 2
    shown = capsys.readouterr()
    assert (shown.out, shown.err.count("\n")) == ("", 1)
    assert shown.err.startswith("corevault: ")
    assert sentence in shown.err
    assert shown.err.rstrip().endswith("]")
    assert arguments == ["datasets"] or script.seen == []


def test_no_command_shows_the_help(capsys: Shown) -> None:
    assert _run() == 2
    assert "corevault login" in capsys.readouterr().err


def test_dataset_and_table_are_given_to_check_as_to_upload(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: Shown
) -> None:
    script = _answer(monkeypatch, ok(DATASET))
    ways = (
        ["check", "ds_1", "t.csv"],
        ["check", "--max-null-share", "0.5", "ds_1", "t.csv"],
        ["check", "t.csv", "--dataset", "ds_1"],
        ["check", "t.csv", "--schema", "schema.json"],
        ["check", "t.csv", "--schema", "dataset.json"],
    )
    for arguments in ways:
        assert _run(*arguments) == 0
        assert capsys.readouterr().err == "0 of 2 rows would be null.\n"
    assert [request.url.path for request in script.seen] == ["/v1/datasets/ds_1"] * 3


def test_columns_that_differ_are_named_without_counts(folder: Path, capsys: Shown) -> None:
    assert _run("check", "semicolons.csv", "--schema", "schema.json") == 1
    shown = capsys.readouterr()
    assert (shown.out, "seem to be separated by semicolons" in shown.err) == ("", True)
    assert "rows would be null" not in shown.err


def test_a_binary_file_does_not_reach_the_terminal(folder: Path, capsys: Shown) -> None:
    assert _run("check", "junk.csv", "--schema", "schema.json") == 1
    shown = capsys.readouterr().err
    assert all(sign.isprintable() for sign in shown.rstrip("\n"))
    assert "The table has no declared column. Its header must have these names, separated by commas: age." in shown


@pytest.mark.parametrize(
    ("fault", "remedy"),
    [
        ("[SSL: WRONG_VERSION_NUMBER] wrong version number", "it may need http:// instead of https://"),
        ("[SSL: CERTIFICATE_VERIFY_FAILED] self-signed", "its certificate is not trusted here. Check the address"),
        ("refused", "check the address, and that the server is running"),
    ],
)
def test_a_failed_connection_states_its_remedy(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: Shown, fault: str, remedy: str
) -> None:
    _answer(monkeypatch, httpx.ConnectError(fault))
    assert _run("datasets") == 5
    assert remedy in capsys.readouterr().err


def test_login_takes_the_address_by_place_and_by_option(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: Shown
) -> None:
    script = Script([ok({"id": "key_1", "name": "ana", "role": "analyst"})])
    asked: list[str] = []

    def make(url: str, key: str | None) -> Any:
        asked.append(url)
        return script.client(key)

    monkeypatch.setattr(commands, "Client", make)
    (folder / "key").write_text("cv_2\n")
    for given in (["http://a.test"], ["--url", "http://b.test"], ["http://c.test", "--url", "http://b.test"]):
        assert _run("login", *given, "--key-file", "key", "-q") == 0
    assert asked == ["http://a.test", "http://b.test", "http://c.test"]
    assert read_file(folder / "credentials.json") == ("http://c.test", "cv_2")


def test_login_without_a_key_asks_the_server(folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: Shown) -> None:
    script = Script([httpx.ConnectError("no"), httpx.Response(200, text="<html>"), ok({"items": []})])
    monkeypatch.setattr(commands, "Client", lambda url, key: script.client(key, max_retries=0))
    assert _run("login", "http://vault.test", "--public") == 5
    assert "check the address, and that the server is running" in capsys.readouterr().err
    assert _run("login", "http://vault.test", "--public") == 5
    assert "The server's address must be the address of a Corevault server" in capsys.readouterr().err
    assert not (folder / "credentials.json").exists()
    assert _run("login", "http://vault.test", "--public") == 0


REFUSALS: dict[str, tuple[int, str, list[dict[str, str]], int, str]] = {
    "an expired key": (401, "unauthenticated", [], 4, "wrong, expired or revoked. Run corevault login URL"),
    "no access": (403, "forbidden", [], 4, "A sentence about forbidden."),
    "a wrong feature": (
        422,
        "invalid_request",
        [{"pointer": "/model/features/1", "message": "Name a declared column."}],
        2,
        "corevault: --features sex: Name a declared column. [invalid_request]",
    ),
    "a wrong target": (
        422,
        "invalid_request",
        [{"pointer": "/model/target", "message": "Use another."}],
        2,
        "--target sick: Use another.",
    ),
    "a wrong number": (
        422,
        "invalid_request",
        [{"pointer": "/privacy/epsilon", "message": "Use more."}],
        2,
        "--epsilon 0.5: Use more.",
    ),
    "a repeated fault": (
        422,
        "invalid_request",
        [{"pointer": "/privacy", "message": "Twice."}, {"pointer": "/privacy", "message": "Twice."}],
        2,
        "corevault: --epsilon 0.5: Twice. [invalid_request]",
    ),
    "a member without an option": (
        422,
        "invalid_request",
        [{"pointer": "/purpose", "message": "Shorter."}],
        2,
        "corevault: /purpose: Shorter.",
    ),
    "a method that is not private": (422, "method_not_allowed_on_private_data", [], 2, "A sentence about method_not"),
    "another body under a key": (409, "idempotency_conflict", [], 2, "A sentence about idempotency_conflict."),
    "a dataset that is not ready": (409, "state_conflict", [], 1, "A sentence about state_conflict."),
    "a broken server": (500, "internal", [], 5, "A sentence about internal."),
    "too many requests": (429, "rate_limited", [], 5, "A sentence about rate_limited."),
}


@pytest.mark.parametrize("name", REFUSALS)
def test_a_refusal_speaks_of_the_options(name: str, monkeypatch: pytest.MonkeyPatch, capsys: Shown) -> None:
    status, code, faults, expected, sentence = REFUSALS[name]
    _answer(monkeypatch, problem(status, code, errors=faults) if faults else problem(status, code))
    assert _run("run", "ds_1", *MODEL, "--epsilon", "0.5") == expected
    assert sentence in capsys.readouterr().err


def test_faults_of_a_model_file_name_the_file(folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: Shown) -> None:
    faults = [{"pointer": "/model/features", "message": "This member is required."}]
    _answer(monkeypatch, problem(422, "invalid_request", errors=faults))
    assert _run("quote", "ds_1", "--model", "model.json") == 2
    assert "corevault: model.json, /features: This member is required. [" in capsys.readouterr().err


def test_an_unknown_name_says_how_to_list_datasets(monkeypatch: pytest.MonkeyPatch, capsys: Shown) -> None:
    _answer(monkeypatch, ok({"items": [], "next_cursor": None}))
    assert _run("budget", "clinic") == 4
    assert "corevault datasets shows their names and ids. [not_found]" in capsys.readouterr().err


def test_points_that_cannot_be_saved_are_not_lost(folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: Shown) -> None:
    """The release is paid for when the disk is full: the exit code shows it, and the sentence names the release."""
    ended = ok(job("succeeded", release_id="rel_1"))
    _answer(monkeypatch, ok(job("queued"), 202), ended, *[Published()] * 9)

    def fail(*_: object) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", fail)
    assert _run("run", "ds_1", *MODEL, "--epsilon", "0.5", "-o", "p.csv", "-q") == 6
    shown = capsys.readouterr()
    assert shown.out == "rel_1\n"
    assert "p.csv cannot be written" in shown.err
    assert "The job job_1 bought the release rel_1, which was not saved." in shown.err
    assert "corevault download rel_1 -o FILE saves it at no further cost." in shown.err


def test_a_job_whose_end_is_not_heard_is_named(folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: Shown) -> None:
    _answer(monkeypatch, ok(job("queued"), 202), problem(500, "internal"))
    assert _run("run", "ds_1", *MODEL, "--epsilon", "0.5") == 5
    assert "The job job_1 continues on the server; do not submit it again." in capsys.readouterr().err


def test_a_failed_job_is_not_said_to_continue(folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: Shown) -> None:
    _answer(monkeypatch, ok(job("queued"), 202), ok(job("failed", error={"code": "run_failed"})))
    assert _run("run", "ds_1", *MODEL, "--epsilon", "0.5") == 1
    assert "continues" not in capsys.readouterr().err


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        (["verify", "rel_9"], "There is no release rel_9 that this key may see; corevault releases lists their ids"),
        (["download", "clinic"], "There is no release clinic that this key may see"),
        (["watch", "job_9"], "There is no job job_9 that this key may see"),
        (["budget", "ds_9"], "There is no dataset ds_9 that this key may see; corevault datasets lists"),
        (["quote", "ds_9", *MODEL], "There is no dataset ds_9"),
        (["verify-ledger", "ds_9"], "There is no dataset ds_9"),
    ],
)
def test_an_id_that_does_not_exist_is_named(
    given: list[str], sentence: str, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: Shown
) -> None:
    _answer(monkeypatch, problem(404, "not_found"))
    assert _run(*given) == 4
    shown = capsys.readouterr().err
    assert sentence in shown
    assert shown.endswith("[not_found] (request req_1)\n")
    assert list(folder.glob("rel_*")) == []


def test_an_audit_without_a_key_or_a_server_asks_for_one(folder: Path, capsys: Shown) -> None:
    (folder / "audit.json").write_text("{}")
    assert _run("verify-audit", "audit.json") == 2
    assert "pass the operator's public key as --pin" in capsys.readouterr().err


def test_words_of_the_client_become_words_of_the_command_line() -> None:
    sentence = describe_error(ConnectionFailed("No answer; check base_url, and that the server is running."))
    assert sentence == "corevault: No answer; check the address, and that the server is running. [connection_failed]"
    assert describe_error(InvalidArgument("t.csv is wrong.")) == "corevault: t.csv is wrong. [invalid_argument]"


def test_a_stream_without_greek_letters_gets_escapes(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with (tmp_path / "out").open("w", encoding="ascii") as stream:
        monkeypatch.setattr("sys.stdout", stream)
        main._make_printable()
        stream.write("ε=1")
    assert (tmp_path / "out").read_text() == "\\u03b5=1"
