"""A ledger with a key of its own, and a dataset with an account."""

import pytest

from app.db import Database
from app.ledger import Ledger
from app.vault.signing import Signer
from tests.ledger.support import SEED, Bench


@pytest.fixture
def ledger() -> Ledger:
    return Ledger(Signer(SEED), max_epsilon=20.0)


@pytest.fixture
def bench(database: Database, ledger: Ledger) -> Bench:
    """One owner with one dataset and an account of (2, 1e-6)."""
    bench = Bench(database, ledger)
    bench.open_account("ds_a")
    return bench
