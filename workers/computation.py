"""The run itself: the enclave's rows behind the oracle, the method in front of it."""

from collections.abc import Callable

from app.errors import CorevaultError
from app.inference import dry_run, registry
from app.inference.core.facts import DeclaredFacts
from app.inference.core.model import Array64
from app.inference.core.plan import MechanismPlan
from app.inference.core.problems import problem_for
from app.inference.core.query import Query
from app.inference.core.release import Pseudocoreset
from app.inference.core.row_source import RowSource
from app.inference.private_zone.mechanisms import BadQuery, DiscreteGaussian
from app.inference.private_zone.oracle import ClippedGaussianOracle, PlanExhausted
from app.inference.private_zone.partition import Summation
from app.inference.private_zone.rng import monte_carlo_generator, sampling_generator
from app.inference.runner import run, run_public
from app.privacy.events import PrivacyEvent
from app.vault.errors import VaultError


class EnclaveFault(Exception):
    """Something failed among the rows, where every function is total by design: whether it did may tell of a row."""


class GuardedOracle:
    """Tells faults of queries (which follow from earlier answers) from faults among the rows."""

    def __init__(self, oracle: ClippedGaussianOracle) -> None:
        self._oracle = oracle

    def ask(self, query: Query) -> Array64:
        """As :meth:`app.inference.core.query.Oracle.ask`. The store may fail, where rows are streamed from it."""
        try:
            return self._oracle.ask(query)
        except (BadQuery, PlanExhausted, MemoryError, CorevaultError, VaultError):
            raise  # the last two: a table that is read while it answers does not open any more, or the store is away
        except Exception:  # noqa: BLE001  (whatever it is, it may tell of a row)
            raise EnclaveFault from None


def rehearse(plan: MechanismPlan, facts: DeclaredFacts) -> None:
    """Dry-run a plan: one that no run of this version can carry out fails here, before anything is charged.

    Raises:
        Exception: whatever the method makes of such a plan.
    """
    if registry.method(plan.method).private:
        dry_run.carry_out(plan, facts, to_the_end=not dry_run.is_large(plan, facts))


def compute(
    plan: MechanismPlan,
    facts: DeclaredFacts,
    rows: RowSource,
    on_step: Callable[[int], None],
    summation: Summation | None = None,
) -> tuple[Pseudocoreset, tuple[PrivacyEvent, ...]]:
    """What is released, and the events that were carried out for it; sums by ``summation`` where there is one.

    Raises:
        EnclaveFault: the account must be frozen.
    """
    if not registry.method(plan.method).private:
        points = run_public(plan, facts, rows, sampling_generator())
        on_step(plan.steps)
        return points, plan.events
    oracle = _oracle(plan, facts, rows, summation)
    points = run(plan, facts, GuardedOracle(oracle), monte_carlo_generator(), on_step)
    return points, oracle.executed


def _oracle(
    plan: MechanismPlan, facts: DeclaredFacts, rows: RowSource, summation: Summation | None
) -> ClippedGaussianOracle:
    """Draws all subsamples and gathers their rows. The store or the process may fail here; nothing else may."""
    model = problem_for(plan.model, facts).model
    try:
        sampling = sampling_generator()
        return ClippedGaussianOracle(
            model, plan, facts, rows, noise=DiscreteGaussian(), sampling=sampling, summation=summation
        )
    except (CorevaultError, VaultError, MemoryError):
        raise
    except Exception:  # noqa: BLE001  (whatever it is, it may tell of a row)
        raise EnclaveFault from None
