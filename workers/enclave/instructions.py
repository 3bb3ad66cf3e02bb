"""The worker's instructions to the ingesting child.

They are sent on standard input, never as arguments or in the environment.
"""

import base64
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from app.inference.core.facts import Column
from workers.enclave.registers import SeriesOrder, read_order
from workers.enclave.table_format import Layout, make_layout


@dataclass(frozen=True, slots=True)
class Part:
    """A sealed part of the upload.

    Attributes:
        object_name: of the sealed object.
        bound_to: the id that its chunks are bound to.
        size: of the plaintext, in bytes.
        key: of the part.
    """

    object_name: str
    bound_to: str
    size: int
    key: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class Instructions:
    """One ingestion, with keys of this content only; the child never gets the opening key."""

    parent: int
    incoming_url: str
    vault_url: str
    parts: tuple[Part, ...]
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
    expected_sha256: bytes | None = field(repr=False)
    content_key: bytes = field(repr=False)
    fingerprint_key: bytes = field(repr=False)
    series: SeriesOrder | None = None

    @property
    def layout(self) -> Layout:
        return make_layout(self.columns, self.slots, self.unit)

    def to_json(self) -> str:
        return json.dumps(asdict(self), default=lambda key: base64.b64encode(key).decode("ascii"))

    @classmethod
    def from_json(cls, text: str) -> "Instructions":
        """Read the output of :meth:`to_json`.

        Raises:
            ValueError, TypeError, KeyError: for another text.
        """
        members: dict[str, Any] = json.loads(text)
        for name in ("content_key", "fingerprint_key"):
            members[name] = _bytes(members[name])
        if members["expected_sha256"] is not None:
            members["expected_sha256"] = _bytes(members["expected_sha256"])
        if members["series"] is not None:
            members["series"] = read_order(members["series"], _bytes(members["series"]["key"]))
        members["parts"] = tuple(Part(**{**part, "key": _bytes(part["key"])}) for part in members["parts"])
        members["columns"] = tuple(
            Column(**{**column, "categories": tuple(column["categories"])}) for column in members["columns"]
        )
        return cls(**members)


def _bytes(text: str) -> bytes:
    return base64.b64decode(text, validate=True)
