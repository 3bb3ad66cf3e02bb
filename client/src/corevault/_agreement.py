"""Checks that several releases are of one model."""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from corevault._arguments import describe
from corevault.errors import InvalidArgument, WrongType
from corevault.pseudocoreset import Pseudocoreset
from corevault.replies.release import Release

_DECLARED: Final = ("type", "reference")
"""Members of a transform that state the declaration of its column."""
MERGED: Final = "merge"
"""The method of points that were merged from several releases."""
_MEMBERS = (
    "target",
    "target_transform",
    "prior",
    "noise_scale",
    "degrees_of_freedom",
    "dispersion",
    "noise_covariance",
)


def list_releases(releases: object, verb: str) -> list[Pseudocoreset]:
    """At least two ``releases`` of the same model, design and prior.

    ``verb`` names the call in messages. Raises ``WrongType`` or ``InvalidArgument`` for others.
    """
    if not isinstance(releases, Iterable) or isinstance(releases, str | bytes | Mapping):
        raise WrongType(f"releases must be a list of downloaded releases; {describe(releases)}.")
    cores = list(releases)
    if other := [each for each in cores if not isinstance(each, Pseudocoreset)]:
        raise WrongType(f"Pass downloaded releases, as from client.releases.download; {describe(other[0])}.")
    if len(cores) < 2:
        raise InvalidArgument("Pass at least two releases; one has core.posterior().")
    first = cores[0].release
    for core in cores[1:]:
        if differing := _find_difference(first, core.release):
            raise InvalidArgument(
                f"The releases {first.id} and {core.release.id} differ in their {differing}; {verb} releases of the "
                "same model on tables with the same declaration."
            )
    return cores


def _find_difference(first: Release, second: Release) -> str:
    """The first part of the model in which two releases differ; empty if they agree."""
    parts: list[tuple[str, Any, Any]] = [
        ("model family", first.family, second.family),
        ("design", _describe_design(first, second), _describe_design(second, first)),
        *((name, getattr(first.model, name), getattr(second.model, name)) for name in _MEMBERS),
    ]
    return next((name for name, one, other in parts if one != other), "")


def _describe_design(release: Release, other: Release) -> list[tuple[str, str | None, dict[str, Any]]]:
    """The design, with the declared members that only ``other`` states; releases of version 0.1.0 state none."""
    theirs = {column.name: column.transform for column in other.design}
    return [
        (
            column.name,
            column.source,
            {name: value for name, value in theirs.get(column.name, {}).items() if name in _DECLARED}
            | dict(column.transform),
        )
        for column in release.design
    ]


def find_datasets(core: Pseudocoreset) -> tuple[str, ...]:
    """The ids of the datasets behind these points."""
    return _find(core, "datasets", core.release.dataset_id)


def find_releases(core: Pseudocoreset) -> tuple[str, ...]:
    """The ids of the releases behind these points."""
    return _find(core, "releases", core.release.id)


def _find(core: Pseudocoreset, name: str, alone: str) -> tuple[str, ...]:
    if core.release.method != MERGED:
        return (alone,)
    return tuple((core.release.diagnostics or {})[name])
