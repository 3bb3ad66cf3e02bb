"""Generators start from fresh entropy: W7. That nothing takes a seed is checked by ``tools/check_boundaries.py``."""

from app.inference.rng import monte_carlo_generator, sampling_generator


def test_generators_start_from_fresh_entropy() -> None:
    for make in (sampling_generator, monte_carlo_generator):
        assert make().integers(0, 2**63, size=4).tolist() != make().integers(0, 2**63, size=4).tolist()


def test_subsampling_uses_a_keyed_stream_cipher() -> None:
    assert sampling_generator().bit_generator.state["state"]["rounds"] == 20
