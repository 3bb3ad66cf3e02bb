"""The application keeps the OpenAPI document, for every role and any input.

Calls are generated from the document, well-formed and malformed. Half of the ids in paths are real ones. No answer may
have a status of 5xx, or a status or media type that is not documented. Body and headers must match their schemas.
``make contract`` generates more calls.
"""

import os
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from schemathesis.checks import not_a_server_error
from schemathesis.core.failures import FailureGroup
from schemathesis.core.result import Ok
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from app.main import create_app
from tests.access.world import World, make_world
from tests.factories.worker import House

FEW = 4
EXAMPLES = int(os.environ.get("EXAMPLES", FEW))
"""Calls for each operation and role. The default number of calls is deterministic, a larger one is not."""
CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
]
ROLES = ("nobody", "admin", "auditor", "analyst", "tenant")
EVENT_STREAM = "/v1/jobs/{job_id}/events"
"""The only answer that lasts as long as its job. Here its job has ended."""


@pytest.fixture
def world(house: House) -> World:
    client = house.client()
    return make_world(house, client)


@pytest.mark.timeout(120 * EXAMPLES)
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("role", ROLES)
@pytest.mark.long
def test_every_answer_matches_the_document(house: House, world: World, role: str) -> None:
    key = world.callers[role]
    schema = schemathesis.openapi.from_asgi("/openapi.json", create_app(house.services))
    for result in schema.get_all_operations():
        assert isinstance(result, Ok)
        _explore(result.ok(), world.theirs, {} if key is None else key.headers)


def _explore(operation: Any, theirs: dict[str, str], headers: dict[str, str]) -> None:
    real = theirs | ({"job_id": theirs["ended_job_id"]} if operation.path == EVENT_STREAM else {})

    @settings(
        max_examples=EXAMPLES,
        deadline=None,
        database=None,
        derandomize=EXAMPLES == FEW,
        phases=[Phase.explicit, Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(case=operation.as_strategy(), known=st.booleans())
    def explore(case: Any, known: bool) -> None:
        if known and case.path_parameters:
            case.path_parameters = {name: real.get(name, value) for name, value in case.path_parameters.items()}
        case.headers.pop("Authorization", None)
        case.validate_response(case.call(headers=headers), checks=CHECKS)

    explore()


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_an_undocumented_status_is_detected(house: House, world: World) -> None:
    application = create_app(house.services)
    del application.openapi()["paths"]["/v1/jobs/{job_id}"]["get"]["responses"]["404"]
    schema = schemathesis.openapi.from_asgi("/openapi.json", application)
    operation = schema["/v1/jobs/{job_id}"]["GET"]
    key = world.callers["tenant"]
    assert key is not None
    with pytest.raises(FailureGroup):
        _explore(operation, {}, key.headers)
