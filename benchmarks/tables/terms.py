"""Terms for drawn tables: curves of numbers, interactions and maps of several columns, in place of plain columns."""

from dataclasses import replace
from typing import Final

import numpy as np

from app.inference.core.designs import Feature, Fourier, Interaction, Network, Polynomial, Spline
from app.inference.core.designs.network import Layer
from app.inference.core.facts import Column
from benchmarks.tables.drawn import Drawn

MOST_PARAMETERS: Final = 60
_KEPT: Final = 0.5
"""Share of numbers that stay plain columns."""


def draw_terms(rng: np.random.Generator, drawn: Drawn) -> Drawn | None:
    """Draw terms for the features of ``drawn``; None if its family takes none, or if they make too many columns."""
    case = drawn.case
    if case.spec.target is None:
        return None
    declared = {column.name: column for column in case.facts.columns}
    columns = [declared[name] for name in case.spec.columns if name != case.spec.target]
    usable = [column for column in columns if not column.is_constant and len(column.categories) != 1]
    features: list[Feature] = [_draw_curve(rng, column) for column in columns]
    features += _draw_interactions(rng, usable)
    if usable and rng.random() < 0.3:
        features.append(_draw_map(rng, usable))
    kept = {str(each) for each in features if isinstance(each, str)}
    prior = replace(case.spec.prior, mean={name: at for name, at in case.spec.prior.mean.items() if name in kept})
    made = replace(drawn, case=replace(case, spec=replace(case.spec, features=tuple(features), prior=prior)))
    return made if made.case.problem.model.dimension <= MOST_PARAMETERS else None


def _draw_curve(rng: np.random.Generator, column: Column) -> Feature:
    if column.is_discrete or column.is_constant or rng.random() < _KEPT:
        return column.name
    if rng.random() < 0.4:
        return Polynomial(column.name, int(rng.integers(2, 5)))
    return Spline(column.name, int(rng.integers(3, 8)))


def _draw_interactions(rng: np.random.Generator, usable: list[Column]) -> list[Feature]:
    """Draw up to three interactions of two or three columns with few categories."""
    narrow = [column.name for column in usable if len(column.categories) <= 6]
    found = dict[frozenset[str], Feature]()
    for _ in range(int(rng.integers(0, 4))):
        count = min(len(narrow), int(rng.choice([2, 2, 2, 3])))
        if count >= 2:
            names = tuple(str(name) for name in rng.choice(narrow, count, replace=False))
            found.setdefault(frozenset(names), Interaction(names))
    return list(found.values())


def _draw_map(rng: np.random.Generator, usable: list[Column]) -> Feature:
    """Draw Fourier features or a network of up to three columns."""
    count = min(len(usable), int(rng.integers(1, 4)))
    chosen = [usable[int(place)] for place in rng.choice(len(usable), count, replace=False)]
    names, inputs = tuple(column.name for column in chosen), sum(max(len(c.categories) - 1, 1) for c in chosen)
    if rng.random() < 0.5 or inputs > 20:
        numbers = tuple(column.name for column in chosen if len(column.categories) <= 20)
        return Fourier(numbers or names[:1], int(rng.integers(4, 17)), float(rng.choice([0.3, 1.0])), 1)
    shapes = ((int(rng.integers(2, 9)), inputs), (int(rng.integers(1, 5)), 0))
    hidden = _draw_layer(rng, *shapes[0])
    return Network(names, (hidden, _draw_layer(rng, shapes[1][0], shapes[0][0])))


def _draw_layer(rng: np.random.Generator, units: int, inputs: int) -> Layer:
    weights = rng.normal(0, 1.5 / np.sqrt(inputs), (units, inputs))
    activation = str(rng.choice(["tanh", "sigmoid", "relu-capped"]))
    return Layer(tuple(map(tuple, weights.tolist())), tuple(rng.normal(0, 0.5, units).tolist()), activation)
