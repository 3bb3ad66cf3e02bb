"""Updates of points, targets and weights along a noised gradient."""

import math
from dataclasses import replace

import numpy as np

from app.inference.core.bounds import WITHIN_BOUNDS, project
from app.inference.core.model import Array64
from app.inference.methods.dp_psvi.incremental import choose_point
from app.inference.methods.dp_psvi.state import Setup, State, count_present_points, select_fixed
from app.inference.post.optimisers import Adam, cosine_decay, make_finite, start_adam, step_adam, widen_adam

_STEP = 0.07
_POINT_PATH = 7.0
_WEIGHT_PATH = 10.0
_MAX_COORDINATE = 100.0
_MAX_LOG_MOVE = 15.0


def grow(rng: np.random.Generator, state: State) -> State:
    """Add the point that is due, if any; the moments of points and targets restart."""
    setup = state.setup
    if count_present_points(setup.plan, state.done) == len(state.u):
        return state
    u, y = choose_point(rng, setup.model, setup.design, state.draws, state.residual)
    u, y = np.concatenate([state.u, u]), np.concatenate([state.y, y])
    return replace(
        state,
        u=u,
        y=y,
        weights=np.append(state.weights, setup.starting_weight),
        point_moments=start_adam(u.shape),
        target_moments=start_adam(y.shape),
        weight_moments=widen_adam(state.weight_moments),
    )


def _step(state: State, moments: Adam, gradient: Array64, path: float) -> tuple[Adam, Array64]:
    """Compute the next moments and the move to subtract; overwrites ``gradient``.

    Steps that decay by a cosine are larger if there are few of them.
    """
    schedule = state.setup.steps
    if schedule.is_published:
        moments, direction = schedule.turn(moments, make_finite(gradient))
        return moments, schedule.length(state.done) * direction
    rate = cosine_decay(state.done, schedule.iterations) * max(_STEP, path / schedule.iterations)
    return step_adam(moments, gradient, rate)


def update_points(state: State, gradient: Array64) -> tuple[Array64, Adam]:
    """Move the points by one step, within a finite box; overwrites ``gradient``."""
    gradient[select_fixed(state.setup.plan)] = 0
    if state.setup.design.intercept:
        gradient[:, -1] = 0
    moments, move = _step(state, state.point_moments, gradient, _POINT_PATH)
    return _confine(state.setup, np.subtract(state.u, move, out=move)), moments


def update_weights(state: State, gradient: Array64) -> tuple[Array64, Adam]:
    """Move the weights by one step, within bounds around their start; overwrites ``gradient``.

    Steps are on the log scale. Published ones are on the linear scale, and end at zero.
    """
    start, weights, spread = state.setup.starting_weight, state.weights, math.exp(_MAX_LOG_MOVE)
    published = state.setup.steps.is_published
    moments, move = _step(state, state.weight_moments, gradient if published else weights * gradient, _WEIGHT_PATH)
    if published:
        return np.clip(weights - move, 0, start * spread), moments
    return np.clip(
        weights * np.exp(np.clip(-move, -_MAX_LOG_MOVE, _MAX_LOG_MOVE)), start / spread, start * spread
    ), moments


def _confine(setup: Setup, u: Array64) -> Array64:
    """Clamp points to a finite box, or project them onto the declared bounds; may overwrite ``u``."""
    if setup.plan.parameters.get(WITHIN_BOUNDS.name, False):
        return project(setup.design, u)
    return np.minimum(np.maximum(u, -_MAX_COORDINATE, out=u), _MAX_COORDINATE, out=u)


def update_targets(state: State, gradient: Array64 | None) -> tuple[Array64, Adam]:
    """Move numeric targets by one step, within the declared bounds; others stay fixed.

    Steps are in the model's units (:meth:`app.inference.core.model.Model.target_step`). Overwrites ``gradient``.
    """
    if gradient is None:
        return state.y, state.target_moments
    setup, bounds = state.setup, state.setup.design.target_bounds
    step = setup.model.target_step(state.y)
    gradient[select_fixed(setup.plan)] = 0
    moments, move = _step(state, state.target_moments, step * gradient, _POINT_PATH)
    y = state.y - step * move
    if bounds is not None:
        y = np.clip(y, *bounds)
    return y, moments
