"""Remedies for rejected files, shown to the owner; each depends only on the code, never on the file."""

from collections.abc import Mapping
from typing import Final

from app.datasets.ingestion import Rejection

REMEDIES: Final[Mapping[str, str]] = {
    Rejection.MALFORMED: (
        "The file cannot be read as a table. Send UTF-8 CSV with commas and a header that names each column once, "
        "Parquet, or an Arrow stream. Excel workbooks and files that are compressed as a whole are not accepted."
    ),
    Rejection.EMPTY: "The file has no rows below the header. Upload a table with rows.",
    Rejection.MISSING_COLUMN: (
        "A declared column is missing. The header must contain every declared name exactly, separated by commas."
    ),
    Rejection.UNKNOWN_COLUMN: (
        "The file has a column that is not declared, for example the index of a data frame. Remove this column."
    ),
    Rejection.WRONG_TYPE: (
        "A column's type in the file does not fit its declared type, for example a date, a list or a structure. Send "
        "numbers or text."
    ),
    Rejection.TOO_LARGE: (
        "The file is larger than this server accepts, or takes too long to read. Upload a smaller file, or ask the "
        "operator."
    ),
    Rejection.TOO_MANY_UNITS: (
        "The file has more privacy units than the declared slots, and slots cannot be changed. Declare a new dataset "
        "with more slots for the same population, and upload the file there."
    ),
    Rejection.DUPLICATE_CONTENT: (
        "The same file is already the content of another of your populations. Declare a dataset that names that "
        "population, and use it instead. Unless you chose a name, the name is the id of its first dataset, which "
        "may be deleted."
    ),
    Rejection.DIGEST_MISMATCH: "The file changed during the upload. Upload it again.",
    Rejection.SERIES_MISMATCH: (
        "The earlier uploads of the series do not verify, so this file is not used. The file has no fault. Ask the "
        "operator."
    ),
}
