"""What the worker tells the ingesting child on its standard input: never arguments, never the environment."""

import base64
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from app.inference.protocol import Column
from workers.enclave.table_format import Layout, layout


@dataclass(frozen=True, slots=True)
class Instructions:
    """One ingestion, with keys of this content only: the opening key stays with the worker."""

    parent: int
    storage_url: str
    upload_object: str
    upload_id: str
    media_type: str
    table_object: str
    dataset_id: str
    version: int
    columns: tuple[Column, ...]
    slots: int
    unit: Mapping[str, Any]
    memory_bytes: int
    cpu_seconds: int
    rows: int
    decoded_bytes: int
    upload_key: bytes = field(repr=False)
    content_key: bytes = field(repr=False)
    fingerprint_key: bytes = field(repr=False)

    @property
    def layout(self) -> Layout:
        return layout(self.columns, self.slots, self.unit)

    def to_json(self) -> str:
        return json.dumps(asdict(self), default=lambda key: base64.b64encode(key).decode("ascii"))

    @classmethod
    def from_json(cls, text: str) -> "Instructions":
        """The inverse of :meth:`to_json`.

        Raises:
            ValueError, TypeError, KeyError: for anything else.
        """
        members: dict[str, Any] = json.loads(text)
        for name in ("upload_key", "content_key", "fingerprint_key"):
            members[name] = base64.b64decode(members[name], validate=True)
        members["columns"] = tuple(
            Column(**{**column, "categories": tuple(column["categories"])}) for column in members["columns"]
        )
        return cls(**members)
