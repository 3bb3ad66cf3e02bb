"""Checks security boundaries that import contracts cannot express, on the syntax tree.

Run as ``python tools/check_boundaries.py``; prints one line for each breach and exits with 1 if there is any.
"""

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CHECKED = ("app", "workers", "client/src")
COMMITS = frozenset({"app/db/session.py", "app/db/group_commit.py"})
RANDOMNESS = {"app/inference/private_zone/rng.py"}
OPENS = (
    "workers/run_limits.py",
    "app/dashboard/assets.py",
    "app/http/guide/site.py",
    "app/vault/",
    "app/cli",
    "app/queue/files.py",
    "workers/enclave/",
    "client/src/",
)
LEDGER = ("app/ledger/", "migrations/")
NOISE = "app/inference/private_zone/mechanisms.py"
FILE_CALLS = {"open", "read_text", "read_bytes", "write_text", "write_bytes"}
OTHER_OPENS = {"ledger", "lifecycle", "store"}
"""Objects with a method ``open`` that opens no local file."""
HARMLESS_RANDOM = {"Generator", "BitGenerator"}
CORE = "app/inference/"
SEED = re.compile("seed", re.IGNORECASE)
SOURCES_OF_RANDOMNESS = {
    "app/inference/private_zone/rng.py": re.compile(r"default_rng|secrets|ChaCha(?!20)"),
    "app/inference/private_zone/mechanisms.py": re.compile("opendp"),
}
"""Words that only one file of the core may contain, also in comments and strings, because names can be looked up."""
SQL_ON_LEDGER = re.compile(r"\b(select|insert|update|delete|drop|alter)\b.*\bledger_", re.IGNORECASE | re.DOTALL)
LONGEST_FILE, LONGEST_FUNCTION = 400, 60

Breach = tuple[int, str]


def find_breaches(path: str, source: str) -> Iterator[Breach]:
    """Find every breach in one file, with its line number; ``path`` is relative to the root."""
    if source.count("\n") > LONGEST_FILE:
        yield 1, f"a file is at most {LONGEST_FILE} lines"
    if path.startswith(CORE):
        yield from _check_randomness(path, source)
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call):
            yield from _check_call(path, node)
        elif isinstance(node, ast.Attribute):
            yield from _check_attribute(path, node)
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield from _check_function(path, node)
        elif isinstance(node, ast.Constant):
            yield from _check_constant(path, node)
        if path.startswith(CORE):
            yield from _check_seed(node)


def _check_randomness(path: str, source: str) -> Iterator[Breach]:
    """Find sources of randomness outside the one module that may use each."""
    for line, text in enumerate(source.splitlines(), start=1):
        for only, word in SOURCES_OF_RANDOMNESS.items():
            if path != only and (match := word.search(text)):
                yield line, f"only {only} may contain {match[0]}"


def _check_seed(node: ast.AST) -> Iterator[Breach]:
    """Find arguments, attributes, names, functions, classes and imports of a seed."""
    names = [getattr(node, place, None) for place in ("arg", "id", "attr", "name", "asname")]
    if any(isinstance(name, str) and SEED.search(name) for name in names):
        yield getattr(node, "lineno", 1), "no code in the core may use a seed"


def _check_call(path: str, node: ast.Call) -> Iterator[Breach]:
    name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
    if name == "commit" and path not in COMMITS:
        yield node.lineno, "only app/db/session.py and app/db/group_commit.py may commit"
    if name in FILE_CALLS and not path.startswith(OPENS) and _receiver(node.func).lstrip("_") not in OTHER_OPENS:
        yield node.lineno, "only the vault, the enclave and the command line may open files"
    if name == "ClippedGaussianOracle" and _noise_of(node) != "DiscreteGaussian()":
        yield node.lineno, "an oracle of the service must get noise=DiscreteGaussian(), without a condition"


def _noise_of(node: ast.Call) -> str:
    """Return the source text of an oracle's argument ``noise``."""
    return "".join(ast.unparse(keyword.value) for keyword in node.keywords if keyword.arg == "noise")


def _check_constant(path: str, node: ast.Constant) -> Iterator[Breach]:
    if isinstance(node.value, str) and SQL_ON_LEDGER.search(node.value) and not path.startswith(LEDGER):
        yield node.lineno, "only app.ledger may run SQL on the ledger's tables"


def _receiver(function: ast.expr) -> str:
    """Return the last name before the method: ``ledger`` for ``self.ledger.open``."""
    value = function.value if isinstance(function, ast.Attribute) else None
    return value.attr if isinstance(value, ast.Attribute) else getattr(value, "id", "")


def _check_attribute(path: str, node: ast.Attribute) -> Iterator[Breach]:
    of_numpy = isinstance(node.value, ast.Attribute) and node.value.attr == "random"
    if of_numpy and node.attr not in HARMLESS_RANDOM and path not in RANDOMNESS:
        yield node.lineno, "only app/inference/private_zone/rng.py may make random generators; pass them as arguments"


def _check_function(path: str, node: ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[Breach]:
    arguments = (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)
    if any(re.search(r"(^|_)seed(_|$)", argument.arg) for argument in arguments) and not path.startswith("app/vault/"):
        yield node.lineno, "no function may take a seed"
    if node.name == "perturb" and path != NOISE:
        yield (
            node.lineno,
            f"only {NOISE} may define a noise source (besides tests and benchmarks)",
        )
    if (node.end_lineno or node.lineno) - node.lineno >= LONGEST_FUNCTION:
        yield node.lineno, f"a function is at most {LONGEST_FUNCTION} lines"


def main() -> int:
    count = 0
    for folder in CHECKED:
        for file in sorted((ROOT / folder).rglob("*.py")):
            path = file.relative_to(ROOT).as_posix()
            for line, message in find_breaches(path, file.read_text()):
                count += 1
                sys.stdout.write(f"{path}:{line}: {message}\n")
    return 1 if count else 0


if __name__ == "__main__":
    sys.exit(main())
