"""The groups of a release with their weights, for a page."""

from dataclasses import dataclass

from app.releases.coefficients import read_json
from app.releases.http.formats import STORED_NAMES, Part
from app.releases.models import Release
from app.vault.store import ObjectStore


@dataclass(frozen=True, slots=True)
class GroupRow:
    """One group: its values, weight, strength in nats, agreement with the others, and whether it exceeds noise."""

    labels: tuple[str, ...]
    weight: float
    strength: float
    agreement: float
    is_above_noise: bool


@dataclass(frozen=True, slots=True)
class Groups:
    """The columns that make the groups, and the groups by weight, then by strength; the largest come first."""

    columns: tuple[str, ...]
    rows: tuple[GroupRow, ...]


def read_groups(store: ObjectStore, release: Release) -> Groups | None:
    """Read the groups; None if the release has none, or too many numbers for a page."""
    document = read_json(store, release, STORED_NAMES[Part.GROUPS]["json"])
    if document is None:
        return None
    arrays = document["blocks"][0]["arrays"]
    names = ("labels", "weight", "strength", "agreement", "above_noise")
    rows = [
        GroupRow(tuple(map(str, labels)), weight, strength, agreement, bool(above))
        for labels, weight, strength, agreement, above in zip(*(arrays[name] for name in names), strict=True)
    ]
    rows.sort(key=lambda row: (-row.weight, -row.strength))
    return Groups(tuple(map(str, arrays["values"])), tuple(rows))
