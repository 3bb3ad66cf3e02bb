"""Parameters of methods: names, types, ranges, defaults, JSON Schemas and checks."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

from app.errors import InvalidRequest


@dataclass(frozen=True, slots=True)
class Parameter:
    """A numeric parameter of a method, with its public range.

    ``default`` None: the default follows from declared facts.
    """

    name: str
    type: Literal["integer", "number"]
    minimum: float
    maximum: float
    description: str
    default: float | None = None
    exclusive_minimum: bool = False

    def schema(self) -> dict[str, Any]:
        """Its JSON Schema."""
        lower = "exclusiveMinimum" if self.exclusive_minimum else "minimum"
        schema = {"type": self.type, lower: self.minimum, "maximum": self.maximum, "description": self.description}
        return schema if self.default is None else {**schema, "default": self.default}

    def check(self, value: object, pointer: str) -> None:
        """Raise :class:`InvalidRequest` at ``pointer`` unless ``value`` has the type and is in the range."""
        kinds = (int,) if self.type == "integer" else (int, float)
        if isinstance(value, bool) or not isinstance(value, kinds):
            raise InvalidRequest.at(pointer, "Use an integer." if self.type == "integer" else "Use a number.")
        above = self.minimum < value if self.exclusive_minimum else self.minimum <= value
        if not (above and value <= self.maximum):
            relation = "greater than" if self.exclusive_minimum else "of at least"
            raise InvalidRequest.at(pointer, f"Use a number {relation} {self.minimum:g} and at most {self.maximum:g}.")


@dataclass(frozen=True, slots=True)
class Choice:
    """A parameter of a method that takes one of a few words."""

    name: str
    choices: tuple[str, ...]
    description: str
    default: str

    def schema(self) -> dict[str, Any]:
        """Its JSON Schema."""
        enum = list(self.choices)
        return {"type": "string", "enum": enum, "description": self.description, "default": self.default}

    def check(self, value: object, pointer: str) -> None:
        """Raise :class:`InvalidRequest` at ``pointer`` unless ``value`` is one of the words."""
        if value not in self.choices:
            raise InvalidRequest.at(pointer, f"Use one of: {', '.join(self.choices)}.")


@dataclass(frozen=True, slots=True)
class Switch:
    """A parameter of a method that is true or false."""

    name: str
    description: str
    default: bool = False

    def schema(self) -> dict[str, Any]:
        """Its JSON Schema."""
        return {"type": "boolean", "description": self.description, "default": self.default}

    def check(self, value: object, pointer: str) -> None:
        """Raise :class:`InvalidRequest` at ``pointer`` unless ``value`` is true or false."""
        if not isinstance(value, bool):
            raise InvalidRequest.at(pointer, "Use true or false.")


@dataclass(frozen=True, slots=True)
class Names:
    """A parameter of a method that lists names of declared columns.

    ``default`` is always None: the default follows from the request and declared facts.
    """

    name: str
    largest: int
    description: str
    default: None = None

    def schema(self) -> dict[str, Any]:
        """Its JSON Schema."""
        items = {"type": "string"}
        limits = {"minItems": 1, "maxItems": self.largest, "uniqueItems": True}
        return {"type": "array", "items": items, **limits, "description": self.description}

    def check(self, value: object, pointer: str) -> None:
        """Raise :class:`InvalidRequest` at ``pointer`` unless ``value`` is a list of distinct texts."""
        if not isinstance(value, list | tuple) or not 1 <= len(value) <= self.largest:
            raise InvalidRequest.at(pointer, f"List names of columns, at least one and at most {self.largest}.")
        for index, each in enumerate(value):
            if not isinstance(each, str):
                raise InvalidRequest.at(f"{pointer}/{index}", "Name a column in text.")
            if each in value[:index]:
                raise InvalidRequest.at(f"{pointer}/{index}", "This column is named twice; name it once.")


@dataclass(frozen=True, slots=True)
class NormalLaw:
    """A parameter of a method that is a normal distribution of the model's parameters.

    Its form is that of ``posterior`` in a release: ``parameters``, ``mean``, and ``covariance`` or ``variance``.
    ``largest`` is the largest number of parameters. ``default`` is always None.
    """

    name: str
    largest: int
    description: str
    default: None = None

    def schema(self) -> dict[str, Any]:
        """Its JSON Schema."""
        numbers = {"type": "array", "items": {"type": "number"}, "minItems": 1, "maxItems": self.largest}
        return {
            "type": "object",
            "required": ["parameters", "mean"],
            "additionalProperties": False,
            "properties": {
                "parameters": {**numbers, "items": {"type": "string"}},
                "mean": numbers,
                "covariance": {**numbers, "items": numbers},
                "variance": numbers,
            },
            "description": self.description,
        }

    def check(self, value: object, pointer: str) -> None:
        """Raise :class:`InvalidRequest` below ``pointer`` for a value of another form."""
        if not isinstance(value, Mapping) or set(value) not in _FORMS:
            raise InvalidRequest.at(pointer, "State parameters, mean, and either covariance or variance.")
        names = value["parameters"]
        if not isinstance(names, list | tuple) or not all(isinstance(name, str) for name in names):
            raise InvalidRequest.at(f"{pointer}/parameters", "List the names of the model's parameters.")
        if not 1 <= len(names) <= self.largest or len(set(names)) < len(names):
            raise InvalidRequest.at(
                f"{pointer}/parameters", f"List at most {self.largest} parameters, each of them once."
            )
        _check_numbers(value["mean"], len(names), f"{pointer}/mean")
        if "variance" in value:
            _check_numbers(value["variance"], len(names), f"{pointer}/variance")
            return
        rows = value["covariance"]
        if not isinstance(rows, list | tuple) or len(rows) != len(names):
            raise InvalidRequest.at(f"{pointer}/covariance", "State one row for each parameter.")
        for index, row in enumerate(rows):
            _check_numbers(row, len(names), f"{pointer}/covariance/{index}")


_FORMS: Final = ({"parameters", "mean", "covariance"}, {"parameters", "mean", "variance"})
_LARGEST_NUMBER: Final = 1e12


def _check_numbers(values: object, count: int, pointer: str) -> None:
    if not isinstance(values, list | tuple) or len(values) != count:
        raise InvalidRequest.at(pointer, "State one number for each parameter.")
    for index, value in enumerate(values):
        if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) <= _LARGEST_NUMBER:
            raise InvalidRequest.at(f"{pointer}/{index}", f"Use a number of at most {_LARGEST_NUMBER:g} in size.")


Knob = Parameter | Choice | Switch | Names | NormalLaw
