"""Privileges of the service's database role on the ledger's tables: it never deletes, and chains only grow."""

from app.ledger.models import Account, Checkpoint, Entry, Fingerprint, LedgerDataset, Reservation

_APPEND, _UPDATE = "SELECT, INSERT", "SELECT, INSERT, UPDATE"
PRIVILEGES = {model.__tablename__: _APPEND for model in (Entry, Checkpoint, Fingerprint)} | {
    model.__tablename__: _UPDATE for model in (Account, LedgerDataset, Reservation)
}
