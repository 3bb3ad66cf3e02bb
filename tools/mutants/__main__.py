"""Runs mutants in a copy of the tree: ``python -m tools.mutants``.

For each mutant it prints the catcher, and at the end the share that was caught and the names of the others. The exit
status is 1 if a mutant survives or a catcher fails on the unchanged tree. It is also 1 if a catcher's message does not
name the promise. ``--only WORDS`` runs the mutants whose promise, name and file contain the words.
"""

import argparse
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from tools.mutants.mutant import Mutant
from tools.mutants.table import EQUIVALENT, MUTANTS

ROOT: Final = Path(__file__).resolve().parents[2]
BIN: Final = Path(sys.executable).parent
_SECONDS: Final = 1800
_FAILED: Final = 1
"""Exit status of pytest and of commands if a check failed; others are errors of the check itself."""
_PROMISES_OF_COMMANDS: Final = {"tools/check_boundaries.py": "W7", "corevaultd audit --section filter": "W9"}


def copy_tree(target: Path) -> None:
    """Copy all files that git tracks, as they are in the working tree."""
    listed = subprocess.run(("git", "ls-files", "-z"), cwd=ROOT, check=True, capture_output=True).stdout.decode()
    for name in filter(None, listed.split("\0")):
        if (ROOT / name).is_file():
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, target / name)


@contextmanager
def change(tree: Path, mutant: Mutant) -> Iterator[None]:
    """Apply a mutant to the copy, and restore the file at the end."""
    file = tree / mutant.file
    source = file.read_text()
    file.write_text(mutant.apply(source))
    try:
        yield
    finally:
        file.write_text(source)


def make_command(catcher: str) -> list[str]:
    """Make the command of a catcher."""
    if catcher.startswith("tests/"):
        return [str(BIN / "pytest"), "-q", "-x", "-p", "no:cacheprovider", "-p", "no:schemathesis", catcher]
    if catcher.startswith("tools/"):
        return [sys.executable, catcher]
    name, *arguments = shlex.split(catcher)
    return [sys.executable, "-c", "from app.cli import main; main()", *arguments] if name == "corevaultd" else []


def run_catcher(tree: Path, catcher: str) -> tuple[int, str]:
    """Run a catcher in the copy; return its exit status and output."""
    path = os.pathsep.join((str(tree), str(tree / "client" / "src")))
    done = subprocess.run(
        make_command(catcher),
        cwd=tree,
        env=os.environ | {"PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        timeout=_SECONDS,
        check=False,
    )
    return done.returncode, done.stdout + done.stderr


def names_promise(mutant: Mutant, output: str) -> bool:
    """Whether the message of a failed catcher names the promise."""
    if mutant.catcher.startswith("corevaultd audit"):
        return "REFUTED" in output
    return mutant.promise.lower() in output.lower() or _PROMISES_OF_COMMANDS.get(mutant.catcher) == mutant.promise


def judge(tree: Path, mutant: Mutant) -> str:
    """Run one mutant; return ``caught``, or the fault."""
    with change(tree, mutant):
        status, output = run_catcher(tree, mutant.catcher)
    if status == 0:
        return "SURVIVED"
    if status != _FAILED:
        return f"ERROR {status}: {output[-300:]}"
    return "caught" if names_promise(mutant, output) else f"UNNAMED: the message does not name {mutant.promise}"


def run(mutants: Sequence[Mutant], tree: Path, *, baseline: bool) -> tuple[int, list[str]]:
    """Run the catchers on the unchanged copy, then all mutants.

    Returns:
        The number of faults, and the names of mutants that were not caught.
    """
    faults, missed = 0, []
    for catcher in dict.fromkeys(mutant.catcher for mutant in mutants if baseline):
        status, output = run_catcher(tree, catcher)
        if status != 0:
            faults += 1
            sys.stdout.write(f"fails without a mutant: {catcher}\n{output[-500:]}\n")
            sys.stdout.flush()
    for mutant in mutants:
        begin = time.monotonic()
        verdict = judge(tree, mutant)
        missed += [] if verdict == "caught" else [mutant.name]
        seconds = time.monotonic() - begin
        sys.stdout.write(f"{mutant.promise:4}{mutant.name} -> {mutant.catcher}: {verdict} ({seconds:.0f} s)\n")
        sys.stdout.flush()
    return faults + len(missed), missed


def choose(words: Sequence[str]) -> list[Mutant]:
    """Choose the mutants whose promise, name and file contain any of ``words``."""
    return [
        mutant for mutant in MUTANTS if any(each in f"{mutant.promise} {mutant.name} {mutant.file}" for each in words)
    ]


def main() -> int:
    """Run the chosen mutants; return 1 if there is a fault."""
    parser = argparse.ArgumentParser(description="Run mutants of the code in a copy of the tree.")
    parser.add_argument("--only", action="append", help="run mutants whose promise, name and file contain this")
    parser.add_argument("--no-baseline", action="store_true", help="do not run the catchers on the unchanged tree")
    options = parser.parse_args()
    chosen = choose(options.only or [""])
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        copy_tree(Path(folder))
        faults, missed = run(chosen, Path(folder), baseline=not options.no_baseline)
    for name, reason in EQUIVALENT.items():
        sys.stdout.write(f"equivalent: {name} ({reason})\n")
    for name in missed:
        sys.stdout.write(f"not caught: {name}\n")
    rate = 100 * (1 - len(missed) / len(chosen)) if chosen else 0.0
    sys.stdout.write(f"{len(chosen)} mutants, {rate:.1f} % caught, {len(missed)} not caught, {faults} faults\n")
    return int(faults > 0)


if __name__ == "__main__":
    sys.exit(main())
