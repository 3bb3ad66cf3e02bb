"""Replies about what the server can run."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from corevault.replies._decode import Reply


@dataclass(frozen=True, kw_only=True)
class Method(Reply):
    """A method; ``parameters`` is a JSON Schema, ``private`` says whether it may run on private data."""

    id: str
    private: bool = False
    parameters: Mapping[str, Any] | None = None


@dataclass(frozen=True, kw_only=True)
class Model(Reply):
    """A model family."""

    family: str


@dataclass(frozen=True, kw_only=True)
class Catalogue(Reply):
    """All of them."""

    methods: tuple[Method, ...]
    models: tuple[Model, ...] = ()
