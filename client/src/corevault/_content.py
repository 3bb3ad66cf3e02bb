"""What the first bytes of a file show before it goes out: faults for which the server would reject it."""

import csv
import io

from corevault._upload import CSV, Upload

_ZIP = b"PK\x03\x04"


def check_start(upload: Upload) -> None:
    """Raises ``ValueError`` for a zip archive, and for CSV whose header names a column twice.

    A stream that cannot be read twice is not looked into.
    """
    if upload.digest is None:
        return
    start = next(upload.chunks(), b"")
    if start.startswith(_ZIP):
        raise ValueError("This is a zip archive, as Excel workbooks are; save the sheet as CSV, or give a DataFrame.")
    names = _header(start) if upload.media_type.startswith(CSV) else []
    if len(set(names)) < len(names):
        raise ValueError("A column name appears twice in the header, or two columns have none; name each column once.")


def _header(start: bytes) -> list[str]:
    """The names in the first line, as the server reads them; none where it does not end among these bytes."""
    try:
        lines = start[: start.rfind(b"\n") + 1].decode("utf-8-sig")
        names = next((row for row in csv.reader(io.StringIO(lines, newline="")) if row), [])
    except (csv.Error, UnicodeDecodeError):
        return []
    return [name.strip() for name in names]
