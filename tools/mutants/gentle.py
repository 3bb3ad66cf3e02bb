"""Gentle mutants, which only an audit with many answers finds."""

from typing import Final

from tools.mutants.mutant import Mutant

ZONE: Final = "app/inference/private_zone/"

GENTLE: Final = (
    Mutant(
        "noise x 0.98",
        "W12",
        ZONE + "oracle.py",
        (("query.scales(planned.event.noise_multiplier)", "query.scales(0.98 * planned.event.noise_multiplier)"),),
        "corevaultd audit --section canaries --answers 100000",
    ),
    Mutant(
        "clipping norm x 1.02",
        "W12",
        ZONE + "mechanisms.py",
        (
            ("radius = GRID * (1 - _margin(length))", "radius = 1.02 * GRID * (1 - _margin(length))"),
            ("np.float32((1 - length * _LOSS) * float(GRID) ** 2)", "np.float32(1.05 * float(GRID) ** 2)"),
        ),
        "corevaultd audit --section contributions",
    ),
    Mutant(
        "sampling rate x 1.05",
        "W12",
        ZONE + "sampling.py",
        (
            (
                "    if rate >= 1:\n        return np.arange(slots)\n",
                "    if rate >= 1:\n        return np.arange(slots)\n    rate *= 1.05\n",
            ),
        ),
        "corevaultd audit --section sampling --answers 2000000",
    ),
    Mutant(
        "one contribution in 1,000 is not clipped",
        "W12",
        ZONE + "queries/blocks.py",
        (
            (
                "clip_to_grid(sums, units, clip)",
                "clip_to_grid(sums, units, clip) if below(1000) else np.rint(sums * (2**24 / clip)) * units[:, None]",
            ),
            ("from typing import Any\n", "from secrets import randbelow as below\nfrom typing import Any\n"),
        ),
        "corevaultd audit --section mechanism --answers 6000",
    ),
)

SMALLEST: Final = (
    "noise x 0.98",
    "the noise source draws 3 % less noise",
    "the service has 5 % less noise",
    "clipping norm x 1.02",
    "one contribution in 1,000 is not clipped",
    "factors on the edge of the ball pass",
    "sampling rate x 1.01",
    "sampling rate x 1.05",
    "calibration accepts one percent over the target",
    "a charge is rounded down",
)
"""Names of the mutants with the smallest change of noise, clipping, sampling and prices."""
