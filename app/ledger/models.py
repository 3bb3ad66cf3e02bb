"""The ledger's tables. Only ``app.ledger`` may import this module; triggers keep the chains append-only.

The entries are the record. An account's ``balance`` is their sum; it is cached, and checked at each use.
"""

from datetime import datetime
from typing import Any

from sqlalchemy import CheckConstraint, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from app.db import Base, JsonObject
from app.ledger.entries.balance import KINDS, STATES
from app.ledger.entries.balance_columns import BalanceColumns


class Account(Base):
    """One account per (owner, population): the head of its chain and the cached balance. Never deleted."""

    __tablename__ = "ledger_accounts"
    __table_args__ = (
        UniqueConstraint("owner_id", "population"),
        CheckConstraint("sequence > 0", "sequence"),
        CheckConstraint("epsilon_used >= 0 AND epsilon_used <= epsilon_limit + 1e-9", "within"),
    )

    id: Mapped[str] = mapped_column(primary_key=True)
    owner_id: Mapped[str]
    population: Mapped[str]
    sequence: Mapped[int]
    head_hash: Mapped[str]
    checkpoint: Mapped[int]  # the newest one of this account, 0 if there is none
    limits: Mapped[dict[str, Any]] = mapped_column(
        JsonObject
    )  # with the balance, the sum of the entries: see BalanceColumns
    balance: Mapped[dict[str, Any]] = mapped_column(JsonObject)
    snapshot: Mapped[dict[str, Any]] = mapped_column(
        JsonObject, deferred=True
    )  # a signed earlier balance, from which the cached one is recomputed
    epsilon_used: Mapped[float]  # the total of settled, opened and reserved charges, for the CHECK constraint
    epsilon_limit: Mapped[float]
    frozen_at: Mapped[datetime | None]

    @property
    def stored(self) -> BalanceColumns:
        return BalanceColumns(self.limits, self.balance)


class LedgerDataset(Base):
    """A dataset's account and its number of refusals. Its cap is part of the account's balance."""

    __tablename__ = "ledger_datasets"
    __table_args__ = (CheckConstraint("refused >= 0", "refused"),)

    dataset_id: Mapped[str] = mapped_column(primary_key=True)
    account_id: Mapped[str] = mapped_column(index=True)
    refused: Mapped[int] = mapped_column(default=0)


class Reservation(Base):
    """The state of a job's reservation: reserved -> opened -> settled, or reserved -> voided."""

    __tablename__ = "ledger_reservations"
    __table_args__ = (
        CheckConstraint("sequence > 0", "sequence"),
        CheckConstraint(f"state IN {STATES}", "state"),
    )

    job_id: Mapped[str] = mapped_column(primary_key=True)
    account_id: Mapped[str] = mapped_column(index=True)
    dataset_id: Mapped[str]
    state: Mapped[str]
    sequence: Mapped[int]  # of the newest entry about the job


class Entry(Base):
    """One link of an account's chain."""

    __tablename__ = "ledger_entries"
    __table_args__ = (
        CheckConstraint("sequence > 0", "sequence"),
        CheckConstraint(f"kind IN {KINDS}", "kind"),
        CheckConstraint("epsilon_after >= 0", "epsilon_after"),
    )

    account_id: Mapped[str] = mapped_column(primary_key=True)
    sequence: Mapped[int] = mapped_column(primary_key=True)
    at: Mapped[datetime]
    kind: Mapped[str]
    dataset_id: Mapped[str]
    job_id: Mapped[str | None]
    body: Mapped[dict[str, Any]] = mapped_column(
        JsonObject
    )  # events, pinned amounts, limits; integers beyond 2**53 as strings
    epsilon_after: Mapped[float]
    entry_hash: Mapped[str]
    previous_hash: Mapped[str]


class Checkpoint(Base):
    """The global signed chain over account heads."""

    __tablename__ = "ledger_checkpoints"
    __table_args__ = (CheckConstraint("sequence > 0 AND account_sequence > 0", "sequence"),)

    sequence: Mapped[int] = mapped_column(primary_key=True)
    at: Mapped[datetime]
    account_id: Mapped[str] = mapped_column(index=True)
    account_sequence: Mapped[int]
    account_head: Mapped[str]
    balance_hash: Mapped[str]
    previous_hash: Mapped[str]
    checkpoint_hash: Mapped[str]
    signature: Mapped[str]
    key_id: Mapped[str]


class Fingerprint(Base):
    """Keyed fingerprints of contents: identical bytes of one owner belong to one account."""

    __tablename__ = "ledger_fingerprints"

    owner_id: Mapped[str] = mapped_column(primary_key=True)
    fingerprint: Mapped[str] = mapped_column(primary_key=True)
    account_id: Mapped[str]
