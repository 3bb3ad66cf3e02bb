"""The only writer of the budget: accounts, reservations, their hash chains and their cost."""

from app.ledger.account.locked_account import Cause
from app.ledger.entries.admission import Preview
from app.ledger.entries.charge import Charge
from app.ledger.entries.commitments import Commitment, Terms
from app.ledger.integrity.checkpoints import CheckpointRef
from app.ledger.integrity.high_water_mark import HighWaterMark
from app.ledger.service import Ledger
from app.ledger.views import Budget, Guarantee, LedgerEntry

__all__ = [
    "Budget",
    "Cause",
    "Charge",
    "CheckpointRef",
    "Commitment",
    "Guarantee",
    "HighWaterMark",
    "Ledger",
    "LedgerEntry",
    "Preview",
    "Terms",
]
