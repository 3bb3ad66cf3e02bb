"""Releases to try the client with. They need no server; their points are generated."""

from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, ndtri, pdtr

from corevault._arguments import describe
from corevault._spread import spread_points
from corevault.belief import Belief, Block
from corevault.errors import InvalidArgument, WrongType
from corevault.pseudocoreset import Pseudocoreset
from corevault.replies.release import Release

Array = NDArray[np.float64]
_SIZE, _WEIGHT = 30, 40.0
_DESIGN: Final = (
    {"name": "age", "source": "age", "transform": {"kind": "affine", "type": "real", "center": 50.0, "scale": 30.0}},
    {
        "name": "smoker",
        "source": "smoker",
        "transform": {"kind": "affine", "type": "binary", "center": 0.5, "scale": 0.5},
    },
    {
        "name": "sex=male",
        "source": "sex",
        "transform": {"kind": "indicator", "value": "male", "reference": "female"},
    },
    {"name": "intercept", "transform": {"kind": "constant", "value": 1}},
)
_AFFINE: Final = {"kind": "affine", "center": 120.0, "scale": 60.0}
_INDEX: Final = {"kind": "index", "categories": ["home", "ward", "clinic"]}


def example(family: str = "logistic-regression") -> Pseudocoreset:
    """A pseudocoreset of a model ``family``, as ``client.releases.download`` would return it.

    Its 30 points are always the same. Its design has ``age``, ``smoker``, ``sex=male`` and an intercept.

    >>> from corevault import example
    >>> example("poisson-regression")
    <Pseudocoreset rel_example: 30 points of poisson-regression, calibrated, 4 design columns>

    Raises ``InvalidArgument`` for a family without an example.
    """
    if not isinstance(family, str):
        raise WrongType(f"family must be text such as 'logistic-regression'; {describe(family)}.")
    if family not in _MODELS:
        raise InvalidArgument(f"family must be one of {', '.join(_MODELS)}.")
    members, draw = _MODELS[family]
    points = spread_points(_SIZE, 7)
    design = _DESIGN[:1] if family == "gaussian-mean" else _DESIGN
    u = _make_rows(points)[:, : len(design)]
    model: dict[str, Any] = {"family": family, "features": ["age", "smoker", "sex"], "prior": {"scale": 1.0}}
    model |= members
    body: dict[str, Any] = {
        "id": "rel_example",
        "dataset_id": "ds_example",
        "method": "dp-psvi-surrogate",
        "size": _SIZE,
    }
    body |= {"model": model, "design": list(design), "reliability": {"grade": "calibrated", "reasons": []}}
    release = Release.from_json(body | {"cost": {"epsilon": 1.0, "delta": 1e-6}})
    weight = _WEIGHT * (0.5 + points[:, 3])
    core = Pseudocoreset(release, u, draw(points[:, 4:], u), weight)
    return Pseudocoreset(release, u, core.y, weight, _make_belief(core))


def _make_rows(points: Array) -> Array:
    smoker, male = np.round(points[:, 1]), np.round(points[:, 2])
    return np.column_stack([2.0 * points[:, 0] - 1.0, 2.0 * smoker - 1.0, male, np.ones(len(points))])


def _predict(u: Array) -> Array:
    eta: Array = u @ np.array([0.8, 0.5, -0.3, 0.2])
    return eta


def _make_truths(points: Array, u: Array) -> Array:
    truths: Array = (points[:, 0] < expit(_predict(u))).astype(np.float64)
    return truths


def _make_counts(points: Array, u: Array) -> Array:
    rate = np.exp(_predict(u))
    counts: Array = np.sum([points[:, 0] > pdtr(count, rate) for count in range(40)], axis=0).astype(np.float64)
    return counts


def _make_reals(points: Array, u: Array) -> Array:
    targets: Array = 120.0 + 60.0 * (0.3 * _predict(u) + 0.2 * ndtri(points[:, 0]))
    return targets


def _make_classes(points: Array, u: Array) -> Array:
    scores = np.outer(_predict(u), [0.0, 1.0, -1.0]) - np.log(-np.log(points))
    classes: Array = scores.argmax(axis=1).astype(np.float64)
    return classes


def _make_nothing(_: Array, __: Array) -> None:
    return None


_Draw = Callable[[Array, Array], Array | None]
_MODELS: Final[Mapping[str, tuple[Mapping[str, Any], _Draw]]] = {
    "logistic-regression": ({"target": "ill"}, _make_truths),
    "probit-regression": ({"target": "ill"}, _make_truths),
    "poisson-regression": ({"target": "visits"}, _make_counts),
    "negative-binomial-regression": ({"target": "visits", "dispersion": 0.5}, _make_counts),
    "linear-regression": ({"target": "pressure", "target_transform": _AFFINE}, _make_reals),
    "student-t-regression": (
        {"target": "pressure", "target_transform": _AFFINE, "degrees_of_freedom": 4.0},
        _make_reals,
    ),
    "multinomial-logistic": ({"target": "place", "target_transform": _INDEX}, _make_classes),
    "gaussian-mean": ({"features": ["age"], "noise_scale": 0.6}, _make_nothing),
}


def _make_belief(core: Pseudocoreset) -> Belief:
    """Noise with a third of the posterior's standard deviations."""
    fit = core.laplace()
    arrays = {"names": np.array(fit.names), "mean": np.zeros(len(fit.names)), "covariance": fit.covariance / 9.0}
    return Belief((Block("noise", "normal", arrays),))
