"""Declarations, terms of every kind and rows for tests of designs."""

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from app.inference.core.designs import Feature, Fourier, Interaction, Network, Polynomial, Spline
from app.inference.core.designs.network import Layer
from app.inference.core.facts import Column, DeclaredFacts
from app.inference.core.row_source import PRESENT

COLUMNS: Final = (
    Column("age", "integer", 20.0, 80.0),
    Column("hours", "real", 0.0, 100.0),
    Column("sex", "categorical", categories=("F", "M")),
    Column("job", "categorical", categories=("a", "b", "c")),
    Column("smoker", "binary"),
    Column("ill", "binary"),
    Column("cost", "real", -50.0, 250.0),
    Column("visits", "integer", 0.0, 40.0),
    Column("fixed", "real", 3.0, 3.0),
)
LAYERS: Final = (
    Layer(((0.7, -1.2, 0.3, 1.1), (2.0, 0.1, -0.4, 0.6), (0.2, 0.9, 1.5, -2.0)), (0.1, -0.3, 0.0), "tanh"),
    Layer(((1.0, -1.0, 0.5), (0.4, 0.8, -1.7)), (0.2, 0.5), "sigmoid"),
)
TERMS: Final[dict[str, tuple[Feature, ...]]] = {
    "numbers": (Interaction(("age", "hours")),),
    "number x category": (Interaction(("age", "job")),),
    "categories": (Interaction(("sex", "job")),),
    "category x flag": (Interaction(("job", "smoker")),),
    "four": (Interaction(("age", "hours", "job", "smoker")),),
    "spline x category": (Interaction((Spline("age", 4), "job")),),
    "curves": (Interaction((Polynomial("age", 3), "smoker", Spline("hours", 4, (30.0,)))),),
    "spline x number": ("hours", Spline("age", 5), Interaction(("hours", Spline("age", 5)))),
    "polynomial": (Polynomial("age", 5),),
    "spline": (Spline("age", 6),),
    "knots": (Spline("hours", 5, (10.0, 45.0)),),
    "cubic": (Spline("hours", 3),),
    "fourier": (Fourier(("age", "hours", "job"), 12, 0.7, 7),),
    "network": (Network(("age", "hours", "job"), LAYERS),),
    "capped": (Network(("age",), (Layer(((3.0,), (-1.5,)), (0.5, 0.2), "relu-capped"),)),),
    "all": (
        "age",
        "sex",
        "smoker",
        Interaction(("age", "sex")),
        Interaction(("sex", "job")),
        Interaction((Spline("hours", 4), "sex")),
        Spline("hours", 5),
        Fourier(("age", "hours"), 4, 1.0, 1),
        Network(("age", "hours", "job"), LAYERS),
    ),
}
"""Features by name; each kind of term, alone and together."""


def make_facts(slots: int = 100, rows_per_unit: int = 1, sensitivity: Any = "private") -> DeclaredFacts:
    """Declare the table; a unit of several rows is a person."""
    unit: dict[str, Any] = {"kind": "row"}
    if rows_per_unit > 1:
        unit = {"kind": "column", "column": "person", "max_rows": rows_per_unit}
    return DeclaredFacts(COLUMNS, slots, unit, sensitivity, 1e-6)


def draw_table(rng: np.random.Generator, n: int) -> dict[str, NDArray[Any]]:
    """Draw a gathered table of ``n`` present rows within the declarations."""
    table: dict[str, NDArray[Any]] = {PRESENT: np.ones(n, dtype=np.uint8)}
    for column in COLUMNS:
        if column.type == "categorical":
            table[column.name] = rng.integers(0, len(column.categories), n).astype(np.uint16)
        elif column.type == "binary":
            table[column.name] = rng.integers(0, 2, n).astype(np.float64)
        else:
            assert column.lower is not None
            assert column.upper is not None
            values = rng.uniform(column.lower, column.upper, n)
            table[column.name] = np.rint(values) if column.type == "integer" else values
    return table
