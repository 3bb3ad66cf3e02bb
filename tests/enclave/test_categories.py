"""A cell matches the category of its text, or else of its value."""

import io
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from app.inference.core.facts import Column
from support.vault import ARROW, CSV, PARQUET
from tests.enclave.test_arrow_source import encode, read_stored
from tests.factories.categories import CELLS, NUMBERS
from workers.enclave.cells import match_categories, parse_units

TYPES = {int: (pa.int8(), pa.int64()), float: (pa.float32(), pa.float64()), bool: (pa.bool_(),)}


def _index(categories: tuple[str, ...], category: str | None) -> list[int]:
    """The stored code and presence."""
    return [0, 0] if category is None else [categories.index(category), 1]


@pytest.mark.parametrize(("categories", "cell", "category"), CELLS)
@pytest.mark.parametrize("others", [(), ("zzz", "", "1", "True")])
def test_text_is_a_category_by_text_or_value(
    categories: tuple[str, ...], cell: str, category: str | None, others: tuple[str, ...]
) -> None:
    """The other cells of its batch have no effect."""
    indices = match_categories(categories, pa.array([cell, *others], pa.string()))
    expected = np.nan if category is None else categories.index(category)
    np.testing.assert_equal(indices[0], expected)


@pytest.mark.parametrize(("categories", "cell", "category"), NUMBERS)
@pytest.mark.parametrize("media", [PARQUET, ARROW])
@pytest.mark.parametrize("keyed", [False, True])
def test_numbers_are_categories_by_value(
    categories: tuple[str, ...], cell: Any, category: str | None, media: str, keyed: bool
) -> None:
    column = Column("x", "categorical", categories=categories)
    for kind in TYPES[type(cell)]:
        if kind == pa.int8() and abs(cell) > 100:
            continue
        cells = pa.array([cell, None], kind)
        table = pa.table({"x": cells.dictionary_encode() if keyed else cells})
        result = read_stored(encode(table, media), media, [column])
        assert [result["x"][0], result["_present"][0]] == _index(categories, category)
        assert result["_present"][1] == 0


@pytest.mark.parametrize("media", [CSV, PARQUET, ARROW])
def test_data_frame_with_missing_cells_keeps_its_codes(media: str) -> None:
    """Pandas writes codes, truth values and whole numbers differently if a cell is missing."""
    columns = [
        Column("code", "categorical", categories=("1", "2"), impute="2"),
        Column("flag", "binary", impute=False),
        Column("known", "categorical", categories=("False", "True"), impute="False"),
        Column("count", "integer", 0, 9, impute=0),
    ]
    gaps = {"code": [1, None, 2], "flag": [True, None, False], "known": [True, None, False], "count": [3, None, 4]}
    frame = pd.DataFrame(gaps)
    assert frame["code"].dtype == np.float64
    assert frame["known"].dtype == object
    expected = {"code": [0, 1, 1], "flag": [1, 0, 0], "known": [1, 0, 0], "count": [3, 0, 4], "_present": [1, 1, 1]}
    for each in (frame, frame.astype({"flag": float, "known": float})):
        sink = io.BytesIO()
        each.to_csv(sink, index=False)
        data = sink.getvalue() if media == CSV else encode(pa.Table.from_pandas(each), media)
        assert read_stored(data, media, columns) == expected


def test_spellings_of_one_category_name_one_unit() -> None:
    """W5: units of a categorical column follow the same rule."""
    unit = Column("x", "categorical", categories=("1", "2"))
    names = parse_units(unit, pa.array(["1", "1.0", "01", "2", "2e0", "3", ""]))
    np.testing.assert_array_equal(names, [0, 0, 0, 1, 1, np.nan, np.nan])
