"""The table of mutants fits the tree, and the runner judges mutants."""

import ast
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from tools.mutants import __main__ as runner
from tools.mutants import catchers
from tools.mutants.gentle import SMALLEST
from tools.mutants.mutant import Mutant
from tools.mutants.page import render_page
from tools.mutants.records import Record, compute_digest, keep_current, read_records, write_records
from tools.mutants.table import EQUIVALENT, MUTANTS

ROOT = Path(__file__).resolve().parents[2]
ONE = Mutant("one", "W5", "file.py", (("a", "b"),), "tests/tools/test_mutants.py::test_names_are_unique")
EVERY = pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)


@EVERY
def test_a_mutant_applies_and_is_valid_code(mutant: Mutant) -> None:
    source = (ROOT / mutant.file).read_text()
    changed = mutant.apply(source)
    assert changed != source
    ast.parse(changed)
    assert mutant.promise in {f"W{number}" for number in range(1, 17)}


@EVERY
def test_a_catcher_exists(mutant: Mutant) -> None:
    file = mutant.catcher_file
    assert file is not None or catchers.make_command(mutant.catcher)
    if file is not None:
        name = mutant.catcher.partition("[")[0].rpartition("::")[2] if "::" in mutant.catcher else ""
        assert f"def {name}" in (ROOT / file).read_text()


def test_mutants_are_chosen_by_promise_name_or_file() -> None:
    assert runner.choose([""]) == list(MUTANTS)
    assert {mutant.promise for mutant in runner.choose(["W9", "W11"])} == {"W9", "W11"}
    assert runner.choose(["no such words"]) == []


def test_the_runner_imports_nothing_of_the_project_before_its_forks() -> None:
    program = "import tools.mutants.__main__, sys; sys.exit(not {'app', 'workers', 'tests'}.isdisjoint(sys.modules))"
    assert subprocess.run([sys.executable, "-c", program], cwd=ROOT, check=False).returncode == 0


def test_names_are_unique() -> None:
    names = [*(mutant.name for mutant in MUTANTS), *EQUIVALENT]
    assert len(set(names)) == len(names)
    assert set(SMALLEST) <= set(names)


def test_a_text_that_occurs_twice_is_refused() -> None:
    mutant = Mutant("two", "W5", "file.py", (("a", "b"),), "tools/check_size.py")
    with pytest.raises(ValueError, match="exactly once"):
        mutant.apply("aa")
    assert mutant.apply("a = 1") == "b = 1"


@pytest.mark.parametrize(
    ("status", "output", "verdict"),
    [
        (0, "", "SURVIVED"),
        (1, "W5: too long", "caught"),
        (1, "def test_w5_sums", "caught"),
        (1, "KeyError", "UNNAMED"),
        (1, "W51 and 0xAW5", "UNNAMED"),
        (1, "W5: Failed: Timeout (>1800.0s) from pytest-timeout.", "ERROR 1"),
        (2, "no such test", "ERROR 2"),
        (-9, "", "ERROR -9"),
    ],
)
def test_a_mutant_is_caught_only_by_a_named_failure(status: int, output: str, verdict: str) -> None:
    """A catcher that cannot run, is slow, or fails for another reason, catches nothing."""
    assert catchers.judge(ONE, status, output).startswith(verdict)


def test_a_changed_file_is_restored_and_never_taken_for_compiled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "file.py"
    file.write_text("a = 1")
    before, seen = file.stat(), list[tuple[str, int]]()

    def run_catcher(tree: Path, catcher: str) -> tuple[int, str]:
        seen.append((file.read_text(), int(file.stat().st_mtime)))
        return 1, "W5"

    monkeypatch.setattr(runner, "run_catcher", run_catcher)
    monkeypatch.setattr(runner, "compute_digest", lambda *_: "")
    record = runner.run_mutant(tmp_path, ONE)
    assert (record.mutant, record.verdict) == ("one", "caught")
    assert seen == [("b = 1", int(before.st_mtime) + 10)]
    assert (file.read_text(), file.stat().st_mtime_ns) == ("a = 1", before.st_mtime_ns)


def test_mutants_of_a_catcher_that_fails_anyway_are_not_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All tests run together first. One that fails runs again alone, and counts as failing also if it then succeeds."""
    calls: list[list[str]] = []

    def run_tests(tree: Path, names: list[str], *, stop: bool = True) -> tuple[int, str]:
        calls.append(names)
        return int(not stop and "tests/bad" in names), "F.\nFAILED tests/bad::one[a] - KeyError\n1 failed"

    monkeypatch.setattr(runner, "run_tests", run_tests)
    monkeypatch.setattr(runner, "run_catcher", lambda tree, name: run_tests(tree, [name]))
    assert set(runner.find_failing(tmp_path, ["tests/good", "tests/bad", "tools/check"])) == {"tests/bad"}
    assert calls == [["tests/good", "tests/bad"], ["tests/bad"], ["tools/check"]]
    assert list(runner.run([replace(ONE, catcher="tests/bad")], tmp_path)) == []


def test_without_a_named_failure_every_test_runs_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runner, "run_tests", lambda *_, **__: (-9, ""))
    monkeypatch.setattr(runner, "run_catcher", lambda _, name: (0, name))
    assert set(runner.find_failing(tmp_path, ["tests/a", "tests/b"])) == {"tests/a", "tests/b"}


def test_records_stay_if_mutant_file_and_catcher_are_the_same(tmp_path: Path) -> None:
    kept, changed, gone = MUTANTS[:3]
    lines = [
        Record(each.promise, each.name, each.file, each.catcher, "caught", 1.5, "abc", compute_digest(each))
        for each in (kept, replace(changed, edits=(("a", "b"),)), gone)
    ]
    write_records(tmp_path / "records.csv", lines)
    assert keep_current(read_records(tmp_path / "records.csv"), [kept, changed]) == {kept.name: lines[0]}
    assert read_records(tmp_path / "none.csv") == []


def test_the_page_has_each_verdict_and_every_survivor() -> None:
    caught = Record("W5", "one", "file.py", "tests/a.py::test_one", "caught", 1.25, "abc", "")
    lines = [caught, replace(caught, mutant="two", verdict="SURVIVED")]
    lines.append(replace(caught, mutant="three", catcher="corevaultd audit --section filter", promise="W12"))
    other = {"four": "it is impossible"}
    text = render_page(lines, ["five"], smallest=["three"], others=other, circumstances={"commit": "abc"})
    assert "2 of 3 mutants are caught: 66.7 %. 1 others have no record. 1 further breaks" in text
    assert "## Without a record\n- five\n" in text
    assert "| W5 | 2 | 1 | 1 |\n| W12 | 1 | 1 | 1 |" in text
    assert "## Survivors\n- W5, two: SURVIVED\n" in text
    assert "| W5 | one | `file.py` | `test_one` | caught | 1.2 |" in text
    assert "| W12 | three | `corevaultd audit --section filter` | caught |\n\n## All mutants" in text
    assert "- four: it is impossible." in text
