"""Expected accuracy of quotes against that of releases: ``make accuracy``.

Draws tables of every kind (:mod:`benchmarks.tables`) and releases each at every epsilon, as :mod:`benchmarks.outcomes`
does. A release states by how much noise widens its intervals; a quote estimates it from the declaration alone. There
are two results. One is the share of releases whose median widening is within a factor of 1.5 of the estimate. The other
is the share of parameters whose widening is in the quoted range.
"""

import os

os.environ |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}

import argparse
import csv
import time
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Final

import numpy as np

from app.inference import expected_accuracy
from app.inference.core.model import Array64
from benchmarks.cases import Case
from benchmarks.environment import PAGES, describe_environment
from benchmarks.outcomes import EPSILONS, derive_seed
from benchmarks.runs import Job, make_plan, make_seeded_release
from benchmarks.tables import KINDS, Tables, draw_seed

METHOD: Final = "dp-psvi-surrogate"
FACTOR: Final = 1.5
_POINTS: Final = 50
_MOST_VALUES: Final = 2_000_000
"""Most slots times parameters of a table, so that a sweep takes less than an hour."""


@dataclass(frozen=True, slots=True)
class Line:
    """One release. Widenings and noises are medians over its parameters.

    ``within`` is the share of parameters within the factor, and ``in_range`` the share within the quoted range.
    """

    seed: int
    table: int
    group: str
    kind: str
    family: str
    slots: int
    parameters: int
    epsilon: float
    grade: str
    noise: float
    expected_noise: float
    widening: float
    expected_widening: float
    within: float
    in_range: float
    seconds: float

    @property
    def ratio(self) -> float:
        """The larger one of both widenings over the smaller one."""
        ratio = self.widening / self.expected_widening
        return max(ratio, 1 / ratio)


def measure_table(seed: int, number: int) -> Iterator[Line]:
    """Measure the releases of one table."""
    drawn = Tables(seed).draw(number)
    case = drawn.case
    size = max(_POINTS, case.problem.model.smallest_exact)
    for epsilon in EPSILONS:
        job = Job(case, METHOD, size, derive_seed(seed, number, epsilon), epsilon=epsilon)
        plan = make_plan(job)
        if not expected_accuracy.is_estimated(plan, case.facts):
            return
        start = time.process_time()
        estimate = expected_accuracy.estimate(plan, case.facts)
        seconds = time.process_time() - start
        release = make_seeded_release(job)
        noise, expected = (_values(each) for each in (release.diagnostics["noise_in_posterior_sds"], estimate.noise))
        widening, (low, high) = np.hypot(1, noise), np.array(list(estimate.widening_range.values())).T
        ratio = widening / np.hypot(1, expected)
        assert release.reliability is not None
        yield Line(
            seed=seed,
            table=number,
            group=KINDS[drawn.kind].group,
            kind=drawn.kind,
            family=case.spec.family,
            slots=case.facts.slots,
            parameters=case.problem.model.dimension,
            epsilon=epsilon,
            grade=release.reliability.grade.value,
            noise=float(np.median(noise)),
            expected_noise=float(np.median(expected)),
            widening=float(np.median(widening)),
            expected_widening=float(np.median(np.hypot(1, expected))),
            within=float(np.mean(np.maximum(ratio, 1 / ratio) <= FACTOR)),
            in_range=float(np.mean((low <= widening) & (widening <= high))),
            seconds=seconds,
        )


def _values(named: Mapping[str, float]) -> Array64:
    return np.array(list(named.values()))


def summarise(lines: list[Line]) -> Iterator[str]:
    """Summarise by group, grade and epsilon."""
    yield "| releases | number | within a factor of 1.5 | parameters in the range | median noise / estimate |"
    yield "|---|---|---|---|---|"
    yield _summarise("all", lines)
    for member in ("group", "grade", "epsilon"):
        for value in dict.fromkeys(sorted(getattr(line, member) for line in lines)):
            yield _summarise(f"{member} {value}", [line for line in lines if getattr(line, member) == value])
    calibrated = [line for line in lines if line.grade == "calibrated"]
    for group in dict.fromkeys(sorted(line.group for line in calibrated)):
        yield _summarise(f"calibrated, {group}", [line for line in calibrated if line.group == group])
    seconds = [line.seconds for line in lines]
    yield f"\nAn estimate took {np.median(seconds):.2f} s of a core (median), and at most {max(seconds):.2f} s."


def _summarise(name: str, lines: list[Line]) -> str:
    near = np.mean([line.ratio <= FACTOR for line in lines])
    each = np.mean([line.in_range for line in lines])
    ratio = np.median([line.noise / line.expected_noise for line in lines])
    return f"| {name} | {len(lines)} | {100 * near:.0f} % | {100 * each:.0f} % | {ratio:.2f} |"


def main() -> None:
    """Runs all tables, then writes figures and a summary."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tables", type=int, default=92)
    parser.add_argument("--seed", type=int, default=None, help="default: a fresh one")
    parser.add_argument("--out", type=Path, default=PAGES / "expected-accuracy.csv")
    options = parser.parse_args()
    seed, lines = draw_seed() if options.seed is None else options.seed, list[Line]()
    for number in range(options.tables):
        with warnings.catch_warnings(action="ignore"):
            try:
                case: Case = Tables(seed).draw(number).case
                if case.facts.slots * case.problem.model.dimension <= _MOST_VALUES:
                    lines += measure_table(seed, number)
            except Exception as error:  # noqa: BLE001  (a table whose package is missing, or without a release)
                print(f"table {number}: {type(error).__name__}")
        _write(options.out, lines)
    print(f"seed {seed}\n{describe_environment()}\n")
    print("\n".join(summarise(lines)))


def _write(path: Path, lines: list[Line]) -> None:
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, [field.name for field in fields(Line)])
        writer.writeheader()
        writer.writerows(asdict(line) for line in lines)


if __name__ == "__main__":
    main()
