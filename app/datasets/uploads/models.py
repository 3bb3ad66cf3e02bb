"""Tables of uploads and of their sealed parts."""

from datetime import datetime

from sqlalchemy import BigInteger, ForeignKey, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from app.db import Base


class Upload(Base):
    """An upload. Its status is ``open``, then ``complete`` or ``ended``.

    The parts of a complete upload are a content; the sweeper removes the parts of an ended upload. A part that arrives
    holds the lease. The fencing token shows whether the part still holds it at its end.
    """

    __tablename__ = "uploads"

    id: Mapped[str] = mapped_column(primary_key=True)
    dataset_id: Mapped[str] = mapped_column(ForeignKey("datasets.id"), index=True)
    owner_id: Mapped[str] = mapped_column(ForeignKey("api_keys.id"), index=True)
    content_id: Mapped[str] = mapped_column(unique=True)  # the parts are sealed for this content
    media_type: Mapped[str]
    length: Mapped[int | None] = mapped_column(BigInteger)
    sealed_digest: Mapped[bytes | None]  # digest of the whole file, sealed; only the worker opens it
    status: Mapped[str] = mapped_column(default="open")
    received: Mapped[int] = mapped_column(BigInteger, default=0)
    parts: Mapped[int] = mapped_column(default=0)
    fencing_token: Mapped[int] = mapped_column(default=0)
    lease_until: Mapped[datetime | None]
    created_at: Mapped[datetime]
    expires_at: Mapped[datetime]


class UploadPart(Base):
    """A sealed object. The row exists before the first byte is stored, and until the object is removed."""

    __tablename__ = "upload_parts"
    __table_args__ = (UniqueConstraint("content_id", "number"),)

    object_name: Mapped[str] = mapped_column(primary_key=True)
    content_id: Mapped[str]
    number: Mapped[int | None]  # position in the content; None until the part is complete
    size: Mapped[int | None] = mapped_column(BigInteger)


def name_context(content_id: str, number: int) -> str:
    """Make the context to which a part's chunks are bound; parts cannot be exchanged."""
    return content_id if number == 0 else f"{content_id}/{number}"
