"""A test that asks for a ``case`` is held against every model in turn."""

import pytest

from tests.conformance.models import CASES, ModelCase


@pytest.fixture(params=CASES, ids=lambda case: type(case).__name__)
def case(request: pytest.FixtureRequest) -> ModelCase:
    found: ModelCase = request.param
    return found
