"""Group commit: each call fails alone, and learns its outcome when it is durable (W9, W10)."""

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial
from typing import Any
from unittest.mock import patch

import pytest
import sqlalchemy as sa

from app.db import Database, GroupCommit, WriteSession, group_commit
from app.db.session import UNANSWERED, commit
from app.errors import DependencyUnavailable, StateConflict
from tests.factories.line import SETTLE_SECONDS, at_once

WHO: ContextVar[str | None] = ContextVar("who")


@pytest.fixture
def joined(database: Database) -> GroupCommit:
    with database.write() as tx:
        tx.execute(sa.text("CREATE TABLE notes (name varchar PRIMARY KEY)"))
    return GroupCommit(database)


def note(name: str, error: Exception | None = None) -> Callable[[WriteSession], str]:
    def action(tx: WriteSession) -> str:
        tx.execute(sa.text("INSERT INTO notes VALUES (:name)"), {"name": name})
        if error is not None:
            raise error
        return name

    return action


def notes(database: Database) -> set[str]:
    with database.read() as session:
        return set(session.scalars(sa.text("SELECT name FROM notes")))


@contextmanager
def commits(database: Database) -> Iterator[list[int]]:
    """Count commits."""
    seen: list[int] = []

    def counted(_: object) -> None:
        seen.append(1)

    sa.event.listen(database.engine, "commit", counted)
    yield seen
    sa.event.remove(database.engine, "commit", counted)


def test_simultaneous_calls_share_one_commit(database: Database, joined: GroupCommit) -> None:
    names = [f"n{number}" for number in range(8)]
    with patch.object(group_commit, "JOIN_SECONDS", 60.0), commits(database) as seen:
        told = at_once(joined, [note(name) for name in names])
    assert [each.result() for each in told] == names
    assert notes(database) == set(names)
    assert len(seen) == 1


def test_a_refused_call_does_not_affect_others(database: Database, joined: GroupCommit) -> None:
    told = at_once(joined, [note("a"), note("b", StateConflict("No.")), note("c")])
    assert (told[0].result(), told[2].result()) == ("a", "c")
    with pytest.raises(StateConflict, match="No"):
        told[1].result()
    assert notes(database) == {"a", "c"}


def test_a_failed_call_does_not_affect_others(database: Database, joined: GroupCommit) -> None:
    told = at_once(joined, [note("a"), note("b", ZeroDivisionError()), note("a"), note("c")])
    assert (told[0].result(), told[3].result()) == ("a", "c")
    with pytest.raises(ZeroDivisionError):
        told[1].result()
    with pytest.raises(sa.exc.IntegrityError):
        told[2].result()
    assert notes(database) == {"a", "c"}


def test_a_lost_commit_is_reported_as_unknown(database: Database, joined: GroupCommit) -> None:
    """The answer to the commit is lost: neither success nor a refusal may be reported."""
    done: list[str] = []

    def hooked(tx: WriteSession) -> None:
        tx.after_commit(lambda: done.append("hook"))

    def lost(_: object) -> None:
        raise DependencyUnavailable(UNANSWERED)

    def condemned(tx: WriteSession) -> None:
        tx.after_rollback(lambda _: done.append("frozen"))
        raise StateConflict("No.")

    with patch.object(group_commit, "commit", lost):
        told = at_once(joined, [note("a"), hooked, condemned])
    for each in told:
        with pytest.raises(DependencyUnavailable, match="Idempotency-Key"):
            each.result()
    assert (done, notes(database)) == (["frozen"], set())


def test_a_call_without_shared_commit_runs_alone(database: Database, joined: GroupCommit) -> None:
    def failed(_: object) -> None:
        raise sa.exc.OperationalError("COMMIT", None, Exception())

    with patch.object(group_commit, "commit", failed), commits(database) as seen:
        told = at_once(joined, [note("a"), note("b"), note("c", StateConflict("No."))])
    assert [each.exception() is None for each in told] == [True, True, False]
    assert notes(database) == {"a", "b"}
    assert len(seen) == 2


def test_hooks_run_once_and_in_their_own_thread(database: Database, joined: GroupCommit) -> None:
    ran: list[tuple[str, int]] = []

    def action(name: str) -> Callable[[WriteSession], int]:
        def run(tx: WriteSession) -> int:
            tx.after_commit(lambda: ran.append((name, threading.get_ident())))
            return 0

        return run

    def keep(tx: WriteSession) -> None:
        note("kept all the same")(tx)

    def condemned(tx: WriteSession) -> None:
        tx.after_rollback(keep)
        raise StateConflict("Frozen.")

    told = at_once(joined, [action("a"), condemned, action("b")])
    assert sorted(name for name, _ in ran) == ["a", "b"]
    assert len({thread for _, thread in ran}) == 2
    assert told[1].exception() is not None
    assert notes(database) == {"kept all the same"}


class Speaking(GroupCommit):
    """Each call in the queue has a separate context with a name."""

    def transact(self, action: Callable[[WriteSession], Any], name: str | None = None) -> Any:
        WHO.set(name)
        return super().transact(action)


@pytest.mark.parametrize("refused", [False, True], ids=["all at one go", "one by one"])
def test_each_runs_in_the_context_of_its_own_request(database: Database, joined: GroupCommit, refused: bool) -> None:
    names = [f"n{number}" for number in range(8)]
    actions = [lambda _: WHO.get()] * 8 + [note("a", StateConflict("No.")) if refused else note("a")]
    with patch.object(group_commit, "JOIN_SECONDS", 60.0):
        told = at_once(Speaking(database), actions, [*names, "last"])
    assert [each.result() for each in told[:8]] == names


@pytest.mark.services
def test_crossed_locks_time_out_early(database: Database, joined: GroupCommit) -> None:
    """Two processes each hold a lock that the other needs; neither waits for the deadlock timeout."""
    with database.write() as tx:
        tx.execute(sa.text("CREATE TABLE pairs (id integer PRIMARY KEY, hits integer NOT NULL)"))
        tx.execute(sa.text("INSERT INTO pairs VALUES (1, 0), (2, 0)"))

    def hit(number: int) -> Callable[[WriteSession], None]:
        def action(tx: WriteSession) -> None:
            tx.execute(sa.text("UPDATE pairs SET hits = hits + 1 WHERE id = :id"), {"id": number})

        return action

    other = GroupCommit(database)
    with ThreadPoolExecutor(2) as pool:
        for _ in range(10):
            one = pool.submit(at_once, joined, [hit(1), hit(2)])
            two = pool.submit(at_once, other, [hit(2), hit(1)])
            assert all(each.exception() is None for each in [*one.result(), *two.result()])
    with database.read() as session:
        assert session.scalars(sa.text("SELECT hits FROM pairs")).all() == [20, 20]


def test_the_queue_survives_an_interrupted_leader(joined: GroupCommit) -> None:
    class Stop(BaseException):
        pass

    def stopped(_: WriteSession) -> None:
        raise Stop

    with pytest.raises(Stop):
        joined.transact(stopped)
    assert joined.transact(lambda _: "on") == "on"


def test_no_call_waits_for_hooks_of_another(joined: GroupCommit) -> None:
    """A broker that does not answer only delays the callers of its messages."""
    entered, go_on = threading.Event(), threading.Event()

    def wait() -> None:
        entered.set()
        assert go_on.wait(SETTLE_SECONDS)

    def slow(tx: WriteSession) -> None:
        tx.after_commit(wait)

    with ThreadPoolExecutor(2) as pool:
        stuck = pool.submit(joined.transact, slow)
        assert entered.wait(SETTLE_SECONDS)
        assert pool.submit(joined.transact, lambda _: "on").result(SETTLE_SECONDS / 2) == "on"
        go_on.set()
        stuck.result(SETTLE_SECONDS)


@pytest.mark.services
def test_a_call_that_waits_for_a_lock_delays_no_other(database: Database, joined: GroupCommit) -> None:
    """Its lock is released only after the other call has returned."""
    with database.write() as tx:
        tx.execute(sa.text("INSERT INTO notes VALUES ('held')"))
    held = sa.text("UPDATE notes SET name = name WHERE name = 'held'")
    entered = threading.Event()

    def waits(tx: WriteSession) -> str:
        entered.set()
        tx.execute(held)
        return "after all"

    with ThreadPoolExecutor(1) as pool:
        with database.write() as tx:
            tx.execute(held)
            waiting = pool.submit(joined.transact, waits)
            assert entered.wait(SETTLE_SECONDS)
            assert joined.transact(note("other")) == "other"
            assert not waiting.done()
        assert waiting.result() == "after all"


def test_hooks_of_a_rolled_back_attempt_do_not_run(database: Database, joined: GroupCommit) -> None:
    """The shared commit fails. The retry has time for one call; the other runs alone."""
    ran: list[int] = []
    turns: list[int] = []

    def hooked(tx: WriteSession) -> None:
        turns.append(len(turns))
        tx.after_commit(partial(ran.append, turns[-1]))

    with patch.object(group_commit, "JOIN_SECONDS", 60.0), patch.object(group_commit, "commit") as failing:

        def fail_once(_: object) -> None:
            group_commit.JOIN_SECONDS, failing.side_effect = 0.0, commit
            raise sa.exc.OperationalError("COMMIT", None, Exception())

        failing.side_effect = fail_once
        told = at_once(joined, [note("a"), hooked])
    assert [each.exception() for each in told] == [None, None]
    assert (turns, ran) == ([0, 1], [1])
