"""Three streams of randomness, never mixed, none of which a caller can seed.

Private noise comes from the operating system inside :mod:`app.inference.private_zone.mechanisms`; subsampling from a
ChaCha20 generator keyed by the operating system; Monte Carlo draws, which only ever post-process, from a fast
generator.
"""

import secrets

import numpy as np
from randomgen import ChaCha


def sampling_generator() -> np.random.Generator:
    """A generator for subsampling: ChaCha20 under 256 fresh bits of the operating system's entropy."""
    return np.random.Generator(ChaCha(key=secrets.randbits(256)))


def monte_carlo_generator() -> np.random.Generator:
    """A generator for post-processing, started from fresh entropy."""
    return np.random.Generator(np.random.SFC64())
