"""Tables of every kind that the client takes, with the same rows."""

import io
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.ipc
import pyarrow.parquet as pq
from corevault import Dataset

from tests.client.fake import DATASET, Script, ok

COLUMNS = [
    {"name": "age", "type": "integer", "lower": 0, "upper": 90},
    {"name": "sex", "type": "categorical", "categories": ["F", "M"]},
    {"name": "ill", "type": "binary"},
]
DECLARED = DATASET | {"columns": COLUMNS}
SCHEMA = Dataset.from_json(DECLARED).schema
ROWS: dict[str, list[Any]] = {"age": [20, 30, 40], "sex": ["F", "M", "F"], "ill": [True, False, True]}


class Stream:
    """A table with only the Arrow stream interface, like a frame of another library."""

    def __init__(self, table: pa.Table) -> None:
        self._table = table

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self._table.__arrow_c_stream__(requested_schema)


def make_parquet(table: pa.Table) -> bytes:
    file = io.BytesIO()
    pq.write_table(table, file)
    return file.getvalue()


def make_arrow(table: pa.Table) -> bytes:
    file = io.BytesIO()
    with pyarrow.ipc.new_stream(file, table.schema) as writer:
        writer.write_table(table)
    return file.getvalue()


def make_sources(rows: dict[str, list[Any]]) -> dict[str, object]:
    table, frame = pa.table(rows), pd.DataFrame(rows)
    return {
        "pandas": frame,
        "categorical dtype": frame.assign(sex=frame["sex"].astype("category")),
        "nullable dtypes": frame.convert_dtypes(),
        "pyarrow table": table,
        "record batch": table.to_batches()[0],
        "stream interface": Stream(table),
        "dictionary encoding": table.set_column(1, "sex", table["sex"].dictionary_encode()),
        "mapping of lists": rows,
        "mapping of arrays": {name: np.array(values) for name, values in rows.items()},
        "mapping of series": {name: frame[name] for name in frame},
        "csv": frame.to_csv(index=False).encode(),
        "csv file": io.BytesIO(frame.to_csv(index=False).encode()),
        "parquet": make_parquet(table),
        "parquet file": io.BytesIO(make_parquet(table)),
        "arrow": make_arrow(table),
        "arrow file": io.BytesIO(make_arrow(table)),
    }


def upload(source: object, **options: Any) -> Script:
    script = Script([ok(DECLARED), ok(DECLARED, 202)])
    with script.client() as client:
        client.datasets.upload("ds_1", source, **options)
    return script
