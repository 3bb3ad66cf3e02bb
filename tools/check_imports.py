"""Checks that benchmarks never import tests, nor tests benchmarks.

Both may import ``support``, and the service imports neither of the three. Run as ``python tools/check_imports.py``;
prints one line for each breach and exits with 1 if there is any.
"""

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FORBIDDEN = {
    "app": {"tests", "benchmarks", "support"},
    "workers": {"tests", "benchmarks", "support"},
    "migrations": {"tests", "benchmarks", "support"},
    "client": {"tests", "benchmarks", "support"},
    "support": {"tests", "benchmarks"},
    "benchmarks": {"tests"},
    "tests": {"benchmarks"},
}
ABOUT_BENCHMARKS = ("tests/benchmarks/",)
"""Tests of the benchmarks' code, and checks that measure with it."""


def find_breaches(path: str, source: str) -> Iterator[tuple[int, str]]:
    """Find line and package of every forbidden import in one file; ``path`` is relative to the root."""
    forbidden = set() if path.startswith(ABOUT_BENCHMARKS) else FORBIDDEN[path.split("/", maxsplit=1)[0]]
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import | ast.ImportFrom):
            for name in _list_modules(node):
                if name.split(".")[0] in forbidden:
                    yield node.lineno, name.split(".")[0]


def _list_modules(node: ast.Import | ast.ImportFrom) -> list[str]:
    return [alias.name for alias in node.names] if isinstance(node, ast.Import) else [node.module or ""]


def main() -> int:
    """Print all breaches; return 1 if there is any."""
    count = 0
    for folder in FORBIDDEN:
        for file in sorted((ROOT / folder).rglob("*.py")):
            path = file.relative_to(ROOT).as_posix()
            for line, package in find_breaches(path, file.read_text()):
                count += 1
                sys.stdout.write(f"{path}:{line}: {folder} imports {package}\n")
    return 1 if count else 0


if __name__ == "__main__":
    sys.exit(main())
