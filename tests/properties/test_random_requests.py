"""W15: every accepted request ends with a release, and a refused one neither charges nor freezes."""

from collections import Counter
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, Phase, event, given, settings

from tests.factories import rows
from tests.factories.worker import House
from tests.properties.endings import check_ending, random_house
from tests.properties.requests import Case, cases

pytestmark = [pytest.mark.sqlite, pytest.mark.slow]

EXAMPLES = 40


@pytest.fixture(scope="module")
def site() -> Iterator[tuple[House, rows.Key]]:
    """A house and its owner, for all examples."""
    with random_house() as made:
        yield made


@pytest.mark.long
@pytest.mark.timeout(0)
@given(case=cases())
@settings(
    max_examples=EXAMPLES,
    deadline=None,
    database=None,
    phases=[Phase.generate, Phase.shrink],
    suppress_health_check=list(HealthCheck),
)
def test_accepted_request_ends_with_a_release(site: tuple[House, rows.Key], case: Case) -> None:
    """W15: for random declarations and requests, degenerate ones included; ``make requests`` tries more of them."""
    event(check_ending(*site, case, Counter()))
