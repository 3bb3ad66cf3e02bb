"""Sentences that describe the certificate of a release."""

from collections.abc import Iterator, Mapping
from typing import Any

from app.dashboard.wording import count_noun, describe_unit, format_number, format_odds
from app.privacy.risk import compute_odds


def describe_certificate(statement: Mapping[str, Any]) -> list[str]:
    """Describe the rules that the run followed, one sentence or two for each.

    A statement of an earlier version may lack members. Sentences about them are left out.
    """
    return list(_describe(statement))


def _describe(statement: Mapping[str, Any]) -> Iterator[str]:
    privacy, slots = statement.get("privacy"), statement.get("slots")
    if privacy is None:
        yield "The data is public, so this release has no privacy cost and no guarantee."
        return
    yield f"Protected is {describe_unit(statement.get('unit') or {})}, in a table that is padded to {slots:,} slots."
    if words := statement.get("relation_in_words"):
        yield str(words)
    if series := statement.get("series"):
        yield str(series["in_words"])
    yield from _describe_mechanism(statement)
    if words := statement.get("clipping"):
        yield f"Bounds on contributions: {words}"
    if (grid := statement.get("noise_grid")) and grid.get("drawn"):
        yield f"Noise: {grid['drawn']}"
    epsilon, delta = float(privacy["epsilon"]), float(privacy["delta"])
    odds = format_odds(compute_odds(epsilon))
    yield (
        f"This job alone costs ε {format_number(epsilon)} at δ {format_number(delta)}, by the accountant "
        f"{statement.get('accountant')}. From even odds, an attacker reaches at most {odds}, up to δ."
    )
    if account := statement.get("account"):
        limit = account["limit"]
        yield (
            f"All releases about these people together stay within ε {format_number(limit['epsilon'])} at "
            f"δ {format_number(limit['delta'])}. The ledger proves it: entry {account['sequence']} of the account, "
            f"checkpoint {account['checkpoint']['sequence']}."
        )
    if words := statement.get("conditions"):
        yield str(words)


def _describe_mechanism(statement: Mapping[str, Any]) -> Iterator[str]:
    rate, noise, count = (statement.get(name) for name in ("sampling_rate", "noise_multiplier", "iterations"))
    if rate is None or noise is None or count is None:
        return
    used = (
        "Each query uses every slot"
        if rate == 1
        else f"Each slot enters a query with probability {format_number(rate)}"
    )
    yield (
        f"The run asked {count_noun(count, 'noised sum')}. {used}. Together they cost as much as queries with noise of "
        f"{format_number(noise)} times the bound on one unit's contribution."
    )
