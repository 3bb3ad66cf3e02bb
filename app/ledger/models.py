"""The ledger's tables. Only ``app.ledger`` may import this module; entries are append-only (a trigger backs it).

Amounts of Renyi divergence are integers in units of 2**-40 nats, one per order of the account, rounded up.
"""

from datetime import datetime
from typing import Any

from sqlalchemy import UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from app.db import Base


class Account(Base):
    """One per (owner, population). Never deleted; delta, relation, unit and orders never change."""

    __tablename__ = "ledger_accounts"
    __table_args__ = (UniqueConstraint("owner_id", "population"),)

    id: Mapped[str] = mapped_column(primary_key=True)
    owner_id: Mapped[str]
    population: Mapped[str]
    relation: Mapped[str]
    unit: Mapped[dict[str, Any]]
    orders: Mapped[list[Any]]  # the long list; filters use a few of them
    tranches: Mapped[list[Any]]  # [{epsilon, epsilon_open, delta, orders, weights, spent: [int], ...}]
    discretisation: Mapped[float]  # total-variation distance charged so far
    settled: Mapped[int] = mapped_column(default=0)
    reserved: Mapped[int] = mapped_column(default=0)
    sequence: Mapped[int]
    head_hash: Mapped[str]
    version: Mapped[int]
    frozen_at: Mapped[datetime | None]
    opened_at: Mapped[datetime]


class DatasetCap(Base):
    """A dataset's own limit within its account, with the filter state of that dataset's jobs."""

    __tablename__ = "ledger_dataset_caps"

    dataset_id: Mapped[str] = mapped_column(primary_key=True)
    account_id: Mapped[str] = mapped_column(index=True)
    is_first: Mapped[bool]
    cap: Mapped[dict[str, Any]]
    refused: Mapped[int] = mapped_column(default=0)


class Reservation(Base):
    """reserved -> opened -> settled, or reserved -> voided."""

    __tablename__ = "ledger_reservations"

    job_id: Mapped[str] = mapped_column(primary_key=True)
    account_id: Mapped[str] = mapped_column(index=True)
    dataset_id: Mapped[str] = mapped_column(index=True)
    state: Mapped[str] = mapped_column(index=True)
    events: Mapped[dict[str, Any]]
    tranche: Mapped[int]
    amounts: Mapped[list[Any]]  # the pinned Renyi vector, charged once
    discretisation: Mapped[float]
    epsilon: Mapped[float]
    delta: Mapped[float]
    reserved_at: Mapped[datetime]
    ended_at: Mapped[datetime | None]


class Entry(Base):
    """One link of an account's chain."""

    __tablename__ = "ledger_entries"

    account_id: Mapped[str] = mapped_column(primary_key=True)
    sequence: Mapped[int] = mapped_column(primary_key=True)
    at: Mapped[datetime]
    kind: Mapped[str]
    dataset_id: Mapped[str | None]
    job_id: Mapped[str | None]
    body: Mapped[dict[str, Any]]  # event, amounts, tranche, limits: everything that the hash covers
    epsilon_after: Mapped[float]
    entry_hash: Mapped[str]
    previous_hash: Mapped[str]


class Checkpoint(Base):
    """The global signed chain over account heads."""

    __tablename__ = "ledger_checkpoints"

    sequence: Mapped[int] = mapped_column(primary_key=True)
    at: Mapped[datetime]
    account_id: Mapped[str]
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
