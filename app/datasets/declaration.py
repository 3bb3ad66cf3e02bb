"""Validation of a declaration across its fields, with a pointer to each faulty member.

Bounds are strict (``lower < upper``). Designs map them to -1 and 1, and equal bounds would divide by zero. A single
category is allowed, because it yields no design column.
"""

import unicodedata
from collections import Counter
from collections.abc import Iterator
from typing import Final

from app.datasets.columns import BinaryColumn, CategoricalColumn, ColumnBody, IntegerColumn, RealColumn
from app.datasets.schemas import DatasetBody, DeclarationWarning
from app.errors import Fault, InvalidRequest
from app.inference.core.design import RESERVED
from app.inference.models.targets import REMEDY, is_resolved

LARGEST_STRONG_EPSILON = 8.0  # beyond it, an attacker's odds may grow by a factor of more than e^8, about 3000
MAX_UNIT_CELLS = 2**22  # all rows of a unit are held in memory at once
RESERVED_NAME = (
    "Releases have a column of this name, so it can be a target but not a feature. Rename it to use it as a feature."
)
_WEAK = (
    f"With a limit above {LARGEST_STRONG_EPSILON:g}, differential privacy guarantees little to the people in the data. "
    "Use a lower limit if you can. State the highest that you would accept, because no job can use both this limit and "
    "a part that is added later."
)
SMALLEST_WIDTH = 1e-100  # below this the reciprocal of a column's scale is not safe

_CONTROLS: Final = frozenset({"Cc", "Zl", "Zp"})
_BIDIRECTIONAL: Final = frozenset({"LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI"})


def check(body: DatasetBody, largest_slots: int) -> None:
    """Refuse a declaration that breaks a rule.

    Raises:
        InvalidRequest: with one fault for each member that breaks a rule.
    """
    faults = (
        *_text_faults(body),
        *_column_faults(body.columns),
        *_unit_faults(body, largest_slots),
        *_size_faults(body, largest_slots),
        *_series_faults(body),
    )
    if faults:
        raise InvalidRequest(faults=faults)


def list_warnings(body: DatasetBody) -> list[DeclarationWarning]:
    """List properties of a valid declaration that may be mistakes."""
    warnings = [
        DeclarationWarning(code="reserved_column", pointer=f"/columns/{index}/name", message=RESERVED_NAME)
        for index, column in enumerate(body.columns)
        if column.name in RESERVED
    ]
    if body.budget is not None and body.budget.epsilon > LARGEST_STRONG_EPSILON:
        warnings.append(DeclarationWarning(code="weak_guarantee", pointer="/budget/epsilon", message=_WEAK))
    return warnings


def find_plain_text_faults(pointer: str, text: str, *, lines: bool = False) -> Iterator[Fault]:
    """Yield a fault for text that is blank or has control characters.

    Some databases and terminals cannot store or show control characters. Bidirectional controls can reorder the text
    around them on a page. ``lines`` allows line breaks and tabs.
    """
    if any(is_control(character) for character in text if not (lines and character in "\n\t")):
        yield Fault(pointer, "Use printable text without control characters.")
    elif text != "" and text.isspace():
        yield Fault(pointer, "Use text that is not blank.")


def is_control(character: str) -> bool:
    """Return whether a character is a control (UAX 9 included) or separates lines."""
    return unicodedata.category(character) in _CONTROLS or unicodedata.bidirectional(character) in _BIDIRECTIONAL


def _text_faults(body: DatasetBody) -> Iterator[Fault]:
    yield from find_plain_text_faults("/name", body.name)
    yield from find_plain_text_faults("/description", body.description, lines=True)
    yield from find_plain_text_faults("/population", body.population or "")
    yield from find_plain_text_faults("/series", body.series or "")


def _column_faults(columns: list[ColumnBody]) -> Iterator[Fault]:
    count = Counter(column.name for column in columns)
    for index, column in enumerate(columns):
        pointer = f"/columns/{index}"
        if count[column.name] > 1:
            yield Fault(f"{pointer}/name", "Two columns have this name. Give each column a different name.")
        match column:
            case IntegerColumn() | RealColumn():
                yield from _bound_faults(pointer, column)
            case CategoricalColumn():
                yield from _category_faults(pointer, column)
            case BinaryColumn():
                pass


def _bound_faults(pointer: str, column: IntegerColumn | RealColumn) -> Iterator[Fault]:
    if not column.lower < column.upper:
        yield Fault(f"{pointer}/upper", "The upper bound must be greater than the lower bound.")
    elif column.upper - column.lower < SMALLEST_WIDTH:
        message = f"The bounds must differ by at least {SMALLEST_WIDTH:g}. Use another unit of measurement."
        yield Fault(f"{pointer}/upper", message)
    elif column.type == "real" and not is_resolved(column.lower, column.upper):
        message = f"These bounds are too close together for double precision: {REMEDY}."
        yield Fault(f"{pointer}/upper", message)
    elif column.missing is not None and not column.lower <= column.missing.impute <= column.upper:
        yield Fault(f"{pointer}/missing/impute", "The value for missing cells must be within the bounds.")


def _category_faults(pointer: str, column: CategoricalColumn) -> Iterator[Fault]:
    if len(set(column.categories)) < len(column.categories):
        yield Fault(f"{pointer}/categories", "A category is listed twice. List each category once.")
    for index, category in enumerate(column.categories):
        yield from find_plain_text_faults(f"{pointer}/categories/{index}", category)
    if column.missing is not None and column.missing.impute not in column.categories:
        yield Fault(f"{pointer}/missing/impute", "The value for missing cells must be one of the categories.")


def _unit_faults(body: DatasetBody, largest_slots: int) -> Iterator[Fault]:
    unit = body.privacy_unit
    if unit.kind == "row":
        return
    places = {column.name: index for index, column in enumerate(body.columns)}
    if unit.column not in places:
        yield Fault("/privacy_unit/column", "The privacy unit's column must be one of the declared columns.")
    elif body.columns[places[unit.column]].missing is not None:  # it would merge unrelated people into one unit
        yield Fault(
            f"/columns/{places[unit.column]}/missing",
            "Remove this member. A row with no value in the privacy unit's column becomes a null row.",
        )
    if unit.max_rows * body.slots > largest_slots >= body.slots:
        message = f"This server accepts at most {largest_slots} rows (slots × max_rows). Lower slots or max_rows."
        yield Fault("/privacy_unit/max_rows", message)
    if unit.max_rows * len(body.columns) > MAX_UNIT_CELLS:
        message = f"A privacy unit may have at most {MAX_UNIT_CELLS} cells (max_rows × columns). Lower max_rows."
        yield Fault("/privacy_unit/max_rows", message)


def _size_faults(body: DatasetBody, largest_slots: int) -> Iterator[Fault]:
    if body.slots > largest_slots:
        yield Fault("/slots", f"This server accepts at most {largest_slots} slots.")
    if body.sensitivity == "private" and body.budget is None:
        yield Fault("/budget", "A private dataset needs a budget with an epsilon.")
    if body.sensitivity == "public" and body.budget is not None:
        yield Fault("/budget", "A public dataset has no budget. Remove this member.")


def _series_faults(body: DatasetBody) -> Iterator[Fault]:
    if body.series is None:
        return
    if body.sensitivity == "public":
        yield Fault("/series", "A public dataset has no budget, so it belongs to no series. Remove this member.")
    if body.privacy_unit.kind == "row":
        yield Fault("/series", "In a series each person counts once; use a privacy unit of the kind 'column'.")
    if body.population is not None:
        yield Fault("/population", "Datasets of a series have separate populations. Remove this member.")
