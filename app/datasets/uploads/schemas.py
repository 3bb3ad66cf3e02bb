"""Bodies of requests and answers about uploads."""

from datetime import datetime
from typing import Annotated, Any

from pydantic import ConfigDict, Field

from app.http.requests.bodies import Body, ResponseBody

_ANNOUNCED: dict[str, Any] = {
    "media_type": "text/csv",
    "length": 5_368_709_120,
    "digest": "sha-256=:X48E9qOokqqrvdts8nOJRJN3OWDUoyWxBf7kbu9DBPE=:",
}


class UploadBody(Body):
    """A new upload. ``digest`` has the form of Content-Digest; the worker compares it with the whole file."""

    model_config = ConfigDict(json_schema_extra={"examples": [_ANNOUNCED]})

    media_type: Annotated[str, Field(max_length=200)]
    """Media type of the content: CSV, Parquet or an Arrow stream."""
    length: Annotated[int, Field(ge=0)] | None = None
    """Length of the whole content in bytes, if it is known."""
    digest: Annotated[str, Field(max_length=1000)] | None = None
    """SHA-256 of the whole content in the form of Content-Digest; a content with another digest is rejected."""


class UploadView(ResponseBody):
    """An upload. ``offset`` is the number of stored bytes, at which the next part begins."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "id": "up_01jd0000000000000000000000",
                    "dataset_id": "ds_01jd0000000000000000000000",
                    "media_type": "text/csv",
                    "length": 5_368_709_120,
                    "offset": 67_108_864,
                    "max_part_bytes": 1_073_741_824,
                    "created_at": "2029-01-31T12:00:00Z",
                    "expires_at": "2029-02-01T12:00:00Z",
                }
            ]
        }
    )

    id: str
    """Id of the upload."""
    dataset_id: str
    """Id of the dataset."""
    media_type: str
    """Media type of the content."""
    length: int | None
    """Length of the whole content in bytes; null: not stated."""
    offset: int
    """Number of bytes that the server keeps; the next part starts here."""
    max_part_bytes: int
    """Largest part that the server accepts, in bytes."""
    created_at: datetime
    """Time of creation."""
    expires_at: datetime
    """Time from which the upload can no longer be continued."""
