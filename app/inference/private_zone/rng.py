"""Random generators: three separate streams that no caller can seed.

Private noise comes from the operating system, inside :mod:`app.inference.private_zone.mechanisms`. Subsampling uses a
ChaCha20 generator keyed by the operating system. Monte Carlo draws use a fast generator, because they are
post-processing only.
"""

import secrets

import numpy as np
from randomgen import ChaCha


def make_sampling_generator() -> np.random.Generator:
    """Make a generator for subsampling: ChaCha20 with a 256-bit key from the operating system."""
    return np.random.Generator(ChaCha(key=secrets.randbits(256)))


def make_monte_carlo_generator() -> np.random.Generator:
    """Make a generator for post-processing, seeded with fresh entropy."""
    return np.random.Generator(np.random.SFC64())
