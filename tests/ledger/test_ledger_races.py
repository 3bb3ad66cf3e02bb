"""Races and crashes, on real SQLite files and on PostgreSQL."""

import os
import shutil
from collections import Counter, defaultdict
from multiprocessing import get_context
from pathlib import Path

import pytest

from app.db import Database, make_engine
from app.ledger import Ledger, Terms
from app.vault.signing import Signer
from tests.ledger.race import CLIENTS, Lost, prepare, race
from tests.ledger.stampede import ACCOUNTS, LIMIT, Held, Overspent, check, stampede
from tests.ledger.support import SEED, Bench, commitment, costing


def crash(url: str, step: str, terms: Terms) -> None:
    """Take one step and die before the commit, as a killed process does."""
    ledger = Ledger(Signer(SEED), max_epsilon=20.0)
    with Database(make_engine(url)).write() as tx:
        match step:
            case "reserve":
                ledger.reserve(tx, "ds_a", "job_crash", costing(0.5), commitment=commitment())
            case "open":
                ledger.open(tx, "job_1", costing(0.5).events, terms)
            case "settle":
                ledger.settle(tx, "job_1", costing(0.5).events, terms)
        ledger.checkpoint(tx, "ds_a")
        os._exit(9)


@pytest.mark.sqlite
def test_one_of_many_clients_wins(tmp_path: Path) -> None:
    """W9: under any concurrency; ``make race`` runs it a thousand times."""
    prepare(tmp_path / "template.sqlite3")
    for index in range(3):
        path = tmp_path / f"{index}.sqlite3"
        shutil.copy(tmp_path / "template.sqlite3", path)
        race(path, costing(0.3))


@pytest.mark.sqlite
def test_a_race_detects_two_winners(tmp_path: Path) -> None:
    prepare(tmp_path / "race.sqlite3")
    with pytest.raises(Lost, match=f"of {CLIENTS} won"):
        race(tmp_path / "race.sqlite3", costing(0.01))


@pytest.mark.parametrize("step", ["reserve", "open", "settle"])
def test_a_crash_before_the_commit_leaves_no_trace(bench: Bench, database_url: str, step: str) -> None:
    """W10: a process killed between append and commit charges nothing and loses nothing."""
    bench.reserve("job_1", costing(0.5))
    if step == "settle":
        bench.open("job_1")
    before, terms = bench.budget(), bench.terms("job_1")
    bench.database.dispose()
    child = get_context("fork").Process(target=crash, args=(database_url, step, terms))
    child.start()
    child.join()
    assert child.exitcode == 9
    again = Bench(Database(make_engine(database_url)), Ledger(Signer(SEED), max_epsilon=20.0), bench.reserved)
    assert again.budget() == before
    assert again.verify() == ()
    again.reserve("job_crash", costing(0.5))
    if step == "reserve":
        again.open("job_1")
    again.database.dispose()


@pytest.mark.services
@pytest.mark.timeout(900)
@pytest.mark.parametrize("attempts", [3_000, pytest.param(50_000, marks=pytest.mark.sweep)])
def test_nobody_overspends_in_many_attempts(database_url: str, attempts: int) -> None:
    """W9: several processes on PostgreSQL; ``make race`` makes it a million."""
    assert stampede(database_url, attempts) > ACCOUNTS


@pytest.mark.services
def test_a_stampede_detects_a_job_missing_from_the_ledger(bench: Bench) -> None:
    """A client claims a job that was not admitted."""
    bench.open_account("ds_0", population="race 0", epsilon=LIMIT)
    boastful = Held(entries=Counter({"ds_0": 1}), kept=defaultdict(Counter, {"ds_0": Counter({0.5: 1})}))
    with pytest.raises(Overspent):
        check(bench.database, bench.ledger, "ds_0", [boastful])
