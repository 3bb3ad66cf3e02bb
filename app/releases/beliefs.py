"""Short descriptions of the blocks of a release's belief, for a page."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from app.releases.coefficients import read_json
from app.releases.http.formats import STORED_NAMES, Part
from app.releases.models import Release
from app.vault.store import ObjectStore

FAMILIES: Final = {
    "normal": "A normal distribution.",
    "gamma": "A gamma distribution.",
    "normal-gamma": "A normal distribution of coefficients whose variance is in proportion to a gamma distribution's.",
    "normal-inverse-wishart": "The mean and the covariance of a normal distribution of rows.",
    "dirichlet": "Distributions over the same values, one for each name.",
    "particles": "Weighted draws from a distribution.",
    "normal-rows": "The rows of a matrix, which are independent and normal.",
}
MOST_NAMES: Final = 40


@dataclass(frozen=True, slots=True)
class BlockSummary:
    """One block: its name and family, the family in words, its first names, and its arrays with their shapes."""

    name: str
    family: str
    words: str
    names: tuple[str, ...]
    arrays: tuple[str, ...]


def summarise_belief(store: ObjectStore, release: Release) -> list[BlockSummary]:
    """Summarise the blocks; empty if the release has no belief, or one that is too large for a page."""
    document = read_json(store, release, STORED_NAMES[Part.BELIEF]["json"])
    return [] if document is None else [_summarise(block) for block in document["blocks"]]


def _summarise(block: Mapping[str, Any]) -> BlockSummary:
    arrays = dict(block["arrays"])
    names = tuple(map(str, arrays.pop("names")[:MOST_NAMES]))
    shapes = tuple(f"{name} ({_describe_shape(values)})" for name, values in arrays.items())
    return BlockSummary(block["name"], block["family"], FAMILIES.get(block["family"], ""), names, shapes)


def _describe_shape(values: list[Any]) -> str:
    return f"{len(values)} x {len(values[0])}" if values and isinstance(values[0], list) else str(len(values))
