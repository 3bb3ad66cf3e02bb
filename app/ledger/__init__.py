"""The only writer of the budget: accounts, reservations, chains of what happened, and what they cost."""

from app.ledger.admission import Preview
from app.ledger.book import Cause
from app.ledger.charge import Charge
from app.ledger.checkpoints import CheckpointRef
from app.ledger.commitments import Commitment, Terms
from app.ledger.mark import Mark
from app.ledger.service import Ledger
from app.ledger.views import Budget, Guarantee, LedgerEntry

__all__ = [
    "Budget",
    "Cause",
    "Charge",
    "CheckpointRef",
    "Commitment",
    "Guarantee",
    "Ledger",
    "LedgerEntry",
    "Mark",
    "Preview",
    "Terms",
]
