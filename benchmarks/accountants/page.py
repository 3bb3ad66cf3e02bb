"""Renders the page that compares accountants."""

from collections.abc import Iterable, Sequence
from typing import Any, Final

from benchmarks.accountants.environments import read_requirements
from benchmarks.accountants.opinions import TOLERANCE
from benchmarks.accountants.points import FRACTION_SLACK, FRACTIONS, SLACK, WHOLE, find_shortfalls
from benchmarks.summaries import wrap_paragraph

ROWS: Final = (
    ("ledger_whole", "whole", f"the definition, {len(WHOLE)} integer orders, by interval arithmetic"),
    ("ledger_fractions", "fractions", f"the definition, {len(FRACTIONS)} other orders, by quadrature"),
    ("ledger", "exact", "closed forms (rate 1, or one event)"),
    ("ledger", "losses_down", "privacy loss distribution, rounded down"),
    ("ledger", "losses_up", "privacy loss distribution, rounded up"),
    ("ledger", "tensorflow_privacy", "TensorFlow Privacy, Rényi"),
    ("ledger", "tensorflow_privacy_losses", "TensorFlow Privacy, privacy loss distribution"),
)
_PACKAGES: Final = ("tensorflow-privacy", "dp-accounting", "jax-privacy")


def render(records: Sequence[dict[str, Any]], opinions: Sequence[dict[str, Any]]) -> str:
    """Render the page from stored prices and statistics."""
    prices = [[*each] for each in _summarise(records)]
    heads = ["other price", "points", "ledger − other, least", "ledger / other, least", "median", "largest"]
    shortfalls = sum(1 for record in records for _ in find_shortfalls(record))
    verdict = (
        "No other price refutes the ledger's." if not shortfalls else f"**{shortfalls} prices refute the ledger.**"
    )
    second = ["statistic", "cases", "largest difference"]
    return (
        "\n\n".join(
            [
                *map(wrap_paragraph, INTRODUCTION.format(points=len(records), versions=_list_versions()).split("\n\n")),
                verdict,
                _make_table(heads, prices),
                "## A second opinion on the audit's statistics",
                wrap_paragraph(OPINIONS),
                _make_table(second, list(_compare(opinions))),
            ]
        )
        + "\n"
    )


def _summarise(records: Sequence[dict[str, Any]]) -> Iterable[list[str]]:
    for own, other, words in ROWS:
        pairs = [(record[own], record[other]) for record in records if record.get(other) is not None]
        ratios = sorted(ledger / price for ledger, price in pairs if price > 0)
        least = min(ledger - price for ledger, price in pairs)
        yield [
            words,
            str(len(pairs)),
            f"{least:.3g}",
            f"{ratios[0]:.9f}",
            f"{ratios[len(ratios) // 2]:.4f}",
            f"{ratios[-1]:.4g}",
        ]


def _compare(opinions: Sequence[dict[str, Any]]) -> Iterable[list[str]]:
    for name in dict.fromkeys(each["statistic"] for each in opinions):
        chosen = [each for each in opinions if each["statistic"] == name]
        largest = max(abs(each["here"] - each["jax_privacy"]) for each in chosen)
        yield [STATISTICS[name], str(len(chosen)), f"{largest:.2g}"]


def _list_versions() -> str:
    pins = [pin for name in ("tensorflow-privacy", "jax-privacy") for pin in read_requirements(name)]
    return ", ".join(dict.fromkeys(pin for pin in pins if pin.split("==")[0] in _PACKAGES))


def _make_table(heads: list[str], rows: list[list[str]]) -> str:
    return "\n".join(f"| {' | '.join(line)} |" for line in [heads, ["---"] * len(heads), *rows])


STATISTICS: Final = {
    "by_one_point": "ε by one point (Clopper-Pearson)",
    "area": "area under the curve",
    "power": "true positives at 1 % false positives",
    "by_guesses": "ε by guesses in one run",
}

INTRODUCTION: Final = f"""# Accountants

Written by `make accountants`. {{points}} points of sampling rate, noise, number of events and δ are priced by several
accountants. The ledger may never charge less than another accountant proves. It may charge more, because Rényi prices
are not tight. TensorFlow Privacy and JAX Privacy run in isolated environments ({{versions}}), and get and give JSON.
TensorFlow Privacy's accounting is imported without TensorFlow, as its scripts do.

The derivation from the definition shares no code with the ledger or its library. A price by other means may exceed the
ledger's by {SLACK:g} nats. By quadrature, at orders that are no integers, it may exceed it by a share of
{FRACTION_SLACK:g}. Every price is in [accountants.csv](accountants.csv)."""

OPINIONS: Final = f"""The [privacy audit](../audit.md) computes its bounds by `app/privacy/audit`. JAX Privacy
computes the same from the same simulated scores. They may differ by {TOLERANCE:g}. Area and true positives belong to
tests that choose between two thresholds at random: the concave hull of the curve. Every figure is in
[accountants-statistics.csv](accountants-statistics.csv)."""
