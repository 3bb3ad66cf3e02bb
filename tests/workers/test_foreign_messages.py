"""Messages that Celery would stumble over never reach it."""

import json
from typing import Any

import pytest
from kombu.message import Message

from app.queue import RUN_JOB
from workers.messages import ours, rewrite

BODY: list[Any] = [["job_1"], {}, {"callbacks": None, "chain": None}]
HEADERS: dict[str, Any] = {"task": RUN_JOB, "id": "1", "lang": "py"}


def message(body: object, headers: object, content_type: str = "application/json") -> Any:
    content = body if isinstance(body, str) else json.dumps(body)
    made: Any = Message(  # type: ignore[no-untyped-call]
        content, delivery_tag="7", content_type=content_type, content_encoding="utf-8", accept={"application/json"}
    )
    made.headers = headers
    return made


def test_one_of_ours_says_its_task_and_id_and_nothing_else() -> None:
    made = message(BODY, HEADERS | {"eta": "9999-01-01", "timelimit": 7, "retries": "many"})
    found = ours(made)
    assert found == (RUN_JOB, "job_1")
    rewrite(made, *found)
    assert made.payload == [["job_1"], {}, {}]
    assert made.headers.keys() == {"task", "id", "root_id", "lang", "retries", "timelimit"}
    assert made.headers["timelimit"] == [None, None]


@pytest.mark.parametrize(
    ("body", "headers"),
    [
        ("{", HEADERS),
        ('"job_1"', HEADERS),
        ("canary", HEADERS),
        ([], HEADERS),
        ([["job_1"], {}], HEADERS),
        ([["job_1", "job_2"], {}, {}], HEADERS),
        ([[7], {}, {}], HEADERS),
        ([["job_1"], {"more": 1}, {}], HEADERS),
        ({"args": ["job_1"], "task": RUN_JOB}, {}),
        (BODY, {}),
        (BODY, None),
        (BODY, HEADERS | {"task": ["a list"]}),
        (BODY, HEADERS | {"task": "os.system"}),
    ],
)
def test_anything_else_is_not_ours(body: object, headers: object) -> None:
    assert ours(message(body, headers)) is None


@pytest.mark.parametrize("content_type", ["application/x-python-serialize", "application/x-yaml", "text/plain", ""])
def test_nothing_but_json_is_decoded(content_type: str) -> None:
    assert ours(message(BODY, HEADERS, content_type)) is None
