"""Releases of drawn tables compared with exact posteriors.

There is one line for each table, epsilon and engine.
"""

import math
import time
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

import numpy as np

from benchmarks.cases import Case, compute_full_posterior
from benchmarks.environment import find_commit
from benchmarks.floors import compute_release_floors
from benchmarks.measures import compute_prior_divergence, fit_posterior
from benchmarks.runs import Job, make_seeded_release
from benchmarks.stated import measure_coverage, read_statement
from benchmarks.tables import KINDS, Tables
from benchmarks.tables.drawn import Drawn
from support.divergence import compute_divergence

EPSILONS: Final = (0.05, 0.2, 1.0, 3.0)
_FEWEST_POINTS: Final = 50
_RELEASE: Final = 3
"""The stream of a seed for noise and random choices of releases; streams 1 and 2 are the tables'."""


@dataclass(frozen=True)
class Engine:
    """A private method with its parameters; ``label`` is its name in reports."""

    method: str
    parameters: Mapping[str, Any] = field(default_factory=dict)
    label: str = ""

    @property
    def name(self) -> str:
        """The label, or the method's id."""
        return self.label or self.method


@dataclass(frozen=True, slots=True)
class Outcome:
    """One release, in nats.

    ``kl`` is from its posterior to the full one, ``floor`` that of one release of the whole budget, ``prior_kl`` that
    of the prior. ``coverage`` and ``noise_coverage`` are shares of parameters (:class:`benchmarks.stated.Coverage`).
    ``failure`` names the exception of a run that gave no release, or of a table without an exact posterior.
    """

    engine: str
    seed: int
    table: int
    group: str
    kind: str
    design: str
    what: str
    family: str
    slots: int
    parameters: int
    epsilon: float
    release_seed: int
    kl: float = math.nan
    floor: float = math.nan
    prior_kl: float = math.nan
    noise_kl: float = math.nan
    trusted: bool = False
    grade: str = ""
    coverage: float = math.nan
    noise_coverage: float = math.nan
    seconds: float = math.nan
    failure: str = ""
    commit: str = ""


def derive_seed(seed: int, table: int, epsilon: float) -> int:
    """Derive the seed of a release; it is the same for every engine."""
    return int(np.random.SeedSequence((seed, _RELEASE, table, round(1e6 * epsilon))).generate_state(1)[0])


def measure_table(
    seed: int, table: int, kinds: tuple[str, ...], epsilons: Sequence[float], engines: Sequence[Engine]
) -> list[Outcome]:
    """Measure all releases of one table. A failure is a line too."""
    tables = Tables(seed, kinds)
    with warnings.catch_warnings(action="ignore"):
        drawn = tables.draw(table)
        return list(measure_drawn(drawn, seed, table, epsilons, engines))


def measure_drawn(
    drawn: Drawn, seed: int, table: int, epsilons: Sequence[float], engines: Sequence[Engine]
) -> Iterator[Outcome]:
    """Measure releases of a drawn table at each epsilon by each engine."""
    case, blank = drawn.case, _describe(drawn, seed, table)
    try:
        case = replace(case, exact=compute_full_posterior(case))
        floors, prior_kl = compute_release_floors(case, epsilons), compute_prior_divergence(case)
    except (ArithmeticError, np.linalg.LinAlgError) as error:
        blank = replace(blank, failure=f"no reference: {type(error).__name__}")
        floors, prior_kl = np.full(len(epsilons), math.nan), math.nan
    for epsilon, floor in zip(epsilons, floors, strict=True):
        at = replace(blank, epsilon=epsilon, release_seed=derive_seed(seed, table, epsilon))
        for engine in engines:
            line = replace(at, engine=engine.name, floor=float(floor), prior_kl=prior_kl)
            yield measure_release(case, engine, line)


def _describe(drawn: Drawn, seed: int, table: int) -> Outcome:
    case = drawn.case
    return Outcome(
        engine="",
        seed=seed,
        table=table,
        group=KINDS[drawn.kind].group,
        kind=drawn.kind,
        design=drawn.design,
        what=drawn.what,
        family=case.spec.family,
        slots=case.facts.slots,
        parameters=case.problem.model.dimension,
        epsilon=math.nan,
        release_seed=0,
        commit=find_commit(),
    )


def release_points(case: Case, engine: Engine, epsilon: float, seed: int) -> Any:
    """Run an engine on a case, in this process, with seeded noise."""
    size = max(_FEWEST_POINTS, case.problem.model.smallest_exact)
    return make_seeded_release(Job(case, engine.method, size, seed, engine.parameters, epsilon))


def measure_release(case: Case, engine: Engine, line: Outcome) -> Outcome:
    """Complete ``line`` with the release of an engine."""
    start = time.process_time()
    try:
        release = release_points(case, engine, line.epsilon, line.release_seed)
        line = replace(line, seconds=time.process_time() - start)
        belief = fit_posterior(case, release)
        stated = read_statement(release, belief)
    except Exception as error:  # noqa: BLE001  (a run that fails is a result: it is counted)
        return replace(line, failure=line.failure or type(error).__name__)
    line = replace(line, noise_kl=stated.noise_kl, trusted=stated.trusted, grade=stated.grade)
    if case.exact is None:
        return line
    total, of_noise = measure_coverage(belief, stated.doubt, case.exact)
    return replace(line, kl=compute_divergence(belief, case.exact), coverage=total, noise_coverage=of_noise)
