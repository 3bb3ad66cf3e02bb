"""Check of a CSV header before the upload."""

import csv
import io

from corevault._formats import CSV
from corevault._upload import Upload
from corevault.errors import InvalidArgument


def check_start(upload: Upload) -> None:
    """Raises ``InvalidArgument`` for CSV whose header names a column twice."""
    names = _header(upload.start) if upload.media_type.startswith(CSV) else []
    if len(set(names)) < len(names):
        raise InvalidArgument(
            "A column name appears twice in the header, or two columns have no name; name each column once."
        )


def _header(start: bytes) -> list[str]:
    """The names in the first line; an empty list if these bytes do not hold all of it."""
    try:
        lines = start[: start.rfind(b"\n") + 1].decode("utf-8-sig")
        names = next((row for row in csv.reader(io.StringIO(lines, newline="")) if row), [])
    except (csv.Error, UnicodeDecodeError):
        return []
    return [name.strip() for name in names]
