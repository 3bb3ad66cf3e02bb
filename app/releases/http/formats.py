"""The formats of a release's points."""

from collections.abc import Mapping
from typing import Final

MEDIA_TYPES: Final[Mapping[str, str]] = {
    "json": "application/json",
    "csv": "text/csv",
    "parquet": "application/vnd.apache.parquet",
    "npz": "application/x-npz",
}
"""Format -> media type, in the server's order of preference."""
