"""Receiving a content: sealed chunk by chunk as it arrives, recorded once it is whole, or not kept at all."""

import hmac
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from email.message import Message

import anyio
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers
from starlette.requests import ClientDisconnect

from app.audit.journal import record
from app.auth.caller import Caller
from app.datasets import access, ingestion, repository
from app.datasets.models import Content, Dataset
from app.datasets.schemas import DatasetDetail
from app.datasets.views import detail
from app.db import WriteSession, new_id, now
from app.errors import ContentTooLarge, DigestMismatch, InvalidRequest, StateConflict, UnsupportedMediaType
from app.http.digests import sha256_of_header
from app.services import Services
from app.vault.envelope import CHUNK_BYTES
from app.vault.writer import SealedUpload, UploadWriter

CSV = "text/csv"
PARQUET = "application/vnd.apache.parquet"
ARROW = "application/vnd.apache.arrow.stream"
MEDIA_TYPES = frozenset({CSV, PARQUET, ARROW})
_PARAMETERS: Mapping[str, frozenset[str]] = {"charset": frozenset({"utf-8"}), "header": frozenset({"present"})}


@dataclass(frozen=True, slots=True)
class Announced:
    """What the headers say of the body that follows."""

    media_type: str
    sha256: bytes | None


def announced(headers: Headers, max_bytes: int) -> Announced:
    """The headers, checked before the first byte of the body is read.

    Raises:
        UnsupportedMediaType: for a media type that is not taken (an encoding is refused for every address).
        ContentTooLarge: the announced length is beyond ``max_bytes``.
        InvalidRequest: for a malformed Content-Digest, or a part of a representation.
    """
    media_type = _media_type(headers.get("content-type", ""))
    if "content-range" in headers:
        raise InvalidRequest("Send the whole content; Content-Range is not taken here.")
    length = headers.get("content-length", "0")
    if length.isdecimal() and int(length[:20]) > max_bytes:
        raise ContentTooLarge
    digests = ",".join(headers.getlist("content-digest"))
    return Announced(media_type, sha256_of_header(digests) if "content-digest" in headers else None)


def _media_type(value: str) -> str:
    message = Message()
    message["content-type"] = value
    media_type = message.get_content_type() if value else ""
    if media_type not in MEDIA_TYPES:
        raise UnsupportedMediaType(f"Send the table as one of {', '.join(sorted(MEDIA_TYPES))}.")
    for name, parameter in message.get_params(failobj=[])[1:]:
        if media_type != CSV or parameter.lower() not in _PARAMETERS.get(name.lower(), frozenset()):
            raise UnsupportedMediaType("Leave the parameters out; a table is UTF-8, and CSV has a header.")
    return media_type


def check_receivable(services: Services, caller: Caller, dataset_id: str) -> None:
    """Refuse early what :meth:`Reception.keep` would refuse after the whole body.

    Raises:
        Forbidden, NotFound: as :func:`app.datasets.access.owned`.
        StateConflict: the dataset is deleted.
    """
    with services.database.read() as session:
        if access.owned(session, caller, dataset_id).deleted_at is not None:
            raise StateConflict


@dataclass(frozen=True, slots=True)
class Reception:
    """One upload on its way in: who sends what to where."""

    services: Services
    caller: Caller
    dataset_id: str
    announced: Announced
    content_id: str = field(default_factory=lambda: new_id("ct"))

    def writer(self) -> UploadWriter:
        services = self.services
        return UploadWriter(services.store, services.sealing_key, self.content_id, services.limits.upload_bytes)

    def keep(self, writer: UploadWriter) -> DatasetDetail:
        """Record the whole body as the dataset's next content, or keep nothing of it."""
        sealed = writer.finish()
        try:
            self._check_digest(sealed)
            with self.services.database.write() as tx:
                dataset = access.changeable(tx, self.caller, self.dataset_id)
                _record(tx, dataset, self.content_id, self.announced.media_type, sealed)
                record(tx)
                ingestion.send_after_commit(tx, self.services.queue, self.content_id)
                return detail(tx, self.services.ledger, dataset)
        except BaseException:
            self._discard_unless_recorded(sealed)
            raise

    def _check_digest(self, sealed: SealedUpload) -> None:
        expected = self.announced.sha256
        if expected is not None and not hmac.compare_digest(expected, sealed.sha256):
            raise DigestMismatch

    def _discard_unless_recorded(self, sealed: SealedUpload) -> None:
        """A commit can be durable although its answer got lost: only the row says whether the bytes are needed."""
        with self.services.database.read() as session:
            recorded = session.get(Content, self.content_id) is not None
        if not recorded:
            self.services.store.delete(sealed.name)


async def receive(reception: Reception, body: AsyncIterator[bytes]) -> DatasetDetail:
    """Seal the body while it arrives, a chunk in memory at a time; reading waits for sealing.

    Raises:
        ContentTooLarge, DigestMismatch, DependencyUnavailable, InvalidRequest: nothing of the body is kept.
    """
    writer = await run_in_threadpool(reception.writer)
    try:
        async for piece in _pieces(body):
            await run_in_threadpool(writer.write, piece)
        return await run_in_threadpool(reception.keep, writer)
    except ClientDisconnect:
        raise InvalidRequest("The connection ended before the body did; nothing was kept.") from None
    finally:
        with anyio.CancelScope(shield=True):
            await run_in_threadpool(writer.abort)


async def _pieces(body: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """The body in pieces worth a change of thread."""
    gathered = bytearray()
    async for data in body:
        gathered += data
        if len(gathered) >= CHUNK_BYTES:
            yield bytes(gathered)
            gathered.clear()
    yield bytes(gathered)


def _record(tx: WriteSession, dataset: Dataset, content_id: str, media_type: str, sealed: SealedUpload) -> None:
    """The next version of a locked dataset's content; the one in force stays so until this one is ready."""
    moment = now()
    content = Content(
        id=content_id,
        dataset_id=dataset.id,
        version=repository.next_version(tx, dataset.id),
        status="received",
        rejection=None,
        media_type=media_type,
        upload_object=sealed.name,
        table_object=None,
        wrapped_key=None,
        received_at=moment,
        ended_at=None,
        lease_until=None,
        queued_at=moment,
    )
    tx.add(content)
    tx.flush()
