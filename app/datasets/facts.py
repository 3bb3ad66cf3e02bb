"""Declared facts in the core's words: what plans, parsers and releases may know of a table."""

from typing import Any, Literal, cast

from app.datasets.models import Dataset
from app.hashchain import digest
from app.inference.core.facts import Column, DeclaredFacts


def declared_facts(dataset: Dataset, delta: float | None = None) -> DeclaredFacts:
    """The facts of ``dataset``; ``delta`` is its account's (None for public data, which has no account)."""
    return DeclaredFacts(
        columns=tuple(_column(stored) for stored in dataset.columns),
        slots=dataset.slots,
        unit=dict(dataset.privacy_unit),
        sensitivity=cast(Literal["private", "public"], dataset.sensitivity),
        delta=delta,
    )


def digest_facts(dataset: Dataset) -> str:
    """SHA-256, in hexadecimal, of the RFC 8785 form of all that was declared of the table.

    Raises:
        rfc8785.CanonicalizationError: for what no declaration holds, such as an integer beyond 2**53.
    """
    return digest(
        {
            "columns": dataset.columns,
            "privacy_unit": dataset.privacy_unit,
            "slots": dataset.slots,
            "sensitivity": dataset.sensitivity,
        }
    )


def _column(stored: dict[str, Any]) -> Column:
    missing = stored.get("missing")
    return Column(
        name=stored["name"],
        type=stored["type"],
        lower=stored.get("lower"),
        upper=stored.get("upper"),
        categories=tuple(stored.get("categories", ())),
        impute=None if missing is None else missing["impute"],
    )
