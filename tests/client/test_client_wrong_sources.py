"""Objects and files that are no table: the error names the right argument, and nothing is sent."""

import asyncio
import datetime as dt
import io
import pickle
import sqlite3
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import scipy.sparse
from corevault import Dataset, InvalidArgument, example

from tests.client.fake import Script, ok
from tests.client.sources import DECLARED, ROWS, SCHEMA, upload

FRAME = pd.DataFrame(ROWS)
CSV = FRAME.to_csv(index=False)


class Lazy:
    """A frame like that of polars, which computes its rows later."""

    def collect(self) -> pd.DataFrame:
        return FRAME

    def lazy(self) -> "Lazy":
        return self


class Cluster:
    """A frame like that of Spark."""

    def toPandas(self) -> pd.DataFrame:  # noqa: N802 - its name there
        return FRAME


WRONG: dict[str, tuple[Any, str]] = {
    "nothing": (None, "Pass a path, bytes"),
    "a number": (5, "Pass a path, bytes.*got a value of type int"),
    "a complex number": (1j, "Pass a path, bytes"),
    "a date": (dt.date(2026, 1, 1), "Pass a path, bytes"),
    "an object": (object(), "Pass a path, bytes"),
    "a class": (pd.DataFrame, "Pass a path, bytes.*got the class DataFrame"),
    "a function": (lambda: FRAME, "Pass a path, bytes.*type function"),
    "a module": (np, "Pass a path, bytes"),
    "an error": (ValueError("x"), "Pass a path, bytes"),
    "a set": ({1}, "Pass a path, bytes"),
    "an event loop's lock": (asyncio.Lock(), "Pass a path, bytes"),
    "lines": (CSV.splitlines(), "Pass a pandas DataFrame"),
    "a generator of lines": ((line for line in CSV.splitlines()), "not bytes. Pass a pandas DataFrame"),
    "a range": (range(3), "Pass a pandas DataFrame"),
    "an empty list": ([], "pass a table with rows"),
    "dictionaries": (FRAME.to_dict("records"), r"pass pandas\.DataFrame\(rows\)"),
    "lists": ([[1, "F", 1]], r"pass pandas\.DataFrame\(rows\)"),
    "an array": (FRAME.to_numpy(), "pass a mapping such as"),
    "an array of texts": (np.array(["a"]), "pass a mapping such as"),
    "an array without dimensions": (np.array(3), "pass a mapping such as"),
    "a sparse matrix": (scipy.sparse.eye(3).tocsr(), "pass a mapping of column names"),
    "a series": (FRAME["age"], r"pass series\.to_frame"),
    "a grouped frame": (FRAME.groupby("sex"), "grouped frame; pass a DataFrame"),
    "a lazy frame": (Lazy(), r"pass frame\.collect"),
    "a frame on a cluster": (Cluster(), r"pass frame\.toPandas"),
    "an Arrow array": (pa.array([1]), "Pass a pandas DataFrame"),
    "an Arrow reader": (pa.table(ROWS).to_reader(), r"pass reader\.read_all"),
    "an Arrow schema": (pa.schema([("age", pa.int8())]), "Pass a pandas DataFrame"),
    "a connection": (sqlite3.connect(":memory:"), r"pandas\.read_sql"),
    "a cursor": (sqlite3.connect(":memory:").execute("select 1"), r"pandas\.read_sql"),
    "a schema": (SCHEMA, "pass the table itself"),
    "a dataset": (Dataset.from_json(DECLARED), "pass the table itself"),
    "a release": (example(), "pass the table itself"),
    "columns of single cells": ({"age": 1, "sex": "F", "ill": 1}, "must be a list or a one-dimensional array"),
    "columns of dictionaries": (FRAME.to_dict(), "must be a list or a one-dimensional array"),
    "no columns": ({}, "pass a table with the declared columns"),
    "several levels": (
        pd.DataFrame([[1]], columns=pd.MultiIndex.from_tuples([("a", "b")])),
        "give each column one name",
    ),
    "a column twice": (pd.concat([FRAME, FRAME], axis=1), "name each column once"),
    "an open text": (io.StringIO(CSV), "open it in binary mode"),
    "the text of a table": (CSV, r"pass text\.encode"),
    "an address": ("https://vault.test/t.csv", "download the file first"),
    "an address of a store": ("s3://bucket/t.csv", "download the file first"),
    "an empty path": ("", "pass the path of a file"),
    "a missing file": (Path("nowhere.csv"), "check that it exists"),
    "a directory": (Path(__file__).parent, "pass the path of one file"),
    "another suffix": (Path(__file__), "pass media_type='text/csv'"),
    "no bytes": (b"", "source is empty"),
    "JSON": (FRAME.to_json().encode(), r"pandas\.read_json"),
    "JSON records": (b"\xef\xbb\xbf [{}]", r"pandas\.read_json"),
    "HTML": (FRAME.to_html().encode(), "HTML or XML"),
    "a pickle": (pickle.dumps(FRAME), "load it, and pass the DataFrame"),
    "a PDF": (b"%PDF-1.7", "pass the table itself"),
    "a picture": (b"\x89PNG\r\n", "pass the table itself"),
    "an Excel workbook": (b"PK\x03\x04", "save the sheet as CSV"),
    "an old Excel workbook": (b"\xd0\xcf\x11\xe0", "save the sheet as CSV"),
    "a compressed file": (b"\x1f\x8b\x08", "decompress it first"),
    "UTF-16": (CSV.encode("utf-16"), "save it as UTF-8"),
    "a database": (b"SQLite format 3\x00", "export the table"),
    "HDF5": (b"\x89HDF\r\n", r"pandas\.read_hdf"),
    "an array's file": (b"\x93NUMPY\x01", "mapping of column names"),
    "R data": (b"RDX3\nX\n", r"write\.csv"),
    "SPSS": (b"$FL2@(#)", r"pandas\.read_spss"),
    "Stata": (b"<stata_dta>", r"pandas\.read_stata"),
    "SAS": (b"\0" * 12 + b"\xc2\xea\x81\x60", "pass the table itself"),
    "Avro": (b"Obj\x01", "pass the table itself"),
}
WRONG_FOR_UPLOADS: dict[str, tuple[Any, str]] = {
    "no rows": (FRAME.iloc[:0], "at least one row"),
    "more rows than slots": (pd.concat([FRAME] * 200), r"slots, which cannot change\. Nothing was sent\."),
    "a column in the index": (FRAME.set_index("age"), "reset_index"),
    "numbered columns": ({1: [1]}, "no declared column. Its header must have these names.*: age, sex, ill"),
    "no header": (CSV.split("\n", 1)[1].encode(), "no declared column"),
    "tabs": (CSV.replace(",", "\t").encode(), "separated by tabs; write commas"),
    "semicolons": (CSV.replace(",", ";").encode(), "separated by semicolons; write commas"),
    "columns of dates": (FRAME.assign(age=dt.date(2026, 1, 1)), "Correct these cells"),
    "columns of lists": ({"age": [[1]], "sex": ["F"], "ill": [1]}, "Correct these cells"),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_check_says_what_to_pass(name: str) -> None:
    source, sentence = WRONG[name]
    if not name.startswith("a generator"):
        with pytest.raises(InvalidArgument, match=sentence):
            SCHEMA.check(source)


@pytest.mark.parametrize("name", [*WRONG, *WRONG_FOR_UPLOADS])
def test_an_upload_says_what_to_pass_before_anything_is_sent(name: str) -> None:
    source, sentence = (WRONG | WRONG_FOR_UPLOADS)[name]
    script = Script([ok(DECLARED)])
    with script.client() as client, pytest.raises(ValueError, match=sentence) as caught:
        client.datasets.upload("ds_1", source)
    assert type(caught.value).__module__ == "corevault.errors"
    assert {request.method for request in script.seen} <= {"GET"}


def test_a_table_without_a_header_is_not_quoted() -> None:
    with Script([ok(DECLARED)]).client() as client, pytest.raises(InvalidArgument) as caught:
        client.datasets.upload("ds_1", CSV.split("\n", 1)[1].encode())
    assert "20" not in str(caught.value)


def test_a_structured_array_is_a_table() -> None:
    script = upload(FRAME.to_records(index=False))
    assert script.bodies[-1] == CSV.encode()
    assert SCHEMA.check(FRAME.to_records(index=False)).null_rows == 0
