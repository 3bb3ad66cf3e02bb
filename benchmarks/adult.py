"""Census income as ten whitened principal components, from the two Adult files.

Numbers are standardised, and categories become indicators. The components use exact moments of the training rows, which
allows a comparison with published figures. The service computes no such moments.
"""

import csv
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from app.inference.core.model import Array64

SHARED: Final = Path(__file__).resolve().parents[2] / "shared" / "data"
TRAIN, TEST = SHARED / "adult-train.csv", SHARED / "adult-test.csv"
NUMBERS: Final = (0, 2, 4, 10, 11, 12)
_CATEGORIES: Final = (1, 3, 5, 6, 7, 8, 9, 13)
_INCOME: Final = 14


class MissingData(FileNotFoundError):
    """A data file that is not part of the repository does not exist."""


def require(path: Path) -> Path:
    """``path``. Raises :class:`MissingData` if it does not exist."""
    if not path.exists():
        raise MissingData(f"{path} is missing; put that file there to run this experiment")
    return path


def load_adult10(
    train_file: Path = TRAIN, test_file: Path = TEST
) -> tuple[tuple[Array64, Array64], tuple[Array64, Array64]]:
    """Training and test rows without a missing value: components ``(n, 10)`` and labels 0 or 1 ``(n,)``."""
    train, test = read_rows(require(train_file)), read_rows(require(test_file))
    numbers = _numbers(train)
    mean, spread = numbers.mean(axis=0), numbers.std(axis=0, ddof=1)
    levels = [sorted(set(train[:, column])) for column in _CATEGORIES]

    def encode(rows: NDArray[np.str_]) -> Array64:
        indicators = [
            rows[:, column, None] == np.array(names) for column, names in zip(_CATEGORIES, levels, strict=True)
        ]
        return np.column_stack(((_numbers(rows) - mean) / spread, *indicators)).astype(np.float64)

    x, held_out = encode(train), encode(test)
    centre = x.mean(axis=0)
    values, vectors = np.linalg.eigh(np.cov(x, rowvar=False))
    project = vectors[:, :-11:-1] / np.sqrt(values[:-11:-1])
    return ((x - centre) @ project, _labels(train)), ((held_out - centre) @ project, _labels(test))


def read_rows(path: Path) -> NDArray[np.str_]:
    """Rows of text without a missing value, ``(n, 15)``."""
    with path.open(newline="") as stream:
        rows = [[cell.strip() for cell in row] for row in csv.reader(stream) if len(row) == _INCOME + 1]
    return np.array([row for row in rows if "?" not in row])


def _numbers(rows: NDArray[np.str_]) -> Array64:
    return rows[:, list(NUMBERS)].astype(np.float64)


def _labels(rows: NDArray[np.str_]) -> Array64:
    return np.array([income.startswith(">50K") for income in rows[:, _INCOME]], dtype=np.float64)
