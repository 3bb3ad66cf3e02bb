"""What follows a commit is tried to the last of it, and only what others rely on may say that it failed (W10, W11)."""

from collections.abc import Callable

import pytest
import structlog

from app.db import Database, GroupCommit, WriteSession
from app.errors import DependencyUnavailable, StateConflict
from tests.factories.line import at_once

Write = Callable[[Callable[[WriteSession], None]], None]
SECRET = "what a library says"


@pytest.fixture(params=["block", "repeated", "joined alone", "joined"])
def write(request: pytest.FixtureRequest, database: Database) -> Write:
    """Every way in which a transaction is made."""

    def block(action: Callable[[WriteSession], None]) -> None:
        with database.write() as tx:
            action(tx)

    together = GroupCommit(database)
    ways: dict[str, Write] = {
        "block": block,
        "repeated": database.transact,
        "joined alone": together.transact,
        "joined": lambda action: at_once(together, [lambda _: None, action])[1].result(),
    }
    return ways[request.param]


def failing(error: Exception) -> Callable[[], None]:
    def fail() -> None:
        raise error

    return fail


def test_whoever_asked_is_told_of_success_where_it_is_kept(write: Write) -> None:
    """A message that is not sent is sent later; one who is told of a failure would ask for the same again."""
    ran: list[str] = []

    def action(tx: WriteSession) -> None:
        tx.after_commit(failing(RuntimeError(SECRET)))
        tx.after_commit(lambda: ran.append("next"))

    with structlog.testing.capture_logs() as logs:
        write(action)
    assert ran == ["next"]
    assert [(each["event"], each["kind"]) for each in logs] == [("hook failed", "RuntimeError")]
    assert SECRET not in str(logs)


def test_the_first_error_that_matters_is_raised_once_all_were_tried(write: Write) -> None:
    ran: list[str] = []

    def action(tx: WriteSession) -> None:
        tx.after_commit(failing(RuntimeError(SECRET)))
        tx.after_commit(failing(DependencyUnavailable("first")), vital=True)
        tx.after_commit(lambda: ran.append("next"))
        tx.after_commit(failing(DependencyUnavailable("second")), vital=True)
        tx.after_commit(lambda: ran.append("last"))

    with pytest.raises(DependencyUnavailable, match="first"):
        write(action)
    assert ran == ["next", "last"]


def test_the_reason_of_a_rollback_outlives_what_follows_it(write: Write) -> None:
    ran: list[str] = []

    def fail(_: WriteSession) -> None:
        raise RuntimeError(SECRET)

    def action(tx: WriteSession) -> None:
        tx.after_rollback(fail)
        tx.after_rollback(lambda _: ran.append("next"))
        raise StateConflict("the reason")

    with pytest.raises(StateConflict, match="the reason"):
        write(action)
    assert ran == ["next"]
