"""Checks that no module imports itself through others.

Run as ``python tools/check_cycles.py``; prints one line for each cycle and exits with 1 if there is any. Importing a
module imports its packages, too. Imports in functions and for types alone do not count.
"""

import ast
import sys
from collections.abc import Iterator, Mapping, Sequence
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SOURCES = ("app", "workers", "support", "benchmarks", "client/src/corevault")


def list_modules(root: Path) -> dict[str, Path]:
    """List the files of all modules by name."""
    modules = dict[str, Path]()
    for source in SOURCES:
        folder = root / source
        for file in sorted(folder.rglob("*.py")):
            parts = [folder.name, *file.relative_to(folder).with_suffix("").parts]
            modules[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = file
    return modules


def find_imports(name: str, source: str, modules: Mapping[str, Path]) -> set[str]:
    """Find the modules that ``name`` imports, without its packages."""
    found = set[str]()
    for statement in _list_imports(ast.parse(source).body):
        if isinstance(statement, ast.Import):
            names = [alias.name for alias in statement.names]
        else:
            names = [f"{statement.module}.{alias.name}" for alias in statement.names]
        for each in names:
            parts = each.split(".")
            found.update(".".join(parts[:length]) for length in range(1, len(parts) + 1))
    return {each for each in found if each in modules and each != name and not name.startswith(f"{each}.")}


def _list_imports(statements: Sequence[ast.stmt]) -> Iterator[ast.Import | ast.ImportFrom]:
    for statement in statements:
        if isinstance(statement, ast.Import | ast.ImportFrom):
            yield statement
        elif isinstance(statement, ast.Try):
            yield from _list_imports(statement.body)
        elif isinstance(statement, ast.If) and "TYPE_CHECKING" not in ast.unparse(statement.test):
            yield from _list_imports([*statement.body, *statement.orelse])


def find_cycle(graph: Mapping[str, set[str]]) -> list[str]:
    """Find one cycle, each module importing the next; empty if there is none."""
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return list(reversed(error.args[1]))
    return []


def main() -> int:
    """Print a cycle, and return 1 if there is one."""
    modules = list_modules(ROOT)
    cycle = find_cycle({name: find_imports(name, file.read_text(), modules) for name, file in modules.items()})
    if cycle:
        sys.stdout.write(f"these modules import each other: {' > '.join(cycle)}\n")
    return 1 if cycle else 0


if __name__ == "__main__":
    sys.exit(main())
