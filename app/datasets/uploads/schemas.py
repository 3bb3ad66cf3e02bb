"""Bodies of the uploads' endpoints."""

from datetime import datetime
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from app.http.requests.bodies import Body

_ANNOUNCED: dict[str, Any] = {
    "media_type": "text/csv",
    "length": 5_368_709_120,
    "digest": "sha-256=:X48E9qOokqqrvdts8nOJRJN3OWDUoyWxBf7kbu9DBPE=:",
}


class UploadBody(Body):
    """What will be uploaded. ``digest`` has the form of Content-Digest; the worker checks it against the whole."""

    model_config = ConfigDict(json_schema_extra={"examples": [_ANNOUNCED]})

    media_type: Annotated[str, Field(max_length=200)]
    length: Annotated[int, Field(ge=0)] | None = None
    digest: Annotated[str, Field(max_length=1000)] | None = None


class UploadView(BaseModel):
    """An upload under way. ``offset`` is how many bytes are kept, which is where the next part begins."""

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
    dataset_id: str
    media_type: str
    length: int | None
    offset: int
    max_part_bytes: int
    created_at: datetime
    expires_at: datetime
