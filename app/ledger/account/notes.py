"""Notes about a dataset that change no balance."""

from collections.abc import Mapping
from typing import Any

from sqlalchemy import update

from app.db import WriteSession
from app.errors import NotFound
from app.ledger.account import locked_account
from app.ledger.context import LedgerContext
from app.ledger.entries.balance import CONTENT_REPLACED, DATASET_DELETED
from app.ledger.models import LedgerDataset


def record_refusal(tx: WriteSession, dataset_id: str) -> None:
    """Count a refusal; the account's chain is not extended.

    Raises:
        NotFound: the dataset has no account.
    """
    increment = update(LedgerDataset).where(LedgerDataset.dataset_id == dataset_id)
    if not tx.execute(increment.values(refused=LedgerDataset.refused + 1).returning(LedgerDataset.refused)).first():
        raise NotFound


def note_content_replaced(context: LedgerContext, tx: WriteSession, dataset_id: str, version: int) -> None:
    """Note in the account's chain that the dataset has a new content."""
    _append(context, tx, dataset_id, CONTENT_REPLACED, {"version": version})


def note_dataset_deleted(context: LedgerContext, tx: WriteSession, dataset_id: str) -> None:
    """Note in the account's chain that the dataset was deleted; the account stays."""
    _append(context, tx, dataset_id, DATASET_DELETED, {})


def _append(context: LedgerContext, tx: WriteSession, dataset_id: str, kind: str, body: Mapping[str, Any]) -> None:
    locked = locked_account.lock_verified(context, tx, dataset_id)
    if locked is not None:
        locked.append(kind, dataset_id, body)
