"""The computation of a run: a method asks an oracle, which reads the enclave's rows."""

from collections.abc import Callable

from app.errors import CorevaultError
from app.inference import dry_run, registry
from app.inference.conjugate import make_run_problem
from app.inference.core.facts import DeclaredFacts
from app.inference.core.model import Array64
from app.inference.core.plan import MechanismPlan
from app.inference.core.query import Query
from app.inference.core.release import Released
from app.inference.core.row_source import RowSource
from app.inference.private_zone.mechanisms import BadQuery, DiscreteGaussian
from app.inference.private_zone.oracle import ClippedGaussianOracle, PlanExhausted
from app.inference.private_zone.partition import Summation
from app.inference.private_zone.rng import make_monte_carlo_generator, make_sampling_generator
from app.inference.runner import run, run_public
from app.privacy.events import PrivacyEvent
from app.vault.errors import VaultError


class EnclaveFault(Exception):
    """A computation on rows failed. All of them are total by design, so the failure itself may reveal a row."""


class GuardedOracle:
    """An oracle that separates faulty queries from faults in the computation on rows.

    A query follows from earlier noised answers, so its fault reveals no row.
    """

    def __init__(self, oracle: ClippedGaussianOracle) -> None:
        self._oracle = oracle

    def ask(self, query: Query) -> Array64:
        """Answer as :meth:`app.inference.core.query.Oracle.ask` does.

        Raises:
            CorevaultError, VaultError: rows are read from the store, which is away or has a table that does not open.
            EnclaveFault: the computation on rows failed.
        """
        try:
            return self._oracle.ask(query)
        except (BadQuery, PlanExhausted, MemoryError, CorevaultError, VaultError):
            raise
        except Exception:  # noqa: BLE001  (any other error may reveal a row)
            raise EnclaveFault from None


def dry_run_plan(plan: MechanismPlan, facts: DeclaredFacts) -> None:
    """Dry-run a plan, so that an impossible plan fails before anything is charged.

    Raises:
        Exception: any error of the method. No run of this version can carry out the plan.
    """
    if registry.find_method(plan.method).private:
        dry_run.carry_out(plan, facts, to_the_end=not dry_run.is_large(plan, facts))


def compute(
    plan: MechanismPlan,
    facts: DeclaredFacts,
    rows: RowSource,
    on_step: Callable[[int], None],
    summation: Summation | None = None,
) -> tuple[Released, tuple[PrivacyEvent, ...]]:
    """Carry out a plan.

    Args:
        plan: of the run.
        facts: of the dataset.
        rows: the table.
        on_step: called with the number of planned steps done.
        summation: adds up the rows' contributions, if queries are split; None to add them up here.

    Returns:
        The release, and the privacy events that were carried out for it.

    Raises:
        EnclaveFault: the account must be frozen.
    """
    if not registry.find_method(plan.method).private:
        public = run_public(plan, facts, rows, make_sampling_generator())
        on_step(plan.steps)
        return public, plan.events
    oracle = make_oracle(plan, facts, rows, summation)
    released = run(plan, facts, GuardedOracle(oracle), make_monte_carlo_generator(), on_step)
    return released, oracle.executed


def make_oracle(
    plan: MechanismPlan, facts: DeclaredFacts, rows: RowSource, summation: Summation | None = None
) -> ClippedGaussianOracle:
    """Draw all subsamples and gather their rows. Only the store or the process may fail here.

    Runs and the continuous audit make their oracles here.
    """
    model = make_run_problem(plan, facts).model
    try:
        sampling = make_sampling_generator()
        return ClippedGaussianOracle(
            model, plan, facts, rows, noise=DiscreteGaussian(), sampling=sampling, summation=summation
        )
    except (CorevaultError, VaultError, MemoryError):
        raise
    except Exception:  # noqa: BLE001  (any other error may reveal a row)
        raise EnclaveFault from None
