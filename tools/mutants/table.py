"""All mutants: how sampling, clipping, noise, accounting, ledger and wall may be broken."""

from typing import Final

from tools.mutants.budget_and_wall import ACCOUNTING, LEDGER, WALL
from tools.mutants.gentle import GENTLE
from tools.mutants.private_zone import CLIPPING, NOISE, SAMPLING
from tools.mutants.series import SERIES

MUTANTS: Final = (*SAMPLING, *CLIPPING, *NOISE, *ACCOUNTING, *LEDGER, *WALL, *SERIES, *GENTLE)

EQUIVALENT: Final = {
    "distance of rounded noise by the smallest answer": "accounts no longer charge for the rounding of noise",
    "distance allowance of a raise by the limit alone": "accounts no longer charge for the rounding of noise",
    "exact number of units in the diagnostics": "methods have no exact number; the histogram without noise is a mutant",
}
"""Breaks of an earlier version that change nothing now, each with the reason."""
