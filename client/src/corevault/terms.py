"""Terms of a model: features that are functions of declared columns.

Each function makes the JSON of one term, for the ``features`` of a model. Formulas make the
same terms from ``a:b``, ``poly(a, 3)`` and ``bs(a, df=4)``. The server computes terms from the declaration and from the
numbers in the request alone. So knots and weights must not be computed from private rows.
"""

from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any

import numpy as np

from corevault._arguments import describe
from corevault.errors import InvalidArgument, WrongType

Term = dict[str, Any]
"""The JSON of a term."""
_KINDS = ("interaction", "polynomial", "spline", "fourier", "network")


def interaction(*members: str | Mapping[str, Any]) -> Term:
    """The products of 2 to 4 ``members``.

    Each is a column of numbers, flags or categories, or a polynomial or spline of a column.

    >>> interaction("age", "sex")
    {'interaction': ['age', 'sex']}
    >>> interaction(spline("age", 4), "sex")
    {'interaction': [{'spline': 'age', 'df': 4}, 'sex']}
    """
    if not members or not all(isinstance(each, str) or _find_curve(each) for each in members):
        raise InvalidArgument(
            "An interaction needs names of columns, polynomials or splines, such as interaction('age', 'sex')."
        )
    return {"interaction": [each if isinstance(each, str) else dict(each) for each in members]}


def polynomial(column: str, degree: int) -> Term:
    """Polynomials of ``column`` up to ``degree``, which are orthogonal on its declared bounds (Legendre).

    >>> polynomial("age", 3)
    {'polynomial': 'age', 'degree': 3}
    """
    return {"polynomial": column, "degree": degree}


def spline(column: str, df: int | None = None, *, knots: Sequence[float] | None = None) -> Term:
    """A cubic spline of ``column`` with ``df`` design columns: 3, and one for each knot.

    ``knots`` are in the column's units. Without them, they are equally spaced in the declared bounds. Take them from
    the codebook, not from private rows. The design leaves out the first B-spline, because all sum to the intercept.

    >>> spline("age", knots=[30, 50])
    {'spline': 'age', 'knots': [30.0, 50.0]}
    """
    term: Term = {"spline": column} | ({} if df is None else {"df": df})
    return term if knots is None else {**term, "knots": [float(knot) for knot in knots]}


def fourier(columns: Sequence[str], units: int, *, length: float = 1.0, draw: int = 0) -> Term:
    """``units`` random Fourier features of ``columns``, for a smooth function of all of them.

    ``length`` is the distance over which the function varies, in design coordinates: bounds are −1 and 1. ``draw`` is
    the public ``seed`` of the request: it selects the frequencies, which the release states, and no noise.

    >>> fourier(["age", "hours"], units=50, draw=7)
    {'fourier': ['age', 'hours'], 'units': 50, 'length': 1.0, 'seed': 7}
    """
    return {"fourier": _read_names(columns), "units": units, "length": length, "seed": draw}


def network(columns: Sequence[str], layers: Sequence[Mapping[str, Any]]) -> Term:
    """The outputs of a feed-forward network with weights that you state.

    Each layer has ``weights`` ``(k, d)``, ``bias`` ``(k,)`` and an ``activation``: ``tanh``, ``sigmoid`` or
    ``relu-capped``. They are lists or arrays. Inputs are design coordinates: declared bounds are −1 and 1. Fit the
    weights to public data only: the guarantee does not cover them.

    >>> term = network(["age"], [{"weights": [[2.0]], "bias": [0.5], "activation": "tanh"}])
    >>> term["layers"][0]["weights"]
    [[2.0]]
    """
    if isinstance(layers, Mapping | str) or not all(isinstance(layer, Mapping) for layer in layers):
        raise WrongType(f"layers must be a list of mappings with weights, bias and activation; {describe(layers)}.")
    stated = [{name: _to_lists(value) for name, value in layer.items()} for layer in layers]
    return {"network": _read_names(columns), "layers": stated}


def list_columns(feature: object) -> tuple[str, ...]:
    """The columns that a feature reads: a name, or a term. Raises ``WrongType`` for anything else."""
    if isinstance(feature, str):
        return (feature,)
    if isinstance(feature, Mapping):
        for kind in _KINDS:
            if kind in feature:
                named = feature[kind]
                return (named,) if isinstance(named, str) else tuple(chain.from_iterable(map(list_columns, named)))
    raise WrongType(
        f"A feature is the name of a column or a term, such as interaction('age', 'sex'); {describe(feature)}."
    )


def _find_curve(member: object) -> bool:
    """Whether a member of an interaction is a polynomial or a spline."""
    return isinstance(member, Mapping) and ("polynomial" in member or "spline" in member)


def _read_names(columns: Sequence[str]) -> list[str]:
    if isinstance(columns, str):
        raise WrongType("columns must be a list of names, not one name.")
    names = list(columns)
    if not names or not all(isinstance(name, str) for name in names):
        raise InvalidArgument("A term needs names of columns, such as interaction('age', 'sex').")
    return names


def _to_lists(value: Any) -> Any:
    return value if isinstance(value, str) else np.asarray(value, dtype=np.float64).tolist()
