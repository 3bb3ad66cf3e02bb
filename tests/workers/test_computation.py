"""Which faults of an oracle may show: those of the question, never those among the rows."""

from typing import cast

import pytest

from app.inference.mechanisms import BadQuestion
from app.inference.oracle import ClippedGaussianOracle, PlanExhausted
from app.inference.protocol import Array64, Question
from app.inference.questions import CountSum
from workers.computation import EnclaveFault, GuardedOracle


class Failing:
    """An oracle whose every answer is the same error."""

    def __init__(self, error: Exception) -> None:
        self._error = error

    def ask(self, question: Question) -> Array64:
        raise self._error


def _ask(error: Exception) -> None:
    GuardedOracle(cast("ClippedGaussianOracle", Failing(error))).ask(CountSum())


@pytest.mark.parametrize("error", [ValueError("a row"), ZeroDivisionError(), IndexError(), FloatingPointError()])
def test_a_fault_among_the_rows_is_the_enclaves_whatever_its_class(error: Exception) -> None:
    """W14: also one that shares its class with a bad question's base; and nothing of it is passed on."""
    with pytest.raises(EnclaveFault) as raised:
        _ask(error)
    assert str(raised.value) == ""
    assert raised.value.__suppress_context__


@pytest.mark.parametrize("error", [BadQuestion("draws"), PlanExhausted("beyond"), MemoryError()])
def test_a_fault_of_the_question_may_show(error: Exception) -> None:
    with pytest.raises(type(error)):
        _ask(error)
