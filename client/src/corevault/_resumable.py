"""Uploads in parts, each of which is retried until the server has stored it.

One part is in memory at a time, so a source that can be read only once survives a broken connection too.
"""

from collections.abc import Iterable, Iterator
from typing import Any

from corevault import _digest
from corevault._http import Http, quote_segment
from corevault._progress import Report
from corevault._retry import back_off
from corevault._upload import Upload
from corevault.errors import (
    ApiError,
    ConnectionFailed,
    DependencyUnavailable,
    DigestMismatch,
    NotFound,
    OffsetMismatch,
    RateLimited,
    StateConflict,
    UnexpectedReply,
    UploadInterrupted,
)

PART_BYTES = 32 << 20
LARGE_BYTES = 64 << 20
"""The size from which an upload is sent in parts."""

ATTEMPTS = 8
"""Attempts for each part. Their delays together outlast the server's lock of an upload whose connection broke."""

_TRANSIENT = (ConnectionFailed, DependencyUnavailable, DigestMismatch, OffsetMismatch, RateLimited, StateConflict)


async def begin(http: Http, dataset_id: str, upload: Upload) -> str:
    """The id of a new upload."""
    body: dict[str, Any] = {"media_type": upload.media_type, "length": upload.length, "digest": upload.digest}
    given = {name: value for name, value in body.items() if value is not None}
    reply = await http.post(f"/v1/datasets/{quote_segment(dataset_id)}/uploads", given)
    if not isinstance(reply, dict) or not isinstance(reply.get("id"), str):
        raise UnexpectedReply("The server's answer does not name the upload.")
    return str(reply["id"])


async def send(http: Http, dataset_id: str, upload_id: str, upload: Upload, report: Report) -> object:
    """Sends the bytes that the server lacks, and completes the upload. Returns the dataset as JSON.

    Raises:
        UploadInterrupted: the server did not accept a part within all attempts; the upload can be resumed by its id.
        ApiError: the server refuses the upload.
    """
    place = f"/v1/datasets/{quote_segment(dataset_id)}/uploads/{quote_segment(upload_id)}"
    offset = await _offset(http, place)
    report(offset)
    parts = _parts(_skip(upload.chunks(), offset))
    while (part := await http.call(next, parts, None)) is not None:
        try:
            await _send_part(http, place, offset, part)
        except _TRANSIENT as failure:
            raise UploadInterrupted(upload_id, offset) from failure
        offset += len(part)
        report(offset)
    return await http.post(f"{place}/complete")


async def _send_part(http: Http, place: str, offset: int, part: bytes) -> None:
    headers = {"Upload-Offset": str(offset), "Content-Digest": _digest.digest_bytes(part)}
    for attempt in range(ATTEMPTS):
        try:
            await http.patch_bytes(place, part, headers)
        except _TRANSIENT as failure:
            if attempt == ATTEMPTS - 1 or not http.may_retry:
                raise
            await http.io.sleep(_delay(attempt, failure))
            if await _offset(http, place) == offset + len(part):  # stored; only the answer is missing
                return
        else:
            return


def _delay(attempt: int, failure: ApiError | ConnectionFailed) -> float:
    delay = failure.retry_after if isinstance(failure, ApiError) else None
    return back_off(attempt) if delay is None else delay


async def _offset(http: Http, place: str) -> int:
    try:
        offset = (await http.head(place)).get("Upload-Offset", "")
    except ApiError as error:
        if error.status != 404:
            raise
        detail = "No open upload has this id; datasets.open_uploads lists the open ones."
        raise NotFound({"detail": detail}, status=404) from error  # the answer to a HEAD has no body
    if not (offset.isascii() and offset.isdigit()):
        raise UnexpectedReply("The server's answer does not state the offset of the upload.")
    return int(offset)


def _skip(chunks: Iterable[bytes], count: int) -> Iterator[bytes]:
    for chunk in chunks:
        yield chunk[count:]
        count = max(0, count - len(chunk))


def _parts(chunks: Iterable[bytes]) -> Iterator[bytes]:
    part = bytearray()
    for chunk in chunks:
        part += chunk
        while len(part) >= PART_BYTES:
            yield bytes(part[:PART_BYTES])
            del part[:PART_BYTES]
    if part:
        yield bytes(part)
