"""All hooks of a commit run, and only vital hooks report errors (W10, W11)."""

from collections.abc import Callable

import pytest
import structlog

from app.db import Database, GroupCommit, WriteSession
from app.errors import DependencyUnavailable, StateConflict
from tests.factories.line import at_once

Write = Callable[[Callable[[WriteSession], None]], None]
SECRET = "message of a library"


@pytest.fixture(params=["block", "repeated", "joined alone", "joined"])
def write(request: pytest.FixtureRequest, database: Database) -> Write:
    """Every kind of transaction."""

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


def test_a_committed_call_succeeds_despite_failed_hooks(write: Write) -> None:
    """The sweeper sends a lost message later. An error would make the caller repeat the request."""
    ran: list[str] = []

    def action(tx: WriteSession) -> None:
        tx.after_commit(failing(RuntimeError(SECRET)))
        tx.after_commit(lambda: ran.append("next"))

    with structlog.testing.capture_logs() as logs:
        write(action)
    assert ran == ["next"]
    assert [(each["event"], each["kind"]) for each in logs] == [("hook failed", "RuntimeError")]
    assert SECRET not in str(logs)


def test_the_first_vital_error_is_raised_after_all_hooks(write: Write) -> None:
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


def test_failed_hooks_do_not_replace_the_rollback_error(write: Write) -> None:
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
