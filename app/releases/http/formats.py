"""The formats of the parts of a release that are served as bytes."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Final

MEDIA_TYPES: Final[Mapping[str, str]] = {
    "json": "application/json",
    "csv": "text/csv",
    "parquet": "application/vnd.apache.parquet",
    "npz": "application/x-npz",
}
"""Format -> media type, in the server's order of preference."""


class Part(StrEnum):
    """A part of a release that is served as bytes, in several formats."""

    POINTS = "points"
    BELIEF = "belief"
    GROUPS = "groups"


STORED_NAMES: Final[Mapping[Part, Mapping[str, str]]] = {
    Part.POINTS: {name: name for name in MEDIA_TYPES},
    Part.BELIEF: {name: f"belief.{name}" for name in ("json", "npz", "parquet")},
    Part.GROUPS: {name: f"groups.{name}" for name in ("json", "npz", "parquet")},
}
"""Part -> format -> name of the representation, as in the digests of a certificate. Formats are in order of preference.

A release of an earlier version has points only.
"""
STORED_MEDIA_TYPES: Final[Mapping[str, str]] = {
    name: MEDIA_TYPES[of_format] for names in STORED_NAMES.values() for of_format, name in names.items()
}
"""Name of a representation -> media type."""
