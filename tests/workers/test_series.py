"""Series through the API and real ingestions: each person counts once, also after races, crashes and deletions."""

import threading
from collections.abc import Iterable
from datetime import timedelta
from typing import Any

import httpx
import numpy as np
import pytest
from sqlalchemy import event

from app.datasets import ingestion
from app.datasets.facts import digest_facts, make_declared_facts
from app.datasets.ingestion import Outcome, StoredTable
from app.datasets.models import Content, Dataset
from app.db import now
from app.errors import Internal
from app.queue import INGEST_CONTENT
from tests.factories import rows
from tests.factories.datasets import stored, uploaded
from tests.factories.worker import House
from workers import ingest_task as module
from workers.enclave import Failed, OpeningKey, ingest, make_layout, open_table
from workers.enclave import Outcome as Ended

pytestmark = pytest.mark.long

SLOTS, MOST = 40, 2
DECLARATION: dict[str, Any] = {
    "name": "block",
    "sensitivity": "private",
    "series": "visits",
    "columns": [
        {"name": "person", "type": "integer", "lower": 0, "upper": 1_000_000},
        {"name": "x", "type": "real", "lower": 0, "upper": 1e9},
    ],
    "privacy_unit": {"kind": "column", "column": "person", "max_rows": MOST},
    "slots": SLOTS,
    "budget": {"epsilon": 1.0},
}


def declare(api: httpx.Client, owner: rows.Key, **changes: Any) -> str:
    response = api.post("/v1/datasets", json=DECLARATION | changes, headers=owner.headers)
    assert response.status_code == 201, response.text
    return str(response.json()["id"])


def upload(house: House, api: httpx.Client, owner: rows.Key, dataset_id: str, people: Iterable[int]) -> str:
    """Upload two rows of each person, whose x is the person; return the id of the waiting content."""
    table = "person,x\n" + "".join(f"{person},{person}\n" for person in people for _ in range(2))
    uploaded(api, owner, dataset_id, table.encode())
    (_, content_id) = house.queue.sent.pop()
    return content_id


def read(house: House, content_id: str) -> Content:
    with house.database.read() as session:
        return session.get_one(Content, content_id)


def list_people(house: House, content_id: str) -> dict[int, int]:
    """Read the stored table: the number of present rows of each person."""
    with house.database.read() as session:
        content = session.get_one(Content, content_id)
        dataset = session.get_one(Dataset, content.dataset_id)
        facts = make_declared_facts(dataset)
        assert content.status == "ready"
        assert content.table_object is not None
        assert content.wrapped_key is not None
        key = OpeningKey(house.keys.opening_key, house.keys.opening_retired, house.keys.fingerprint_key)
        table = open_table(
            house.areas.vault,
            content.table_object,
            opening_key=key,
            dataset_id=dataset.id,
            version=content.version,
            dataset_box=house.areas.keys.box(dataset.id),
            wrapped_key=content.wrapped_key,
            facts_digest=digest_facts(dataset),
            layout=make_layout(facts.columns, facts.slots, facts.unit),
        )
    with table:
        values = table.gather(np.arange(SLOTS))
        present = values["_present"] == 1
        people, counts = np.unique(values["x"][present], return_counts=True)
        assert not np.any(values["x"][~present])
    return dict(zip(people.astype(int).tolist(), counts.tolist(), strict=True))


def expire(house: House, content_id: str) -> None:
    with house.database.write() as tx:
        tx.get_one(Content, content_id).lease_until = now() - timedelta(days=1)


@pytest.mark.long
@pytest.mark.parametrize(
    "order", ["shuffled", *(pytest.param(order, marks=pytest.mark.sweep) for order in ("forwards", "backwards"))]
)
def test_ten_blocks_count_each_person_once_in_any_order(
    house: House, api: httpx.Client, owner: rows.Key, order: str
) -> None:
    """30 % of the people of each block return from earlier ones. The first upload that has a person keeps the rows."""
    rng = np.random.default_rng(3)
    blocks = [declare(api, owner, name=f"block {number}") for number in range(10)]
    people, fresh = list[list[int]](), iter(range(1000))
    for _ in blocks:
        known = sorted({person for block in people for person in block})
        returning = rng.choice(known, 6, replace=False).tolist() if known else []
        people.append([*returning, *(next(fresh) for _ in range(20 - len(returning)))])
    places = {"forwards": range(10), "backwards": range(9, -1, -1), "shuffled": rng.permutation(10)}[order]
    contents = {int(place): upload(house, api, owner, blocks[place], people[place]) for place in places}
    for place in rng.permutation(10):  # messages arrive in another order
        house.ingestion().run(contents[int(place)])
    seen = set[int]()
    for place in places:
        kept = list_people(house, contents[int(place)])
        assert set(kept) == set(people[place]) - seen
        assert set(kept.values()) == {MOST}
        seen |= set(people[place])


def test_a_content_waits_for_earlier_ones_of_its_series(house: House, api: httpx.Client, owner: rows.Key) -> None:
    """W5: the order of receipt decides, not that of messages; the worker continues with waiting ones."""
    blocks = [declare(api, owner) for _ in range(3)]
    first, second, third = (upload(house, api, owner, block, [1, place]) for place, block in enumerate(blocks, 10))
    other = upload(house, api, owner, declare(api, owner, series="others"), [1])
    for waiting in (third, second):
        house.ingestion().run(waiting)
        assert (read(house, waiting).status, read(house, waiting).attempts) == ("received", 0)
    house.ingestion().run(other)
    assert list_people(house, other) == {1: 2}
    house.ingestion().run(first)
    assert [list_people(house, each) for each in (first, second, third)] == [{1: 2, 10: 2}, {11: 2}, {12: 2}]


def test_two_workers_at_once_keep_the_order(house: House, api: httpx.Client, owner: rows.Key) -> None:
    blocks = [declare(api, owner) for _ in range(4)]
    contents = [upload(house, api, owner, block, [1, 2, place]) for place, block in enumerate(blocks, 10)]
    threads = [threading.Thread(target=house.ingestion().run, args=(each,)) for each in reversed(contents)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for each in contents:  # the sweeper would send these messages again
        house.ingestion().run(each)
    kept = [set(list_people(house, each)) for each in contents]
    assert kept == [{1, 2, 10}, {11}, {12}, {13}]


def test_rejected_and_deleted_contents_register_nobody(house: House, api: httpx.Client, owner: rows.Key) -> None:
    blocks = [declare(api, owner) for _ in range(4)]
    overfull = upload(house, api, owner, blocks[0], range(SLOTS + 1))
    deleted = upload(house, api, owner, blocks[1], [1, 2])
    kept = upload(house, api, owner, blocks[2], [1, 3])
    house.ingestion().run(overfull)
    assert read(house, overfull).rejection == "too_many_units"
    assert read(house, overfull).register_object is None
    assert set(list_people(house, deleted)) == {1, 2}  # it had its turn
    assert set(list_people(house, kept)) == {3}
    waiting, last = upload(house, api, owner, blocks[0], [4]), upload(house, api, owner, blocks[3], [4, 5])
    assert api.delete(f"/v1/datasets/{blocks[0]}", headers=owner.headers).status_code == 200
    house.ingestion().run(last)
    assert read(house, waiting).status == "received"
    assert set(list_people(house, last)) == {4, 5}


def test_deletion_of_a_block_frees_nobody(house: House, api: httpx.Client, owner: rows.Key) -> None:
    """W5: releases of the deleted block exist, so its people stay charged there. Its register outlives it."""
    first, second = declare(api, owner), declare(api, owner)
    kept = upload(house, api, owner, first, [1, 2])
    house.ingestion().run(kept)
    receipt = api.delete(f"/v1/datasets/{first}", headers=owner.headers).json()
    assert receipt["statement"]["register_kept"] is True
    house.sweeper.sweep()
    assert stored(house.areas) == [read(house, kept).register_object]
    content = upload(house, api, owner, second, [1, 3])
    house.ingestion().run(content)
    assert set(list_people(house, content)) == {3}


def test_a_new_version_keeps_its_people_and_takes_nobody_elses(
    house: House, api: httpx.Client, owner: rows.Key
) -> None:
    """W5: a person belongs to one block, whose later contents keep the rows."""
    first, second = declare(api, owner), declare(api, owner)
    old = upload(house, api, owner, first, [1, 2])
    other = upload(house, api, owner, second, [2, 3])
    new = upload(house, api, owner, first, [1, 2, 3, 4])
    dropped = upload(house, api, owner, second, [2, 4, 5])
    house.ingestion().run(old)
    kept = [set(list_people(house, each)) for each in (other, new, dropped)]
    assert kept == [{3}, {1, 2, 4}, {5}]


def test_superseded_contents_keep_their_registers(house: House, api: httpx.Client, owner: rows.Key) -> None:
    """W5: releases of the old content exist."""
    first, second = declare(api, owner), declare(api, owner)
    house.ingestion().run(upload(house, api, owner, first, [1]))
    house.ingestion().run(upload(house, api, owner, first, [2]))
    for _ in range(3):
        house.sweeper.sweep()
    content = upload(house, api, owner, second, [1, 2, 3])
    house.ingestion().run(content)
    assert set(list_people(house, content)) == {3}


@pytest.mark.long
@pytest.mark.parametrize("step", ["before the child", "after the child", "before the commit"])
def test_a_crash_at_any_step_registers_nobody_twice_or_never(
    house: House, api: httpx.Client, owner: rows.Key, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    """W10: the worker dies; after its lease another one ingests, and the next content waits for it."""

    class Crash(BaseException):
        """The process ends here."""

    def crash(*arguments: Any, **options: Any) -> Ended:
        if step == "after the child":
            ingest(*arguments, **options)
        raise Crash

    first, second = (upload(house, api, owner, declare(api, owner), [1, place]) for place in (10, 11))
    with monkeypatch.context() as patched:
        patched.setattr(*((ingestion, "mark_ready") if step == "before the commit" else (module, "ingest")), crash)
        with pytest.raises(Crash):
            house.ingestion().run(first)
    house.ingestion().run(second)
    assert read(house, second).status == "received"
    expire(house, first)
    house.ingestion().run(first)
    assert [set(list_people(house, each)) for each in (first, second)] == [{1, 10}, {11}]


def test_accounts_of_an_owner_are_locked_once(house: House, api: httpx.Client, owner: rows.Key) -> None:
    """Locked accounts cannot be charged, so their list is read once."""
    content_id = upload(house, api, owner, declare(api, owner), [1, 2])
    seen = []

    def note(_: object, __: object, statement: str, *___: object) -> None:
        seen.append("GROUP BY ledger_accounts.id" in statement)

    event.listen(house.database.engine, "before_cursor_execute", note)
    house.ingestion().run(content_id)
    event.remove(house.database.engine, "before_cursor_execute", note)
    assert set(list_people(house, content_id)) == {1, 2}
    assert sum(seen) == 1


def test_a_worker_that_lost_its_claim_registers_nobody(house: House, api: httpx.Client, owner: rows.Key) -> None:
    """Its fencing token is outdated; so its register is never used."""
    first, second = (upload(house, api, owner, declare(api, owner), [1, place]) for place in (10, 11))
    with house.database.write() as tx:
        late = ingestion.claim(tx, first)
    assert late is not None
    expire(house, first)
    house.ingestion().run(first)
    with house.database.write() as tx:
        outcome = ingestion.mark_ready(tx, house.ledger, late, StoredTable("f" * 32, b"", "0" * 64, "e" * 32))
    assert outcome is Outcome.LOST
    assert read(house, first).register_object != "e" * 32
    assert set(list_people(house, second)) == {11}


def test_a_retried_content_keeps_its_place(
    house: House, api: httpx.Client, owner: rows.Key, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = (upload(house, api, owner, declare(api, owner), [1, place]) for place in (10, 11))
    with monkeypatch.context() as patched:
        patched.setattr(module, "ingest", lambda *_, **__: Failed(transient=True))
        house.ingestion().run(first)
        house.ingestion().run(second)
    assert (read(house, first).status, read(house, second).attempts) == ("received", 0)
    expire(house, first)
    house.ingestion().run(first)
    assert [set(list_people(house, each)) for each in (first, second)] == [{1, 10}, {11}]


def test_the_sweeper_sends_waiting_contents_again(house: House, api: httpx.Client, owner: rows.Key) -> None:
    """The worker may die between two contents of a series."""
    first, second = (upload(house, api, owner, declare(api, owner), [1, place]) for place in (10, 11))
    with house.database.write() as tx:
        tx.get_one(Content, second).queued_at = now() - timedelta(hours=1)
        assert ingestion.claim(tx, second) is None
    house.queue.sent.clear()
    house.sweeper.sweep()
    assert (INGEST_CONTENT, second) in house.queue.sent
    house.ingestion().run(first)
    assert read(house, second).status == "ready"


def test_without_an_earlier_register_nothing_is_ingested(house: House, api: httpx.Client, owner: rows.Key) -> None:
    """Unknown means refuse: whether somebody returned cannot be known."""
    first, second = declare(api, owner), declare(api, owner)
    kept = upload(house, api, owner, first, [1])
    house.ingestion().run(kept)
    register = read(house, kept).register_object
    assert register is not None
    house.areas.vault.delete(register)
    content = upload(house, api, owner, second, [1])
    house.ingestion().run(content)
    assert (read(house, content).status, read(house, content).attempts) == ("received", 1)
    with house.database.write() as tx:
        tx.get_one(Content, kept).register_object = None
    expire(house, content)
    with pytest.raises(Internal):
        house.ingestion().run(content)
    assert read(house, content).status == "received"


def test_ends_and_objects_do_not_depend_on_who_returned(house: House, api: httpx.Client, owner: rows.Key) -> None:
    """W3, W14: the same objects of the same sizes, and the same views."""
    shapes = []
    for series, first_people, people in (  # the same bytes twice would be refused
        ("none return", range(20, 40), range(60, 80)),
        ("all return", range(20), range(19, -1, -1)),
    ):
        first, second = declare(api, owner, series=series), declare(api, owner, series=series)
        house.ingestion().run(upload(house, api, owner, first, first_people))
        content_id = upload(house, api, owner, second, people)
        house.ingestion().run(content_id)
        content = read(house, content_id)
        assert len(list_people(house, content_id)) == (20 if series == "none return" else 0)
        sizes = []
        for name in (content.table_object, content.register_object):
            assert name is not None
            with house.areas.vault.open(name) as file:
                sizes.append(len(file.read()))
        view = api.get(f"/v1/datasets/{second}", headers=owner.headers).json()
        shapes.append((sizes, view["status"], view["content"], view["slots"]))
    assert shapes[0] == shapes[1]


def test_the_same_person_of_another_owner_is_another_person(house: House, api: httpx.Client, owner: rows.Key) -> None:
    with house.database.write() as tx:
        other = rows.api_key(tx, "owner")
    contents = [upload(house, api, key, declare(api, key), [1, 2]) for key in (owner, other)]
    for each in contents:
        house.ingestion().run(each)
    assert [set(list_people(house, each)) for each in contents] == [{1, 2}, {1, 2}]
