"""Database models of datasets, their shares, their contents and the wrapped content keys.

The dataset keys that wrap the content keys are stored outside of the database: see :mod:`app.vault.wrapped_keys`.
"""

from datetime import datetime
from typing import Any

from sqlalchemy import ForeignKey, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from app.db import Base


class Dataset(Base):
    """The declared facts of a dataset; no value here was read from rows."""

    __tablename__ = "datasets"

    id: Mapped[str] = mapped_column(primary_key=True)
    owner_id: Mapped[str] = mapped_column(ForeignKey("api_keys.id"), index=True)
    name: Mapped[str]
    description: Mapped[str]
    sensitivity: Mapped[str]  # private | public
    population: Mapped[str]
    series: Mapped[str | None]  # name of the owner's series to which the dataset belongs
    columns: Mapped[list[Any]]
    privacy_unit: Mapped[dict[str, Any]]
    slots: Mapped[int]
    releases_public: Mapped[bool]
    created_at: Mapped[datetime]
    updated_at: Mapped[datetime]
    deleted_at: Mapped[datetime | None]
    deletion_receipt: Mapped[dict[str, Any] | None]


class Series(Base):
    """An owner's series of datasets in which each person counts once; see :mod:`app.datasets.series`."""

    __tablename__ = "series"

    owner_id: Mapped[str] = mapped_column(ForeignKey("api_keys.id"), primary_key=True)
    name: Mapped[str] = mapped_column(primary_key=True)
    unit: Mapped[dict[str, Any]]  # the declared column that names people, the same in every block
    places: Mapped[int]  # contents received so far


class DatasetShare(Base):
    __tablename__ = "dataset_shares"

    dataset_id: Mapped[str] = mapped_column(ForeignKey("datasets.id"), primary_key=True)
    key_id: Mapped[str] = mapped_column(ForeignKey("api_keys.id"), primary_key=True, index=True)


class Content(Base):
    """One uploaded version of a table. Its status is ``received``, then ``ready`` or ``rejected``."""

    __tablename__ = "contents"
    __table_args__ = (UniqueConstraint("dataset_id", "version"),)

    id: Mapped[str] = mapped_column(primary_key=True)
    dataset_id: Mapped[str] = mapped_column(ForeignKey("datasets.id"), index=True)
    version: Mapped[int]
    status: Mapped[str]
    rejection: Mapped[str | None]
    rejection_columns: Mapped[list[Any] | None]  # names from the header or the declaration
    media_type: Mapped[str]
    parts: Mapped[int] = mapped_column(default=1)  # sealed parts of the file, until they are destroyed
    sealed_digest: Mapped[bytes | None]  # announced digest of the whole file, sealed to the worker
    series_place: Mapped[int | None]  # order of receipt in the series, starting at 1
    register_object: Mapped[str | None]  # object name of the pseudonyms of people whose rows the table keeps
    table_object: Mapped[str | None]  # object name of the encrypted columnar table
    wrapped_key: Mapped[bytes | None]  # the content's key, encrypted under the dataset's key
    received_at: Mapped[datetime]
    ended_at: Mapped[datetime | None]
    lease_until: Mapped[datetime | None]
    fencing_token: Mapped[int] = mapped_column(default=0)
    attempts: Mapped[int] = mapped_column(default=0)
    queued_at: Mapped[datetime]
