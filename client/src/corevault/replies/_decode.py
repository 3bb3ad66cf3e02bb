"""Decoding of JSON to frozen dataclasses, by their type hints.

A member that is not declared here is ignored; ``raw`` holds it. A required member that is missing, or that has another
type, raises ``UnexpectedReply``.
"""

import dataclasses
import types
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, ClassVar, Self, Union, get_args, get_origin, get_type_hints

from corevault._show import show_facts, write_call
from corevault.errors import UnexpectedReply


@dataclass(frozen=True, kw_only=True, repr=False)
class Reply:
    """Base of all replies. ``raw`` is the JSON object that the reply was made from.

    ``SHOWN`` names the members in the text of a reply and in tables; without it, all are shown.
    """

    SHOWN: ClassVar[tuple[str, ...]] = ()

    raw: Mapping[str, Any] = field(default_factory=dict, repr=False, compare=False)

    def __repr__(self) -> str:
        return write_call(type(self).__name__, self.facts())

    def _repr_html_(self) -> str:
        names = [member.name for member in dataclasses.fields(self) if member.name not in ("raw", "key")]
        return show_facts({name: getattr(self, name) for name in names})

    def facts(self) -> dict[str, Any]:
        """The members that its text and its row in a table show.

        >>> client.datasets.budget("clinic").limit.facts()
        {'epsilon': 10.0, 'delta': 1e-06}
        """
        names = self.SHOWN or tuple(member.name for member in dataclasses.fields(self) if member.name != "raw")
        return {name: getattr(self, name) for name in names}

    @classmethod
    def from_json(cls, value: object) -> Self:
        """The reply from its JSON object. Raises ``UnexpectedReply`` if a member is missing or has another type.

        >>> Cost.from_json({"epsilon": 0.5, "delta": 1e-6})
        Cost(epsilon=0.5, delta=1e-06)
        """
        if not isinstance(value, dict):
            raise UnexpectedReply(f"The server's answer is not a JSON object where {cls.__name__} is expected.")
        hints = get_type_hints(cls)
        members: dict[str, Any] = {"raw": value}
        for member in dataclasses.fields(cls):
            if member.name in value and member.name != "raw":
                members[member.name] = _decode(hints[member.name], value[member.name], f"{cls.__name__}.{member.name}")
        try:
            return cls(**members)
        except TypeError as error:
            raise UnexpectedReply(f"The server's answer lacks members of {cls.__name__}.") from error


def _decode(hint: Any, value: Any, where: str) -> Any:
    origin, arguments = get_origin(hint), get_args(hint)
    if hint is Any:
        return value
    if origin in (Union, types.UnionType):
        if value is None and type(None) in arguments:
            return None
        return _decode(next(kind for kind in arguments if kind is not type(None)), value, where)
    if origin is tuple and isinstance(value, list):
        return tuple(_decode(arguments[0], item, where) for item in value)
    if origin is not None and isinstance(value, dict) and issubclass(origin, Mapping):
        return value
    if isinstance(hint, type):
        return _decode_plain(hint, value, where)
    raise UnexpectedReply(f"The server's answer has another type at {where}.")


def _decode_plain(kind: type, value: Any, where: str) -> Any:
    if issubclass(kind, Reply):
        return kind.from_json(value)
    if kind is datetime and isinstance(value, str):
        try:
            return datetime.fromisoformat(value)
        except ValueError as error:
            raise UnexpectedReply(f"The server's answer has no RFC 3339 time at {where}.") from error
    if kind is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if isinstance(value, kind) and not (isinstance(value, bool) and kind is not bool):
        return value
    raise UnexpectedReply(f"The server's answer has another type at {where}.")
