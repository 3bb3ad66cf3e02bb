"""All mutants: how sampling, clipping, noise, accounting, ledger and wall may be broken."""

from typing import Final

from tools.mutants.accounts import ACCOUNTS, CHAINS, HTTP, VAULT
from tools.mutants.budget_and_wall import ACCOUNTING, LEDGER, WALL
from tools.mutants.gentle import GENTLE
from tools.mutants.private_zone import CLIPPING, NOISE, SAMPLING
from tools.mutants.series import SERIES
from tools.mutants.zone_and_noise import ZONE_AND_NOISE

MUTANTS: Final = (
    *(*SAMPLING, *CLIPPING, *NOISE, *ZONE_AND_NOISE),
    *(*ACCOUNTING, *ACCOUNTS, *LEDGER, *CHAINS),
    *(*WALL, *VAULT, *HTTP, *SERIES, *GENTLE),
)

EQUIVALENT: Final = {
    "distance of rounded noise by the smallest answer": "accounts no longer charge for the rounding of noise",
    "distance allowance of a raise by the limit alone": "accounts no longer charge for the rounding of noise",
    "distance allowance without its factor of epsilon": "accounts no longer charge for the rounding of noise",
    "share of delta for rounding left out of a composition": "accounts no longer charge for the rounding of noise",
    "distance of one value an answer": "accounts no longer charge for the rounding of noise",
    "a triangle of values in the price of rounding": "accounts no longer charge for the rounding of noise",
    "exact number of units in the diagnostics": "methods have no exact number; the histogram without noise is a mutant",
}
"""Breaks of an earlier version that change nothing now, each with the reason."""
