"""Invalid messages never reach Celery, whose worker would end on them."""

import json
from typing import Any

import pytest
from kombu.message import Message

from app.queue import RUN_JOB
from workers.messages import parse_message, rewrite

BODY: list[Any] = [["job_1"], {}, {"callbacks": None, "chain": None}]
HEADERS: dict[str, Any] = {"task": RUN_JOB, "id": "1", "lang": "py"}


def message(body: object, headers: object, content_type: str = "application/json") -> Any:
    content = body if isinstance(body, str) else json.dumps(body)
    made: Any = Message(  # type: ignore[no-untyped-call]
        content, delivery_tag="7", content_type=content_type, content_encoding="utf-8", accept={"application/json"}
    )
    made.headers = headers
    return made


def test_valid_message_is_rewritten_to_task_and_id() -> None:
    made = message(BODY, HEADERS | {"eta": "9999-01-01", "timelimit": 7, "retries": "many"})
    call = parse_message(made)
    assert call == (RUN_JOB, "job_1")
    rewrite(made, *call)
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
def test_message_of_another_form_is_refused(body: object, headers: object) -> None:
    assert parse_message(message(body, headers)) is None


@pytest.mark.parametrize("content_type", ["application/x-python-serialize", "application/x-yaml", "text/plain", ""])
def test_message_of_another_content_type_is_refused(content_type: str) -> None:
    assert parse_message(message(BODY, HEADERS, content_type)) is None
