"""Runs mutants in a copy of the tree: ``python -m tools.mutants``.

For each mutant it prints the catcher and the verdict, and at the end the share that was caught and the names of the
others. The exit status is 1 if a mutant survives or a catcher fails on the unchanged tree. It is also 1 if a catcher's
message does not name the promise.

``--only WORDS`` runs the mutants whose promise, name and file contain the words. ``--resume`` leaves out mutants with a
record of having been caught. Each run writes its records into ``docs/benchmarks``. The records of other mutants stay,
if mutant, file and catcher are the same. The page names the mutants without a record.
"""

import argparse
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from benchmarks.environment import describe_environment, find_commit
from tools.mutants.catchers import import_libraries, is_command, judge, list_failed, run_catcher, run_tests
from tools.mutants.gentle import SMALLEST
from tools.mutants.mutant import Mutant
from tools.mutants.records import (
    CAUGHT,
    RECORDS,
    Record,
    compute_digest,
    keep_current,
    read_records,
    write_records,
)
from tools.mutants.table import EQUIVALENT, MUTANTS
from tools.mutants.tree import change, copy_tree


def find_failing(tree: Path, catchers: Sequence[str]) -> dict[str, str]:
    """Find the catchers that fail on the unchanged copy, with their output.

    All tests run in one process. If one fails there, it runs again alone. A test that then succeeds counts as failing
    too.
    """
    tests = [each for each in catchers if not is_command(each)]
    status, output = run_tests(tree, tests, stop=False) if tests else (0, "")
    suspects = [each for each in tests if any(name.startswith(each) for name in list_failed(output))]
    if status != 0 and not suspects:  # no test could run
        suspects = tests
    results = {each: run_catcher(tree, each) for each in catchers if is_command(each) or each in suspects}
    return {name: output for name, (status, output) in results.items() if status != 0 or name in suspects}


def run_mutant(tree: Path, mutant: Mutant) -> Record:
    """Run one mutant."""
    begin = time.monotonic()
    with change(tree, mutant):
        verdict = judge(mutant, *run_catcher(tree, mutant.catcher))
    seconds = time.monotonic() - begin
    return Record(
        *(mutant.promise, mutant.name, mutant.file, mutant.catcher, verdict),
        seconds=seconds,
        commit=find_commit(),
        digest=compute_digest(mutant, tree),
    )


def run(mutants: Sequence[Mutant], tree: Path) -> Iterator[Record]:
    """Run the catchers on the unchanged copy, then the mutants whose catchers succeed."""
    failing = find_failing(tree, list(dict.fromkeys(mutant.catcher for mutant in mutants)))
    for catcher, output in failing.items():
        _print(f"fails without a mutant: {catcher}\n{output[-800:]}")
    for mutant in mutants:
        if mutant.catcher in failing:
            continue
        record = run_mutant(tree, mutant)
        _print(f"{record.promise:4}{record.mutant} -> {record.catcher}: {record.verdict} ({record.seconds:.1f} s)")
        yield record


def choose(words: Sequence[str]) -> list[Mutant]:
    """Choose the mutants whose promise, name and file contain any of ``words``."""
    return [
        mutant for mutant in MUTANTS if any(each in f"{mutant.promise} {mutant.name} {mutant.file}" for each in words)
    ]


def main() -> int:
    """Run the chosen mutants; return 1 if there is a fault."""
    parser = argparse.ArgumentParser(description="Run mutants of the code in a copy of the tree.")
    parser.add_argument("--only", action="append", help="run mutants whose promise, name and file contain this")
    parser.add_argument("--resume", action="store_true", help="run mutants without a record of having been caught")
    options = parser.parse_args()
    chosen, found = choose(options.only or [""]), keep_current(read_records(RECORDS), MUTANTS)
    waiting = [mutant for mutant in chosen if not (options.resume and _is_caught(found, mutant))]
    import_libraries()
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        copy_tree(Path(folder))
        for record in run(waiting, Path(folder)):
            found[record.mutant] = record
            write_records(RECORDS, _sort(found))
    write_page(found)
    missed = [mutant.name for mutant in chosen if not _is_caught(found, mutant)]
    for name in missed:
        _print(f"not caught: {name}")
    rate = 100 * (1 - len(missed) / len(chosen)) if chosen else 0.0
    _print(f"{len(chosen)} mutants, {rate:.1f} % caught, {len(missed)} not caught")
    return int(bool(missed))


def write_page(found: Mapping[str, Record]) -> None:
    """Write the page of all records; mutants without one are named."""
    if not found:
        return
    from tools.mutants.page import render_page  # noqa: PLC0415 - it imports the project, and forks come first

    page = render_page(
        _sort(found),
        [mutant.name for mutant in MUTANTS if mutant.name not in found],
        smallest=SMALLEST,
        others=EQUIVALENT,
        circumstances=describe_environment(),
    )
    RECORDS.with_suffix(".md").write_text(page)


def _is_caught(found: Mapping[str, Record], mutant: Mutant) -> bool:
    return mutant.name in found and found[mutant.name].verdict == CAUGHT


def _sort(found: Mapping[str, Record]) -> list[Record]:
    """Sort records as the table of mutants."""
    return [found[mutant.name] for mutant in MUTANTS if mutant.name in found]


def _print(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
