"""The form of a declaration: its fields, their conversion to the API's body, and the faults of each field."""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Final

from app.dashboard.forms import Form, Mistakes
from app.datasets.schemas import DatasetBody
from app.errors import Fault, InvalidRequest
from app.http.requests.bodies import validate

MOST_COLUMNS: Final = 500
"""Most columns of the form; the API accepts more."""
COLUMN_TYPES: Final = (
    ("", "Choose a type"),
    ("real", "Number"),
    ("integer", "Whole number"),
    ("categorical", "Category"),
    ("binary", "Yes or no (0 or 1)"),
)
_COLUMN_FIELD: Final = re.compile(r"column-([0-9]{1,4})-([a-z]+)")
_NUMBER: Final = re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]{1,3})?", re.ASCII)
_WHOLE: Final = re.compile(r"[+-]?[0-9]{1,18}", re.ASCII)
_TRUTHS: Final = {"0": False, "1": True, "false": False, "true": True}
_PLACES: Final[Mapping[str, str]] = {
    "/name": "name",
    "/description": "description",
    "/population": "population",
    "/series": "series",
    "/slots": "slots",
    "/budget": "epsilon",
    "/budget/epsilon": "epsilon",
    "/budget/delta": "delta",
    "/privacy_unit/column": "unit_column",
    "/privacy_unit/max_rows": "max_rows",
    "/shared_with": "shared_with",
}
_LABELS: Final[Mapping[str, str]] = {
    "name": "Name of the dataset",
    "description": "Description",
    "population": "Population",
    "series": "Series",
    "slots": "Slots",
    "epsilon": "Limit on ε",
    "delta": "Limit on δ",
    "unit_column": "Column that identifies a person",
    "max_rows": "Most rows of one person",
    "shared_with": "Shared with",
}
_COLUMN_LABELS: Final = {
    "name": "name",
    "type": "type",
    "lower": "lower bound",
    "upper": "upper bound",
    "categories": "categories",
    "impute": "value for missing cells",
}


@dataclass(frozen=True, slots=True)
class ColumnFields:
    """The fields of one column, as typed."""

    name: str = ""
    type: str = ""
    lower: str = ""
    upper: str = ""
    categories: str = ""
    impute: str = ""


@dataclass(frozen=True, slots=True)
class DeclarationForm:
    """The fields of a declaration, as typed."""

    name: str = ""
    description: str = ""
    sensitivity: str = "private"
    population: str = ""
    series: str = ""
    unit: str = "row"
    unit_column: str = ""
    max_rows: str = ""
    slots: str = ""
    epsilon: str = ""
    delta: str = ""
    releases: str = "public"
    shared_with: str = ""
    columns: tuple[ColumnFields, ...] = field(default=(ColumnFields(),))

    def add_column(self) -> "DeclarationForm":
        """Return the form with one more column."""
        return self._with_columns((*self.columns, ColumnFields()))

    def remove_column(self, index: int) -> "DeclarationForm":
        """Return the form without the column at ``index``."""
        return self._with_columns(self.columns[:index] + self.columns[index + 1 :])

    def _with_columns(self, columns: tuple[ColumnFields, ...]) -> "DeclarationForm":
        texts = {each.name: getattr(self, each.name) for each in fields(self) if each.name != "columns"}
        return DeclarationForm(**texts, columns=columns)


def parse_declaration_form(form: Form) -> DeclarationForm:
    """Parse the fields of a sent form. The numbers in the names of columns' fields give only their order."""
    names = {each.name for each in fields(DeclarationForm)} - {"columns"}
    texts = {name: form.text(name) for name in names if any(name == key for key, _ in form.fields)}
    by_column: dict[int, dict[str, str]] = {}
    for key, value in form.fields:
        found = _COLUMN_FIELD.fullmatch(key)
        if found is not None and found[2] in _COLUMN_LABELS:
            by_column.setdefault(int(found[1]), {})[found[2]] = value.strip()
    columns = tuple(ColumnFields(**by_column[number]) for number in sorted(by_column))
    return DeclarationForm(**texts, columns=columns)


def make_body(form: DeclarationForm) -> tuple[DatasetBody | None, Mistakes]:
    """Make the API's body. If a field has a fault, there is no body."""
    mistakes = Mistakes()
    document = _make_document(form, mistakes)
    try:
        body = validate(DatasetBody, json.dumps(document).encode())
    except InvalidRequest as refusal:
        add_faults(mistakes, form, refusal.faults)
        return None, mistakes
    assert isinstance(body, DatasetBody)
    return (None if mistakes else body), mistakes


def add_faults(mistakes: Mistakes, form: DeclarationForm, faults: tuple[Fault, ...]) -> None:
    """Add the faults of the API's body to the fields that they are about."""
    for fault in faults:
        name = _find_field(fault.pointer)
        label = _describe_field(form, name)
        mistakes.add(name, f"{label}: {fault.message[:1].lower()}{fault.message[1:]}" if label else fault.message)


def _find_field(pointer: str) -> str:
    found = re.fullmatch(r"/columns/([0-9]+)(?:/([a-z]+).*)?", pointer)
    if found is None:
        return _PLACES.get(pointer, "shared_with" if pointer.startswith("/shared_with/") else "")
    member = {"missing": "impute", None: "type"}.get(found[2], found[2])
    return f"column-{found[1]}-{member}"


def _describe_field(form: DeclarationForm, name: str) -> str:
    found = _COLUMN_FIELD.fullmatch(name)
    if found is None:
        return _LABELS.get(name, "")
    return f"{name_column(form, int(found[1]))}, {_COLUMN_LABELS.get(found[2], found[2])}"


def name_column(form: DeclarationForm, index: int) -> str:
    """Name a column by its place and, once it is typed, its name."""
    typed = form.columns[index].name if index < len(form.columns) else ""
    return f"Column {index + 1} ({typed[:63]})" if typed else f"Column {index + 1}"


def _make_document(form: DeclarationForm, mistakes: Mistakes) -> dict[str, Any]:
    document: dict[str, Any] = {
        "name": _require(mistakes, "name", form.name, "Enter a name for the dataset"),
        "description": form.description.replace("\r\n", "\n"),
        "sensitivity": form.sensitivity,
        "population": form.population or None,
        "series": form.series or None,
        "slots": _parse_whole(mistakes, "slots", form.slots, "Slots"),
        "privacy_unit": _make_unit(form, mistakes),
        "releases_public": form.releases == "public",
        "shared_with": form.shared_with.split(),
    }
    if not form.columns:
        mistakes.add("", "Add at least one column.")
    if len(form.columns) > MOST_COLUMNS:
        mistakes.add("", f"This form takes at most {MOST_COLUMNS} columns. Use the client or the API for more.")
    if form.sensitivity == "private":
        epsilon = _parse_real(mistakes, "epsilon", form.epsilon, "Limit on ε")
        delta = None if not form.delta else _parse_real(mistakes, "delta", form.delta, "Limit on δ")
        document["budget"] = {
            "epsilon": epsilon,
            "delta": delta,
        }
    document["columns"] = [_make_column(form, index, mistakes) for index in range(len(form.columns))]
    return document


def shorten(mistakes: Mistakes) -> Mistakes:
    """Return the faults without the labels, to be shown at their fields."""
    parts = {name: message.rpartition(": ") for name, message in mistakes.by_field.items()}
    return Mistakes({name: rest[:1].upper() + rest[1:] for name, (_, _, rest) in parts.items()})


def _make_unit(form: DeclarationForm, mistakes: Mistakes) -> dict[str, Any]:
    if form.unit == "row":
        return {"kind": "row"}
    column = _require(mistakes, "unit_column", form.unit_column, "Enter the column that identifies a person")
    most = _parse_whole(mistakes, "max_rows", form.max_rows, "Most rows of one person")
    return {"kind": "column", "column": column, "max_rows": most}


def _make_column(form: DeclarationForm, index: int, mistakes: Mistakes) -> dict[str, Any]:
    typed, place, words = form.columns[index], f"column-{index}", name_column(form, index)
    column: dict[str, Any] = {
        "name": _require(mistakes, f"{place}-name", typed.name, f"{words}: enter its name"),
        "type": _require(mistakes, f"{place}-type", typed.type, f"{words}: choose its type"),
    }
    parse = _parse_whole if typed.type == "integer" else _parse_real
    if typed.type in {"integer", "real"}:
        column["lower"] = parse(mistakes, f"{place}-lower", typed.lower, f"{words}, lower bound")
        column["upper"] = parse(mistakes, f"{place}-upper", typed.upper, f"{words}, upper bound")
    if typed.type == "categorical":
        column["categories"] = list(_split_lines(typed.categories))
        if not column["categories"]:
            mistakes.add(f"{place}-categories", f"{words}: enter the categories, one a line.")
    if typed.impute:
        column["missing"] = {"impute": _parse_impute(mistakes, place, typed, words)}
    return column


def _parse_impute(mistakes: Mistakes, place: str, typed: ColumnFields, words: str) -> float | str | bool | None:
    name, label = f"{place}-impute", f"{words}, value for missing cells"
    if typed.type == "categorical":
        return typed.impute
    if typed.type == "binary":
        value = _TRUTHS.get(typed.impute.lower())
        if value is None:
            mistakes.add(name, f"{label}: enter 0 or 1, or leave it empty.")
        return value
    parse = _parse_whole if typed.type == "integer" else _parse_real
    return parse(mistakes, name, typed.impute, label)


def _split_lines(text: str) -> Iterator[str]:
    return (line.strip() for line in text.splitlines() if line.strip())


def _require(mistakes: Mistakes, name: str, text: str, message: str) -> str:
    if not text:
        mistakes.add(name, f"{message}.")
    return text


def _parse_whole(mistakes: Mistakes, name: str, text: str, label: str) -> int | None:
    if _WHOLE.fullmatch(text) is not None:
        return int(text)
    mistakes.add(name, f"{label}: enter a whole number, as in 50.")
    return None


def _parse_real(mistakes: Mistakes, name: str, text: str, label: str) -> float | None:
    if _NUMBER.fullmatch(text) is not None:
        return float(text)
    mistakes.add(name, f"{label}: enter a number with a decimal point, as in 0.5.")
    return None
