"""The privacy unit: whose rows one promise covers."""

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class PrivacyUnit:
    """A row, or all rows (at most ``max_rows``) that share a value of ``column``."""

    kind: Literal["row", "column"]
    column: str | None = None
    max_rows: int | None = None
