"""Parameters of methods: names, types, ranges, defaults, JSON Schemas and checks."""

from dataclasses import dataclass
from typing import Any, Literal

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


Knob = Parameter | Choice | Switch
