"""W5, W11: somebody alters the registers of a series in the database, and the next content is not used."""

from collections.abc import Callable
from typing import Any

import httpx
import pytest

from app import crashpoints
from app.dashboard.certificates import describe_certificate
from app.datasets import ingestion
from app.datasets.models import Content, Dataset
from app.db import WriteSession
from app.errors import DependencyUnavailable, Internal, StateConflict
from app.ledger import Ledger
from app.ledger.integrity import checkpoints
from tests.factories import rows
from tests.factories.datasets import problem, stored
from tests.factories.worker import House, job_body
from tests.workers.support import failing_tables, kinds
from tests.workers.test_series import declare, expire, list_people, read, upload

pytestmark = pytest.mark.long

MODEL = {"family": "gaussian-mean", "features": ["x"]}
Alteration = Callable[[WriteSession, str, str, str], None]
"""Gets the ids of the first two contents, which are ready, and of the third, which waits."""


def _reject(tx: WriteSession, first: str, _: str, __: str) -> None:
    tx.get_one(Content, first).status = "rejected"


def _name_another(tx: WriteSession, first: str, second: str, _: str) -> None:
    tx.get_one(Content, first).register_object = tx.get_one(Content, second).register_object


def _move_to_the_front(tx: WriteSession, _: str, __: str, third: str) -> None:
    tx.get_one(Content, third).series_place = 0


def _move_to_the_end(tx: WriteSession, first: str, _: str, __: str) -> None:
    tx.get_one(Content, first).series_place = 99


def _give_to_another_series(tx: WriteSession, first: str, _: str, __: str) -> None:
    tx.get_one(Dataset, tx.get_one(Content, first).dataset_id).series = "others"


ALTERATIONS: dict[str, Alteration] = {
    "rejected": _reject,
    "renamed": _name_another,
    "moved to the front": _move_to_the_front,
    "moved to the end": _move_to_the_end,
    "other series": _give_to_another_series,
}


def start(house: House, api: httpx.Client, owner: rows.Key) -> tuple[str, str, str]:
    """Two ready contents, and a third one with a person of each, which waits."""
    blocks = [declare(api, owner) for _ in range(3)]
    people = ([1, 10], [2, 11], [1, 2, 12])
    contents = [upload(house, api, owner, block, each) for block, each in zip(blocks, people, strict=True)]
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("workers.ingest_task.find_next", lambda *_: None)
        for each in contents[:2]:
            house.ingestion().run(each)
    return contents[0], contents[1], contents[2]


@pytest.mark.parametrize("name", ALTERATIONS)
def test_a_content_with_altered_registers_is_not_used(
    house: House, api: httpx.Client, owner: rows.Key, name: str
) -> None:
    contents = start(house, api, owner)
    with house.database.write() as tx:
        ALTERATIONS[name](tx, *contents)
    before = stored(house.areas)
    house.ingestion().run(contents[2])
    content = read(house, contents[2])
    assert (content.status, content.rejection) == ("rejected", "series_mismatch")
    assert (content.table_object, content.register_object) == (None, None)
    house.sweeper.sweep()
    assert set(stored(house.areas)) <= set(before)
    budget = api.get(f"/v1/datasets/{content.dataset_id}/budget", headers=owner.headers)
    entries = api.get(f"/v1/datasets/{content.dataset_id}/ledger", headers=owner.headers).json()
    assert budget.status_code == 200
    assert [each["kind"] for each in entries["items"]] == ["frozen", "account_opened"]


def test_without_alterations_the_content_is_used(house: House, api: httpx.Client, owner: rows.Key) -> None:
    first, second, third = start(house, api, owner)
    house.ingestion().run(third)
    assert [set(list_people(house, each)) for each in (first, second, third)] == [{1, 10}, {2, 11}, {12}]


@pytest.mark.parametrize("altered", ["before the claim", "after the claim"])
def test_a_block_that_left_its_series_meanwhile_is_not_used(
    house: House, api: httpx.Client, owner: rows.Key, monkeypatch: pytest.MonkeyPatch, altered: str
) -> None:
    """The series is restored before the end. Only the worker's list shows it."""
    *_, third = start(house, api, owner)
    dataset_id = read(house, third).dataset_id
    real = ingestion.mark_ready

    def change(series: str | None) -> None:
        with house.database.write() as tx:
            tx.get_one(Dataset, dataset_id).series = series

    def restore(*arguments: Any) -> Any:
        tx = arguments[0]
        tx.get_one(Dataset, dataset_id).series = "visits" if altered == "before the claim" else None
        return real(*arguments)

    if altered == "before the claim":
        change(None)
    monkeypatch.setattr(ingestion, "mark_ready", restore)
    before = stored(house.areas)
    house.ingestion().run(third)
    assert (read(house, third).status, read(house, third).rejection) == ("rejected", "series_mismatch")
    house.sweeper.sweep()
    assert set(stored(house.areas)) <= set(before)


def test_verdicts_on_an_altered_series_depend_on_no_rows(house: House, api: httpx.Client, owner: rows.Key) -> None:
    """W3: the rejection does not show who returned."""
    views = []
    for series, first_people, people in (  # the same bytes twice would be refused
        ("none return", range(20, 40), range(60, 80)),
        ("all return", range(20), range(19, -1, -1)),
    ):
        blocks = [declare(api, owner, series=series) for _ in range(2)]
        first = upload(house, api, owner, blocks[0], first_people)
        house.ingestion().run(first)
        with house.database.write() as tx:
            _reject(tx, first, "", "")
        before = stored(house.areas)
        house.ingestion().run(upload(house, api, owner, blocks[1], people))
        view = api.get(f"/v1/datasets/{blocks[1]}", headers=owner.headers).json()
        house.sweeper.sweep()
        lost = sorted(set(stored(house.areas)) - set(before))
        views.append((view["status"], view["content"], view["rejection"], lost))
    assert views[0] == views[1]
    assert views[0][2] == {"code": "series_mismatch", "columns": []}


def test_without_its_mark_the_content_is_retried(
    house: House, api: httpx.Client, owner: rows.Key, monkeypatch: pytest.MonkeyPatch
) -> None:
    """W10: the store of the mark is away before the commit, so the new objects are named nowhere."""
    content_id = upload(house, api, owner, declare(api, owner), [1])
    before = stored(house.areas)

    def fail(*_: object, **__: object) -> None:
        raise DependencyUnavailable

    with monkeypatch.context() as patched:
        patched.setattr(checkpoints, "append", fail)
        house.ingestion().run(content_id)
    assert (read(house, content_id).status, read(house, content_id).attempts) == ("received", 0)
    assert stored(house.areas) == before
    expire(house, content_id)
    house.ingestion().run(content_id)
    assert set(list_people(house, content_id)) == {1}


@pytest.mark.parametrize("error", [DependencyUnavailable, Internal, StateConflict])
def test_an_error_after_the_commit_deletes_no_table(
    house: House, api: httpx.Client, owner: rows.Key, monkeypatch: pytest.MonkeyPatch, error: type[Exception]
) -> None:
    """W10: the mark is written after the commit. If that fails, the content is ready and needs its objects."""
    content_id = upload(house, api, owner, declare(api, owner), [1])
    real = ingestion.mark_ready

    def fail() -> None:
        raise error

    def mark(tx: WriteSession, *arguments: Any) -> Any:
        tx.after_commit(fail, vital=True)
        return real(tx, *arguments)

    monkeypatch.setattr(ingestion, "mark_ready", mark)
    house.ingestion().run(content_id)
    assert set(list_people(house, content_id)) == {1}


def test_two_contents_that_used_the_same_list_are_not_both_ready(
    house: House, api: httpx.Client, owner: rows.Key, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Altered places let two contents be claimed at once; the second one's list lacks the first."""
    first, second = (upload(house, api, owner, declare(api, owner), [1, place]) for place in (7, 8))
    with house.database.write() as tx:
        tx.get_one(Content, second).series_place = 1
        early = ingestion.claim(tx, second)
    assert early is not None
    with monkeypatch.context() as patched:
        patched.setattr("workers.ingest_task.find_next", lambda *_: None)
        house.ingestion().run(first)
    assert read(house, first).status == "ready"
    stored = ingestion.StoredTable("f" * 32, b"", "0" * 64, "e" * 32)
    with pytest.raises(StateConflict, match="registers of this series"), house.database.write() as tx:
        ingestion.mark_ready(tx, house.ledger, early, stored)
    assert read(house, second).status == "received"


def test_certificates_name_the_series_and_the_place(house: House, api: httpx.Client, owner: rows.Key) -> None:
    """An analyst reads there that people of earlier blocks are left out."""
    contents = [upload(house, api, owner, declare(api, owner), [1, place]) for place in (7, 8)]
    house.ingestion().run(contents[0])
    dataset_id = read(house, contents[1]).dataset_id
    job_id = house.job(dataset_id, owner, model=MODEL)
    house.queue.sent.clear()
    house.runner().run(job_id)
    release = api.get(f"/v1/releases/{house.read(job_id).release_id}", headers=owner.headers).json()
    series = release["certificate"]["statement"]["series"]
    assert (series["name"], series["place"]) == ("visits", 2)
    assert series["in_words"] in describe_certificate(release["certificate"]["statement"])
    assert "the series 'visits'. Its table is upload 2 of the series" in series["in_words"]


def _lose_register(tx: WriteSession, content: Content) -> None:
    content.register_object = None


def _name_unknown_register(tx: WriteSession, content: Content) -> None:
    content.register_object = "e" * 32


def _rename_series(tx: WriteSession, content: Content) -> None:
    tx.get_one(Dataset, content.dataset_id).series = "others"


UNREGISTERED: dict[str, Callable[[WriteSession, Content], None]] = {
    "no register": _lose_register,
    "unknown register": _name_unknown_register,
    "other series": _rename_series,
}


@pytest.mark.parametrize("name", UNREGISTERED)
def test_without_a_registration_nothing_is_opened(house: House, api: httpx.Client, owner: rows.Key, name: str) -> None:
    """W8, W15: the certificate would name no series. The job fails without a charge, before any row is read."""
    content_id = upload(house, api, owner, declare(api, owner), [1])
    house.ingestion().run(content_id)
    dataset_id = read(house, content_id).dataset_id
    job_id = house.job(dataset_id, owner, model=MODEL)
    with house.database.write() as tx:
        UNREGISTERED[name](tx, tx.get_one(Content, content_id))
    house.runner(failing_tables(AssertionError("rows were read"))).run(job_id)
    job = house.read(job_id)
    assert (job.status, job.release_id, house.charge(job_id)) == ("failed", None, "voided")
    assert "opened" not in kinds(house, dataset_id)


def test_a_registration_lost_during_the_run_stops_the_release(
    house: House, api: httpx.Client, owner: rows.Key, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The registration is compared again when the certificate is signed."""
    content_id = upload(house, api, owner, declare(api, owner), [1])
    house.ingestion().run(content_id)
    job_id = house.job(read(house, content_id).dataset_id, owner, model=MODEL)

    def lose(name: str) -> None:
        if name == "before-publish":
            monkeypatch.setattr(Ledger, "registration", staticmethod(lambda *_: None))

    monkeypatch.setattr(crashpoints, "reach", lose)
    house.runner().run(job_id)
    job = house.read(job_id)
    assert (job.status, job.release_id, house.charge(job_id)) == ("failed", None, "settled")


@pytest.mark.parametrize("name", UNREGISTERED)
def test_jobs_without_a_registration_are_refused_in_words(
    house: House, api: httpx.Client, owner: rows.Key, name: str
) -> None:
    """W15: contents of a series that is older than its entries in the ledger have none."""
    content_id = upload(house, api, owner, declare(api, owner), [1])
    house.ingestion().run(content_id)
    dataset_id = read(house, content_id).dataset_id
    body = job_body(dataset_id, model=MODEL)
    assert api.post("/v1/quotes", json=body, headers=owner.headers).status_code == 200
    with house.database.write() as tx:
        UNREGISTERED[name](tx, tx.get_one(Content, content_id))
    before = kinds(house, dataset_id)
    for path in ("/v1/quotes", "/v1/jobs"):
        answer = api.post(path, json=body, headers=owner.headers)
        assert "no register of people" in problem(answer, 409, "state_conflict")["detail"]
    assert kinds(house, dataset_id) == before
