"""Checks that tests cover almost every branch of the packages behind the privacy promises.

``python tools/check_coverage.py coverage.json`` reads a report of ``coverage json``. It prints each package's share of
branches, and every branch not taken. It exits with 1 if a package is below the least share.
"""

import json
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

PACKAGES = ("app/privacy", "app/ledger", "workers/enclave")
LEAST_SHARE = 0.95


@dataclass(frozen=True, slots=True)
class PackageCoverage:
    """Branches of one package; ``missing`` has ``file:line->line`` for each one not taken."""

    package: str
    branches: int
    missing: tuple[str, ...]

    @property
    def share(self) -> float:
        """The share of covered branches, between 0 and 1. A package that was not measured has 0."""
        return 1 - len(self.missing) / self.branches if self.branches else 0.0


def read_coverage(report: Mapping[str, Any]) -> Iterator[PackageCoverage]:
    """Read the coverage of each of :data:`PACKAGES` from a report with branches."""
    for package in PACKAGES:
        files = {path: file for path, file in report["files"].items() if path.startswith(f"{package}/")}
        branches = sum(file["summary"]["num_branches"] for file in files.values())
        missing = [f"{path}:{a}->{b}" for path, file in sorted(files.items()) for a, b in file["missing_branches"]]
        yield PackageCoverage(package, branches, tuple(missing))


def main(path: str) -> int:
    """Print the report; return 1 if a package is below :data:`LEAST_SHARE`."""
    packages = list(read_coverage(json.loads(Path(path).read_text())))
    for each in packages:
        sys.stdout.write(f"{each.package}: {each.share:.1%} of {each.branches} branches\n")
        sys.stdout.writelines(f"  {branch}\n" for branch in each.missing)
    return 1 if any(each.share < LEAST_SHARE for each in packages) else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
