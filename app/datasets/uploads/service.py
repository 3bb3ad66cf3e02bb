"""Rules of uploads: who begins one, when it lapses, and how it becomes a content."""

from collections.abc import Sequence
from datetime import datetime, timedelta

from app.auth.caller import Caller
from app.datasets import access, ingestion
from app.datasets import repository as datasets
from app.datasets.models import Content, Dataset
from app.datasets.uploads import repository
from app.datasets.uploads.models import Upload
from app.db import ReadSession, WriteSession, new_id, now
from app.errors import ContentTooLarge, InvalidRequest, NotFound, OffsetMismatch, StateConflict
from app.services import Services
from app.vault.envelope import digest_context, seal_key

LIFETIME = timedelta(hours=24)
TOO_MANY = "Too many of your uploads are open; complete or delete one of 'uploads' first. Each dataset lists its own."
GONE = "The upload has ended or expired; begin a new one."


def begin(
    tx: WriteSession,
    services: Services,
    caller: Caller,
    dataset_id: str,
    media_type: str,
    *,
    length: int | None = None,
    sha256: bytes | None = None,
) -> Upload:
    """A new upload to a dataset of the caller's. ``sha256`` of the whole is for the worker's eyes only (W3).

    Raises:
        Forbidden, NotFound, StateConflict: as :func:`app.datasets.access.changeable`.
        StateConflict: the caller has too many uploads open, of which the error's member ``uploads`` has the ids.
        ContentTooLarge: the announced length is beyond the limit.
    """
    dataset = access.changeable(tx, caller, dataset_id)
    moment = now()
    if length is not None and length > services.limits.upload_bytes:
        raise ContentTooLarge
    under_way = repository.open_of(tx, caller.id, moment)
    if len(under_way) >= services.limits.open_uploads:
        raise StateConflict(TOO_MANY, uploads=list(under_way))
    content_id = new_id("ct")
    box = None if sha256 is None else seal_key(sha256, digest_context(content_id), services.sealing_key)
    upload = Upload(
        id=new_id("up"),
        dataset_id=dataset.id,
        owner_id=caller.id,
        content_id=content_id,
        media_type=media_type,
        length=length,
        sealed_digest=box,
        lease_until=None,
        created_at=moment,
        expires_at=moment + LIFETIME,
    )
    tx.add(upload)
    tx.flush()
    return upload


def set_length(services: Services, upload: Upload, length: int | None) -> None:
    """Set the length of an upload that was created without one; it never changes afterwards.

    Raises:
        InvalidRequest: another length is set already, or more bytes are stored.
        ContentTooLarge: the length exceeds the limit.
    """
    if length is None or length == upload.length:
        return
    if upload.length is not None or length < upload.received:
        raise InvalidRequest.at("/header/upload-length", "The upload has another length, or more bytes are stored.")
    if length > services.limits.upload_bytes:
        raise ContentTooLarge
    upload.length = length


def find(session: ReadSession, caller: Caller, dataset_id: str, upload_id: str) -> Upload:
    """The caller's upload, open or complete.

    Raises:
        Forbidden, NotFound: as :func:`app.datasets.access.find_owned`, and for an upload that ended or expired.
    """
    access.find_owned(session, caller, dataset_id)
    return _alive(repository.get(session, upload_id), dataset_id, now())


def open_uploads(
    session: ReadSession, caller: Caller, dataset_id: str, before: str | None, limit: int
) -> Sequence[Upload]:
    """At most ``limit`` open uploads to the caller's dataset, newest first.

    Raises:
        Forbidden, NotFound: as :func:`app.datasets.access.find_owned`.
    """
    access.find_owned(session, caller, dataset_id)
    return repository.page(session, dataset_id, now(), before, limit)


def lock_upload(tx: WriteSession, caller: Caller, dataset_id: str, upload_id: str) -> tuple[Dataset, Upload]:
    """The caller's upload to a dataset that is not deleted, both locked; raises as :func:`find`, and StateConflict."""
    dataset = access.changeable(tx, caller, dataset_id)
    return dataset, _alive(repository.lock(tx, upload_id), dataset_id, now())


def _alive(upload: Upload | None, dataset_id: str, moment: datetime) -> Upload:
    if upload is None or upload.dataset_id != dataset_id or upload.status == "ended" or upload.expires_at < moment:
        raise NotFound(GONE)
    return upload


def end(tx: WriteSession, caller: Caller, dataset_id: str, upload_id: str) -> Upload:
    """Give the upload up; what is stored for it goes with the next sweep at the latest.

    Raises:
        StateConflict: it is a content already.
    """
    _, upload = lock_upload(tx, caller, dataset_id, upload_id)
    if upload.status == "complete":
        raise StateConflict("The upload is complete, and its parts are the dataset's content now.")
    upload.status = "ended"
    return upload


def complete(tx: WriteSession, services: Services, dataset: Dataset, upload: Upload) -> None:
    """Make the kept parts of a locked upload the next content of its locked dataset; twice is once.

    Raises:
        OffsetMismatch: fewer bytes are kept than were announced.
        StateConflict: a part is still arriving.
    """
    if upload.status == "complete":
        return
    if upload.length is not None and upload.received != upload.length:
        raise OffsetMismatch("Fewer bytes are kept than this upload announced; send the rest first.", upload.received)
    if upload.lease_until is not None and upload.lease_until > now():
        raise StateConflict("A part of this upload is still arriving; complete it afterwards.")
    upload.status, upload.lease_until = "complete", None
    moment = now()
    content = Content(
        id=upload.content_id,
        dataset_id=dataset.id,
        version=datasets.next_version(tx, dataset.id),
        status="received",
        rejection=None,
        media_type=upload.media_type,
        parts=upload.parts,
        sealed_digest=upload.sealed_digest,
        table_object=None,
        wrapped_key=None,
        received_at=moment,
        ended_at=None,
        lease_until=None,
        queued_at=moment,
    )
    tx.add(content)
    tx.flush()
    ingestion.send_after_commit(tx, services.queue, content.id)
