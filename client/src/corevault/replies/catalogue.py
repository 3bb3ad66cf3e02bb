"""Replies about methods and models."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from corevault.replies._decode import Reply


@dataclass(frozen=True, kw_only=True)
class Method(Reply):
    """A method. ``parameters`` is a JSON Schema.

    ``may_run_on_private_data`` is False for a method that reveals rows. ``default`` is True for the method that applies
    to a job without one.
    """

    id: str
    may_run_on_private_data: bool = False
    default: bool = False
    description: str = ""
    parameters: Mapping[str, Any] | None = None


@dataclass(frozen=True, kw_only=True)
class Model(Reply):
    """A model family."""

    family: str
    description: str = ""


@dataclass(frozen=True, kw_only=True)
class Catalogue(Reply):
    """All methods and models."""

    methods: tuple[Method, ...]
    models: tuple[Model, ...] = ()
