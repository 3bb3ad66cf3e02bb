"""The client verifies a real ledger and finds every alteration (W11). What-if questions change nothing."""

import asyncio
import base64
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest
from corevault import (
    AsyncClient,
    Client,
    Forbidden,
    InvalidArgument,
    SigningKey,
    StateConflict,
    VerificationError,
    VerifiedLedger,
)
from corevault._io import run
from corevault.ledger_chain import LedgerCheck
from nacl.signing import SigningKey as Ed25519

from app.budgets import what_if_endpoints
from app.main import create_app
from tests.client.fake import Script, ok
from tests.factories import rows
from tests.factories.chains import Part, alter, make_account, rehash
from tests.factories.transport import AppTransport
from tests.factories.worker import House

URL = "http://corevault.test"


@pytest.fixture
def dataset(house: House, owner: rows.Key, analyst: rows.Key) -> str:
    return make_account(house, owner, analyst)


@pytest.fixture
def connect(house: House) -> Iterator[Callable[[rows.Key], Client]]:
    with AppTransport(create_app(house.services, metrics=False)) as transport:
        yield lambda key: Client(URL, key.secret, transport=transport, max_retries=0)


@pytest.fixture
def part(connect: Callable[[rows.Key], Client], owner: rows.Key, dataset: str) -> Part:
    return read_part(connect(owner), dataset, 0)


def read_part(client: Client, dataset: str, after: int) -> Part:
    found: Part = run(client._http.get(f"/v1/datasets/{dataset}/ledger/chain", {"after": after}))
    return found


def _verify(*parts: Part, pinned: tuple[str, ...] | None = None) -> VerifiedLedger:
    check = LedgerCheck(pinned)
    for each in parts:
        check.add(each)
    return check.end()


def _is_found(*parts: Part) -> bool:
    try:
        _verify(*parts)
    except VerificationError:
        return True
    return False


def test_a_real_ledger_verifies_with_pinned_keys(
    connect: Callable[[rows.Key], Client], owner: rows.Key, dataset: str, part: Part
) -> None:
    client = connect(owner)
    ledger = client.datasets.verify_ledger(dataset, pinned_keys=client.signing_keys())
    newest = part["entries"][-1]
    assert (ledger.entries, ledger.newest_hash) == (newest["sequence"], newest["entry_hash"])
    assert ledger.signatures == len(part["checkpoints"]) + 3 + 1  # reservations, and the signed state
    assert ledger.unsigned_end == 2
    assert (ledger.find(part["entries"][2]["entry_hash"].upper()), ledger.find("0" * 64)) == (3, None)
    assert client.datasets.recompute_ledger(dataset).verifies


def test_every_alteration_of_a_ledger_is_found(part: Part) -> None:
    cases = dict(alter(part))
    assert len(cases) > 9 * len(part["entries"])
    assert [name for name, case in cases.items() if not _is_found(case)] == []
    assert not _is_found(part)


def test_a_ledger_that_was_hashed_again_fails_by_its_signatures(part: Part) -> None:
    changes: list[Callable[[Part], Any]] = [
        lambda each: each["entries"][0].update(epsilon_after=0.5),
        lambda each: each["entries"][-1].update(body={**each["entries"][-1]["body"], "epsilon": 0.001}),
        lambda each: each["entries"].pop(1),
        lambda each: each["entries"].append({**each["entries"][-1], "kind": "voided"}),
        lambda each: each["entries"].append({**each["entries"][-1], "kind": "limit_changed", "body": {"epsilon": 9}}),
    ]
    assert [_is_found(rehash(part, change)) for change in changes] == [True] * len(changes)


def test_parts_of_a_ledger_verify_and_none_can_be_left_out(
    connect: Callable[[rows.Key], Client],
    owner: rows.Key,
    dataset: str,
    part: Part,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(what_if_endpoints, "CHAIN_ROWS", 2)
    client = connect(owner)
    assert client.datasets.verify_ledger(dataset).newest_hash == part["entries"][-1]["entry_hash"]
    parts = list[Part]()
    while not parts or parts[-1]["after"] is not None:
        parts.append(read_part(client, dataset, parts[-1]["after"] if parts else 0))
    assert len(parts) > 3
    assert all(_is_found(*parts[:index], *parts[index + 1 :]) for index in range(len(parts)))
    assert _is_found(*parts[::-1])


def test_a_ledger_signed_by_another_key_is_not_verified(part: Part) -> None:
    other = base64.b64encode(bytes(Ed25519.generate().verify_key)).decode()
    with pytest.raises(VerificationError, match="not pinned"):
        _verify(part, pinned=(other,))
    with Script([ok(part)]).client() as client, pytest.raises(InvalidArgument, match="'ledger'"):
        client.datasets.verify_ledger(
            "ds_1", pinned_keys=[SigningKey(key_id="k", algorithm="ed25519", use="release", public_key=other)]
        )


@pytest.mark.parametrize("body", [None, [], {}, {"account_id": "a"}, {"account_id": "a", "keys": 3}])
def test_a_malformed_chain_does_not_verify(body: object) -> None:
    with Script([ok(body)]).client() as client, pytest.raises(VerificationError, match="malformed"):
        client.datasets.verify_ledger("ds_1")


def test_a_server_that_repeats_its_parts_is_left(part: Part) -> None:
    repeated = {**part, "entries": [], "checkpoints": [], "head": None, "after": 0}
    with Script([ok(repeated)]).client() as client, pytest.raises(VerificationError, match="end of a part"):
        client.datasets.verify_ledger("ds_1")


def test_what_if_questions_change_nothing(
    connect: Callable[[rows.Key], Client], owner: rows.Key, analyst: rows.Key, dataset: str
) -> None:
    client = connect(owner)
    before = client.datasets.budget(dataset)
    job = client.datasets.preview_job(dataset, epsilon=0.5)
    limit = client.datasets.preview_budget(dataset, epsilon=4.0, delta=1e-7)
    allocation = client.datasets.preview_allocation(dataset, analyst.id, epsilon=1.5)
    with pytest.raises(StateConflict):  # it has reservations
        client.datasets.preview_allocation(dataset, analyst.id, epsilon=None)
    assert (job.affordable, job.epsilon_after > job.epsilon_before) == (True, True)
    assert job.risk_after.odds > job.risk_before.odds
    assert (limit.before.limit.epsilon, limit.after.limit.epsilon) == (before.limit.epsilon, 4.0)
    assert (limit.after.more_like_last or 0) > (limit.before.more_like_last or 0)
    assert allocation.before.allocation is not None
    assert allocation.after.allocation is not None
    assert (allocation.before.allocation.limit.epsilon, allocation.after.allocation.limit.epsilon) == (1.0, 1.5)
    assert client.datasets.budget(dataset) == before


def test_the_prediction_of_a_limit_is_what_the_limit_does(
    connect: Callable[[rows.Key], Client], owner: rows.Key, dataset: str
) -> None:
    client = connect(owner)
    predicted = client.datasets.preview_budget(dataset, epsilon=4.0, delta=1e-7).after
    made = client.datasets.set_budget(dataset, epsilon=4.0, delta=1e-7)
    assert (predicted.limit, predicted.spent, predicted.remaining) == (made.limit, made.spent, made.remaining)


def test_questions_and_verification_await_the_asynchronous_client(house: House, owner: rows.Key, dataset: str) -> None:
    async def ask() -> tuple[object, ...]:
        transport = httpx.ASGITransport(create_app(house.services, metrics=False))
        async with AsyncClient(URL, owner.secret, transport=transport) as client:
            job = await client.datasets.preview_job(dataset, epsilon=0.5)
            limit = await client.datasets.preview_budget(dataset, epsilon=4.0, delta=1e-7)
            ledger = await client.datasets.verify_ledger(dataset)
            found = await client.datasets.recompute_ledger(dataset)
        assert found.newest is not None
        return job.affordable, limit.after.limit.epsilon, found.newest.entry_hash == ledger.newest_hash

    assert asyncio.run(ask()) == (True, 4.0, True)


def test_an_analyst_asks_about_a_job_and_not_about_the_ledger(
    connect: Callable[[rows.Key], Client], analyst: rows.Key, dataset: str
) -> None:
    client = connect(analyst)
    assert client.datasets.preview_job(dataset, epsilon=0.1).affordable
    for question in (
        lambda: client.datasets.preview_budget(dataset, epsilon=3.0),
        lambda: client.datasets.verify_ledger(dataset),
        lambda: client.datasets.recompute_ledger(dataset),
    ):
        with pytest.raises(Forbidden):
            question()
