"""Tables with wrong rows, and the runs of robust methods on them.

:mod:`benchmarks.robust` carries out the runs and writes the page.
"""

import math
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from app.inference.core.facts import Column, DeclaredFacts
from app.inference.core.grouping import make_grouping
from app.inference.core.model import Array64
from app.inference.core.plan import ModelSpec, PriorSpec
from app.inference.core.release import name_group
from benchmarks.adult import load_adult10
from benchmarks.cases import Case, compute_full_posterior, make_logistic, narrow
from benchmarks.designs import Rows
from benchmarks.group_tables import GROUPED_BY, SHARES, GroupedCase, make_grouped_case
from benchmarks.measures import compute_prediction, fit_posterior
from benchmarks.runs import Job, carry_out, make_plan
from benchmarks.sources import ArrayRows
from support.divergence import compute_divergence

ROWS, COLUMNS, SIZE, MOVED = 5000, 20, 60, 10.0
BOUND, WIDE, NARROW = 16.0, 24.0, 2.0
FEATURE_VARIANCE: Final = 5.0
EPSILON: Final = 1.0
OUTLIERS: Final = (0.0, 0.15, 0.3)
WRONG: Final = (0.0, 0.1, 0.2)
PUBLIC: Final[tuple[tuple[str, Mapping[str, Any]], ...]] = (("sparse-vi", {}), ("beta-cores", {}))
PRIVATE: Final[tuple[tuple[str, float, int, Mapping[str, Any]], ...]] = (
    ("dp-psvi-surrogate", WIDE, 20, {}),
    ("dp-psvi-surrogate", WIDE, 20, {"beta": 0.5}),
    ("dp-psvi-surrogate", WIDE, 20, {"beta": 0.9}),
    ("dp-psvi-surrogate", NARROW, 20, {}),
    ("dp-psvi-surrogate", NARROW, 20, {"beta": 0.5}),
    ("dp-psvi-surrogate", NARROW, 20, {"beta": 0.9}),
    ("dp-psvi", NARROW, 50, {}),
    ("dp-psvi", NARROW, 50, {"beta": 0.5}),
)
"""Method, declared bound of the columns, number of points, and parameters."""
SLOW: Final = "dp-psvi"
SETS: Final = (1, 2, 5, 10)
BATCH, GROUP_BETA = 50, 0.6
PERMUTATIONS, PREFIX, SHAPLEY_START = 50, 20, 0.5
FULL: Final = "full posterior"
SEPARATOR: Final = "; "
"""Between the names of groups."""


@dataclass(frozen=True, slots=True)
class Line:
    """One run. ``wrong`` is the share of wrong rows, ``chosen`` that of outliers among the chosen rows.

    ``sets`` is the number of groups or batches that the run may choose, and ``labels`` names the chosen groups.
    """

    part: str
    method: str
    bound: float
    beta: float
    wrong: float
    seed: int
    kl: float = math.nan
    accuracy: float = math.nan
    chosen: float = math.nan
    rows: int = 0
    grade: str = ""
    seconds: float = math.nan
    sets: int = 0
    labels: str = ""


def draw_normal_rows(share: float, seed: int) -> tuple[Array64, int]:
    """Normal rows, of which the first ones are moved; and the number of these."""
    x = np.random.default_rng((seed, 0)).standard_normal((ROWS, COLUMNS))
    count = round(share * ROWS)
    x[:count] += MOVED
    return x, count


def make_case(x: Array64) -> Case:
    """The mean of ``N(theta, I)`` under ``N(0, I)``, declared within wide bounds."""
    names, slots = tuple(f"x{column}" for column in range(x.shape[1])), len(x)
    facts = DeclaredFacts(
        tuple(Column(name, "real", -BOUND, BOUND) for name in names), slots, {"kind": "row"}, "private", 1 / slots
    )
    spec = ModelSpec("gaussian-mean", names, None, PriorSpec(1 / BOUND), noise_scale=1 / BOUND)
    case = Case("moved", facts, spec, ArrayRows(np.clip(x, -BOUND, BOUND), np.zeros(slots), slots))
    return replace(case, exact=compute_full_posterior(case))


def spoil(rows: Rows, share: float, seed: int) -> Rows:
    """Replace features of some rows, and flip the labels of as many."""
    rng, (n, d) = np.random.default_rng((seed, 1)), rows.x.shape
    x, y, count = rows.x.copy(), rows.y.copy(), round(share * n)
    columns = rng.permuted(np.tile(np.arange(d), (count, 1)), axis=1)[:, : d // 2]
    x[rng.choice(n, count, replace=False)[:, None], columns] = rng.normal(0, math.sqrt(FEATURE_VARIANCE), columns.shape)
    flipped = rng.choice(n, count, replace=False)
    y[flipped] = 1 - y[flipped]
    return Rows(x, y)


def _run(job: Job) -> tuple[Any, float]:
    plan, start = make_plan(job), time.process_time()
    release, _ = carry_out(job, plan, lambda _: None)
    return release, time.process_time() - start


def measure_public(shares: Sequence[float], seeds: int) -> Iterator[Line]:
    """Measure SparseVI and beta-cores on normal rows."""
    for seed in range(seeds):
        for share in shares:
            x, count = draw_normal_rows(share, seed)
            case, clean = make_case(x), make_case(x[count:]).exact
            assert clean is not None
            for method, parameters in PUBLIC:
                plan = make_plan(Job(case, method, SIZE, seed, parameters))
                release, seconds = _run(Job(case, method, SIZE, seed, parameters))
                used = release.u[release.weight > 0]
                yield Line(
                    "public",
                    method,
                    BOUND,
                    float(plan.parameters.get("beta", 0)),
                    share,
                    seed,
                    kl=compute_divergence(fit_posterior(case, release), clean),
                    chosen=float((used.mean(axis=1) > 0.5 * MOVED / BOUND).mean()),
                    rows=len(used),
                    grade=str(release.reliability.grade),
                    seconds=seconds,
                )


def measure_private(shares: Sequence[float], seeds: int, slow: int) -> Iterator[Line]:
    """Measure the private methods on census income; ``slow`` is the number of runs of dp-psvi."""
    train, test = load_adult10()
    for seed in range(max(seeds, slow)):
        for share in shares:
            rows = spoil(Rows(*train), share, seed)
            case = make_logistic(f"adult10, {share:g}, {seed}", rows, bound=WIDE, held_out=Rows(*test))
            assert case.exact is not None
            accuracy = compute_prediction(case, case.exact).accuracy
            yield Line("private", FULL, WIDE, 0.0, share, seed, accuracy=accuracy)
            for method, bound, size, parameters in PRIVATE:
                if seed < (slow if method == SLOW else seeds):
                    table = narrow(case, bound) if bound < WIDE else case
                    yield _measure_one(Job(table, method, size, seed, parameters, EPSILON), share)


def _measure_one(job: Job, share: float) -> Line:
    release, seconds = _run(job)
    bound = job.case.facts.columns[0].upper
    assert bound is not None
    return Line(
        "private",
        job.method,
        bound,
        float(job.parameters.get("beta", 0)),
        share,
        job.seed,
        accuracy=compute_prediction(job.case, fit_posterior(job.case, release)).accuracy,
        rows=job.size,
        grade=str(release.reliability.grade),
        seconds=seconds,
    )


def measure_groups(seeds: int, sizes: Sequence[int] = SETS) -> Iterator[Line]:
    """Measure groups and batches that beta-cores choose, random groups, and groups by Shapley values.

    First with outliers in two thirds of the groups, then without outliers.
    """
    for shares in (SHARES, (0.0,)):
        for seed in range(seeds):
            for line in _measure_grouped(make_grouped_case(seed, shares), seed, sizes):
                yield replace(line, wrong=float(np.mean(shares)))


def _measure_grouped(grouped: GroupedCase, seed: int, sizes: Sequence[int]) -> Iterator[Line]:
    chosen: tuple[tuple[str, str, Mapping[str, Any]], ...] = (
        ("groups", "beta-cores", {"groups": list(GROUPED_BY), "beta": GROUP_BETA}),
        ("batches", "beta-cores", {"batches": BATCH, "beta": GROUP_BETA}),
    )
    rng = np.random.default_rng((seed, 6))
    order = rng.permutation(np.flatnonzero(grouped.sizes))
    started = time.process_time()
    values = compute_shapley_values(grouped, rng)
    seconds = time.process_time() - started
    for size in sizes:
        for name, method, parameters in chosen:
            yield _measure_sets(grouped, Job(grouped.case, method, size, seed, parameters), name)
        yield _measure_all_rows(grouped, order[:size], "random groups", seed, 0.0)
        best = np.argsort(-values, kind="stable")[:size]
        yield _measure_all_rows(grouped, best, "Shapley values", seed, seconds)


def _measure_sets(grouped: GroupedCase, job: Job, name: str) -> Line:
    release, seconds = _run(job)
    weights = release.diagnostics.get("weight_of_groups", {})
    share = math.nan
    if weights:
        grouping = make_grouping(list(GROUPED_BY), grouped.case.facts)
        used = np.isin([name_group(GROUPED_BY, label) for label in grouping.labels], list(weights))
        share = _find_share(grouped, np.flatnonzero(used))
    return Line(
        "groups",
        f"beta-cores, {name}",
        0.0,
        float(job.parameters["beta"]),
        0.0,
        job.seed,
        accuracy=compute_prediction(grouped.case, fit_posterior(grouped.case, release)).accuracy,
        chosen=share,
        rows=len(release.weight),
        grade=str(release.reliability.grade),
        seconds=seconds,
        sets=job.size,
        labels=SEPARATOR.join(weights),
    )


def _measure_all_rows(grouped: GroupedCase, groups: NDArray[np.int64], name: str, seed: int, seconds: float) -> Line:
    weight = np.isin(np.arange(len(grouped.outliers)), groups).astype(np.float64)
    return Line(
        "groups",
        name,
        0.0,
        0.0,
        0.0,
        seed,
        accuracy=grouped.measure_accuracy(grouped.fit_groups(weight)),
        chosen=_find_share(grouped, groups),
        rows=int(grouped.sizes[groups].sum()),
        seconds=seconds,
        sets=len(groups),
    )


def _find_share(grouped: GroupedCase, groups: NDArray[np.int64]) -> float:
    sizes = grouped.sizes[groups]
    return float(sizes @ grouped.outliers[groups] / max(sizes.sum(), 1))


def compute_shapley_values(
    grouped: GroupedCase, rng: np.random.Generator, permutations: int = PERMUTATIONS, prefix: int = PREFIX
) -> Array64:
    """Estimate the mean gain in accuracy by each group ``(G,)``, in random orders."""
    count = len(grouped.outliers)
    gains, times = np.zeros(count), np.zeros(count)
    present = np.flatnonzero(grouped.sizes)
    for _ in range(permutations):
        weight, before = np.zeros(count), SHAPLEY_START
        for group in rng.permutation(present)[:prefix]:
            weight[group] = 1.0
            after = grouped.measure_accuracy(grouped.fit_groups(weight))
            gains[group] += after - before
            times[group] += 1
            before = after
    return np.where(times > 0, gains / np.maximum(times, 1), -np.inf)
