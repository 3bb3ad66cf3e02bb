"""The points as tables of other libraries and as CSV."""

import csv
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from corevault._arguments import import_extra, import_pandas
from corevault._tables import import_pyarrow
from corevault.errors import UnreadableSource

if TYPE_CHECKING:
    import pandas as pd

Array = NDArray[np.float64]
Columns = dict[str, Array]


def make_pandas(columns: Columns) -> "pd.DataFrame":
    """A pandas DataFrame."""
    return import_pandas().DataFrame(columns)


def make_polars(columns: Columns) -> Any:
    """A polars DataFrame."""
    return import_extra("polars", "polars", "for a polars DataFrame").DataFrame(columns)


def make_arrow(columns: Columns) -> Any:
    """A pyarrow Table."""
    return import_pyarrow("for an Arrow table").table(columns)


def write_csv(columns: Columns, path: str | Path) -> None:
    """Writes a file that R, Julia and spreadsheets read; numbers keep all their digits.

    Raises ``UnreadableSource`` if the file cannot be written.
    """
    rows = zip(*([repr(value) for value in column.tolist()] for column in columns.values()), strict=True)
    try:
        with Path(path).open("w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(columns)
            writer.writerows(rows)
    except OSError as error:
        raise UnreadableSource(
            f"The file {path} cannot be written; pass a path in a folder that you may use."
        ) from error
