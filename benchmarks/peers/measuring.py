"""Measures one contender on one table: settings from development seeds, then releases from the report's seeds."""

import math
import time
import warnings
from collections.abc import Iterator
from dataclasses import replace
from typing import Final

import numpy as np

from benchmarks.environment import find_commit
from benchmarks.peers.contenders import Contender, Make, format_settings
from benchmarks.peers.environments import PeerFailed
from benchmarks.peers.problem import Settings, measure_distance
from benchmarks.peers.results import Line
from benchmarks.peers.tables import PeerTable
from benchmarks.peers.tuning import choose_settings

_FAULTS: Final = (PeerFailed, ArithmeticError, ValueError, np.linalg.LinAlgError)
_STREAM: Final = 5
_MANY_PARAMETERS: Final = 60
"""On tables with more, settings are chosen with one development seed, because of time."""


def derive_seed(seed: int, table: str, epsilon: float, number: int) -> int:
    """Derive the seed of a release; it is the same for every peer."""
    words = (seed, _STREAM, *table.encode(), round(1e6 * epsilon), number)
    return int(np.random.SeedSequence(words).generate_state(1)[0])


def measure_cell(contender: Contender, make: Make, table: PeerTable, epsilon: float, seed: int) -> Iterator[Line]:
    """Measure all releases of a contender at one epsilon; a failure ends them."""
    blank = describe_cell(contender, table, epsilon)
    with warnings.catch_warnings(action="ignore"), np.errstate(all="ignore"):
        try:
            settings = _choose(contender, make, table, epsilon)
        except _FAULTS as error:
            yield replace(blank, failure=_describe(error))
            return
        end = time.monotonic() + contender.patience_seconds
        for number in range(contender.seeds):
            line = replace(
                blank, seed=derive_seed(seed, table.name, epsilon, number), settings=format_settings(settings)
            )
            line = _measure(make, table, line, settings)
            yield line
            if line.failure or time.monotonic() > end:
                return


def describe_cell(contender: Contender, table: PeerTable, epsilon: float) -> Line:
    """A line without a release."""
    problem = table.problem
    return Line(
        table.name, problem.rows, problem.parameters, epsilon, problem.delta, contender.name, 0, commit=find_commit()
    )


def _choose(contender: Contender, make: Make, table: PeerTable, epsilon: float) -> Settings:
    exact, faults = table.case.exact, list[str]()
    assert exact is not None

    def measure(settings: Settings, seed: int) -> float:
        try:
            kl = measure_distance(make(table, epsilon, settings, seed), exact).kl
        except _FAULTS as error:
            faults.append(_describe(error))
            return math.inf
        return kl if math.isfinite(kl) else math.inf

    candidates = contender.candidates
    if len(candidates) == 1:
        return candidates[0]
    try:
        few = table.problem.parameters > _MANY_PARAMETERS
        return choose_settings(candidates, measure, contender.development[:1] if few else contender.development)
    except ValueError as error:
        raise PeerFailed(faults[-1] if faults else str(error)) from error


def _measure(make: Make, table: PeerTable, line: Line, settings: Settings) -> Line:
    exact, start = table.case.exact, time.process_time()
    assert exact is not None
    try:
        found = measure_distance(make(table, line.epsilon, settings, line.seed), exact)
    except _FAULTS as error:
        return replace(line, failure=_describe(error))
    seconds = time.process_time() - start
    return replace(line, kl=found.kl, mean_error=found.mean_error, covers=found.covers, seconds=seconds)


def _describe(error: Exception) -> str:
    text = " ".join(str(error).split())
    return text if isinstance(error, PeerFailed) else f"{type(error).__name__}: {text}"
