"""The table of mutants fits the tree, and the runner judges mutants."""

import ast
from pathlib import Path

import pytest

from tools.mutants import __main__ as runner
from tools.mutants.mutant import Mutant
from tools.mutants.table import EQUIVALENT, MUTANTS

ROOT = Path(__file__).resolve().parents[2]
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
    assert runner.make_command(mutant.catcher)
    file, _, name = mutant.catcher.partition("::")
    if file.startswith(("tests/", "tools/")):
        assert (ROOT / file).is_file()
        assert f"def {name}" in (ROOT / file).read_text()


def test_mutants_are_chosen_by_promise_name_or_file() -> None:
    assert runner.choose([""]) == list(MUTANTS)
    assert {mutant.promise for mutant in runner.choose(["W9", "W11"])} == {"W9", "W11"}
    assert runner.choose(["no such words"]) == []


def test_names_are_unique() -> None:
    names = [*(mutant.name for mutant in MUTANTS), *EQUIVALENT]
    assert len(set(names)) == len(names)


def test_a_text_that_occurs_twice_is_refused() -> None:
    mutant = Mutant("two", "W5", "file.py", (("a", "b"),), "tools/check_size.py")
    with pytest.raises(ValueError, match="exactly once"):
        mutant.apply("aa")
    assert mutant.apply("a = 1") == "b = 1"


@pytest.mark.parametrize(
    ("status", "output", "verdict"),
    [(0, "", "SURVIVED"), (1, "W5: too long", "caught"), (1, "KeyError", "UNNAMED"), (2, "no such test", "ERROR")],
)
def test_a_mutant_is_caught_only_by_a_named_failure(
    status: int, output: str, verdict: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A catcher that cannot run, or fails for another reason, catches nothing; the file is restored."""
    (tmp_path / "file.py").write_text("a = 1")
    seen: list[str] = []

    def run_catcher(tree: Path, catcher: str) -> tuple[int, str]:
        seen.append((tree / "file.py").read_text())
        return status, output

    monkeypatch.setattr(runner, "run_catcher", run_catcher)
    mutant = Mutant("one", "W5", "file.py", (("a", "b"),), "tests/tools/test_mutants.py::test_names_are_unique")
    assert runner.judge(tmp_path, mutant).startswith(verdict)
    assert seen == ["b = 1"]
    assert (tmp_path / "file.py").read_text() == "a = 1"
