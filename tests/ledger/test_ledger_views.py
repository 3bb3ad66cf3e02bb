"""Read-only views: budgets, entries, guarantees and checkpoints."""

import itertools
from dataclasses import asdict

import pytest

from app.ledger import CheckpointRef, LedgerEntry, LedgerStep
from app.vault.signing import Signer, verify
from tests.ledger.support import DELTA, SEED, Bench, costing, gaussian, sampled


def entries(bench: Bench, *, limit: int = 100, before: int | None = None) -> list[LedgerEntry]:
    with bench.database.read() as session:
        return bench.ledger.entries(session, "ds_a", limit=limit, before=before)


def test_a_budget_has_the_contracts_fields(bench: Bench) -> None:
    bench.run("job_1", costing(0.5))
    body = asdict(bench.budget())
    assert list(body) == [
        *("dataset_id", "population", "accountant", "relation", "unit", "slots"),
        *("limit", "spent", "reserved", "remaining", "used_share", "jobs", "version", "allocations"),
    ]
    for figure in ("limit", "spent", "reserved", "remaining"):
        assert list(body[figure]) == ["epsilon", "delta"]
        assert body[figure]["delta"] == DELTA
    assert body["jobs"] == {"settled": 1, "reserved": 0, "refused": 0}


def test_spent_and_reserved_compose_to_the_total(bench: Bench) -> None:
    """Two equal Gaussian jobs compose like one with sqrt(2) less noise."""
    bench.run("job_1", gaussian(10.0))
    bench.reserve("job_2", gaussian(10.0))
    budget = bench.budget()
    together = bench.preview(gaussian(10.0 / 2**0.5)).cost_epsilon
    assert budget.spent.epsilon + budget.reserved.epsilon == pytest.approx(together, rel=1e-9)
    assert budget.reserved.epsilon < budget.spent.epsilon


def test_the_used_share_is_linear_in_equal_jobs(bench: Bench) -> None:
    shares = []
    for index in range(3):
        bench.reserve(f"job_{index}", gaussian(12.0))
        shares.append(bench.budget().used_share)
    assert shares[1] == pytest.approx(2 * shares[0], rel=1e-9)
    assert shares[2] == pytest.approx(3 * shares[0], rel=1e-9)


def test_steps_agree_with_entries_and_come_oldest_first(bench: Bench) -> None:
    bench.run("job_1", gaussian(10.0))
    bench.change_limit(1.8)
    listed = entries(bench)
    with bench.database.read() as session:
        steps = bench.ledger.steps(session, "ds_a", limit=100)
        newest = bench.ledger.steps(session, "ds_a", limit=2)
        early = bench.ledger.steps(session, "ds_a", limit=100, until=listed[1].at)
    expected = [LedgerStep(each.sequence, each.at, each.kind, each.job_id, each.epsilon_after) for each in listed[::-1]]
    assert steps == expected
    assert newest == expected[-2:]
    assert early == [each for each in expected if each.at < listed[1].at]


def test_entries_come_newest_first_and_link_to_the_one_before(bench: Bench) -> None:
    bench.run("job_1", sampled(3.0, 0.1, 20))
    bench.write(lambda tx: bench.ledger.content_replaced(tx, "ds_a", 2))
    bench.change_limit(1.8)
    bench.write(lambda tx: bench.ledger.dataset_deleted(tx, "ds_a"))
    listed = entries(bench)
    kinds = ["dataset_deleted", "limit_changed", "content_replaced", "settled", "opened", "reserved", "account_opened"]
    assert [entry.kind for entry in listed] == kinds
    assert [entry.sequence for entry in listed] == [7, 6, 5, 4, 3, 2, 1]
    assert all(new.previous_hash == old.entry_hash for new, old in itertools.pairwise(listed))
    event = {"kind": "gaussian", "noise_multiplier": 3.0}
    ran = {
        "kind": "self_composed",
        "count": 20,
        "event": {"kind": "poisson_sampled", "sampling_rate": 0.1, "event": event},
    }
    assert [entry.event for entry in listed] == [None, None, None, ran, None, ran, None]
    assert listed[-1].epsilon_after == 0
    assert listed[0].epsilon_after == bench.budget().spent.epsilon


def test_entries_come_in_pages(bench: Bench) -> None:
    for index in range(5):
        bench.reserve(f"job_{index}", gaussian(50.0))
    first = entries(bench, limit=4)
    second = entries(bench, limit=4, before=first[-1].sequence)
    assert [entry.sequence for entry in (*first, *second)] == [6, 5, 4, 3, 2, 1]


def test_a_failed_run_shows_that_nothing_is_known_to_have_run(bench: Bench) -> None:
    bench.reserve("job_1", costing(0.2))
    bench.open("job_1")
    bench.settle("job_1", ())
    assert entries(bench, limit=1)[0].event == {"kind": "composed", "events": []}


def test_the_guarantee_can_be_signed(bench: Bench) -> None:
    with bench.database.read() as session:
        stated = asdict(bench.ledger.guarantee(session, "ds_a"))
    signer = Signer(SEED)
    assert verify(signer.sign(stated | {"tranches": list(stated["tranches"])}), signer.public_key)


def test_checkpoints_count_up_over_all_accounts(bench: Bench) -> None:
    bench.open_account("ds_other", population="others")

    def checkpoint(dataset_id: str) -> CheckpointRef:
        return bench.write(lambda tx: bench.ledger.checkpoint(tx, dataset_id))

    first, second = checkpoint("ds_a"), checkpoint("ds_other")
    bench.reserve("job_1", costing(0.1))
    third = checkpoint("ds_a")
    assert [ref.sequence for ref in (first, second, third)] == [1, 2, 3]
    assert [ref.account_sequence for ref in (first, second, third)] == [1, 1, 2]
    assert third.account_head == entries(bench)[0].entry_hash


def test_a_limit_is_read_without_its_budget(bench: Bench) -> None:
    bench.open_account("ds_b", epsilon=0.5)
    bench.open_account("ds_c", epsilon=5.0)
    with bench.database.read() as session:
        limits = [bench.ledger.limit(session, dataset_id) for dataset_id in ("ds_a", "ds_b", "ds_c")]
    assert limits == [(2.0, DELTA), (0.5, DELTA), (2.0, DELTA)]
