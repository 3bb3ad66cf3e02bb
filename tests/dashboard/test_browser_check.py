"""The browser's check agrees with the Python client, on the cases of ``checks/cases.json``."""

import base64
import hashlib
import json
import re
import shutil
import subprocess
from functools import cache
from pathlib import Path
from typing import Any, Final

import pytest
from corevault import Schema
from corevault._check import check_table
from corevault._upload import prepare
from corevault.errors import InvalidArgument

from app.dashboard.assets import ROOT
from tests.dashboard.random_tables import make_cases

FOLDER: Final = Path(__file__).parent / "checks"
CASES: Final[list[dict[str, Any]]] = json.loads((FOLDER / "cases.json").read_text("utf-8"))
SIZES: Final = (1, 7, 1 << 20)
"""Sizes of the pieces in which the browser reads the file, in bytes."""


def _content(case: dict[str, Any]) -> bytes:
    if "hex" in case:
        return bytes.fromhex(case["hex"])
    return str(case["text"]).replace("x", "x" * case.get("repeat_x", 1)).encode()


def _run_in_node(cases: list[dict[str, Any]], sizes: tuple[int, ...]) -> list[list[dict[str, Any]]]:
    node = shutil.which("node")
    assert node is not None, "This test needs Node.js. Install Debian's package nodejs, as .ci/run does."
    sent = [{"columns": each["columns"], "unit": each["unit"], "hex": _content(each).hex()} for each in cases]
    order = json.dumps({"cases": sent, "sizes": sizes})
    ended = subprocess.run(
        [node, FOLDER / "run.mjs"], input=order, capture_output=True, text=True, check=False, timeout=100
    )
    assert ended.returncode == 0, ended.stderr
    outcomes: list[list[dict[str, Any]]] = json.loads(ended.stdout)
    return outcomes


@cache
def _outcomes() -> list[list[dict[str, Any]]]:
    return _run_in_node(CASES, SIZES)


def _expected(case: dict[str, Any]) -> tuple[object, ...] | None:
    if case.get("faulty"):
        return None
    return case["rows"], case["null_rows"], case["counts"], case["absent"], case["unknown"]


def _check_in_client(case: dict[str, Any]) -> tuple[object, ...] | None:
    """The outcome of the client; None if it refuses the file."""
    columns, upload = Schema.from_json(case["columns"]).columns, prepare(_content(case))
    try:
        check = check_table(columns, upload, case["unit"])
    except InvalidArgument:
        return None
    counts = {name: [column.missing, column.clamped] for name, column in check.columns.items()}
    unknown = [name.encode("utf-8", "surrogateescape").decode("utf-8", "replace") for name in check.unknown]
    return check.rows, check.null_rows, counts, list(check.absent), unknown


def _read_outcome(outcome: dict[str, Any]) -> tuple[object, ...] | None:
    """The outcome of the browser; None if it refuses the file."""
    if outcome.get("faulty"):
        return None
    assert all(each["missing"] == each["empty"] + each["unfit"] for each in outcome["columns"])
    counts = {each["name"]: [each["missing"], each["clamped"]] for each in outcome["columns"]}
    return outcome["rows"], outcome["nullRows"], counts, outcome["absent"], outcome["unknown"]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_the_client_gives_the_verdict_of_the_case(case: dict[str, Any]) -> None:
    assert _check_in_client(case) == _expected(case)


@pytest.mark.parametrize("index", range(len(CASES)), ids=lambda index: CASES[index]["name"])
def test_the_browser_gives_the_verdict_of_the_case(index: int) -> None:
    case = CASES[index]
    digest = base64.b64encode(hashlib.sha256(_content(case)).digest()).decode()
    for outcome in _outcomes()[index]:
        assert _read_outcome(outcome) == _expected(case)
        assert case.get("faulty") or outcome["digest"] == f"sha-256=:{digest}:"


def test_random_files_get_one_verdict() -> None:
    cases = make_cases(1_500, seed=20261127)
    outcomes = _run_in_node(cases, (3,))
    verdicts = [_check_in_client(case) for case in cases]
    assert [_read_outcome(outcome) for (outcome,) in outcomes] == verdicts
    assert 100 < sum(verdict is None for verdict in verdicts) < 1_000


def test_the_browser_digests_bytes_of_every_length_as_python() -> None:
    cases: list[dict[str, Any]] = [{"columns": [], "unit": None, "text": "a" * length} for length in range(1, 200, 3)]
    for case, (outcome,) in zip(cases, _run_in_node(cases, (11,)), strict=True):
        digest = base64.b64encode(hashlib.sha256(_content(case)).digest()).decode()
        assert outcome["digest"] == f"sha-256=:{digest}:"


def test_the_browser_advises_binary_columns_and_categories() -> None:
    number = {"type": "integer", "lower": 0, "upper": 9}
    columns = [{"name": name, **number} for name in ("work_a", "work_b", "work_c", "flag", "count")]
    rows = [f"{int(row % 3 == 0)},{int(row % 3 == 1)},{int(row % 3 == 2)},{row % 2},{row % 7}" for row in range(40)]
    header = ",".join(str(column["name"]) for column in columns)

    def advise(lines: list[str]) -> list[dict[str, Any]]:
        case = {"columns": columns, "unit": None, "text": "\n".join([header, *lines])}
        ((outcome,),) = _run_in_node([case], (1 << 20,))
        advice: list[dict[str, Any]] = outcome["advice"]
        return advice

    assert advise(rows) == [
        *({"kind": "binary", "columns": [name]} for name in ("work_a", "work_b", "work_c", "flag")),
        {"kind": "category", "columns": ["work_a", "work_b", "work_c"]},
    ]
    assert [each["kind"] for each in advise([*rows, "1,1,0,0,0"])] == ["binary"] * 4
    assert advise(rows[:10]) == advise([*rows[:10], *("1" for _ in rows)]) == []


@pytest.mark.parametrize("name", ["cells", "csv", "formats", "sha256", "table-check"])
def test_modules_that_see_rows_send_and_store_nothing(name: str) -> None:
    """W3: the check can reach neither the network nor the browser's storage."""
    text = (ROOT / "static" / f"{name}.mjs").read_text("utf-8")
    words = (
        r"fetch|XMLHttpRequest|sendBeacon|WebSocket|EventSource|[sS]torage|indexedDB|cookie|document|console|import\("
    )
    assert re.search(words, text) is None
