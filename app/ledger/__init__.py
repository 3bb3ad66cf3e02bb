"""The only writer of the budget: accounts, reservations, their hash chains and their cost."""

from app.ledger.account.locked_account import Cause
from app.ledger.account.registers import OwnerAccounts
from app.ledger.entries.admission import Obstacle, Preview
from app.ledger.entries.balance import Registration
from app.ledger.entries.charge import Charge
from app.ledger.entries.commitments import Commitment, Terms
from app.ledger.integrity.checkpoints import CheckpointRef
from app.ledger.integrity.export import ChainKey, ChainPart
from app.ledger.integrity.high_water_mark import HighWaterMark
from app.ledger.overviews import AccountDatasets, AccountOverview, Overview
from app.ledger.service import Ledger
from app.ledger.views import Allocation, Budget, EntryFilter, Exposure, Guarantee, LedgerEntry, LedgerStep, Standing

__all__ = [
    "AccountDatasets",
    "AccountOverview",
    "Allocation",
    "Budget",
    "Cause",
    "ChainKey",
    "ChainPart",
    "Charge",
    "CheckpointRef",
    "Commitment",
    "EntryFilter",
    "Exposure",
    "Guarantee",
    "HighWaterMark",
    "Ledger",
    "LedgerEntry",
    "LedgerStep",
    "Obstacle",
    "Overview",
    "OwnerAccounts",
    "Preview",
    "Registration",
    "Standing",
    "Terms",
]
