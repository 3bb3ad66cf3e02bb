"""Coefficients of a release in the table's units, with intervals.

The posterior is the stated one, or else the Laplace approximation given the points. The noise is the covariance that
the release states for the error in the posterior's mean. All of it is public, so it costs nothing.
"""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from app.datasets.facts import make_declared_facts
from app.datasets.models import Dataset
from app.inference.core.design import Design
from app.inference.core.designs import feature_from_json
from app.inference.core.model import Array64
from app.inference.core.plan import ModelSpec, PriorSpec
from app.inference.core.problems import Problem, make_problem, name_parameters
from app.inference.post.laplace import fit_laplace
from app.releases.http.formats import STORED_NAMES, Part
from app.releases.models import Release
from app.vault.store import ObjectStore

MOST_PARAMETERS: Final = 100
"""Largest number of parameters that are fitted here. The client has no such limit."""
MOST_BYTES: Final = 2**21
"""Largest part of a release that is read here."""
NORMAL_95: Final = 1.959963984540054
RATIO_FAMILIES: Final = {
    "logistic-regression": "odds ratio",
    "multinomial-logistic": "odds ratio",
    "poisson-regression": "rate ratio",
    "negative-binomial-regression": "rate ratio",
}
_SETTINGS: Final = ("noise_scale", "degrees_of_freedom", "dispersion", "noise_covariance")


@dataclass(frozen=True, slots=True)
class Interval:
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Coefficient:
    """One parameter in the table's units.

    ``plain`` is the interval of the posterior alone, and ``noise_aware`` that of posterior and noise; it is None if the
    release does not state its noise. ``ratio`` repeats centre and wider interval as ``exp``, for families with a ratio.
    """

    name: str
    centre: float
    plain: Interval
    noise_aware: Interval | None
    ratio: tuple[float, Interval] | None


@dataclass(frozen=True, slots=True)
class Points:
    """The points of a release: names of columns, and rows."""

    columns: tuple[str, ...]
    rows: tuple[tuple[float, ...], ...]


def read_points(store: ObjectStore, release: Release) -> Points | None:
    """Read the points; None if there are too many for a page."""
    document = read_json(store, release, STORED_NAMES[Part.POINTS]["json"])
    if document is None:
        return None
    return Points(tuple(map(str, document["columns"])), tuple(tuple(map(float, row)) for row in document["rows"]))


def convert_points(points: Points, design: Sequence[Mapping[str, Any]]) -> Points:
    """Convert scaled columns to the units of the table. Indicators, terms and the intercept stay as they are."""
    changes = dict[str, tuple[float, float]]()
    for column in design:
        transform = column.get("transform") or {}
        if transform.get("kind") == "affine":
            changes[str(column.get("name"))] = float(transform["center"]), float(transform["scale"])
    moves = [changes.get(name, (0.0, 1.0)) for name in points.columns]
    rows = (
        tuple(center + scale * value for (center, scale), value in zip(moves, row, strict=True)) for row in points.rows
    )
    return Points(points.columns, tuple(rows))


def compute_coefficients(
    store: ObjectStore, release: Release, dataset: Dataset, points: Points | None
) -> list[Coefficient] | None:
    """Compute the coefficients; None if there are too many parameters or the points were not read."""
    problem = make_problem(_read_model(release.body["model"]), make_declared_facts(dataset))
    if problem.model.dimension > MOST_PARAMETERS or points is None:
        return None
    blocks = _read_blocks(store, release)
    mean, covariance = _find_posterior(release, problem, points, blocks)
    noise = _read_covariance(blocks["noise"]) if "noise" in blocks else None
    return _describe(problem, release.body["model"], mean, covariance, noise)


def _read_model(stated: Mapping[str, Any]) -> ModelSpec:
    prior = stated["prior"]
    return ModelSpec(
        family=stated["family"],
        features=tuple(map(feature_from_json, stated["features"])),
        target=stated.get("target"),
        prior=PriorSpec(
            prior["scale"], prior.get("scales") or {}, prior.get("degrees_of_freedom"), prior.get("mean") or {}
        ),
        **{name: stated[name] for name in _SETTINGS if name in stated},
    )


def read_json(store: ObjectStore, release: Release, name: str) -> dict[str, Any] | None:
    stored = release.representations.get(name)
    if stored is None or stored["length"] > MOST_BYTES:
        return None
    with store.open(stored["object"]) as file:
        document: dict[str, Any] = json.loads(file.read())
        return document


def _read_blocks(store: ObjectStore, release: Release) -> dict[str, Mapping[str, Any]]:
    document = read_json(store, release, STORED_NAMES[Part.BELIEF]["json"])
    return {} if document is None else {block["name"]: block["arrays"] for block in document["blocks"]}


def _read_covariance(arrays: Mapping[str, Any]) -> Array64:
    if "covariance" in arrays:
        return np.array(arrays["covariance"], dtype=np.float64)
    return np.diag(np.array(arrays["variance"], dtype=np.float64))


def _find_posterior(
    release: Release, problem: Problem, points: Points, blocks: Mapping[str, Mapping[str, Any]]
) -> tuple[Array64, Array64]:
    stated = release.body.get("posterior") or blocks.get("posterior")
    if stated is not None:
        return np.array(stated["mean"], dtype=np.float64), _read_covariance(stated)
    table = np.array(points.rows, dtype=np.float64).reshape(len(points.rows), len(points.columns))
    width = problem.design.width
    y = table[:, width] if problem.design.target is not None else np.zeros(len(table))
    folded = np.asarray(problem.model.fold(table[:, :width], problem.design.encode_targets(y)), dtype=np.float64)
    start = problem.prior.mean
    laplace = fit_laplace(problem.model, folded, table[:, points.columns.index("weight")], problem.prior, start)
    inverse = np.linalg.inv(laplace.factor)
    return laplace.mean, inverse.T @ inverse


def _describe(
    problem: Problem, stated: Mapping[str, Any], mean: Array64, covariance: Array64, noise: Array64 | None
) -> list[Coefficient]:
    """Convert the parameters and their covariances to the table's units."""
    matrix, shift = _make_transform(problem)
    centre = matrix @ mean + shift
    plain = np.sqrt(np.maximum(np.einsum("ij,jk,ik->i", matrix, covariance, matrix), 0))
    both = None if noise is None else np.einsum("ij,jk,ik->i", matrix, covariance + noise, matrix)
    wide = None if both is None else np.sqrt(np.maximum(both, 0))
    has_ratio = stated["family"] in RATIO_FAMILIES
    names = name_parameters(problem)
    return [
        _make(name, float(centre[i]), float(plain[i]), None if wide is None else float(wide[i]), has_ratio=has_ratio)
        for i, name in enumerate(names)
    ]


def _make(name: str, centre: float, plain: float, wide: float | None, *, has_ratio: bool) -> Coefficient:
    narrow = _make_interval(centre, plain)
    full = None if wide is None else _make_interval(centre, wide)
    widest = full or narrow
    is_intercept = name == "intercept" or name.endswith(":intercept")
    ratio = (_exp(centre), Interval(_exp(widest.low), _exp(widest.high))) if has_ratio and not is_intercept else None
    return Coefficient(name, centre, narrow, full, ratio)


def _make_interval(centre: float, deviation: float) -> Interval:
    return Interval(centre - NORMAL_95 * deviation, centre + NORMAL_95 * deviation)


def _exp(value: float) -> float:
    return math.exp(value) if value < 700 else math.inf


def _make_transform(problem: Problem) -> tuple[Array64, Array64]:
    """Make ``(matrix, shift)``, which map the D parameters to the table's units.

    Columns divide coefficients by their scale, and move the intercept by their centre. Coefficients of terms stay
    in the design's coordinates. A scaled target multiplies by
    its half width. The logarithm of a noise scale moves by the logarithm of it. A mean moves to the column's centre.
    """
    design, dimension = problem.design, problem.model.dimension
    matrix, shift = np.eye(dimension), np.zeros(dimension)
    width = design.width
    for start in range(0, dimension - dimension % width, width):
        block = slice(start, start + width)
        matrix[block, block], shift[block] = _make_block(design, is_mean=problem.design.target is None)
    if design.target_scale is not None:
        half = design.target_scale.half
        matrix[:width, :width] *= half
        shift[:width] *= half
        if design.intercept:
            shift[width - 1] += design.target_scale.center
        shift[width:] += math.log(half)
    return matrix, shift


def _make_block(design: Design, *, is_mean: bool) -> tuple[Array64, Array64]:
    matrix, shift = np.eye(design.width), np.zeros(design.width)
    for place, column in enumerate(design.columns):
        if column.transform["kind"] != "affine":
            continue
        centre, scale = float(column.transform["center"]), float(column.transform["scale"])
        if is_mean:
            matrix[place, place], shift[place] = scale, centre
            continue
        matrix[place, place] = 1 / scale
        if design.intercept:
            matrix[-1, place] = -centre / scale
    return matrix, shift
