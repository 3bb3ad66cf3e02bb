"""What an owner does about a rejected file. Each sentence follows from the code alone, never from the file."""

from collections.abc import Mapping
from typing import Final

from app.datasets.ingestion import Rejection

REMEDIES: Final[Mapping[str, str]] = {
    Rejection.MALFORMED: (
        "Send UTF-8 CSV with commas and a header that names each column once, Parquet or an Arrow stream; no Excel "
        "workbook, and nothing that is compressed as a whole."
    ),
    Rejection.EMPTY: "It has no rows below the header.",
    Rejection.MISSING_COLUMN: "The header must name every declared column as declared, with commas in between.",
    Rejection.UNKNOWN_COLUMN: "It has a column that is not declared (perhaps a data frame's index); leave it out.",
    Rejection.WRONG_TYPE: (
        "A column's type in the file cannot be the declared one (a date, a list, a structure); send numbers or text."
    ),
    Rejection.TOO_LARGE: "It is larger than this server takes.",
    Rejection.TOO_MANY_UNITS: (
        "It holds more units than the declared slots, which never change: declare a new dataset with more slots for "
        "the same population, and upload it there."
    ),
    Rejection.DUPLICATE_CONTENT: (
        "The same bytes are the content of another population of yours; a dataset over the same people names that one."
    ),
    Rejection.DIGEST_MISMATCH: "Its bytes changed on the way; upload it again.",
}
