"""The ledger against a naive model, over random sequences of calls."""

import shutil
import tempfile
from functools import lru_cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from app.db import Database, make_engine
from app.db.migrations import upgrade
from app.errors import BudgetExceeded, InvalidRequest, StateConflict
from app.ledger import Charge, Ledger
from app.privacy.filter import design
from app.vault.signing import Signer
from tests.ledger.naive import KNIFE_EDGE, NaiveFilter, NaiveJob, NaiveLedger
from tests.ledger.support import DELTA, Bench, costing, gaussian, sampled

pytestmark = [pytest.mark.sqlite, pytest.mark.slow]

MAXIMUM = 10.0
CHARGED = {"opened", "settled"}
LIVE = {"reserved", *CHARGED}
DATASETS = st.sampled_from(["ds_a", "ds_a", "ds_b"])
CHARGES = st.sampled_from([costing(0.2), costing(0.5), costing(0.9), gaussian(12.0, 3), sampled(3.0, 0.1, 20)])


@lru_cache
def template() -> Path:
    path = Path(tempfile.mkdtemp()) / "template.sqlite3"
    engine = make_engine(f"sqlite:///{path}")
    upgrade(engine)
    engine.dispose()
    return path


def naive_filter(epsilon: float, delta: float) -> NaiveFilter:
    chosen = design(epsilon, delta)
    return NaiveFilter(epsilon, delta, chosen.orders, chosen.weights)


class LedgerMachine(RuleBasedStateMachine):
    """W9: the composed cost stays within the limit in every snapshot, and refusals change no balance."""

    @initialize()
    def open_accounts(self) -> None:
        self.folder = tempfile.TemporaryDirectory()
        path = shutil.copy(template(), self.folder.name)
        self.bench = Bench(Database(make_engine(f"sqlite:///{path}")), Ledger(Signer(bytes(32)), max_epsilon=MAXIMUM))
        self.bench.open_account("ds_a", epsilon=1.5)
        self.bench.open_account("ds_b", epsilon=0.8)
        self.model = NaiveLedger(1.5, DELTA, [naive_filter(1.5, DELTA)], naive_filter(0.8, DELTA))

    @rule(dataset_id=DATASETS, charge=CHARGES)
    def reserve(self, dataset_id: str, charge: Charge) -> None:
        job_id = f"job_{len(self.model.jobs)}"
        common, tranches = self.model.slacks(dataset_id, charge)
        preview = self.bench.preview(charge, dataset_id)
        expected = self.model.composed(LIVE, [charge])
        assert expected - 1e-9 <= preview.epsilon_after <= expected + 1e-6
        admitted = common >= 0 and max(tranches) >= 0
        certain = min(abs(slack) for slack in (common, *tranches)) > KNIFE_EDGE
        try:
            assert self.bench.reserve(job_id, charge, dataset_id) == preview
        except BudgetExceeded:
            assert not (admitted and certain)
            assert not preview.affordable
            self.bench.write(lambda tx: self.bench.ledger.record_refusal(tx, dataset_id))
            self.model.refused += 1
        else:
            assert admitted or not certain
            assert preview.affordable
            first = next(index for index, slack in enumerate(tranches) if slack >= -KNIFE_EDGE)
            self.model.jobs[job_id] = NaiveJob(dataset_id, charge, first)
            self.model.entries += 1

    @precondition(lambda self: self.model.jobs)
    @rule(data=st.data(), step=st.sampled_from(["opened", "settled", "voided"]))
    def advance(self, data: st.DataObject, step: str) -> None:
        job_id = data.draw(st.sampled_from(sorted(self.model.jobs)))
        job = self.model.jobs[job_id]
        calls: dict[str, Any] = {"opened": self.bench.open, "voided": self.bench.void, "settled": self.bench.settle}
        if (job.state, step) in {("opened", "opened"), ("voided", "voided")}:
            calls[step](job_id)  # arrives twice, happens once
        elif (job.state, step) in {("reserved", "opened"), ("reserved", "voided"), ("opened", "settled")}:
            calls[step](job_id)
            job.state = step
            self.model.entries += 1
        else:
            with pytest.raises(StateConflict):
                calls[step](job_id)

    @rule(epsilon=st.sampled_from([0.3, 0.7, 1.0, 1.5, 2.0, 3.0]))
    def change_limit(self, epsilon: float) -> None:
        model = self.model
        if epsilon > model.limit:
            self.bench.change_limit(epsilon, DELTA / 2)
            added = epsilon - sum(tranche.epsilon for tranche in model.tranches)
            if added > KNIFE_EDGE:
                model.tranches.append(naive_filter(added, DELTA / 2))
                model.delta += DELTA / 2
            model.limit, model.entries = epsilon, model.entries + 1
            return
        composed = model.composed(LIVE)
        if epsilon < composed - KNIFE_EDGE:
            with pytest.raises(StateConflict):
                self.bench.change_limit(epsilon)
        elif epsilon > composed + KNIFE_EDGE and epsilon < model.limit:
            self.bench.change_limit(epsilon)
            model.limit, model.entries = epsilon, model.entries + 1

    @rule()
    def raise_beyond_the_maximum(self) -> None:
        with pytest.raises(InvalidRequest):
            self.bench.change_limit(MAXIMUM + 1, DELTA)

    @rule(dataset_id=DATASETS)
    def checkpoint(self, dataset_id: str) -> None:
        self.bench.checkpoint(dataset_id)

    @invariant()
    def the_balance_is_the_models(self) -> None:
        if not hasattr(self, "model"):
            return
        for dataset_id in ("ds_a", "ds_b"):
            budget, model = self.bench.budget(dataset_id), self.model
            spent, total = model.composed(CHARGED), model.composed(LIVE)
            assert spent - 1e-9 <= budget.spent.epsilon <= spent + 1e-6
            together = budget.spent.epsilon + budget.reserved.epsilon
            assert total - 1e-9 <= together <= total + 1e-6
            assert together <= model.limit + 1e-12
            assert budget.limit.delta == pytest.approx(model.delta)
            counts = [len(model.charges({"settled"})), len(model.charges({"reserved", "opened"})), model.refused]
            assert [budget.jobs.settled, budget.jobs.reserved, budget.jobs.refused] == counts
            assert budget.version == model.entries
            assert 0 <= budget.remaining.epsilon <= budget.limit.epsilon
            assert 0 <= budget.used_share <= 1

    def teardown(self) -> None:
        if hasattr(self, "bench"):
            assert self.bench.verify() == ()
            self.bench.database.dispose()
            self.folder.cleanup()


TestLedgerMachine = pytest.mark.long(LedgerMachine.TestCase)
TestLedgerMachine.settings = settings(
    max_examples=15, stateful_step_count=20, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True
)
