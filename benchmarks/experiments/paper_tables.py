"""Tables of the papers' logistic regressions, or replacements.

The papers' files are used if they exist. Two other tables come from installed packages, and two are generated.
"""

from functools import cache

import numpy as np
from scipy.special import expit

from app.inference.core.model import Array64
from benchmarks.adult import SHARED, TEST, TRAIN, load_adult10, require
from benchmarks.cases import Case, make_logistic, narrow
from benchmarks.designs import Rows, draw_synth100k
from benchmarks.tables.real import load

NARROW = 2.0
_BOUNDS = {"phishing": 1.0, "synth_lr": 4.0, "synthetic": 5.0, "election": 16.0}
_FILES = ("phishing", "synth_lr")
_SMALL, _HELD_OUT = 500, 50


def list_small() -> tuple[str, ...]:
    """The names of the small tables: files that exist, or generated rows, and the election."""
    present = tuple(name for name in _FILES if (SHARED / f"{name}.npz").exists())
    return (*(present or ("synthetic",)), "election")


def list_large() -> tuple[str, ...]:
    """The names of the large tables: generated rows, and the census, or else health insurance."""
    return ("synth100k", "adult10" if TRAIN.exists() and TEST.exists() else "insurance9")


def make_small_rows(name: str) -> tuple[Rows, Rows]:
    """Training and held-out rows of a small table.

    Raises:
        MissingData: the file of the table does not exist.
        MissingPackage: the package that ships the table is not installed.
    """
    if name == "synthetic":
        return _draw_synthetic()
    if name == "election":
        return _split(*_reduce_election())
    with np.load(require(SHARED / f"{name}.npz")) as arrays:
        rows, held_out = (
            Rows(arrays[x][:, :-1].astype(np.float64), (arrays[y] > 0).astype(np.float64))
            for x, y in (("X", "y"), ("Xt", "yt"))
        )
    return rows, held_out


@cache
def make_small(name: str) -> Case:
    """A small table with its exact posterior."""
    rows, held_out = make_small_rows(name)
    return make_logistic(name, rows, bound=_BOUNDS[name], held_out=held_out)


@cache
def make_large(name: str) -> Case:
    """One of the large tables, which replace the paper's."""
    rows, held_out = make_large_rows(name)
    return make_logistic(name, rows, bound=8.0 if name == "synth100k" else 16.0, held_out=held_out)


def make_large_rows(name: str) -> tuple[Rows, Rows]:
    """Training and held-out rows of a large table.

    Raises:
        MissingData: the files of the census do not exist.
        MissingPackage: the package that ships the table is not installed.
    """
    if name == "synth100k":
        return draw_synth100k()
    if name == "insurance9":
        return _read_insurance()
    train, test = load_adult10()
    return Rows(*train), Rows(*test)


def clamp(case: Case) -> Case:
    """The case with columns clamped to ±2.

    Some methods start their points at random within the bounds. ±2 is about as wide as the paper's normal start.
    """
    return narrow(case, NARROW)


def reduce(x: Array64, count: int) -> Array64:
    """The first ``count`` whitened principal components of standardised columns ``(n, p)``."""
    spread = x.std(axis=0)
    x = (x[:, spread > 0] - x[:, spread > 0].mean(axis=0)) / spread[spread > 0]
    values, vectors = np.linalg.eigh(np.cov(x, rowvar=False))
    order = np.argsort(values)[::-1][:count]
    return np.asarray(x @ vectors[:, order] / np.sqrt(values[order]))


def _draw_synthetic() -> tuple[Rows, Rows]:
    """The law of SYNTHETIC: two standard normal features, and the truth (3, 3, 0)."""
    rng = np.random.default_rng(0)

    def draw(n: int) -> Rows:
        x = rng.standard_normal((n, 2))
        return Rows(x, (rng.random(n) < expit(3 * x.sum(axis=1))).astype(np.float64))

    return draw(_SMALL), draw(_HELD_OUT)


def _reduce_election() -> tuple[Array64, Array64]:
    """Votes for president in 1996, on all ten components."""
    frame = load("statsmodels", "anes96")
    return reduce(frame.drop(columns="vote").to_numpy(dtype=np.float64), 10), frame["vote"].to_numpy(dtype=np.float64)


def _split(x: Array64, y: Array64) -> tuple[Rows, Rows]:
    """The first rows of a random order, and the next ones, held out."""
    order = np.random.default_rng(0).permutation(len(y))
    train, test = order[:_SMALL], order[_SMALL : _SMALL + _HELD_OUT]
    return Rows(x[train], y[train]), Rows(x[test], y[test])


def _read_insurance() -> tuple[Rows, Rows]:
    """Whether somebody saw a doctor, on nine components; a tenth of the rows is held out."""
    frame = load("statsmodels", "randhie")
    x = reduce(frame.drop(columns="mdvis").to_numpy(dtype=np.float64), 9)
    y = (frame["mdvis"].to_numpy() > 0).astype(np.float64)
    order = np.random.default_rng(0).permutation(len(y))
    cut = len(y) // 10
    return Rows(x[order[cut:]], y[order[cut:]]), Rows(x[order[:cut]], y[order[:cut]])
