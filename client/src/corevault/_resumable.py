"""Uploads in parts. A part is sent until the server has it, and continues where the server says.

One part is in memory at a time, so that a source that cannot be read twice can be resumed, too.
"""

import time
from collections.abc import Iterable, Iterator
from typing import Any

from corevault import _digest
from corevault._http import Http, segment
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
"""From this size on, uploads go in parts."""

ATTEMPTS = 8
"""For each part. The waits between them outlast the time for which the server holds a dead connection's place."""

_PASSING = (ConnectionFailed, DependencyUnavailable, DigestMismatch, OffsetMismatch, RateLimited, StateConflict)


def begin(http: Http, dataset_id: str, upload: Upload) -> str:
    """The id of a new upload."""
    body: dict[str, Any] = {"media_type": upload.media_type, "length": upload.length, "digest": upload.digest}
    given = {name: value for name, value in body.items() if value is not None}
    reply = http.post(f"/v1/datasets/{segment(dataset_id)}/uploads", given)
    if not isinstance(reply, dict) or not isinstance(reply.get("id"), str):
        raise UnexpectedReply("The server's answer does not name the upload.")
    return str(reply["id"])


def send(http: Http, dataset_id: str, upload_id: str, upload: Upload, report: Report) -> object:
    """Sends the bytes that the server lacks, and completes the upload. Returns the dataset as JSON.

    Raises:
        UploadInterrupted: the server was away for too long; the upload can be resumed by its id.
        ApiError: it refuses the upload.
    """
    place = f"/v1/datasets/{segment(dataset_id)}/uploads/{segment(upload_id)}"
    offset = _offset(http, place)
    report(offset)
    for part in _parts(_skip(upload.chunks(), offset)):
        try:
            _send_part(http, place, offset, part)
        except _PASSING as failure:
            raise UploadInterrupted(upload_id, offset) from failure
        offset += len(part)
        report(offset)
    return http.post(f"{place}/complete")


def _send_part(http: Http, place: str, offset: int, part: bytes) -> None:
    headers = {"Upload-Offset": str(offset), "Content-Digest": _digest.of_bytes(part)}
    for attempt in range(ATTEMPTS):
        try:
            http.patch_bytes(place, part, headers)
        except _PASSING as failure:
            if attempt == ATTEMPTS - 1 or not http.repeats:
                raise
            time.sleep(_wait(attempt, failure))
            if _offset(http, place) == offset + len(part):  # it was kept, and only the answer got lost
                return
        else:
            return


def _wait(attempt: int, failure: ApiError | ConnectionFailed) -> float:
    asked = failure.retry_after if isinstance(failure, ApiError) else None
    return back_off(attempt) if asked is None else asked


def _offset(http: Http, place: str) -> int:
    try:
        offset = http.head(place).get("Upload-Offset", "")
    except ApiError as error:
        if error.status != 404:
            raise
        known = "No upload of this id is open; datasets.open_uploads lists those that are."
        raise NotFound({"detail": known}, status=404) from error  # the answer to a HEAD has no body
    if not (offset.isascii() and offset.isdigit()):
        raise UnexpectedReply("The server does not say where the upload continues.")
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
