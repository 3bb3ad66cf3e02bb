"""Each operation of the OpenAPI document has a call, with all members and parameters."""

import json
import re
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple

import httpx
import pytest
from corevault import Client, LogisticRegression, Schema, real
from corevault.errors import NotFound, VerificationError

from app.main import describe_api
from tests.client.fake import Answer, Published, Script, ok, problem

MODEL: Final = LogisticRegression(features=["age"], target="sick")
NOW: Final = datetime(2029, 1, 31, tzinfo=UTC)
SCHEMA: Final = Schema(real("age", 0, 10))
OPEN: Final = httpx.Response(204, headers={"Upload-Offset": "0"})
UPLOAD: Final = {"id": "up_1", "dataset_id": "ds_1"}
ABSENT: Final = problem(404, "not_found")
TABLE: Final = {"age": [1.0]}
JOB: Final[dict[str, Any]] = {"size": 20, "method": "dp-psvi", "epsilon": 0.5, "parameters": {"beta": 0.5}}
Call = Callable[[Client], object]

CALLS: Final[dict[str, tuple[Call, list[Answer]]]] = {
    "create_api_key": (lambda client: client.keys.create("ana", "analyst", expires_at=NOW), []),
    "list_api_keys": (lambda client: client.keys.list(limit=1), []),
    "rotate_api_key": (lambda client: client.keys.rotate("key_1"), []),
    "revoke_api_key": (lambda client: client.keys.revoke("key_1"), []),
    "read_own_key": (lambda client: client.me(), []),
    "declare_dataset": (
        lambda client: client.datasets.create(
            "visits",
            SCHEMA,
            slots=10,
            epsilon=1.0,
            delta=1e-6,
            population="p",
            series="s",
            shared_with=["key_1"],
            releases_public=False,
        ),
        [],
    ),
    "list_datasets": (lambda client: client.datasets.list(limit=1), []),
    "list_populations": (lambda client: client.datasets.populations(limit=1), []),
    "read_dataset": (lambda client: client.datasets.get("ds_1"), []),
    "change_dataset": (
        lambda client: client.datasets.update(
            "ds_1", description="d", shared_with=["key_1"], releases_public=False, allocations={"key_1": 0.5}
        ),
        [],
    ),
    "delete_dataset": (lambda client: client.datasets.delete("ds_1"), []),
    "put_content": (lambda client: client.datasets.upload("ds_1", TABLE, max_null_share=None), []),
    "begin_upload": (
        lambda client: client.datasets.upload("ds_1", b"age\n1\n", max_null_share=None, resumable=True),
        [],
    ),
    "list_uploads": (lambda client: client.datasets.open_uploads("ds_1", limit=1), []),
    "send_part": (
        lambda client: client.datasets.upload("ds_1", TABLE, max_null_share=None, resumable=True),
        [ok(UPLOAD), OPEN],
    ),
    "end_upload": (lambda client: client.datasets.discard_upload("ds_1", "up_1"), []),
    "complete_upload": (
        lambda client: client.datasets.upload("ds_1", TABLE, max_null_share=None, resumable=True),
        [ok(UPLOAD), OPEN, OPEN],
    ),
    "read_budget": (lambda client: client.datasets.budget("ds_1"), []),
    "change_budget": (lambda client: client.datasets.set_budget("ds_1", epsilon=3.0, delta=1e-7), []),
    "unfreeze_account": (lambda client: client.datasets.unfreeze("ds_1", reason="A fault."), []),
    "read_ledger": (lambda client: client.datasets.ledger("ds_1", limit=1), []),
    "list_refusals": (lambda client: client.datasets.refusals("ds_1", limit=1), []),
    "preview_job": (lambda client: client.datasets.preview_job("ds_1", epsilon=0.5), []),
    "preview_limit": (lambda client: client.datasets.preview_budget("ds_1", epsilon=3.0, delta=1e-7), []),
    "preview_allocation": (lambda client: client.datasets.preview_allocation("ds_1", "key_1", epsilon=0.5), []),
    "verify_ledger": (lambda client: client.datasets.recompute_ledger("ds_1"), []),
    "read_chain": (lambda client: client.datasets.verify_ledger("ds_1"), []),
    "list_methods": (lambda client: client.methods(), []),
    "quote_job": (lambda client: client.quote("ds_1", MODEL, expected_accuracy=True, **JOB), []),
    "submit_job": (lambda client: client.jobs.submit("ds_1", MODEL, purpose="p", **JOB), []),
    "list_jobs": (lambda client: client.jobs.list(dataset_id="ds_1", status="queued", limit=1), []),
    "read_job": (lambda client: client.jobs.get("job_1"), []),
    "cancel_job": (lambda client: client.jobs.cancel("job_1"), []),
    "follow_job_events": (lambda client: next(client.jobs.events("job_1", last_event_id="1")), []),
    "list_releases": (lambda client: client.releases.list(dataset_id="ds_1", limit=1), []),
    "read_release": (lambda client: client.releases.get("rel_1"), []),
    "read_certificate": (lambda client: client.releases.certificate("rel_1"), []),
    "list_verification_keys": (lambda client: client.signing_keys(), []),
    "read_points": (lambda client: client.releases.points("rel_1", "csv"), []),
    "read_belief": (lambda client: client.releases.belief("rel_1"), [ok(Published().release)]),
    "read_groups": (lambda client: client.releases.groups("rel_1"), [ok(Published().release)]),
    "list_workers": (lambda client: client.workers(limit=1), []),
    "read_audit_log": (
        lambda client: client.audit_log(
            actor="key_1",
            action="POST /v1/jobs",
            target="ds_1",
            outcome="refused",
            since=NOW,
            until=NOW,
            limit=1,
        ),
        [],
    ),
}
"""For each operation the call whose last request it is, and the answers to the requests before."""
WITHOUT_A_CALL: Final = {
    "read_upload": "The client asks for the offset by HEAD, which this route answers without a body.",
    "read_points_headers": "The client reads the bytes, whose digest it verifies.",
    "read_belief_headers": "The client reads the bytes, whose digest it verifies.",
    "read_groups_headers": "The client reads the bytes, whose digest it verifies.",
    "describe_service": "It is for people who open the address in a browser.",
    "read_reference": "It is a page for people.",
    "check_liveness": "It is for the process manager of the server.",
    "check_readiness": "It is for the load balancer of the server.",
    "read_metrics": "It is for the monitoring of the server.",
}
"""Operations without a call, and the reason."""
NOT_SENT: Final = {
    "quote_job": {"purpose"},  # it does not change a price
}
"""Members of bodies that the client does not send."""
PAGING: Final = {"cursor"}
"""Parameters that iterating over a page sets."""


class Operation(NamedTuple):
    """One operation of the OpenAPI document."""

    method: str
    path: re.Pattern[str]
    members: frozenset[str]
    parameters: frozenset[str]


def list_operations(described: dict[str, Any]) -> Iterator[tuple[str, Operation]]:
    for template, methods in described["paths"].items():
        path = re.compile(re.sub(r"\{\w+\}", "[^/]+", template))
        for method, each in methods.items():
            content = each.get("requestBody", {}).get("content", {})
            schema = content.get("application/json", {}).get("schema", {})
            if "$ref" in schema:
                schema = described["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
            parameters = {one["name"] for one in each.get("parameters", []) if one["in"] == "query"}
            members = frozenset(schema.get("properties", {}))
            yield each["operationId"], Operation(method.upper(), path, members, frozenset(parameters))


OPERATIONS: Final = dict(list_operations(describe_api()))


def test_every_operation_has_a_call_or_a_reason_for_none() -> None:
    assert set(CALLS) | set(WITHOUT_A_CALL) == set(OPERATIONS)
    assert not set(CALLS) & set(WITHOUT_A_CALL)


def test_an_operation_without_a_call_is_found() -> None:
    described = describe_api()
    described["paths"]["/v1/new"] = {"get": {"operationId": "read_new"}}
    assert set(dict(list_operations(described))) - set(CALLS) - set(WITHOUT_A_CALL) == {"read_new"}


@pytest.mark.parametrize("name", CALLS)
def test_a_call_sends_the_operation_with_all_of_its_members(name: str) -> None:
    call, answers = CALLS[name]
    script, operation = Script([*answers, ABSENT]), OPERATIONS[name]
    with script.client(max_retries=0) as client, pytest.raises((NotFound, VerificationError)):
        call(client)
    sent = script.seen[-1]
    assert sent.method == operation.method
    assert operation.path.fullmatch(sent.url.path)
    assert set(sent.url.params) == operation.parameters - PAGING
    if operation.members:
        assert set(json.loads(script.bodies[-1])) == operation.members - NOT_SENT.get(name, set())
