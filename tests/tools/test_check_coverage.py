"""The coverage check fails below its share, and for packages that were not measured."""

import json
from pathlib import Path
from typing import Any

import pytest

from tools.check_coverage import PACKAGES, main, read_coverage


def report(missing: dict[str, int], branches: int = 100) -> dict[str, Any]:
    """Make a report of one file a package, where tests miss ``missing`` branches."""
    return {
        "files": {
            f"{package}/module.py": {
                "summary": {"num_branches": branches},
                "missing_branches": [[line, -1] for line in range(missing.get(package, 0))],
            }
            for package in PACKAGES
        }
    }


def exit_code(folder: Path, content: dict[str, Any]) -> int:
    path = folder / "coverage.json"
    path.write_text(json.dumps(content))
    return main(str(path))


def test_95_of_100_branches_pass(tmp_path: Path) -> None:
    assert exit_code(tmp_path, report(dict.fromkeys(PACKAGES, 5))) == 0


@pytest.mark.parametrize("package", PACKAGES)
def test_94_of_100_branches_of_one_package_fail(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], package: str
) -> None:
    assert exit_code(tmp_path, report({package: 6})) == 1
    printed = capsys.readouterr().out
    assert f"{package}: 94.0% of 100 branches\n  {package}/module.py:0->-1\n" in printed


def test_package_that_was_not_measured_fails(tmp_path: Path) -> None:
    assert exit_code(tmp_path, report({}, branches=0)) == 1
    assert exit_code(tmp_path, {"files": {}}) == 1


def test_file_of_another_package_does_not_count() -> None:
    files = {"app/privacy_other.py": {"summary": {"num_branches": 4}, "missing_branches": []}}
    assert [each.branches for each in read_coverage({"files": files})] == [0, 0, 0]
