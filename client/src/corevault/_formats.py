"""Detection of file formats by their first bytes."""

from typing import Final

from corevault.errors import InvalidArgument

CSV: Final = "text/csv"
PARQUET: Final = "application/vnd.apache.parquet"
ARROW_STREAM: Final = "application/vnd.apache.arrow.stream"
BY_SUFFIX: Final = {".csv": CSV, ".parquet": PARQUET, ".arrow": ARROW_STREAM, ".arrows": ARROW_STREAM}

_PARQUET_START = b"PAR1"
_ARROW_START = b"\xff\xff\xff\xff"  # the continuation marker before each message
_COMPRESSED = "The file is compressed as a whole; decompress it first."
_ARROW_FILE = (
    "This is an Arrow (Feather) file, but the server accepts Arrow streams only. Read it with pyarrow and pass the "
    "table, or write it with pyarrow.ipc.new_stream."
)
_UTF_16 = "The text is encoded as UTF-16; save it as UTF-8."
_INSTEAD = "pass the table itself, as CSV, Parquet or a DataFrame."
_PICKLE = "This is a Python pickle; load it, and pass the DataFrame."
_OF_R = "This is a data file of R; write it with write.csv(data, path, row.names = FALSE), and pass that path."
_MARKUP: Final = {
    b"{": "This is JSON; read it with pandas.read_json, and pass the DataFrame.",
    b"[": "This is JSON; read it with pandas.read_json, and pass the DataFrame.",
    b"<": f"This is HTML or XML, not a table; {_INSTEAD}",
}
"""First characters that begin no header, because names of columns begin with a letter."""
_REFUSED: Final = {
    b"PK\x03\x04": "This is a zip archive, as Excel workbooks are; save the sheet as CSV, or pass a DataFrame.",
    b"\xd0\xcf\x11\xe0": "This is an Excel workbook; save the sheet as CSV, or pass a DataFrame.",
    b"\x1f\x8b": _COMPRESSED,
    b"BZh91AY&SY": _COMPRESSED,
    b"\xfd7zXZ\x00": _COMPRESSED,
    b"\x28\xb5\x2f\xfd": _COMPRESSED,
    b"ARROW1\x00\x00": _ARROW_FILE,
    b"FEA1\x00": _ARROW_FILE,
    b"SQLite format 3\x00": "This is an SQLite database; export the table as CSV or Parquet.",
    b"%PDF": f"This is a PDF document; {_INSTEAD}",
    b"\x89PNG": f"This is a picture; {_INSTEAD}",
    b"\xff\xd8\xff": f"This is a picture; {_INSTEAD}",
    b"\x80\x02": _PICKLE,
    b"\x80\x03": _PICKLE,
    b"\x80\x04": _PICKLE,
    b"\x80\x05": _PICKLE,
    b"\x89HDF": "This is an HDF5 file; read it with pandas.read_hdf, and pass the DataFrame.",
    b"\x93NUMPY": "This is a NumPy file; load it, and pass a mapping of column names to arrays.",
    b"RDX": _OF_R,
    b"RDA": _OF_R,
    b"$FL2@": "This is an SPSS file; read it with pandas.read_spss, and pass the DataFrame.",
    b"$FL3@": "This is an SPSS file; read it with pandas.read_spss, and pass the DataFrame.",
    b"<stata_dta>": "This is a Stata file; read it with pandas.read_stata, and pass the DataFrame.",
    b"Obj\x01": f"This is an Avro file; {_INSTEAD}",
    b"\0\0\0\0": f"This is a binary file of an unknown format; {_INSTEAD}",
    b"\xff\xfe": _UTF_16,
    b"\xfe\xff": _UTF_16,
}


def check_format(start: bytes) -> None:
    """Raises ``InvalidArgument`` for no bytes, and for a format that the server rejects."""
    if not start:
        raise InvalidArgument("There is nothing to upload: the source is empty.")
    for magic, sentence in _REFUSED.items():
        if start.startswith(magic):
            raise InvalidArgument(sentence)
    if sentence := _MARKUP.get(start.removeprefix(b"\xef\xbb\xbf").lstrip()[:1], ""):
        raise InvalidArgument(sentence)


def find_format(start: bytes) -> str | None:
    """The media type that the first bytes show; None if they may be CSV."""
    if start.startswith(_PARQUET_START):
        return PARQUET
    return ARROW_STREAM if start.startswith(_ARROW_START) else None


def find_media_type(start: bytes, suffix: str | None, given: str | None) -> str:
    """The media type of a content that begins with ``start``.

    ``suffix`` is the suffix of a path, None for any other source. ``given`` is the media type that the caller names;
    it applies unless the content has another format.

    Raises ``InvalidArgument`` if they contradict each other, and if the caller must name the media type.
    """
    detected = find_format(start)
    if given is not None:
        return _confirm_type(given, detected, start)
    if detected is not None:
        return detected
    named = CSV if suffix is None else BY_SUFFIX.get(suffix.lower())
    if named is None:
        raise InvalidArgument(
            "The file's suffix is not .csv, .parquet, .arrow or .arrows; pass media_type='text/csv' if it is CSV."
        )
    if named != CSV:
        raise InvalidArgument(f"The file's name ends in {suffix}, but its content is of another format; rename it.")
    return named


def _confirm_type(given: str, detected: str | None, start: bytes) -> str:
    base = given.partition(";")[0].strip().lower()
    if base not in {CSV, PARQUET, ARROW_STREAM}:
        raise InvalidArgument(f"media_type must be one of {CSV}, {PARQUET} and {ARROW_STREAM}.")
    is_text = base == CSV and b"\0" not in start and detected == PARQUET  # a column may be named PAR1
    if detected not in {None, base} and not is_text:
        raise InvalidArgument(f"The content is {detected}, not {base}; leave media_type out, or correct it.")
    return given
