"""Conversion of stored declarations to the core's ``DeclaredFacts``, and their digest."""

from typing import Any, Literal, cast

from app.datasets.models import Dataset
from app.hashchain import digest
from app.inference.core.facts import Column, DeclaredFacts


def make_declared_facts(dataset: Dataset, delta: float | None = None) -> DeclaredFacts:
    """Return the declared facts of ``dataset``.

    ``delta`` is the delta of its account. It is None on public data, and where no plan depends on it.
    """
    return DeclaredFacts(
        columns=tuple(_column(stored) for stored in dataset.columns),
        slots=dataset.slots,
        unit=dict(dataset.privacy_unit),
        sensitivity=cast(Literal["private", "public"], dataset.sensitivity),
        delta=delta,
    )


def digest_facts(dataset: Dataset) -> str:
    """Compute the hexadecimal SHA-256 of the RFC 8785 form of all declared facts.

    The series is one of them if there is one.

    Raises:
        rfc8785.CanonicalizationError: a value has no RFC 8785 form, such as an integer above 2**53. A valid declaration
            has no such value.
    """
    facts = {
        "columns": dataset.columns,
        "privacy_unit": dataset.privacy_unit,
        "slots": dataset.slots,
        "sensitivity": dataset.sensitivity,
    }
    return digest(facts if dataset.series is None else facts | {"series": dataset.series})


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
