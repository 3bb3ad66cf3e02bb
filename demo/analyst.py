"""The analyst's side: price, buy until the budget says no."""

from dataclasses import dataclass

from corevault import Budget, BudgetExceeded, Client, Job, Quote

from demo import table
from demo.failure import DemoFailed, demand

EPSILON = 1.0
SIZE = 100
_MOST_JOBS = 20


@dataclass(frozen=True, slots=True)
class Purchases:
    """The jobs that were carried out, the budget after each, and the refusal that ended it."""

    jobs: list[Job]
    epsilon_after: list[float]
    refusal: BudgetExceeded


def ask_price(analyst: Client, dataset_id: str) -> Quote:
    """The quote for one job; checks that asking changed nothing."""
    before = analyst.datasets.budget(dataset_id)
    quote = analyst.quote(dataset_id, table.MODEL, size=SIZE, epsilon=EPSILON)
    demand(analyst.datasets.budget(dataset_id) == before, "A quote has changed the budget.")
    demand(quote.affordable, "The first job is not affordable.")
    return quote


def buy_until_refused(analyst: Client, dataset_id: str) -> Purchases:
    """Runs the same job again and again until the server refuses it for lack of budget."""
    jobs: list[Job] = []
    totals: list[float] = []
    while len(jobs) < _MOST_JOBS:
        before = analyst.datasets.budget(dataset_id)
        affordable = analyst.quote(dataset_id, table.MODEL, size=SIZE, epsilon=EPSILON).affordable
        try:
            job = analyst.jobs.submit(dataset_id, table.MODEL, size=SIZE, epsilon=EPSILON)
        except BudgetExceeded as refusal:
            demand(not affordable, "A job was refused that the quote had called affordable.")
            _demand_unchanged(before, analyst.datasets.budget(dataset_id))
            return Purchases(jobs, totals, refusal)
        demand(affordable, "A job was admitted that the quote had called unaffordable.")
        jobs.append(analyst.jobs.wait(job, progress=True, timeout_seconds=150))
        spent, reserved = _compose(analyst.datasets.budget(dataset_id))
        totals.append(spent + reserved)
    raise DemoFailed(f"{_MOST_JOBS} jobs were admitted and none refused: the limit does not hold.")


def _compose(budget: Budget) -> tuple[float, float]:
    return budget.spent.epsilon, budget.reserved.epsilon


def _demand_unchanged(before: Budget, after: Budget) -> None:
    same = before.version == after.version and _compose(before) == _compose(after)
    demand(same, "A refusal has changed the balance.")
    demand(after.jobs.refused == before.jobs.refused + 1, "A refusal was not counted.")


def refused_total(bought: Purchases) -> float:
    """The composed ε that the refused job would have made."""
    after = bought.refusal.epsilon_after
    epsilon = after.get("epsilon") if isinstance(after, dict) else after
    if not isinstance(epsilon, int | float):
        raise DemoFailed("The refusal does not say what the total would have been.")
    return float(epsilon)
