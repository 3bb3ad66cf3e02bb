"""Accounts of versions that charged one per cent of delta for rounding stay unchanged.

``stored_account.json`` contains the rows and the mark of such an account of (2, 1e-6), raised to (3, 2e-6). It has a
dataset with a cap, and one job each that is settled, reserved, voided and opened.
"""

import json
import math
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from app.db import Database
from app.errors import BudgetExceeded, StateConflict
from app.ledger import Charge, Ledger
from app.ledger.models import Account
from app.privacy.events import from_json
from app.vault.marks import MarkName, open_marks
from tests.ledger.support import DELTA, Bench, costing, reconcile, sampled

STORED: dict[str, Any] = json.loads(Path(__file__).with_name("stored_account.json").read_text())
TABLES = ("ledger_accounts", "ledger_datasets", "ledger_reservations", "ledger_entries", "ledger_checkpoints")
COMPOSABLE = 0.99


@pytest.fixture
def bench(database: Database, ledger: Ledger) -> Bench:
    """An installation with only the stored account."""
    with database.write() as tx:
        for name in TABLES:
            tx.execute(sa.insert(Account.metadata.tables[name]), [_row(row) for row in STORED["tables"][name]])
    jobs = {"job_reserved": "ds_a", "job_opened": "ds_capped"}
    return Bench(database, ledger, {name: (_reserved(name), dataset) for name, dataset in jobs.items()})


def _row(row: dict[str, Any]) -> dict[str, Any]:
    return {name: datetime.fromisoformat(value) if name == "at" else value for name, value in row.items()}


def _reserved(job_id: str) -> Charge:
    entries = STORED["tables"]["ledger_entries"]
    (body,) = [entry["body"] for entry in entries if (entry["kind"], entry["job_id"]) == ("reserved", job_id)]
    return Charge(tuple(from_json(event) for event in body["events"]))


def test_a_stored_account_verifies_and_reads_as_before(bench: Bench) -> None:
    """W11: every hash, signature and cached balance of the stored rows holds."""
    assert bench.verify() == ()
    budget = bench.budget()
    assert (budget.limit.epsilon, budget.limit.delta) == (3.0, 2e-6)
    assert (budget.jobs.settled, budget.jobs.reserved) == (1, 2)
    assert budget.spent.epsilon == pytest.approx(0.492, abs=2e-3)


def test_a_stored_filter_keeps_the_bounds_that_it_opened_with(bench: Bench) -> None:
    """W9: the rest of delta belongs to noise of that version."""
    with bench.database.read() as session:
        tranches = bench.ledger.guarantee(session, "ds_a").tranches
    assert len(tranches) == 2
    for tranche in tranches:
        for order, weight, bound in zip(tranche["orders"], tranche["weights"], tranche["bounds"], strict=True):
            mass = math.log(weight * COMPOSABLE * tranche["delta"] * order)
            nats = tranche["epsilon"] - math.log1p(-1 / order) + mass / (order - 1)
            assert bound * 2.0**-40 == pytest.approx(nats, abs=1e-11)


def test_jobs_of_a_stored_account_continue(bench: Bench) -> None:
    """W10: jobs of that time end now, and new jobs, limits and caps join the same chain."""
    bench.settle("job_opened")
    with pytest.raises(StateConflict, match="Submit the job again"):
        bench.open("job_reserved")
    bench.void("job_reserved")
    bench.run("job_new", sampled(2.0, 0.05, 40))
    bench.change_limit(2.5)
    bench.change_limit(19.0, DELTA)
    bench.run("job_large", costing(9.0))
    bench.run("job_capped", costing(0.1), "ds_capped")
    assert bench.verify() == ()
    assert bench.budget().jobs.settled == 5


def test_a_reservation_of_a_stored_account_is_voided(bench: Bench) -> None:
    before = bench.budget()
    bench.void("job_reserved")
    assert bench.verify() == ()
    assert bench.budget().remaining.epsilon > before.remaining.epsilon


def test_a_stored_account_refuses_a_charge_beyond_its_limit(bench: Bench) -> None:
    before = bench.budget()
    with pytest.raises(BudgetExceeded):
        bench.reserve("job_new", costing(2.9))
    assert bench.budget() == before


def test_a_stored_mark_restores_a_lost_account(database_url: str, mark_url: str) -> None:
    """W11: a mark of that time is read, and the account that it names stays charged and closed."""
    account, sequence, checkpoint = STORED["mark"]["name"].split(".")
    document = json.dumps(STORED["mark"]["document"]).encode()
    open_marks(mark_url).put(MarkName(account, int(sequence), checkpoint), document)
    outcomes = reconcile(database_url, mark_url)
    assert [outcome.outcome for outcome in outcomes] == ["charged"]
