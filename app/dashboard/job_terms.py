"""Texts of the job form with one term or one number a line.

Examples are ``poly(age, 3)`` and ``age = 0.5``.
"""

import re
from typing import Any, Final

MOST_LINES: Final = 100
LONGEST_LINE: Final = 300
"""Characters of a line; the time for one that cannot be read grows with its length and that of a name."""
_NAME: Final = r"[A-Za-z][A-Za-z0-9_]{0,62}"
_INTERACTION: Final = re.compile(rf"{_NAME}(?:\s*[:*]\s*{_NAME})+", re.ASCII)
_CALL: Final = re.compile(rf"(poly|bs)\(\s*({_NAME})\s*,\s*([0-9]{{1,2}})\s*\)", re.ASCII)
_NUMBER: Final = re.compile(r"(.{1,200}?)\s*=\s*(-?(?:[0-9]{1,12}(?:\.[0-9]{0,12})?|\.[0-9]{1,12}))", re.ASCII)
WRITE_TERM: Final = "Write one term a line, as in age:sex, poly(age, 3) or bs(age, 4)."
WRITE_NUMBER: Final = "Write one name and number a line, as in age = 0.5."
_TOO_MANY: Final = f"Use at most {MOST_LINES} lines."
_TOO_LONG: Final = f"Use at most {LONGEST_LINE} characters in a line."
_CALLS: Final = {"poly": ("polynomial", "degree"), "bs": ("spline", "df")}


class NotRead(ValueError):
    """A line cannot be read. The message states how to write it, and does not repeat it."""


def read_terms(text: str) -> list[dict[str, Any]]:
    """Read terms as the API takes them.

    Raises:
        NotRead: a line is no term.
    """
    return [_read_term(line) for line in _split(text)]


def read_numbers(text: str) -> dict[str, float]:
    """Read numbers by name.

    Raises:
        NotRead: a line is no name and number, or a name occurs twice.
    """
    numbers = dict[str, float]()
    for line in _split(text):
        found = _NUMBER.fullmatch(line)
        if found is None:
            raise NotRead(WRITE_NUMBER)
        if found[1] in numbers:
            raise NotRead("Write each name once.")
        numbers[found[1]] = float(found[2])
    return numbers


def _split(text: str) -> list[str]:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if len(lines) > MOST_LINES:
        raise NotRead(_TOO_MANY)
    if any(len(line) > LONGEST_LINE for line in lines):
        raise NotRead(_TOO_LONG)
    return lines


def _read_term(line: str) -> dict[str, Any]:
    if _INTERACTION.fullmatch(line):
        return {"interaction": re.split(r"\s*[:*]\s*", line)}
    found = _CALL.fullmatch(line)
    if found is None:
        raise NotRead(WRITE_TERM)
    kind, count = _CALLS[found[1]]
    return {kind: found[2], count: int(found[3])}
