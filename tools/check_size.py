"""Checks the size of the default method's engine: modules, lines, and numbers that somebody chose.

``python tools/check_size.py`` prints the size and its limits, and fails above them. A smaller engine lowers the
limits. A larger one needs a reason: a gain on tables it was not made for.
"""

import ast
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

ROOT: Final = Path(__file__).resolve().parents[1]
ENGINE: Final = ROOT / "app" / "inference" / "methods" / "surrogate"


class Size(NamedTuple):
    """The size of a package.

    ``statements`` are lines of code, without blank lines, comments and docstrings. ``numbers`` are constants of modules
    and fields of the tuning that hold a number.
    """

    modules: int
    lines: int
    statements: int
    numbers: int


LIMITS: Final = Size(modules=15, lines=3156, statements=1824, numbers=99)


def measure(folder: Path) -> Size:
    """Measure the package in ``folder``."""
    texts = [path.read_text() for path in sorted(folder.glob("*.py"))]
    trees = [ast.parse(text) for text in texts]
    return Size(
        modules=sum(bool(tree.body[1:]) for tree in trees),
        lines=sum(text.count("\n") for text in texts),
        statements=sum(_count_statements(text, tree) for text, tree in zip(texts, trees, strict=True)),
        numbers=sum(len(list(_list_numbers(tree))) for tree in trees),
    )


def _count_statements(text: str, tree: ast.Module) -> int:
    words = set[int]()
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            words.update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    lines = enumerate(text.splitlines(), 1)
    return sum(
        bool(line.strip()) and not line.strip().startswith("#") and number not in words for number, line in lines
    )


def _list_numbers(tree: ast.Module) -> Iterator[str]:
    """Yield assignments of numbers in a module and its classes."""
    bodies = [tree.body, *(node.body for node in tree.body if isinstance(node, ast.ClassDef))]
    for statement in (each for body in bodies for each in body):
        value = getattr(statement, "value", None)
        if isinstance(statement, ast.Assign | ast.AnnAssign) and value is not None and _is_number(value):
            yield ast.unparse(statement)


def _is_number(value: ast.expr) -> bool:
    if isinstance(value, ast.Tuple):
        return bool(value.elts) and all(map(_is_number, value.elts))
    allowed = (ast.Constant, ast.UnaryOp, ast.BinOp, ast.operator, ast.unaryop)
    held = list(ast.walk(value))
    constants = [node.value for node in held if isinstance(node, ast.Constant)]
    numeric = all(isinstance(each, int | float) and not isinstance(each, bool) for each in constants)
    return bool(constants) and numeric and all(isinstance(node, allowed) for node in held)


def main() -> int:
    """Print the size, and return 1 if it is beyond the limits."""
    size = measure(ENGINE)
    parts = (f"{getattr(size, name)} {name} of {getattr(LIMITS, name)}" for name in Size._fields)
    sys.stdout.write(f"engine: {', '.join(parts)}\n")
    return int(any(found > limit for found, limit in zip(size, LIMITS, strict=True)))


if __name__ == "__main__":
    sys.exit(main())
