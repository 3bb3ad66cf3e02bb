"""Tasks use only the id in a message: anybody on the broker can send one."""

from collections.abc import Iterator
from contextlib import nullcontext
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
    """Tasks whose handlers only record their arguments."""
    recorder = SimpleNamespace(run=ran.append)
    celery = Celery("test", set_as_current=False, fixups=[])
    handlers: Any = SimpleNamespace(runner=recorder, ingestion=recorder, helper=recorder, turn=nullcontext())
    register(celery, lambda: handlers)
    yield celery
    celery.close()


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("identifier", ["job_01jd0000000000000000000000", "ct_1", "job_1:1:0:63"])
def test_id_is_passed_to_the_handler(celery: Celery, ran: list[str], task: str, identifier: str) -> None:
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
def test_other_arguments_are_ignored_and_not_logged(
    celery: Celery,
    ran: list[str],
    task: str,
    arguments: tuple[Any, ...],
    named: dict[str, Any],
    capsys: pytest.CaptureFixture[str],
) -> None:
    """W3: the log does not repeat a foreign message."""
    celery.tasks[task](*arguments, **named)
    output = "".join(capsys.readouterr())
    assert ran == []
    assert "message ignored" in output
    assert CANARY not in output
    assert "DROP" not in output
