"""Releases: the list, and one release with its certificate, coefficients and points."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, Final

from fastapi import Depends, Query, Request
from markupsafe import Markup
from starlette.responses import Response

from app.auth.caller import Caller
from app.dashboard.certificates import describe_certificate
from app.dashboard.charts.intervals import draw_intervals
from app.dashboard.charts.pairs import PairPlot, draw_pairs
from app.dashboard.charts.weights import Profile, draw_weights, summarise
from app.dashboard.pages.release_files import find_certificate, list_files
from app.dashboard.paging import read_page
from app.dashboard.registry_entries import write_entry
from app.dashboard.rendering import find_origin, render
from app.dashboard.routing import make_page_router
from app.dashboard.visitors import MaybeVisitor
from app.datasets import access
from app.datasets import repository as datasets
from app.datasets.models import Dataset
from app.db import ReadSession
from app.errors import CorevaultError
from app.http.requests.pagination import PageRequest, make_page
from app.inference.post.laplace import LaplaceDiverged
from app.recently_used import LeastRecentlyUsed
from app.releases import service
from app.releases.beliefs import BlockSummary, summarise_belief
from app.releases.coefficients import (
    RATIO_FAMILIES,
    Coefficient,
    Points,
    compute_coefficients,
    convert_points,
    read_points,
)
from app.releases.groups import Groups, read_groups
from app.releases.http.formats import STORED_NAMES, Part
from app.releases.models import Release
from app.releases.proof import check_certificate
from app.services import Services, Shared
from app.vault.signing import KeyRing

ROWS: Final = 50
MOST_COLUMNS: Final = 40
MOST_POINTS: Final = 200
MOST_WEIGHTS: Final = 5_000
CACHED: Final = 128
CALIBRATED, CENTRE_ONLY, NOT_USABLE = "calibrated", "centre-only", "not-usable"
GRADES: Final = {
    CALIBRATED: "Calibrated: no check failed. Intervals and predictions may be used, with the stated noise.",
    CENTRE_ONLY: "Centre only: predictions and rankings may be used, intervals may not.",
    NOT_USABLE: "Not usable: neither centre nor intervals may be used.",
}
router = make_page_router()


@dataclass(frozen=True, slots=True)
class Numbers:
    """The coefficients and points that a page shows; empty where they are too many."""

    coefficients: list[tuple[Coefficient, Markup]]
    points: Points | None
    hides_points: bool
    weights: Profile | None = None
    weight_chart: Markup | None = None
    pairs: PairPlot | None = None
    blocks: list[BlockSummary] = field(default_factory=list)
    groups: Groups | None = None


_NUMBERS: Final = LeastRecentlyUsed[tuple[str, str], Numbers](CACHED)
"""The numbers of the releases that were shown last. A release never changes, and reading a public one needs no key."""


@router.get("/releases")
def show_releases(
    request: Request,
    services: Shared,
    visitor: MaybeVisitor,
    paging: Annotated[PageRequest, Depends(read_page(ROWS))],
    dataset_id: Annotated[str, Query(max_length=200)] = "",
) -> Response:
    """List the releases that the visitor may read; without a session the public ones."""
    with services.database.read() as session:
        before, limit = paging.after_id("rel"), paging.limit + 1
        found = service.list_page(session, visitor, dataset_id=dataset_id or None, before=before, limit=limit)
        names = _read_names(session, visitor, found)
    page = make_page(found, paging, lambda release: release.id, lambda release: (release, find_grade(release.body)))
    query = f"dataset_id={dataset_id}" if dataset_id.isascii() and dataset_id.isidentifier() else ""
    return render(
        request,
        "releases",
        visitor,
        twins=(f"/v1/releases?{query}" if query else "/v1/releases",),
        rows=page.items,
        names=names,
        next_cursor=page.next_cursor,
        is_first=paging.after is None,
        query=query,
    )


@router.get("/releases/{release_id}")
def show_release(request: Request, services: Shared, visitor: MaybeVisitor, release_id: str) -> Response:
    """Show a release; a public one needs no session."""
    with services.database.read() as session:
        release = service.find_readable(session, visitor, release_id)
        dataset = datasets.get(session, release.dataset_id)
        assert dataset is not None
        ring = KeyRing(key.public_key for key in services.verification_keys if key.use == "release")
        checks = [*check_certificate(session, ring, release, private=dataset.sensitivity == "private")]
    grade = find_grade(release.body)
    numbers = _NUMBERS.get((release.id, grade))
    if numbers is None:
        numbers = _read_numbers(services, release, dataset, grade)
        _NUMBERS.put((release.id, grade), numbers)
    statement = release.certificate.get("statement", {})
    root = f"/v1/releases/{release_id}"
    return render(
        request,
        "release",
        visitor,
        twins=(root,),
        release=release,
        body=release.body,
        certificate=release.certificate,
        rules=describe_certificate(statement),
        checks=checks,
        grade=grade,
        grade_in_words=GRADES.get(grade, "The method makes no statement about its reliability."),
        reasons=_find_reasons(release.body),
        numbers=numbers,
        has_points=STORED_NAMES[Part.POINTS]["json"] in release.representations,
        has_groups=STORED_NAMES[Part.GROUPS]["json"] in release.representations,
        ratio=RATIO_FAMILIES.get(str(release.body["model"]["family"])),
        downloads=list(list_files(release)),
        statement=find_certificate(release),
        entry=write_entry(release, find_origin(request)),
        diagnostics=_list_diagnostics(release.body.get("diagnostics", {})),
    )


def _read_names(session: ReadSession, visitor: Caller | None, found: Sequence[Release]) -> dict[str, str]:
    """Map the datasets of releases to their names, if the visitor may see them."""
    if visitor is None:
        return {}
    return datasets.read_names(session, {each.dataset_id for each in found}, access.choose_key_filter(visitor))


def find_grade(body: dict[str, Any]) -> str:
    """Find the grade of a release; empty if the method states none."""
    reliability = body.get("reliability")
    return str(reliability.get("grade", "")) if isinstance(reliability, dict) else ""


def _find_reasons(body: dict[str, Any]) -> list[dict[str, str]]:
    reliability = body.get("reliability")
    return list(reliability.get("reasons", ())) if isinstance(reliability, dict) else []


def _read_numbers(services: Services, release: Release, dataset: Dataset, grade: str) -> Numbers:
    """Read the points, and compute the coefficients of a release that may be used.

    A release of an earlier version may have a model that is not known any more. Its coefficients are left out.
    """
    points = read_points(services.areas.released, release)
    coefficients: list[Coefficient] | None = None
    if grade != NOT_USABLE:
        try:
            coefficients = compute_coefficients(services.areas.released, release, dataset, points)
        except (CorevaultError, LaplaceDiverged):
            coefficients = None
    found, design = coefficients or [], release.body.get("design", ())
    too_many = points is None or len(points.columns) > MOST_COLUMNS or len(points.rows) > MOST_POINTS
    listed = list(zip(found, draw_intervals(found), strict=True))
    weights = _list_weights(points)
    return Numbers(
        listed,
        None if points is None or too_many else convert_points(points, design),
        too_many,
        weights=summarise(weights) if weights else None,
        weight_chart=draw_weights(weights) if weights else None,
        pairs=None if points is None else draw_pairs(points.columns, points.rows, design),
        blocks=summarise_belief(services.areas.released, release),
        groups=read_groups(services.areas.released, release),
    )


def _list_weights(points: Points | None) -> list[float]:
    """List the weights; empty if there are none, too many for a chart, or one that is not finite."""
    if points is None or "weight" not in points.columns or len(points.rows) > MOST_WEIGHTS:
        return []
    place = points.columns.index("weight")
    weights = [row[place] for row in points.rows]
    return weights if all(map(math.isfinite, weights)) else []


def _list_diagnostics(diagnostics: dict[str, Any]) -> list[tuple[str, Any]]:
    """List the diagnostics that are one value."""
    return [(name, value) for name, value in diagnostics.items() if isinstance(value, bool | int | float | str)]
