"""The rules of uploads: creation, expiry, deletion and completion."""

from collections.abc import Sequence
from datetime import datetime, timedelta

from app.auth.caller import Caller
from app.datasets import access, ingestion, series
from app.datasets import repository as datasets
from app.datasets.models import Content, Dataset
from app.datasets.uploads import repository
from app.datasets.uploads.models import Upload
from app.db import ReadSession, WriteSession, generate_id, now
from app.errors import ContentTooLarge, InvalidRequest, NotFound, OffsetMismatch, StateConflict
from app.services import Services
from app.vault.envelope import make_digest_context, seal_key

LIFETIME = timedelta(hours=24)
TOO_MANY = (
    "Too many of your uploads are open. The member 'uploads' lists their ids; complete or delete one of them first."
)
GONE = "The upload has ended or expired; create a new one."


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
    """Create an upload to a dataset of the caller.

    ``sha256`` is the digest of the whole file, if the caller announces it. It is sealed, so that only the worker can
    read it (W3).

    Raises:
        Forbidden, NotFound, StateConflict: as :func:`app.datasets.access.lock_changeable`.
        StateConflict: the caller has too many open uploads; the member ``uploads`` of the error lists their ids.
        ContentTooLarge: the announced length exceeds the limit.
    """
    dataset = access.lock_changeable(tx, caller, dataset_id)
    moment = now()
    if length is not None and length > services.limits.upload_bytes:
        raise ContentTooLarge
    open_ids = repository.list_open_ids(tx, caller.id, moment)
    if len(open_ids) >= services.limits.open_uploads:
        raise StateConflict(TOO_MANY, uploads=list(open_ids))
    content_id = generate_id("ct")
    box = None if sha256 is None else seal_key(sha256, make_digest_context(content_id), services.sealing_key)
    upload = Upload(
        id=generate_id("up"),
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
    """Set the length of an upload that was created without one. A length never changes once it is set.

    Raises:
        InvalidRequest: another length is set already, or more bytes than ``length`` are stored.
        ContentTooLarge: the length exceeds the limit.
    """
    if length is None or length == upload.length:
        return
    if upload.length is not None or length < upload.received:
        raise InvalidRequest.at(
            "/header/upload-length", "The upload has another length, or more bytes than this are stored."
        )
    if length > services.limits.upload_bytes:
        raise ContentTooLarge
    upload.length = length


def find(session: ReadSession, caller: Caller, dataset_id: str, upload_id: str) -> Upload:
    """Find an open or complete upload of the caller.

    Raises:
        Forbidden, NotFound: as :func:`app.datasets.access.find_owned`.
        NotFound: the upload has ended or expired.
    """
    access.find_owned(session, caller, dataset_id)
    return _check_alive(repository.get(session, upload_id), dataset_id, now())


def open_uploads(
    session: ReadSession, caller: Caller, dataset_id: str, before: str | None, limit: int
) -> Sequence[Upload]:
    """List at most ``limit`` open uploads to the caller's dataset, newest first.

    Raises:
        Forbidden, NotFound: as :func:`app.datasets.access.find_owned`.
    """
    access.find_owned(session, caller, dataset_id)
    return repository.list_page(session, dataset_id, now(), before, limit)


def lock_upload(tx: WriteSession, caller: Caller, dataset_id: str, upload_id: str) -> tuple[Dataset, Upload]:
    """Lock the caller's dataset and its upload.

    Raises:
        Forbidden, NotFound: as :func:`find`.
        StateConflict: the dataset is deleted.
    """
    dataset = access.lock_changeable(tx, caller, dataset_id)
    return dataset, _check_alive(repository.lock(tx, upload_id), dataset_id, now())


def _check_alive(upload: Upload | None, dataset_id: str, moment: datetime) -> Upload:
    if upload is None or upload.dataset_id != dataset_id or upload.status == "ended" or upload.expires_at < moment:
        raise NotFound(GONE)
    return upload


def end(tx: WriteSession, caller: Caller, dataset_id: str, upload_id: str) -> Upload:
    """End an upload; the sweeper removes its parts.

    Raises:
        StateConflict: the upload is complete.
    """
    _, upload = lock_upload(tx, caller, dataset_id, upload_id)
    if upload.status == "complete":
        raise StateConflict("The upload is complete; its parts are a content of the dataset.")
    upload.status = "ended"
    return upload


def complete(tx: WriteSession, services: Services, dataset: Dataset, upload: Upload) -> None:
    """Make the parts of an upload the next content of its dataset; repeating this does nothing.

    The caller has locked both.

    Raises:
        OffsetMismatch: fewer bytes are stored than announced.
        StateConflict: a part is still arriving.
    """
    if upload.status == "complete":
        return
    if upload.length is not None and upload.received != upload.length:
        raise OffsetMismatch("Fewer bytes are stored than announced; send the rest first.", upload.received)
    if upload.lease_until is not None and upload.lease_until > now():
        raise StateConflict("A part of this upload is still arriving; complete the upload after the part has arrived.")
    upload.status, upload.lease_until = "complete", None
    moment = now()
    content = Content(
        id=upload.content_id,
        dataset_id=dataset.id,
        version=datasets.compute_next_version(tx, dataset.id),
        status="received",
        rejection=None,
        media_type=upload.media_type,
        parts=upload.parts,
        sealed_digest=upload.sealed_digest,
        series_place=series.take_place(tx, dataset),
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
