"""One part on its way in: claimed, sealed as it arrives, and kept whole or not at all.

Its object is named in the database before its first byte is stored, so that whatever crashes leaves nothing that
the sweep cannot find. One part of an upload arrives at a time: it holds a lease that its bytes renew, and its token
tells whether the lease is still its own when it is whole.
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
from app.vault.store import new_name
from app.vault.writer import UploadWriter

LEASE_SECONDS = 10.0
BEAT_SECONDS = 3.0
SOLE_LIFETIME = timedelta(minutes=10)
"""How long an upload that is one request lasts without a sign of it: many times what the slowest body may take."""
OVERTAKEN = "This part is no longer awaited: the upload has ended, or another request has taken it over."


@dataclass(slots=True)
class Part:
    """The next part of an upload, as :func:`claim` took it."""

    services: Services
    upload_id: str
    content_id: str
    number: int
    offset: int
    token: int
    room: int
    expected: bytes | None = field(repr=False)
    sole: bool  # the upload is this part, and goes with it
    object_name: str = field(default_factory=new_name)
    _beaten: float = field(default_factory=time.monotonic)

    def writer(self) -> UploadWriter:
        """Where its bytes go; raises DependencyUnavailable."""
        bound = name_context(self.content_id, self.number)
        return UploadWriter(self.services.areas.incoming, self.services.sealing_key, bound, self.room, self.object_name)

    def beat(self) -> None:
        """Renew the lease, now and then.

        Raises:
            StateConflict: it is another's by now.
        """
        if time.monotonic() - self._beaten < BEAT_SECONDS:
            return
        self._beaten = time.monotonic()
        with self.services.database.write() as tx:
            upload = self._lock_upload(tx)
            upload.lease_until = _lease()
            if self.sole:
                upload.expires_at = now() + SOLE_LIFETIME

    def publish(self, writer: UploadWriter) -> int:
        """Make the bytes durable, behind what opens them, and say how many they are.

        The key is made while the upload is locked and open: a deletion of the dataset, which ends it first, then finds
        the key or keeps it from being made, whatever becomes of this process.

        Raises:
            DigestMismatch: they are not the announced ones.
            StateConflict: the upload has ended, the lease is another's by now, or the part was given up: a server that
                stops does so without waiting for its threads.
            DependencyUnavailable: the store is full or away.
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
            StateConflict: the upload has ended, or the lease is another's by now.
        """
        upload = self._lock_upload(tx)
        part = tx.get_one(UploadPart, self.object_name)
        part.number, part.size = self.number, size
        upload.received += size
        upload.parts += 1
        upload.lease_until = None
        return upload

    def give_up(self) -> None:
        """Leave nothing behind of a part that was not kept; harmless for one that was.

        Where the sweep was here before, the object may have been stored after it looked.
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
            if self.sole:
                tx.delete(upload)
            elif upload.fencing_token == self.token:
                upload.lease_until = None

    def _lock_upload(self, tx: WriteSession) -> Upload:
        """The upload, locked. Once the part is given up its name is gone: what is made for it would never be found."""
        upload = repository.lock(tx, self.upload_id)
        if upload is None or upload.status != "open" or upload.fencing_token != self.token:
            raise StateConflict(OVERTAKEN)
        if tx.get(UploadPart, self.object_name) is None:
            raise StateConflict(OVERTAKEN)
        return upload


def claim(tx: WriteSession, services: Services, upload: Upload, offset: int, announced: Announced) -> Part:
    """Take the next part of a locked upload, to begin at ``offset``.

    Raises:
        StateConflict: the upload is complete, or another part is arriving.
        OffsetMismatch: it continues elsewhere.
        ContentTooLarge: there is no room for so much, or for another part.
    """
    if upload.status != "open":
        raise StateConflict("The upload is complete; it takes no more bytes.")
    if upload.lease_until is not None and upload.lease_until > now():
        raise StateConflict("Another part of this upload is arriving; ask for the offset and go on from there.")
    if offset != upload.received:
        raise OffsetMismatch(offset=upload.received)
    if upload.parts >= services.limits.parts:
        raise ContentTooLarge("This upload has too many parts; begin a new one, and send larger parts.")
    whole = services.limits.upload_bytes if upload.length is None else upload.length
    return _take(tx, services, upload, min(services.limits.part_bytes, whole - upload.received), announced)


def claim_whole(tx: WriteSession, services: Services, upload: Upload, announced: Announced) -> Part:
    """Take all of a new upload as its one part; raises ContentTooLarge.

    Nobody can go on with it if this process dies, so it counts as under way for no longer than it must.
    """
    upload.expires_at = now() + SOLE_LIFETIME
    return _take(tx, services, upload, services.limits.upload_bytes, announced, sole=True)


def _take(
    tx: WriteSession, services: Services, upload: Upload, room: int, announced: Announced, *, sole: bool = False
) -> Part:
    if announced.length > room:
        raise ContentTooLarge("Send no more than this server takes at a time, nor than the upload has announced.")
    upload.fencing_token += 1
    upload.lease_until = _lease()
    part = Part(
        services,
        upload.id,
        upload.content_id,
        number=upload.parts,
        offset=upload.received,
        token=upload.fencing_token,
        room=room,
        expected=announced.sha256,
        sole=sole,
    )
    tx.add(UploadPart(object_name=part.object_name, content_id=upload.content_id, number=None, size=None))
    tx.flush()
    return part


def _lease() -> datetime:
    return now() + timedelta(seconds=LEASE_SECONDS)
