"""Logistic regression on tables with wrong rows (thesis, section 5.3.2, Fig. 5.2 and 5.6b)."""

from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from typing import Final

from benchmarks.cases import Case, compute_full_posterior, make_logistic
from benchmarks.designs import Rows
from benchmarks.experiment import KL, MEMORY, SECONDS, Experiment, Quantity
from benchmarks.experiments.outliers import Method, label_beta, plan_methods
from benchmarks.experiments.paper_tables import list_large, make_large_rows
from benchmarks.measures import compute_prediction
from benchmarks.records import REFERENCE, Record
from benchmarks.robust_runs import FEATURE_VARIANCE, WIDE, spoil
from benchmarks.runs import Job

SHARES: Final = (0.0, 0.2)
SEEDS: Final = 3
SIZES: Final = (10, 20, 50, 100)
FEW_SIZES: Final = (20, 50)
"""Sizes at which other values of beta are measured."""
BETA, BETAS = 0.5, (0.2, 0.9)
METHODS: Final[tuple[Method, ...]] = (
    ("beta-cores", {"beta": BETA}, label_beta(BETA)),
    ("sparse-vi", {}, "SparseVI"),
    ("psvi", {}, "PSVI"),
    ("uniform", {}, "uniform"),
)
FULL, CLEAN = "all rows", "all rows before they were spoilt"


def name_table(share: float) -> str:
    """Name the table with this share of wrong rows."""
    return f"{list_large()[-1]}, {share:.0%} wrong"


@cache
def make_table(share: float, seed: int) -> Case:
    """Make a table; ``exact`` is the posterior of its rows before they were spoilt."""
    rows, held_out = make_large_rows(list_large()[-1])
    clean = make_logistic("clean", rows, bound=WIDE, held_out=held_out)
    case = make_logistic(name_table(share), spoil(Rows(*rows), share, seed), bound=WIDE, held_out=held_out)
    return replace(case, exact=clean.exact)


def list_references(case: Case) -> Iterator[Record]:
    """List the accuracy of all rows, as they are and before they were spoilt."""
    assert case.exact is not None
    for label, belief in ((FULL, compute_full_posterior(case)), (CLEAN, case.exact)):
        accuracy, slots = compute_prediction(case, belief).accuracy, case.facts.slots
        for size in SIZES:
            dimension = case.problem.model.dimension
            yield Record(case.name, label, slots, dimension, size, accuracy=accuracy, outcome=REFERENCE)


def plan_work(quick: bool) -> Iterator[Job | Record]:
    """Yield the references, then every method at every size, seed by seed."""
    for seed in range(1 if quick else SEEDS):
        for share in SHARES[1:] if quick else SHARES:
            case = make_table(share, seed)
            if not seed:
                yield from list_references(case)
            for size in SIZES[:1] if quick else SIZES:
                yield from plan_methods(case, size, seed, METHODS, BETAS if size in FEW_SIZES else ())


EXPERIMENT = Experiment(
    "robust-logistic",
    "Logistic regression with wrong rows",
    "The large table of census income above (or of health insurance, without its files). In a share of the rows, half "
    f"of the features are replaced by N(0, {FEATURE_VARIANCE:g}); in as many rows, the label is flipped. Each seed "
    "has other wrong rows. Accuracy is of clean held-out rows, and KL is to the posterior of the rows before "
    "they were spoilt. Methods have their defaults; β-Cores with three values of β.",
    plan_work,
    (Quantity("accuracy", "accuracy on clean held-out rows", logarithmic=False), KL, SECONDS, MEMORY),
)
