"""What the service's database role may do to the ledger's tables: the chains only grow, and nothing is removed."""

from app.ledger.models import Account, Checkpoint, Entry, Fingerprint, LedgerDataset, Reservation

_GROWS, _MOVES = "SELECT, INSERT", "SELECT, INSERT, UPDATE"
PRIVILEGES = {model.__tablename__: _GROWS for model in (Entry, Checkpoint, Fingerprint)} | {
    model.__tablename__: _MOVES for model in (Account, LedgerDataset, Reservation)
}
