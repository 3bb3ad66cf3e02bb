"""Check that names, docstrings, comments, messages and documents are in plain technical English.

Four rules, for every Python and Markdown file that git tracks:

- ``markers``: the turns of phrase in ``tools/prose/markers.txt``, and sentences of more than 25 words;
- ``names``: functions named by a participle alone (``composed``) instead of a verb (``compose``);
- ``openings``: first sentences of docstrings with more than 14 words;
- ``tests``: names of tests with more than 70 characters.

``tools/prose/budget.json`` holds how many breaches each file still has. A file may not exceed its budget, and a file
that has become better must have its budget lowered, so that budgets only fall. A file without a budget has none.

Run ``python tools/check_prose.py``; it exits with 1 on a breach. ``--lower`` lowers the budgets, ``--list PATH...``
shows every breach below the paths, and ``--report`` shows the rate of markers by folder.
"""

import argparse
import ast
import io
import json
import re
import subprocess
import sys
import tokenize
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
WORDS = ROOT / "tools" / "prose"
BUDGET = WORDS / "budget.json"
RULES = ("markers", "names", "openings", "tests")
LONGEST_SENTENCE, LONGEST_OPENING, LONGEST_TEST_NAME = 25, 14, 70
SHORTEST_MESSAGE = 4
"""Words from which a string in the code counts as prose."""


def _read_words(name: str) -> list[str]:
    return (WORDS / f"{name}.txt").read_text().splitlines()


MARKERS = re.compile(rf"\b(?:{'|'.join(_read_words('markers'))})\b", re.IGNORECASE)
"""Ten times as frequent in the first version of this project as in httpx, dp_accounting, SQLAlchemy and SciPy."""

IRREGULAR = frozenset(_read_words("irregular_participles"))
NO_PARTICIPLES = frozenset(_read_words("no_participles"))
"""Words that end like a participle and are none."""
SMALL_WORDS = frozenset(_read_words("small_words"))
"""Words that do not turn a participle into a verb or a noun."""
FENCED = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
INLINE_CODE = re.compile(r"(`+).+?\1|https?://\S+", re.DOTALL)
HEADING = re.compile(r"^(#+ .*)$", re.MULTILINE)
SENTENCE_END = re.compile(r"(?<=[.!?:;])\s+|\n\s*\n|\n\s*(?:[-*|#>]|\d+\.)\s*|\|")


@dataclass(frozen=True)
class Breach:
    """One place that breaks a rule."""

    rule: str
    line: int
    words: str


@dataclass(frozen=True)
class Prose:
    """A piece of running text and the line where it begins."""

    line: int
    text: str


def find_breaches(path: str, source: str) -> list[Breach]:
    """Find the breaches in one file.

    Args:
        path: relative to the root, with slashes; its suffix decides how ``source`` is read.
        source: the file's text.
    """
    if path.endswith(".md"):
        return list(_check_prose([Prose(1, FENCED.sub(_blank_out, source))]))
    tree = ast.parse(source)
    found = [*_check_prose([*_read_strings(tree), *_read_comments(source)]), *_check_openings(tree)]
    found += _check_test_names(tree) if path.startswith("tests/") else _check_names(tree)
    return sorted(found, key=lambda breach: breach.line)


def count_words(path: str, source: str) -> int:
    """Count the words of prose in one file."""
    if path.endswith(".md"):
        return len(FENCED.sub("", source).split())
    return sum(len(prose.text.split()) for prose in (*_read_strings(ast.parse(source)), *_read_comments(source)))


def _read_strings(tree: ast.AST) -> Iterator[Prose]:
    """Yield docstrings, and strings in the code that are long enough to be sentences."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and _is_message(node.value):
            yield Prose(node.lineno, node.value)


def _is_message(text: str) -> bool:
    return len(text.split()) >= SHORTEST_MESSAGE


def _read_comments(source: str) -> Iterator[Prose]:
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            yield Prose(token.start[0], token.string.lstrip("# "))


def _check_prose(pieces: Iterable[Prose]) -> Iterator[Breach]:
    for piece in pieces:
        text = HEADING.sub(r"\1.", INLINE_CODE.sub(_blank_out, piece.text))
        for match in MARKERS.finditer(text):
            yield Breach("markers", piece.line + text.count("\n", 0, match.start()), match.group().strip())
        start = 0
        for sentence in SENTENCE_END.split(text):
            start = text.index(sentence, start)
            length = len(sentence.split())
            if length > LONGEST_SENTENCE:
                yield Breach("markers", piece.line + text.count("\n", 0, start), f"a sentence of {length} words")


def _blank_out(match: re.Match[str]) -> str:
    """Replace code by one word and its line breaks, which keeps positions right."""
    return "code" + "\n" * match.group().count("\n")


def _check_openings(tree: ast.AST) -> Iterator[Breach]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            opening = re.split(r"(?<=[.!?:;])\s|\n\s*\n", ast.get_docstring(node) or "")[0]
            if len(opening.split()) > LONGEST_OPENING:
                yield Breach("openings", getattr(node, "lineno", 1), f"{len(opening.split())} words: {opening[:60]}…")


def _check_names(tree: ast.AST) -> Iterator[Breach]:
    for function in _walk_functions(tree):
        is_property = any("property" in ast.unparse(decorator) for decorator in function.decorator_list)
        if _is_participle_only(function.name) and not is_property:
            yield Breach("names", function.lineno, function.name)


def _is_participle_only(name: str) -> bool:
    words = [word for word in name.split("_") if word]
    participles = [word in IRREGULAR or (word.endswith("ed") and word not in NO_PARTICIPLES) for word in words]
    return any(participles) and all(
        is_one or word in SMALL_WORDS for word, is_one in zip(words, participles, strict=True)
    )


def _check_test_names(tree: ast.AST) -> Iterator[Breach]:
    for function in _walk_functions(tree):
        if function.name.startswith("test_") and len(function.name) > LONGEST_TEST_NAME:
            yield Breach("tests", function.lineno, function.name)


def _walk_functions(tree: ast.AST) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


def _list_files() -> list[str]:
    command = ("git", "ls-files", "--cached", "--others", "--exclude-standard", "*.py", "*.md")
    listed = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout.split()
    return [path for path in listed if "migrations/versions/" not in path and (ROOT / path).exists()]


def _compare(path: str, found: list[Breach], budget: dict[str, int]) -> Iterator[str]:
    counts = Counter(breach.rule for breach in found)
    for rule in RULES:
        allowed = budget.get(rule, 0)
        if counts[rule] > allowed:
            yield f"{path}: {counts[rule]} {rule}, {allowed} allowed"
            yield from (f"  {path}:{each.line}: {each.words}" for each in found if each.rule == rule)
        elif counts[rule] < allowed:
            yield f"{path}: {counts[rule]} {rule}, {allowed} allowed: lower the budget with --lower"


def _lower(budgets: dict[str, dict[str, int]], found: dict[str, list[Breach]]) -> dict[str, dict[str, int]]:
    """Lower each budget to the present count; where there are no budgets at all, start with the present counts."""
    lowered: dict[str, dict[str, int]] = {}
    for path, breaches in sorted(found.items()):
        counts = Counter(breach.rule for breach in breaches)
        allowed = budgets.get(path, {}) if budgets else counts
        lowered[path] = {rule: min(counts[rule], allowed.get(rule, 0)) for rule in RULES}
        lowered[path] = {rule: count for rule, count in lowered[path].items() if count}
    return {path: budget for path, budget in lowered.items() if budget}


def _report(found: dict[str, list[Breach]]) -> Iterator[str]:
    words: Counter[str] = Counter()
    breaches: dict[str, Counter[str]] = {}
    for path, listed in found.items():
        folder = "/".join(path.split("/")[:-1][:2]) or path
        words[folder] += count_words(path, (ROOT / path).read_text())
        breaches.setdefault(folder, Counter()).update(breach.rule for breach in listed)
    for folder, counts in sorted(breaches.items()):
        rate = 1000 * counts["markers"] / max(words[folder], 1)
        rest = ", ".join(f"{counts[rule]} {rule}" for rule in RULES[1:])
        yield f"{folder:36} {words[folder]:7} words, {rate:5.1f} markers in 1,000, {rest}"


def main(arguments: list[str] | None = None) -> int:
    """Check the tree; return the exit code."""
    parser = argparse.ArgumentParser(description="Check that the project's prose is plain technical English.")
    parser.add_argument("--lower", action="store_true", help="lower the budgets to the present counts")
    parser.add_argument("--report", action="store_true", help="show the rate of markers by folder")
    parser.add_argument("--list", nargs="+", metavar="PATH", help="show every breach below the paths")
    options = parser.parse_args(arguments)
    listed = [path for path in _list_files() if path.startswith(tuple(options.list or [""]))]
    found = {path: find_breaches(path, (ROOT / path).read_text()) for path in listed}
    budgets: dict[str, dict[str, int]] = json.loads(BUDGET.read_text()) if BUDGET.exists() else {}
    if options.lower:
        lines = [f"  {json.dumps(path)}: {json.dumps(budget)}" for path, budget in _lower(budgets, found).items()]
        BUDGET.write_text("{\n" + ",\n".join(lines) + "\n}\n")
        return 0
    if options.list:
        lines = [
            f"{path}:{each.line}: {each.rule}: {each.words}" for path, breaches in found.items() for each in breaches
        ]
    elif options.report:
        lines = list(_report(found))
    else:
        lines = [line for path in found for line in _compare(path, found[path], budgets.get(path, {}))]
        lines += [f"{path}: no such file: lower the budget with --lower" for path in budgets.keys() - found.keys()]
    sys.stdout.writelines(f"{line}\n" for line in lines)
    return 1 if lines and not (options.list or options.report) else 0


if __name__ == "__main__":
    sys.exit(main())
