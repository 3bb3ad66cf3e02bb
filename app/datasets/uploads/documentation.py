"""The parts of the OpenAPI document that describe bodies and headers of uploads."""

from typing import Any

from app.datasets.uploads import announcements, tus

_FILES = {
    announcements.CSV: "age,hours,sex,income_gt_50k\r\n39,40,Male,0\r\n50,13,Female,1\r\n",
    announcements.PARQUET: "PAR1…",
    announcements.ARROW: "ARROW…",
}
_BYTES: dict[str, Any] = {"schema": {"type": "string", "format": "binary"}, "example": "…"}


def _header(description: str, schema: dict[str, Any], example: object) -> dict[str, Any]:
    return {"description": description, "schema": schema, "example": example}


def _parameter(name: str, description: str, schema: dict[str, Any], example: object, **more: Any) -> dict[str, Any]:
    return {"name": name, "in": "header", **_header(description, schema, example), **more}


_SIZE: dict[str, Any] = {"type": "integer", "minimum": 0}
_DIGEST = _parameter(
    "Content-Digest",
    "RFC 9530, with a sha-256 digest of this body. A body with another digest is refused.",
    {"type": "string"},
    "sha-256=:X48E9qOokqqrvdts8nOJRJN3OWDUoyWxBf7kbu9DBPE=:",
)
_TUS = _parameter(
    "Tus-Resumable",
    "Version of the tus protocol, sent by its clients only.",
    {"type": "string", "enum": [tus.VERSION]},
    tus.VERSION,
)

CONTENT: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "description": "The file without any encoding. CSV is UTF-8 with a header; columns come in any order.",
        "content": {
            media_type: {"schema": {"type": "string", "contentMediaType": media_type}, "example": example}
            for media_type, example in sorted(_FILES.items())
        },
    },
    "parameters": [_DIGEST],
}
CREATION: dict[str, Any] = {
    "requestBody": {"required": False, "description": "Required unless the headers of tus have the same content."},
    "parameters": [
        _TUS,
        _parameter("Upload-Length", "With tus: the size of the file in bytes.", _SIZE, 5_368_709_120),
        _parameter(
            "Upload-Defer-Length",
            "With tus, in place of Upload-Length: a later part has the header Upload-Length.",
            {"type": "string", "enum": ["1"]},
            "1",
        ),
        _parameter(
            "Upload-Metadata",
            "With tus: 'filetype' with the media type, or 'filename' with the suffix .csv, .parquet or .arrows. Values "
            "are in base64. Other keys are ignored, and no file name is stored.",
            {"type": "string"},
            "filetype dGV4dC9jc3Y=",
        ),
    ],
}
PART: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "description": f"The next bytes of the file. With tus the media type is {tus.PART_MEDIA_TYPE}, otherwise any.",
        "content": {"application/octet-stream": _BYTES, tus.PART_MEDIA_TYPE: _BYTES},
    },
    "parameters": [
        _DIGEST,
        _parameter(
            "Upload-Offset",
            "The number of bytes that are stored so far; the body continues there.",
            _SIZE,
            67_108_864,
            required=True,
        ),
        _TUS,
        _parameter(
            "Upload-Length",
            "With tus: the size of the file in bytes, if its upload was created without it.",
            _SIZE,
            5_368_709_120,
        ),
    ],
}
OFFSET: dict[str, Any] = {
    "headers": {"Upload-Offset": _header("The number of bytes that are stored.", _SIZE, 67_108_864)}
}
