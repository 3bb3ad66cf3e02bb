"""Where to start where nothing can be constructed: a single labelled point, no information, hopeless targets."""

from dataclasses import replace

import numpy as np

from app.inference.core.model import Array64
from app.inference.fitting.points import Points
from app.inference.fitting.problem import LinkedProblem
from app.inference.fitting.span import Span, find_span

_JITTER = 0.1
_MOST_PREDICTOR = 2.0


def loose(problem: LinkedProblem, size: int, rng: np.random.Generator) -> list[Points]:
    """Points without weight (their posterior is the prior), and points around the direction that matters most."""
    try:
        span = find_span(*problem.coefficients(), 1)
    except np.linalg.LinAlgError:  # numbers overflow
        span = Span(np.zeros((problem.width, 0)), np.empty(0), np.empty(0), np.empty(0))
    centre = _location(span.basis)
    u = centre + _JITTER * rng.uniform(-1, 1, (size, len(centre))) * (size > 1)
    u[:, -1] = 1.0
    a = np.full(size, float(span.mean @ (span.basis.T @ centre)) if len(span.mean) else 0.0)
    a = np.clip(a, -_MOST_PREDICTOR, _MOST_PREDICTOR)
    y: Array64 = (
        np.asarray(np.arange(size) % 2, dtype=np.float64)
        if problem.link.labels
        else problem.link.targets(a, np.zeros(size))
    )
    information = float(span.information @ np.square(span.basis[-1]))
    heavy = Points(u, y, information / size / problem.link.curve(a, y).curvature)
    flipped = [replace(heavy, y=1 - y)] if problem.link.labels else []
    return [replace(heavy, weight=np.zeros(size)), *(each for each in (heavy, *flipped) if each.finite)]


def _location(basis: Array64) -> Array64:
    """The point of a one-dimensional span whose intercept is 1; the intercept itself where there is none in reach."""
    alone = np.zeros(len(basis))
    alone[-1] = 1.0
    if basis.shape[1] == 0 or abs(basis[-1, 0]) < _JITTER * np.max(np.abs(basis)):
        return alone
    return np.asarray(basis[:, 0] / basis[-1, 0])
