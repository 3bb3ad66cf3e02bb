"""Adam against its published recurrences, and on a function with a known minimum."""

import numpy as np

from app.inference.post.optimisers import cosine_decay, make_finite, start_adagrad, start_adam, step_adagrad, step_adam


def test_steps_follow_the_recurrences() -> None:
    gradients = np.random.default_rng(0).standard_normal((5, 3))
    state, m, v = start_adam((3,)), np.zeros(3), np.zeros(3)
    for t, gradient in enumerate(gradients, start=1):
        state, direction = step_adam(state, gradient.copy())
        m, v = 0.9 * m + 0.1 * gradient, 0.999 * v + 0.001 * gradient**2
        np.testing.assert_allclose(direction, m / (1 - 0.9**t) / np.sqrt(v / (1 - 0.999**t)), rtol=1e-9)


def test_adam_finds_a_minimum() -> None:
    at, state = np.array([3.0, -2.0]), start_adam((2,))
    for step in range(400):
        state, direction = step_adam(state, 2 * (at - 1))
        at = at - 0.1 * cosine_decay(step, 400) * direction
    np.testing.assert_allclose(at, 1, atol=1e-3)


def test_decay_falls_from_one_to_zero() -> None:
    values = [cosine_decay(step, 10) for step in range(12)]
    assert values[0] == 1
    assert values[10] == values[11] == 0
    assert np.all(np.diff(values) <= 0)


def test_adagrad_divides_by_the_length_of_all_gradients_so_far() -> None:
    gradients = np.random.default_rng(1).standard_normal((5, 3))
    state = start_adagrad((3,))
    for count, gradient in enumerate(gradients, start=1):
        state, move = step_adagrad(state, gradient)
        np.testing.assert_allclose(move, gradient / np.linalg.norm(gradients[:count], axis=0), rtol=1e-9)


def test_an_infinite_gradient_keeps_its_sign() -> None:
    """A step can square it; finite gradients are unchanged, in an array that may be overwritten."""
    given = np.array([np.nan, np.inf, -np.inf, 1e200, -3.5, 0.0])
    found = make_finite(given)
    np.testing.assert_array_equal(np.sign(found), [0, 1, -1, 1, -1, 0])
    assert np.all(np.isfinite(np.square(found)))
    assert found[4] == given[4]
    assert not np.shares_memory(found, given)
