"""Generators start from fresh entropy: W7. That nothing takes a seed is checked by ``tools/check_boundaries.py``."""

import numpy as np

from app.inference.private_zone.rng import make_monte_carlo_generator, make_sampling_generator


def test_generators_start_from_fresh_entropy() -> None:
    """W7: two generators have different keys."""
    for make in (make_sampling_generator, make_monte_carlo_generator):
        assert make().integers(0, 2**63, size=4).tolist() != make().integers(0, 2**63, size=4).tolist()


def test_subsampling_uses_a_keyed_stream_cipher() -> None:
    assert make_sampling_generator().bit_generator.state["state"]["rounds"] == 20


def test_the_key_of_subsampling_has_256_random_bits() -> None:
    """W7: each of the key's eight words is random, so an exhaustive search is impossible."""
    words = np.array([make_sampling_generator().bit_generator.state["state"]["keysetup"] for _ in range(64)])
    assert words.shape == (64, 8)
    assert np.bitwise_or.reduce(words).tolist() == [2**32 - 1] * 8, "a bit that is never set"
    assert np.bitwise_and.reduce(words).tolist() == [0] * 8, "a bit that is always set"
