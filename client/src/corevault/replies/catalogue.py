"""Replies about methods and models."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from corevault.replies._decode import Reply


@dataclass(frozen=True, kw_only=True, repr=False)
class Method(Reply):
    """A method. ``parameters`` is a JSON Schema.

    ``may_run_on_private_data`` is False for a method that reveals rows. ``default`` is True for the method that applies
    to a job without one. ``needs`` are the capabilities that a model must offer, ``models`` the families that offer
    them. ``leaves`` is ``points``, ``belief`` or ``groups``.
    """

    SHOWN: ClassVar[tuple[str, ...]] = ("id", "default", "may_run_on_private_data")

    id: str
    may_run_on_private_data: bool = False
    default: bool = False
    needs: tuple[str, ...] = ()
    leaves: str = "points"
    models: tuple[str, ...] = ()
    description: str = ""
    parameters: Mapping[str, Any] | None = None


@dataclass(frozen=True, kw_only=True, repr=False)
class Model(Reply):
    """A model family. ``settings`` are JSON Schemas of further members of a request's model, by name."""

    family: str
    offers: tuple[str, ...] = ()
    description: str = ""
    settings: Mapping[str, Any] | None = None


@dataclass(frozen=True, kw_only=True, repr=False)
class Catalogue(Reply):
    """All methods and models.

    >>> "logistic-regression" in {model.family for model in client.methods().models}
    True
    """

    methods: tuple[Method, ...]
    models: tuple[Model, ...] = ()
