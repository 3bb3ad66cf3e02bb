"""An upload under way, and the sealed parts of a content."""

from datetime import datetime

from sqlalchemy import BigInteger, ForeignKey, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from app.db import Base


class Upload(Base):
    """``open`` -> ``complete`` (its parts are a content now) | ``ended`` (they are nobody's, and go).

    A part that arrives holds the lease; its token tells whether it still does once it is whole.
    """

    __tablename__ = "uploads"

    id: Mapped[str] = mapped_column(primary_key=True)
    dataset_id: Mapped[str] = mapped_column(ForeignKey("datasets.id"), index=True)
    owner_id: Mapped[str] = mapped_column(ForeignKey("api_keys.id"), index=True)
    content_id: Mapped[str] = mapped_column(unique=True)  # the content that the parts are sealed for
    media_type: Mapped[str]
    length: Mapped[int | None] = mapped_column(BigInteger)
    sealed_digest: Mapped[bytes | None]  # of the whole, as announced, in a box that only the worker opens
    status: Mapped[str] = mapped_column(default="open")
    received: Mapped[int] = mapped_column(BigInteger, default=0)
    parts: Mapped[int] = mapped_column(default=0)
    fencing_token: Mapped[int] = mapped_column(default=0)
    lease_until: Mapped[datetime | None]
    created_at: Mapped[datetime]
    expires_at: Mapped[datetime]


class UploadPart(Base):
    """A sealed object, named before its first byte is stored; the row goes once the object is gone."""

    __tablename__ = "upload_parts"
    __table_args__ = (UniqueConstraint("content_id", "number"),)

    object_name: Mapped[str] = mapped_column(primary_key=True)
    content_id: Mapped[str]
    number: Mapped[int | None]  # its place in the content; None while it arrives
    size: Mapped[int | None] = mapped_column(BigInteger)


def name_context(content_id: str, number: int) -> str:
    """What the chunks of a part are bound to, so that no part stands in for another."""
    return content_id if number == 0 else f"{content_id}/{number}"
