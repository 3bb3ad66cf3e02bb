"""Idempotency keys: one key has one effect and one answer."""

import threading
from datetime import timedelta

import httpx
import pytest
from sqlalchemy import select, text, update

from app.db import Database, now
from app.errors import IdempotencyInProgress
from app.http.requests.idempotency import Answer, IdempotentRequest, answer_once
from app.http.requests.models import IdempotentAnswer
from tests.factories import rows
from tests.http.conftest import CANARY

PATH = "/v1/drawings"


def _draw(client: httpx.Client, key: rows.Key, name: str = "a", idempotency_key: str = "k") -> httpx.Response:
    return client.post(PATH, json={"name": name}, headers=key.headers | {"Idempotency-Key": idempotency_key})


def test_a_repetition_gets_the_first_answer_without_effect(drawings: httpx.Client, owner: rows.Key) -> None:
    first, second = _draw(drawings, owner), _draw(drawings, owner)
    assert (second.status_code, second.headers["Location"]) == (201, "/v1/drawings/1")
    assert second.json() == {"name": "a", "count": 1}
    assert first.json() == second.json() | {"secret": CANARY}
    assert _draw(drawings, owner, idempotency_key="other").json()["count"] == 2


def test_quotes_around_the_key_do_not_matter(drawings: httpx.Client, owner: rows.Key) -> None:
    _draw(drawings, owner)
    assert _draw(drawings, owner, idempotency_key='"k"').json()["count"] == 1


def test_two_keys_are_refused(drawings: httpx.Client, owner: rows.Key) -> None:
    headers = [*owner.headers.items(), ("Idempotency-Key", "k"), ("Idempotency-Key", "l")]
    answer = drawings.post(PATH, json={"name": "a"}, headers=headers)
    assert (answer.status_code, answer.json()["code"]) == (422, "invalid_request")


def test_the_same_value_in_other_spelling_is_the_same_body(drawings: httpx.Client, owner: rows.Key) -> None:
    headers = owner.headers | {"Idempotency-Key": "k", "Content-Type": "application/json"}
    first = drawings.post(PATH, content=b'{"name": "b", "weights": {}}', headers=headers)
    second = drawings.post(PATH, content=b'{ "weights":{},"name":"\\u0062" }', headers=headers)
    assert (first.json()["count"], second.json()["count"]) == (1, 1)


def test_another_body_under_the_key_is_a_conflict(drawings: httpx.Client, owner: rows.Key) -> None:
    """W8: a repetition has the effect of the first request alone."""
    _draw(drawings, owner)
    answer = _draw(drawings, owner, name="b")
    assert (answer.status_code, answer.json()["code"]) == (409, "idempotency_conflict")


def test_two_callers_may_use_the_same_key(drawings: httpx.Client, owner: rows.Key, analyst: rows.Key) -> None:
    """W3: no caller gets the answer of another one."""
    assert _draw(drawings, owner).json()["count"] == 1
    assert _draw(drawings, analyst, name="b").json()["count"] == 2


def test_a_key_is_of_one_route(database: Database, owner: rows.Key) -> None:
    """W8: a job under the key of another call is reserved, and not answered from its record."""
    for status, route in ((201, "POST /v1/drawings"), (202, "POST /v1/jobs")):
        with database.write() as tx:
            request = IdempotentRequest("k", route, "hash")
            assert answer_once(tx, owner.id, request, lambda: Answer(status, {})).status_code == status  # noqa: B023


def test_a_refusal_is_not_recorded(drawings: httpx.Client, owner: rows.Key, database: Database) -> None:
    assert _draw(drawings, owner, name="refused").json()["code"] == "state_conflict"
    with database.read() as session:
        assert session.scalars(select(IdempotentAnswer)).all() == []
    assert _draw(drawings, owner).json()["count"] == 1


@pytest.mark.parametrize("key", ["", '""', "a b", "é", "a" * 129, "a\tb"])
def test_a_malformed_key_is_invalid(drawings: httpx.Client, owner: rows.Key, key: str) -> None:
    headers = [(name.encode(), value.encode()) for name, value in (owner.headers | {"Idempotency-Key": key}).items()]
    answer = drawings.post(PATH, json={}, headers=headers)
    assert (answer.status_code, answer.json()["code"]) == (422, "invalid_request")


def test_the_longest_key_is_accepted(drawings: httpx.Client, owner: rows.Key) -> None:
    assert _draw(drawings, owner, idempotency_key='"' + "~" * 128 + '"').status_code == 201


def test_records_expire_unless_they_have_no_lifetime(
    drawings: httpx.Client, owner: rows.Key, database: Database
) -> None:
    _draw(drawings, owner)
    _draw(drawings, owner, idempotency_key="lasting")
    with database.write() as tx:
        tx.execute(update(IdempotentAnswer).values(expires_at=now() - timedelta(seconds=1)))
        tx.execute(update(IdempotentAnswer).where(IdempotentAnswer.key == "lasting").values(expires_at=None))
    assert _draw(drawings, owner).json()["count"] == 3
    assert _draw(drawings, owner, idempotency_key="lasting").json()["count"] == 2


def test_concurrent_repetitions_have_one_effect(drawings: httpx.Client, owner: rows.Key, database: Database) -> None:
    """W10: a retry that overtakes its first attempt has no second effect."""
    answers: list[httpx.Response] = []
    racers = [threading.Thread(target=lambda: answers.append(_draw(drawings, owner))) for _ in range(8)]
    for racer in racers:
        racer.start()
    for racer in racers:
        racer.join()
    assert {answer.json()["count"] for answer in answers if answer.status_code == 201} == {1}
    assert {answer.json().get("code") for answer in answers} <= {None, "idempotency_in_progress"}
    with database.read() as session:
        assert session.scalar(text("SELECT count(*) FROM drawn")) == 1


def test_a_key_that_another_transaction_holds_is_in_progress(
    database: Database, owner: rows.Key, monkeypatch: pytest.MonkeyPatch
) -> None:
    request = IdempotentRequest("k", "POST /v1/drawings", "hash")
    with database.write() as tx:
        answer_once(tx, owner.id, request, lambda: Answer(201, {}))
    # as in a snapshot from before the other transaction's commit
    monkeypatch.setattr("app.http.requests.repository.find", lambda *_: None)
    with pytest.raises(IdempotencyInProgress), database.write() as tx:
        answer_once(tx, owner.id, request, lambda: Answer(201, {}))
