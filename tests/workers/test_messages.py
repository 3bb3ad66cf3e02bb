"""Whatever reaches the broker: a message is worth no more than the id in it."""

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from celery import Celery

from app.queue import INGEST_CONTENT, RUN_JOB, SUM_PARTITION
from workers.tasks import register

CANARY = "canary-7461"
TASKS = (RUN_JOB, INGEST_CONTENT, SUM_PARTITION)


@pytest.fixture
def ran() -> list[str]:
    return []


@pytest.fixture
def celery(ran: list[str]) -> Iterator[Celery]:
    """Tasks whose collaborators only note what they are called with."""
    noting = SimpleNamespace(run=ran.append)
    celery = Celery("test", set_as_current=False, fixups=[])
    workshop: Any = SimpleNamespace(runner=noting, ingestion=noting, helper=noting)
    register(celery, lambda: workshop)
    yield celery
    celery.close()


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("identifier", ["job_01jd0000000000000000000000", "ct_1", "job_1:1:0:63"])
def test_an_id_is_passed_on(celery: Celery, ran: list[str], task: str, identifier: str) -> None:
    celery.tasks[task](identifier)
    assert ran == [identifier]


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ((), {}),
        ((CANARY,), {}),
        (("",), {}),
        ((7461,), {}),
        ((None,), {}),
        (([CANARY],), {}),
        (({"job_id": CANARY},), {}),
        (("job_1", CANARY), {}),
        (("job_1",), {"seed": CANARY}),
        ((), {"job_id": "job_1"}),
        (("job_" + "0" * 10**6,), {}),
        (("job_1\n",), {}),
        (("job_1'; DROP TABLE jobs; --",), {}),
        (("../../keys/opening.key",), {}),
    ],
)
def test_anything_else_is_ignored_without_a_word_of_it(
    celery: Celery,
    ran: list[str],
    task: str,
    arguments: tuple[Any, ...],
    named: dict[str, Any],
    capsys: pytest.CaptureFixture[str],
) -> None:
    """W3: what others wrote is not repeated."""
    celery.tasks[task](*arguments, **named)
    said = "".join(capsys.readouterr())
    assert ran == []
    assert "message ignored" in said
    assert CANARY not in said
    assert "DROP" not in said
