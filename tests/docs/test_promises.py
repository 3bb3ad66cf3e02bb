"""The promises in ``docs/privacy.md`` point to tests that name them."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ROWS = dict(re.findall(r"^\| (W\d+) \|(.*)\|$", (ROOT / "docs" / "privacy.md").read_text(), re.MULTILINE))


def test_every_promise_is_in_the_table() -> None:
    assert set(ROWS) == {f"W{number}" for number in range(1, 17)}


@pytest.mark.parametrize("promise", sorted(ROWS))
def test_the_tests_of_a_promise_name_it(promise: str) -> None:
    *_, held, tests = ROWS[promise].split("|")
    assert all((ROOT / path).exists() for path in re.findall(r"`((?:app|workers|tools)/[^`]*)`", held))
    paths = [ROOT / path for path in re.findall(r"`(tests/[^`]*)`", tests)]
    assert paths
    for path in paths:
        files = sorted(path.glob("*.py")) if path.is_dir() else [path]
        assert any(re.search(rf"\b{promise}\b", file.read_text()) for file in files), path
