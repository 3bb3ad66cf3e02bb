"""All mutants: how sampling, clipping, noise, accounting, ledger and wall may be broken."""

from typing import Final

from tools.mutants.access import ACCESS
from tools.mutants.accounts import ACCOUNTS, CHAINS, HTTP, VAULT
from tools.mutants.budget_and_wall import ACCOUNTING, LEDGER, WALL
from tools.mutants.continuous_audit import CONTINUOUS_AUDIT
from tools.mutants.gentle import GENTLE
from tools.mutants.ingestion import INGESTION
from tools.mutants.limits_and_marks import LIMITS, MARKS
from tools.mutants.private_zone import CLIPPING, NOISE, SAMPLING
from tools.mutants.rows_and_plans import ROWS_AND_PLANS
from tools.mutants.runs import CHARGES, FAULTS, PARTS
from tools.mutants.series import SERIES
from tools.mutants.zone_and_noise import ZONE_AND_NOISE

MUTANTS: Final = (
    *(*SAMPLING, *CLIPPING, *NOISE, *ZONE_AND_NOISE, *ROWS_AND_PLANS),
    *(*ACCOUNTING, *ACCOUNTS, *LIMITS, *LEDGER, *CHAINS, *MARKS),
    *(*CHARGES, *FAULTS, *PARTS),
    *(*WALL, *VAULT, *INGESTION, *SERIES, *HTTP, *ACCESS),
    *(*CONTINUOUS_AUDIT, *GENTLE),
)

EQUIVALENT: Final = {
    "distance of rounded noise by the smallest answer": "accounts no longer charge for the rounding of noise",
    "distance allowance of a raise by the limit alone": "accounts no longer charge for the rounding of noise",
    "distance allowance without its factor of epsilon": "accounts no longer charge for the rounding of noise",
    "share of delta for rounding left out of a composition": "accounts no longer charge for the rounding of noise",
    "distance of one value an answer": "accounts no longer charge for the rounding of noise",
    "a triangle of values in the price of rounding": "accounts no longer charge for the rounding of noise",
    "exact number of units in the diagnostics": "methods have no exact number; the histogram without noise is a mutant",
    "the child of an ingestion states the number of rows": "its parent takes the fingerprint and no other member",
    "the child of an ingestion writes a cell to its stderr": "child and parent both discard its output",
    "analysts may list entries of a dataset that is shared with them": "a second check refuses all who do not own it",
    "the endpoint of quotes looks at no role": "the service looks at the caller's role again",
    "the unit's column is stored": "neither parser nor table has it, so a stored one needs changes of two modules",
    "a running job's cancellation gives its charge back": "the ledger refuses to void an opened reservation",
}
"""Breaks that are not mutants, each with the reason.

Either they are impossible in this version, or a second check has the same effect.
"""
