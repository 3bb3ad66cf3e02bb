"""The chain for readers: everything that is hashed and signed, in parts that fit together."""

import base64
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import pytest

from app.db import ReadSession
from app.errors import NotFound, StateConflict
from app.hashchain import GENESIS, digest
from app.ledger import ChainPart, Ledger
from app.vault.signing import Signer, verify
from tests.ledger.support import SEED, Bench, costing

OLD = Signer(bytes(range(1, 33)))


@pytest.fixture
def spent(bench: Bench) -> Bench:
    """An account with a settled job, two reservations and checkpoints."""
    bench.reserve("job_a", costing(0.2))
    bench.open("job_a")
    bench.settle("job_a")
    bench.write(lambda tx: bench.ledger.checkpoint(tx, "ds_a"))
    for job in ("job_b", "job_c"):
        bench.reserve(job, costing(0.1))
    return bench


def _read(bench: Bench, after: int = 0, limit: int = 100, dataset_id: str = "ds_a") -> ChainPart:
    with bench.database.read() as session:
        return bench.ledger.chain(session, dataset_id, after=after, limit=limit)


def _read_parts(bench: Bench, limit: int) -> Iterator[ChainPart]:
    part = _read(bench, 0, limit)
    while part.after is not None:
        yield part
        part = _read(bench, part.after, limit)
    yield part


def _without(document: Any, *names: str) -> dict[str, Any]:
    return {name: value for name, value in document.items() if name not in names}


def test_each_hash_covers_the_members_that_are_read(spent: Bench) -> None:
    part = _read(spent)
    assert part.entries[0]["previous_hash"] == GENESIS
    for entry in part.entries:
        assert entry["entry_hash"] == digest(_without(entry, "entry_hash"))
        assert entry["account_id"] == part.account_id
    for before, after in pairwise(part.entries):
        assert after["previous_hash"] == before["entry_hash"]
    for mark in part.checkpoints:
        assert mark["checkpoint_hash"] == digest(_without(mark, "checkpoint_hash", "signature", "key_id"))


def test_the_head_is_signed_and_names_the_end(spent: Bench) -> None:
    part = _read(spent)
    assert part.head is not None
    statement = _without(part.head, "signature", "key_id", "end")
    signed = {"statement": statement, "signature": part.head["signature"], "key_id": part.head["key_id"]}
    assert verify(signed, spent.ledger.signer.public_key)
    newest = part.entries[-1]
    assert part.head["end"] == {"sequence": newest["sequence"], "entry_hash": newest["entry_hash"]}
    assert part.head["sequence"] == newest["sequence"] - 2  # reservations do not move the signed head
    assert "balance" not in part.head


@pytest.mark.parametrize("limit", [1, 2, 3, 6, 7])
def test_parts_contain_every_entry_and_checkpoint_once(spent: Bench, limit: int) -> None:
    whole, parts = _read(spent), list(_read_parts(spent, limit))
    assert [entry for part in parts for entry in part.entries] == list(whole.entries)
    assert [mark for part in parts for mark in part.checkpoints] == list(whole.checkpoints)
    assert [part.head for part in parts] == [None] * (len(parts) - 1) + [whole.head]


def test_retired_keys_are_listed_with_their_end(spent: Bench) -> None:
    signer = Signer(SEED, (OLD.public_key,), {OLD.public_key: {"checkpoint": 7}})
    with spent.database.read() as session:
        keys = Ledger(signer, 20.0).chain(session, "ds_a", after=0, limit=1).keys
    assert [(key.key_id, key.until) for key in keys] == [(signer.key_id, None), (OLD.key_id, 7)]
    assert [len(base64.b64decode(key.public_key)) for key in keys] == [32, 32]


def test_an_account_that_changes_is_read_again(spent: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    changes = [True, False, False]

    def refresh(session: ReadSession, account: Any, names: Any) -> None:
        account.sequence = 7 if changes.pop(0) else 6

    monkeypatch.setattr(ReadSession, "refresh", refresh)
    assert len(_read(spent).entries) == 6
    assert changes == []


def test_an_account_that_never_rests_is_refused(spent: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    def refresh(session: ReadSession, account: Any, names: Any) -> None:
        account.sequence += 1

    monkeypatch.setattr(ReadSession, "refresh", refresh)
    with pytest.raises(StateConflict, match="Try again"):
        _read(spent)


def test_a_dataset_without_an_account_has_no_chain(bench: Bench) -> None:
    with pytest.raises(NotFound):
        _read(bench, dataset_id="ds_elsewhere")
