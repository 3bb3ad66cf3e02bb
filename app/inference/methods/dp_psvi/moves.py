"""How points, targets and weights move along a noised gradient, and how a point enters."""

from dataclasses import replace

import numpy as np

from app.inference.core.bounds import WITHIN_BOUNDS, project
from app.inference.core.model import Array64
from app.inference.methods.dp_psvi.growth import newcomer
from app.inference.methods.dp_psvi.state import Setup, State, points, select_settled
from app.inference.post.optimisers import Adam, adam_init, adam_step, adam_widen, cosine_decay

_STEP = 0.07
_POINT_PATH = 7.0
_WEIGHT_PATH = 10.0
_MAX_COORDINATE = 100.0
_MAX_LOG_MOVE = 15.0


def grow(rng: np.random.Generator, state: State) -> State:
    """The state with the point that enters now, if any does; what moves points starts anew."""
    setup = state.setup
    if points(setup.plan, state.done) == len(state.u):
        return state
    u, y = newcomer(rng, setup.model, setup.design, state.draws, state.residual)
    u, y = np.concatenate([state.u, u]), np.concatenate([state.y, y])
    return replace(
        state,
        u=u,
        y=y,
        log_weights=np.append(state.log_weights, setup.starting_log_weight),
        point_moments=adam_init(u.shape),
        target_moments=adam_init(y.shape),
        weight_moments=adam_widen(state.weight_moments),
    )


def _rate(state: State, path: float) -> float:
    """How far a coordinate moves now: cosine-decayed, and further at a time where there are few steps."""
    steps = state.setup.plan.steps
    return cosine_decay(state.done, steps) * max(_STEP, path / steps)


def moved_points(state: State, gradient: Array64) -> tuple[Array64, Adam]:
    """One Adam step of the points, kept in a finite box whatever the answer was; written over ``gradient``."""
    gradient[select_settled(state.setup.plan)] = 0
    if state.setup.design.intercept:
        gradient[:, -1] = 0
    moments, move = adam_step(state.point_moments, gradient, _rate(state, _POINT_PATH))
    return _confine(state.setup, np.subtract(state.u, move, out=move)), moments


def moved_weights(state: State, gradient: Array64) -> tuple[Array64, Adam]:
    """One Adam step of the log weights, kept near their start; written over ``gradient``."""
    start = state.setup.starting_log_weight
    moments, move = adam_step(state.weight_moments, gradient, _rate(state, _WEIGHT_PATH))
    log_weights = np.maximum(state.log_weights - move, start - _MAX_LOG_MOVE)
    return np.minimum(log_weights, start + _MAX_LOG_MOVE, out=log_weights), moments


def _confine(setup: Setup, u: Array64) -> Array64:
    """Points in a finite box, or within the declared bounds where the plan says so; may work in ``u``."""
    if setup.plan.parameters.get(WITHIN_BOUNDS.name, False):
        return project(setup.design, u)
    return np.minimum(np.maximum(u, -_MAX_COORDINATE, out=u), _MAX_COORDINATE, out=u)


def moved_targets(state: State, gradient: Array64 | None) -> tuple[Array64, Adam]:
    """One Adam step of targets that are numbers, in the model's steps and within the declared bounds; others stay."""
    if gradient is None:
        return state.y, state.target_moments
    setup, bounds = state.setup, state.setup.design.target_bounds
    step = setup.model.target_step(state.y)
    gradient[select_settled(setup.plan)] = 0
    moments, move = adam_step(state.target_moments, step * gradient, _rate(state, _POINT_PATH))
    y = state.y - step * move
    if bounds is not None:
        y = np.clip(y, *bounds)
    return y, moments
