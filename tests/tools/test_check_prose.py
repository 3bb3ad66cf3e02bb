"""The prose check finds each kind of breach, and budgets only fall."""

import json
from pathlib import Path

import pytest

from tools import check_prose
from tools.check_prose import find_breaches

LONG_SENTENCE = "This sentence has " + "very " * 22 + "many words."


def _rules(path: str, source: str) -> list[str]:
    return [breach.rule for breach in find_breaches(path, source)]


@pytest.mark.parametrize(
    ("source", "rules"),
    [
        ('"""Whoever asks is told."""', ["markers", "markers"]),
        ("value = 1  # nobody reads this", ["markers"]),
        ('raise_error("Whatever came is refused here.")', ["markers"]),
        (f'"""Short.\n\n{LONG_SENTENCE}\n"""', ["markers"]),
        ('"""Return `whatever` and ``nobody``."""', []),
        ('"""Return the answer."""', []),
        ('word = "whatever"', []),
    ],
)
def test_docstrings_comments_and_messages_are_checked(source: str, rules: list[str]) -> None:
    assert _rules("app/x.py", source) == rules


@pytest.mark.parametrize("name", ["composed", "_kept", "led_by", "held_over"])
def test_a_participle_alone_is_no_function_name(name: str) -> None:
    assert _rules("app/x.py", f"def {name}(): ...") == ["names"]


@pytest.mark.parametrize("name", ["compose", "read", "need", "is_frozen", "keyed_hash", "feed"])
def test_verbs_questions_and_nouns_are_function_names(name: str) -> None:
    assert _rules("app/x.py", f"def {name}(): ...") == []


def test_a_property_may_be_a_participle() -> None:
    assert _rules("app/x.py", "class A:\n    @property\n    def used(self): ...") == []


def test_a_long_first_sentence_is_found_at_its_function() -> None:
    source = 'def ask():\n    """Return ' + "a " * 13 + 'value.\n\n    More follows here.\n    """'
    assert [(breach.rule, breach.line) for breach in find_breaches("app/x.py", source)] == [("openings", 1)]


def test_a_long_test_name_is_found_in_tests_only() -> None:
    source = f"def test_{'x' * 66}(): ..."
    assert _rules("tests/x.py", source) == ["tests"]
    assert _rules("app/x.py", source) == []


def test_markdown_is_checked_outside_of_code() -> None:
    source = "# Title\n\n```\nwhoever\n```\n\nNobody reads `whatever`.\n"
    assert [(breach.words, breach.line) for breach in find_breaches("docs/x.md", source)] == [("Nobody", 7)]


def test_budgets_only_fall(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a.md").write_text("Nobody is told.")
    monkeypatch.setattr(check_prose, "ROOT", tmp_path)
    monkeypatch.setattr(check_prose, "BUDGET", tmp_path / "budget.json")
    monkeypatch.setattr(check_prose, "_list_files", lambda: ["a.md"])
    assert check_prose.main([]) == 1

    assert check_prose.main(["--lower"]) == 0
    assert json.loads((tmp_path / "budget.json").read_text()) == {"a.md": {"markers": 2}}
    assert check_prose.main([]) == 0

    (tmp_path / "a.md").write_text("Nobody is there.")
    assert check_prose.main([]) == 1
    assert "lower the budget" in capsys.readouterr().out
    check_prose.main(["--lower"])

    (tmp_path / "a.md").write_text("Nobody is told.")
    check_prose.main(["--lower"])
    assert check_prose.main([]) == 1
