"""A test with the fixture ``case`` runs once for every model."""

import pytest

from tests.conformance.models import CASES, ModelCase


@pytest.fixture(params=CASES, ids=lambda case: type(case).__name__)
def case(request: pytest.FixtureRequest) -> ModelCase:
    model_case: ModelCase = request.param
    return model_case
