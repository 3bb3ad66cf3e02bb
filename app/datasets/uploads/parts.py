"""The part of an upload that arrives: it is claimed, sealed and then kept, as a whole or not at all.

The name of its object is in the database before its first byte is stored, so that the sweeper finds the object after
any crash. Parts of an upload arrive one at a time. A part holds a lease, which it renews as bytes arrive. At its end,
the fencing token shows whether it still holds the lease.
"""

import hmac
import time
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from sqlalchemy.exc import OperationalError

from app.datasets.uploads import repository
from app.datasets.uploads.announcements import Announced
from app.datasets.uploads.models import Upload, UploadPart, name_context
from app.db import WriteSession, now
from app.errors import ContentTooLarge, DependencyUnavailable, DigestMismatch, OffsetMismatch, StateConflict
from app.services import Services
from app.vault.store import draw_name
from app.vault.writer import UploadWriter

LEASE_SECONDS = 10.0
RENEWAL_SECONDS = 3.0
SINGLE_REQUEST_LIFETIME = timedelta(minutes=10)
"""How long an upload in one request stays open without a renewal; many times longer than the slowest body takes."""
OVERTAKEN = "This part is not expected any more: the upload has ended, or another request has taken it over."


@dataclass(slots=True)
class Part:
    """The next part of an upload, claimed by :func:`claim` or :func:`claim_whole`."""

    services: Services
    upload_id: str
    content_id: str
    number: int
    offset: int
    token: int
    max_bytes: int
    expected: bytes | None = field(repr=False)
    is_single: bool  # the upload has this part only, and is removed with it
    object_name: str = field(default_factory=draw_name)
    _renewed_at: float = field(default_factory=time.monotonic)

    def create_writer(self) -> UploadWriter:
        """Create the writer of its bytes; raises DependencyUnavailable."""
        context = name_context(self.content_id, self.number)
        areas, sealing_key = self.services.areas, self.services.sealing_key
        return UploadWriter(areas.incoming, sealing_key, context, self.max_bytes, self.object_name)

    def renew_lease(self) -> None:
        """Renew the lease, at most once in ``RENEWAL_SECONDS``.

        Raises:
            StateConflict: another part holds it.
        """
        if time.monotonic() - self._renewed_at < RENEWAL_SECONDS:
            return
        self._renewed_at = time.monotonic()
        with self.services.database.write() as tx:
            upload = self._lock_upload(tx)
            upload.lease_until = _next_deadline()
            if self.is_single:
                upload.expires_at = now() + SINGLE_REQUEST_LIFETIME

    def publish(self, writer: UploadWriter) -> int:
        """Store the key, then make the bytes durable; returns their number.

        The key is stored while the upload is locked and open. A deletion of the dataset ends the upload first. So it
        either finds the key or prevents its storage, even if this process dies.

        Raises:
            DigestMismatch: the bytes have another digest than announced.
            StateConflict: the upload has ended, another part holds the lease, or the part was given up. A server that
                stops gives parts up without waiting for its threads.
            DependencyUnavailable: the store is full or does not answer.
        """
        if self.expected is not None and not hmac.compare_digest(self.expected, writer.sha256):
            raise DigestMismatch
        with self.services.database.write() as tx:
            self._lock_upload(tx)
            self.services.areas.keys.keep_part(self.object_name, writer.box)
        return writer.finish().size

    def keep(self, tx: WriteSession, size: int) -> Upload:
        """Add the published part to its upload, in the caller's transaction; the dataset is locked.

        Raises:
            StateConflict: the upload has ended, or another part holds the lease.
        """
        upload = self._lock_upload(tx)
        part = tx.get_one(UploadPart, self.object_name)
        part.number, part.size = self.number, size
        upload.received += size
        upload.parts += 1
        upload.lease_until = None
        return upload

    def give_up(self) -> None:
        """Remove a part that was not kept; harmless for a part that was.

        The object is deleted even if the sweeper removed its row: it may have been stored after the sweep.
        """
        with suppress(DependencyUnavailable, OperationalError), self.services.database.write() as tx:
            upload, part = repository.lock(tx, self.upload_id), tx.get(UploadPart, self.object_name)
            if part is not None and part.number is not None:
                return
            self.services.areas.keys.destroy_part(self.object_name)
            self.services.areas.incoming.delete(self.object_name)
            if part is not None:
                tx.delete(part)
            if upload is None:
                return
            if self.is_single:
                tx.delete(upload)
            elif upload.fencing_token == self.token:
                upload.lease_until = None

    def _lock_upload(self, tx: WriteSession) -> Upload:
        """Lock the upload, if it still expects this part.

        Without the row of a part that was given up, the sweeper could not find an object or a key of that name.

        Raises:
            StateConflict: otherwise.
        """
        upload = repository.lock(tx, self.upload_id)
        if upload is None or upload.status != "open" or upload.fencing_token != self.token:
            raise StateConflict(OVERTAKEN)
        if tx.get(UploadPart, self.object_name) is None:
            raise StateConflict(OVERTAKEN)
        return upload


def claim(tx: WriteSession, services: Services, upload: Upload, offset: int, announced: Announced) -> Part:
    """Claim the next part of a locked upload, which begins at ``offset``.

    Raises:
        StateConflict: the upload is complete, or another part is arriving.
        OffsetMismatch: the upload continues at another offset.
        ContentTooLarge: the body is too large, or the upload has too many parts.
    """
    if upload.status != "open":
        raise StateConflict("The upload is complete and does not accept more bytes.")
    if upload.lease_until is not None and upload.lease_until > now():
        raise StateConflict("Another part of this upload is arriving; ask for the offset, then continue there.")
    if offset != upload.received:
        raise OffsetMismatch(offset=upload.received)
    if upload.parts >= services.limits.parts:
        raise ContentTooLarge("This upload has too many parts; create a new upload, and send larger parts.")
    length = services.limits.upload_bytes if upload.length is None else upload.length
    return _claim(tx, services, upload, min(services.limits.part_bytes, length - upload.received), announced)


def claim_whole(tx: WriteSession, services: Services, upload: Upload, announced: Announced) -> Part:
    """Claim a new upload as a single part; raises ContentTooLarge.

    If this process dies, no client can continue the upload. So it expires soon, and does not count as open for long.
    """
    upload.expires_at = now() + SINGLE_REQUEST_LIFETIME
    return _claim(tx, services, upload, services.limits.upload_bytes, announced, is_single=True)


def _claim(
    tx: WriteSession,
    services: Services,
    upload: Upload,
    max_bytes: int,
    announced: Announced,
    *,
    is_single: bool = False,
) -> Part:
    if announced.length > max_bytes:
        raise ContentTooLarge(
            "Send at most the size that this server accepts in one part, and at most the announced length."
        )
    upload.fencing_token += 1
    upload.lease_until = _next_deadline()
    part = Part(
        services,
        upload.id,
        upload.content_id,
        number=upload.parts,
        offset=upload.received,
        token=upload.fencing_token,
        max_bytes=max_bytes,
        expected=announced.sha256,
        is_single=is_single,
    )
    tx.add(UploadPart(object_name=part.object_name, content_id=upload.content_id, number=None, size=None))
    tx.flush()
    return part


def _next_deadline() -> datetime:
    return now() + timedelta(seconds=LEASE_SECONDS)
