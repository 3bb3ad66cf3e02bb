"""Rules of JSON bodies. A refusal names declared members and quotes no input."""

import json
from typing import Any

import httpx
import pytest

from app.http.requests.bodies import BODY_BYTES
from tests.factories import rows
from tests.http.conftest import CANARY

PATH = "/v1/drawings"


def _send(client: httpx.Client, key: rows.Key, content: bytes | str, **headers: str) -> httpx.Response:
    return client.post(PATH, content=content, headers=key.headers | {"Content-Type": "application/json"} | headers)


def _pointers(answer: httpx.Response) -> list[str]:
    assert (answer.status_code, answer.json()["code"]) == (422, "invalid_request")
    return [fault["pointer"] for fault in answer.json()["errors"]]


@pytest.mark.parametrize(
    ("body", "pointers"),
    [
        ({"name": 5}, ["/name"]),
        ({"name": ""}, ["/name"]),
        ({"name": "a" * 11}, ["/name"]),
        ({"at": "yesterday"}, ["/at"]),
        ({"at": "2030-01-01T00:00:00"}, ["/at"]),
        ({"shapes": {}}, ["/shapes"]),
        ({"shapes": [{"kind": "circle", "radius": 0}]}, ["/shapes/0/radius"]),
        ({"shapes": [{"kind": "circle", "radius": "1"}]}, ["/shapes/0/radius"]),
        ({"shapes": [{"kind": "circle"}]}, ["/shapes/0/radius"]),
        ({"shapes": [{"kind": "square", "side": 1.0}]}, ["/shapes/0/side"]),
        ({"shapes": [{"kind": "square", "side": True}]}, ["/shapes/0/side"]),
        ({"shapes": [{"kind": CANARY}]}, ["/shapes/0"]),
        ({"shapes": [{}]}, ["/shapes/0"]),
        ({"shapes": [{"kind": "square", "side": 1, CANARY: 1}]}, ["/shapes/0"]),
        ({"shapes": [{"kind": "square", "side": 1}] * 4}, ["/shapes"]),
        ({"weights": {CANARY: "x"}}, ["/weights"]),
        ({CANARY: 1}, [""]),
        ([], [""]),
        (CANARY, [""]),
        (None, [""]),
    ],
)
def test_faults_point_to_declared_members_and_quote_no_input(
    drawings: httpx.Client, owner: rows.Key, body: object, pointers: list[str]
) -> None:
    """W3: a caller's input is not repeated in the answer."""
    answer = _send(drawings, owner, json.dumps(body))
    assert _pointers(answer) == pointers
    assert CANARY not in answer.text


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({"name": ""}, "Use at least 1 character."),
        ({"name": "a" * 11}, "Use at most 10 characters."),
        ({"shapes": [{"kind": "square", "side": 1}] * 4}, "Use at most 3 items."),
    ],
)
def test_a_bound_of_one_is_singular(drawings: httpx.Client, owner: rows.Key, body: object, message: str) -> None:
    assert [fault["message"] for fault in _send(drawings, owner, json.dumps(body)).json()["errors"]] == [message]


@pytest.mark.parametrize(
    ("content", "pointer"),
    [
        ('{"shapes": [{"kind": "circle", "radius": NaN}]}', "/shapes/0/radius"),
        ('{"shapes": [{"kind": "circle", "radius": 1e400}]}', "/shapes/0/radius"),
        ('{"shapes": [{"kind": "circle", "radius": Infinity}]}', "/shapes/0/radius"),
        ('{"weights": {"a": -Infinity}}', "/weights"),
        ('{"free": {"canary-7461": 1e400}}', "/free"),
        ('{"free": {"canary-7461": [NaN]}}', "/free"),
        ('{"free": {"a": 9007199254740993}}', "/free"),
        ('{"free": {"a": ' + "9" * 100_000 + "}}", "/free"),
        ('{"free": {"a": "\\u0000"}}', "/free"),
        ('{"free": {"\\u0000": 1}}', "/free"),
        ('{"shapes": [{"kind": "square", "side": ' + "9" * 5_000 + "}]}", "/shapes/0/side"),
        ('{"free": ' + '{"a": ' * 100 + "1" + "}" * 101, ""),
        ('{"free": {"a": ' + "[" * 100_000 + "]" * 100_000 + "}}", ""),
        ('{"name": "a", "name": "b"}', ""),
        ('{"free": {"a": 1, "a": 1}}', ""),
        ("", ""),
        ("{", ""),
        ("{'name': 1}", ""),
        ('{"name": "a"} {}', ""),
        ('{"name": "\\ud800"}', "/name"),
        ('\ufeff{"name": "a"}', ""),
    ],
)
def test_ambiguous_json_is_refused(drawings: httpx.Client, owner: rows.Key, content: str, pointer: str) -> None:
    answer = _send(drawings, owner, content.encode())
    assert set(_pointers(answer)) == {pointer}
    assert CANARY not in answer.text


@pytest.mark.parametrize("encoding", ["latin-1", "utf-16", "utf-32"])
def test_json_in_another_encoding_is_refused(drawings: httpx.Client, owner: rows.Key, encoding: str) -> None:
    assert _pointers(_send(drawings, owner, '{"name": "é"}'.encode(encoding))) == [""]


@pytest.mark.parametrize(
    "headers",
    [
        {"Content-Type": "text/plain"},
        {"Content-Type": "application/x-www-form-urlencoded"},
        {"Content-Type": "application/json; charset=latin-1"},
        {"Content-Type": ""},
        {"Content-Encoding": "gzip"},
        {"Content-Encoding": "identity, br"},
    ],
)
def test_other_media_types_and_codings_are_unsupported(
    drawings: httpx.Client, owner: rows.Key, headers: dict[str, str]
) -> None:
    answer = _send(drawings, owner, b"{}", **headers)
    assert (answer.status_code, answer.json()["code"]) == (415, "unsupported_media_type")


@pytest.mark.parametrize(
    "headers", [{"Content-Type": "application/json; charset=UTF-8"}, {"Content-Encoding": "identity"}]
)
def test_plain_content_types_are_accepted(drawings: httpx.Client, owner: rows.Key, headers: dict[str, str]) -> None:
    assert _send(drawings, owner, b"{}", **headers).status_code == 201


def test_a_body_beyond_the_limit_is_too_large(drawings: httpx.Client, owner: rows.Key) -> None:
    answer = _send(drawings, owner, b'{"name": "' + b"a" * BODY_BYTES)
    assert (answer.status_code, answer.json()["code"]) == (413, "content_too_large")


@pytest.mark.parametrize("content", [b"{", b'{"name": 5}', b"a" * (BODY_BYTES + 1)])
def test_a_body_without_a_key_is_answered_with_401(drawings: httpx.Client, content: bytes) -> None:
    answer = drawings.post(PATH, content=content, headers={"Content-Type": "application/json"})
    assert (answer.status_code, answer.json()["code"]) == (401, "unauthenticated")


def test_times_and_integers_for_reals_are_accepted(drawings: httpx.Client, owner: rows.Key) -> None:
    body: dict[str, Any] = {"at": "2030-01-01T00:00:00Z", "shapes": [{"kind": "circle", "radius": 1}]}
    assert _send(drawings, owner, json.dumps(body)).status_code == 201
