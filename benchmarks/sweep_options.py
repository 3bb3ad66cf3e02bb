"""Command-line options of sweeps over fresh tables."""

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks.outcomes import EPSILONS, Engine, Outcome
from benchmarks.sweep import Sweep, read_outcomes, run_sweep
from benchmarks.tables import KINDS, draw_seed
from benchmarks.tables.real import PACKAGES, list_missing_packages

REAL = "real"


def add_options(parser: argparse.ArgumentParser, out: Path, tables: int) -> None:
    """Add the options of a sweep that writes ``out``."""
    parser.add_argument("--tables", type=int, default=tables, help="the number of tables (%(default)s)")
    parser.add_argument("--epsilons", type=float, nargs="+", default=list(EPSILONS))
    parser.add_argument("--in-turn", action="store_true", help="measure each table at one epsilon only, in turn")
    parser.add_argument("--seed", type=int, help="the seed of the tables; by default a fresh one is drawn")
    parser.add_argument("--groups", nargs="+", choices=list_groups(), default=list_groups())
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--out", type=Path, default=out, help="the CSV file; the page is in the same folder")
    parser.add_argument("--resume", action="store_true", help="continue a stopped sweep of the same options")


def list_groups() -> list[str]:
    """List the groups of kinds."""
    return list(dict.fromkeys(kind.group for kind in KINDS.values()))


def parse_engine(text: str) -> Engine:
    """Parse ``method`` or ``method:{"parameter": value}``.

    Raises:
        argparse.ArgumentTypeError: if the parameters are not a JSON object.
    """
    method, _, parameters = text.partition(":")
    try:
        return Engine(method, dict(json.loads(parameters or "{}")), text)
    except (ValueError, TypeError) as error:
        raise argparse.ArgumentTypeError("write METHOD or METHOD:{JSON object of parameters}") from error


def run_options(options: argparse.Namespace, engines: Sequence[Engine]) -> tuple[Sweep, list[Outcome]]:
    """Run the sweep of these options, and print its seed and progress."""
    check_packages(options.groups)
    part = options.out.with_suffix(".part")
    if part.exists() and not options.resume:
        sys.exit(f"{part} is of a stopped sweep: add --resume, or remove it")
    kinds = tuple(name for name, kind in KINDS.items() if kind.group in options.groups)
    epsilons = tuple(sorted(options.epsilons))
    sweep = Sweep(choose_seed(options.seed, part), options.tables, kinds, epsilons, tuple(engines), options.in_turn)
    print(f"seed {sweep.seed}", flush=True)

    def show(done: int) -> None:
        if done % 10 == 0 or done == sweep.tables:
            print(f"{done} of {sweep.tables} tables", file=sys.stderr, flush=True)

    return sweep, run_sweep(sweep, options.out, options.processes, show)


def choose_seed(stated: int | None, part: Path) -> int:
    """Choose the stated seed, that of a stopped sweep, or a fresh one."""
    if stated is not None:
        return stated
    outcomes = read_outcomes(part)
    return outcomes[0].seed if outcomes else draw_seed()


def check_packages(groups: Sequence[str]) -> None:
    """Exit with instructions if packages of the real tables are missing."""
    missing = list_missing_packages() if REAL in groups else []
    if missing:
        others = " ".join(group for group in list_groups() if group != REAL)
        sys.exit(
            f"Real tables come from {', '.join(PACKAGES.values())}. Install {', '.join(missing)}: "
            f"`pip install {' '.join(missing)}`, or in another folder that PYTHONPATH names. "
            f"Or leave real tables out: `--groups {others}`."
        )
