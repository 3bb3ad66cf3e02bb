"""The analyst's steps: ask for a price, then buy until the budget is exhausted."""

from dataclasses import dataclass

from corevault import Budget, BudgetExceeded, Client, Job, Quote

from demo import table
from demo.failure import DemoFailed, demand

EPSILON = 1.0
SIZE = 100
_MOST_JOBS = 20


@dataclass(frozen=True, slots=True)
class Purchases:
    """The finished jobs, the composed ε after each, and the final refusal."""

    jobs: list[Job]
    epsilon_after: list[float]
    refusal: BudgetExceeded


def ask_price(analyst: Client, dataset_id: str) -> Quote:
    """The quote for one job. Checks that it changed nothing."""
    before = analyst.datasets.budget(dataset_id)
    quote = analyst.quote(dataset_id, table.MODEL, size=SIZE, epsilon=EPSILON)
    demand(analyst.datasets.budget(dataset_id) == before, "A quote has changed the budget.")
    demand(quote.affordable, "The first job is not affordable.")
    return quote


def buy_until_refused(analyst: Client, dataset_id: str) -> Purchases:
    """Repeats the same job until the server refuses it because the budget is exhausted."""
    jobs: list[Job] = []
    totals: list[float] = []
    while len(jobs) < _MOST_JOBS:
        before = analyst.datasets.budget(dataset_id)
        affordable = analyst.quote(dataset_id, table.MODEL, size=SIZE, epsilon=EPSILON).affordable
        try:
            job = analyst.jobs.submit(dataset_id, table.MODEL, size=SIZE, epsilon=EPSILON)
        except BudgetExceeded as refusal:
            demand(not affordable, "The server refused a job that the quote called affordable.")
            _demand_unchanged(before, analyst.datasets.budget(dataset_id))
            return Purchases(jobs, totals, refusal)
        demand(affordable, "The server admitted a job that the quote called unaffordable.")
        jobs.append(analyst.jobs.wait(job, progress=True, timeout_seconds=150))
        spent, reserved = _compose(analyst.datasets.budget(dataset_id))
        totals.append(spent + reserved)
    raise DemoFailed(f"The server admitted {_MOST_JOBS} jobs and refused no job, so the limit does not hold.")


def _compose(budget: Budget) -> tuple[float, float]:
    return budget.spent.epsilon, budget.reserved.epsilon


def _demand_unchanged(before: Budget, after: Budget) -> None:
    same = before.version == after.version and _compose(before) == _compose(after)
    demand(same, "A refusal has changed the balance.")
    demand(after.jobs.refused == before.jobs.refused + 1, "A refusal was not counted.")


def read_refused_total(purchases: Purchases) -> float:
    """The composed ε after the refused job, had it been admitted."""
    after = purchases.refusal.epsilon_after
    epsilon = after.get("epsilon") if isinstance(after, dict) else after
    if not isinstance(epsilon, int | float):
        raise DemoFailed("The refusal does not state the total after the job.")
    return float(epsilon)
