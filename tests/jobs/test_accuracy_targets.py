"""The epsilon of a wanted widening of intervals."""

import math
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.errors import InvalidRequest
from app.jobs.accuracy_targets import LEAST, MOST, MOST_QUOTES, find_epsilon, find_widest
from app.jobs.schemas import Cost, ExpectedAccuracyView, QuoteSize, QuoteView


def make_quote(epsilon: float, noises: dict[str, float] | None) -> QuoteView:
    """A quote with the noise of each parameter; without an estimate for None."""
    accuracy = noises and ExpectedAccuracyView(
        interval_widening={name: math.hypot(1, noise) for name, noise in noises.items()},
        interval_widening_range=dict.fromkeys(noises, (1.0, 9.0)),
        noise_in_posterior_sds=noises,
        assumes="",
    )
    return QuoteView(
        cost=Cost(epsilon=epsilon, delta=1e-6),
        mechanism=None,
        affordable=True,
        reason=None,
        epsilon_after=epsilon,
        more_like_this=1,
        size=QuoteSize(requested=20, smallest_exact=5),
        warnings=["No estimate."],
        expected_accuracy=accuracy or None,
    )


def follow_power(scale: float, slope: float, asked: list[float]) -> Callable[[float], QuoteView]:
    """Quotes whose largest noise is a power of epsilon."""

    def quote(epsilon: float) -> QuoteView:
        asked.append(epsilon)
        return make_quote(epsilon, {"age": scale * epsilon**slope, "sex": 0.3 * scale * epsilon**slope})

    return quote


@given(scale=st.floats(0.05, 5.0), slope=st.floats(-2.0, -0.5), widening=st.floats(1.05, 5.0))
def test_the_quoted_job_has_the_wanted_widening(scale: float, slope: float, widening: float) -> None:
    asked = list[float]()
    epsilon, found = find_epsilon(follow_power(scale, slope, asked), widening, 20.0)
    assert len(asked) <= MOST_QUOTES
    assert epsilon in asked
    assert epsilon == float(f"{epsilon:.3g}")
    assert found.cost is not None
    assert found.cost.epsilon == epsilon
    assert found.expected_accuracy is not None
    noise = found.expected_accuracy.noise_in_posterior_sds["age"]
    wanted = math.sqrt(widening**2 - 1)
    within = 0.0101 < epsilon < 19.9
    assert noise == pytest.approx(wanted, rel=0.08) or not within
    assert within or (noise > wanted) == (epsilon > 1)


def test_the_parameter_with_the_widest_interval_is_named() -> None:
    accuracy = make_quote(1.0, {"age": 0.1, "sex": 2.0, "intercept": 1.0}).expected_accuracy
    assert accuracy is not None
    assert find_widest(accuracy) == "sex"


@pytest.mark.parametrize("most", [2.7183, 0.4996, 9.999])
def test_the_search_stays_within_the_largest_epsilon(most: float) -> None:
    asked = list[float]()
    epsilon, _ = find_epsilon(follow_power(50.0, -1.0, asked), 1.2, most)
    assert max(asked) <= most
    assert epsilon == pytest.approx(most, rel=0.01)
    assert epsilon == float(f"{epsilon:.3g}")


def test_the_search_ends_before_a_cost_that_no_noise_has() -> None:
    def quote(epsilon: float) -> QuoteView:
        if epsilon < 0.05:
            raise InvalidRequest.at("/privacy/epsilon", "Use a number of at least 0.05.")
        return make_quote(epsilon, {"age": 0.01 / epsilon})

    assert find_epsilon(quote, 1.5, 20.0)[0] == 0.5


def test_a_huge_noise_leads_to_the_largest_epsilon() -> None:
    assert find_epsilon(lambda epsilon: make_quote(epsilon, {"age": 1e300}), 1.2, 20.0)[0] in {0.5, 20.0}


@pytest.mark.parametrize("widening", [1.0, LEAST - 1e-3, MOST + 1e-3, math.inf])
def test_a_widening_out_of_range_is_refused_before_a_quote(widening: float) -> None:
    asked = list[float]()
    with pytest.raises(InvalidRequest) as refusal:
        find_epsilon(follow_power(1.0, -1.0, asked), widening, 20.0)
    assert [fault.pointer for fault in refusal.value.faults] == ["/widening"]
    assert asked == []


def test_a_job_without_an_estimate_needs_a_cost() -> None:
    with pytest.raises(InvalidRequest) as refusal:
        find_epsilon(lambda epsilon: make_quote(epsilon, None), 1.2, 20.0)
    assert "No estimate. State the cost" in refusal.value.faults[0].message
