"""Offline verification of a signed privacy audit.

A server's operator writes the statement with ``corevaultd audit --statement FILE``. It contains the raw counts of
every attack, digests of the audited code, and the bounds. This module checks the signature and computes the bounds
again from the counts. It shares no code with the server, so it is a second derivation.

The canary's answer follows ``N(0, s^2)`` without it, and ``(1 - q) N(0, s^2) + q N(1, s^2)`` with it. Bounds on both
rates are by Clopper and Pearson. Sources: Nasr et al., *Tight auditing of differentially private machine
learning*, 2023; Steinke, Nasr & Jagielski, *Privacy auditing with one (1) training run*, 2023.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from scipy.special import bdtr, betainccinv, betaincinv, ndtr, ndtri

from corevault.errors import VerificationError
from corevault.replies.key import SigningKey
from corevault.replies.release import Certificate
from corevault.verification import read_pins, verify_signature

_TOLERANCE: Final = 1e-6
"""Largest relative difference between a stated and a computed bound."""
_MOST_EPSILON: Final = 600.0
_STAKES: Final = (0.25, 0.5, 0.9, 0.99)
_COUNTED: Final = frozenset({"mechanism", "canaries", "sampling", "transcripts", "releases", "one-run", "guesses"})
"""Sections whose records have counts."""


@dataclass(frozen=True, slots=True)
class AuditStatement:
    """A verified audit.

    ``checked`` is the number of bounds that were computed again. ``failures`` is the number of refuted claims.
    ``altered`` names libraries whose installed files differ from their records.
    """

    statement: Mapping[str, Any]
    checked: int
    failures: int
    altered: tuple[str, ...]

    @property
    def holds(self) -> bool:
        """Whether no attack exceeded the guarantee, and no library was altered."""
        return self.failures == 0 and not self.altered


def verify_audit(document: Mapping[str, Any], pinned: Iterable[str | SigningKey]) -> AuditStatement:
    """The verified audit in a signed document.

    ``pinned`` are release keys that the caller trusts, as for :func:`corevault.verification.verify_release`.

    Raises:
        VerificationError: the signature, a bound or a number of failures is wrong. Or a section is missing, or numbers
            refute a claim that holds by the statement.
    """
    certificate, pins = _read(document), read_pins(pinned)
    assert pins is not None
    verify_signature(certificate, pins)
    statement = certificate.statement
    if statement.get("kind") != "privacy-audit":
        raise VerificationError("The document is no statement of a privacy audit.")
    try:
        plan, sections = statement["plan"], statement["records"]
        if set(sections) != set(plan["sections"]):
            raise VerificationError("The statement has not all records of its sections.")
        records = [each for found in sections.values() for each in found]
        checked = sum(_check_record(each, plan, name) for name, found in sections.items() for each in found)
        failures, stated = sum(not each["holds"] for each in records), statement["failures"]
        altered = tuple(name for name, each in statement["code"]["libraries"].items() if each["altered"])
    except (KeyError, TypeError, ValueError, AttributeError, ArithmeticError) as error:
        raise VerificationError("The statement of the audit is malformed.") from error
    if failures != stated:
        raise VerificationError("The stated number of failures differs from that of the records.")
    return AuditStatement(statement, checked, failures, altered)


def _read(document: Mapping[str, Any]) -> Certificate:
    try:
        statement, signature, key_id = (document[name] for name in ("statement", "signature", "key_id"))
    except (KeyError, TypeError) as error:
        raise VerificationError("The document has no statement with a signature.") from error
    if not (isinstance(statement, dict) and isinstance(signature, str) and isinstance(key_id, str)):
        raise VerificationError("The document has no statement with a signature.")
    return Certificate(statement=statement, signature=signature, key_id=key_id)


def _check_record(record: Mapping[str, Any], plan: Mapping[str, Any], section: str) -> int:
    """Computes the bounds of a record again; returns their number."""
    expected, is_refuted = _compute_again(record, plan, section)
    for name, value in expected.items():
        if not math.isclose(float(record[name]), value, rel_tol=_TOLERANCE, abs_tol=_TOLERANCE):
            raise VerificationError(f"The stated {name} of a record does not follow from its counts.")
    if not isinstance(record["holds"], bool) or (is_refuted and record["holds"]):
        raise VerificationError("By the statement a claim holds, but its numbers refute the claim.")
    return len(expected)


def _compute_again(record: Mapping[str, Any], plan: Mapping[str, Any], section: str) -> tuple[dict[str, float], bool]:
    """The bounds of a record by name, and whether they refute the claim."""
    delta, confidence, chance = (float(plan[name]) for name in ("delta", "confidence", "chance"))
    if "counts" in record and not {"by_shape", "by_threshold"}.isdisjoint(record):
        is_run = "mu" in record
        noise, rate = (1 / float(record["mu"]), 1.0) if is_run else (float(record["noise"]), float(record["rate"]))
        expected = {"epsilon": compute_epsilon(noise, rate, delta)}
        if "by_threshold" in record:
            expected["by_threshold"] = bound_separation(record["counts"], confidence)
        else:
            expected["by_shape"] = bound_epsilon(record["counts"], noise, rate, delta, confidence)
        return expected, _refutes(record["counts"], noise, rate, 1 - chance)
    if {"canaries", "guesses", "correct", "by_guesses", "epsilon"} <= record.keys():
        canaries, guesses, correct = (int(record[name]) for name in ("canaries", "guesses", "correct"))
        strictly = bound_by_guesses(canaries, guesses, correct, delta, 1 - chance)
        expected = {"by_guesses": bound_by_guesses(canaries, guesses, correct, delta, confidence)}
        return expected, strictly > float(record["epsilon"]) + _TOLERANCE
    if {"canaries", "correct", "most_accuracy", "privacy_evidence"} <= record.keys():
        noise = float(record["noise"]) / math.sqrt(record["queries"])
        evidence, accuracy = weigh_guesses(record["correct"], int(record["canaries"]), noise)
        expected = {"epsilon": compute_epsilon(noise, 1.0, delta), "most_accuracy": accuracy}
        return expected | {"privacy_evidence": evidence}, evidence >= -math.log(chance)
    if section in _COUNTED:
        raise ValueError("a record has no counts")
    is_refuted = section == "contributions" and max(float(record["one_row"]), float(record["three_rows"])) > 1
    return {}, is_refuted


def _refutes(counts: Sequence[float], noise: float, rate: float, confidence: float) -> bool:
    """Whether the rates are outside of the claimed trade-off curve."""
    low, high = bound_rates(counts, confidence)
    if not 0 < high < 1:
        return False
    return low > (1 - rate) * high + rate * float(ndtr(ndtri(high) + 1 / noise)) + _TOLERANCE


def bound_rates(counts: Sequence[float], confidence: float) -> tuple[float, float]:
    """True positives from below and false positives from above; half of the error for each.

    ``counts`` are true positives, answers with the canary, false positives, answers without.
    """
    true, present, false, absent = (float(each) for each in counts)
    if not (0 <= true <= present and 0 <= false <= absent):
        raise ValueError("there are more positives than answers")
    error = (1 - confidence) / 2
    low = float(betaincinv(true, present - true + 1, error)) if true else 0.0
    high = float(betainccinv(false + 1, absent - false, error)) if false < absent else 1.0
    return low, high


def bound_separation(counts: Sequence[float], confidence: float) -> float:
    """The largest separation of two normal laws that the counts refute."""
    low, high = bound_rates(counts, confidence)
    return max(0.0, float(ndtri(low) - ndtri(high))) if low > 0 and high < 1 else 0.0


def bound_epsilon(counts: Sequence[float], noise: float, rate: float, delta: float, confidence: float) -> float:
    """The lower bound on epsilon by the shape of the trade-off curve.

    At rate 1 the family is all normal laws. Below, it is all sampling rates at this noise.
    """
    if rate == 1:
        separation = bound_separation(counts, confidence)
        return compute_epsilon(1 / separation, 1.0, delta) if separation > 0 else 0.0
    low, high = bound_rates(counts, confidence)
    if not 0 < high < 1:
        return 0.0
    most = float(ndtr(ndtri(high) + 1 / noise)) - high
    found = min(1.0, (low - high) / most)
    return compute_epsilon(noise, found, delta) if found > 0 else 0.0


def compute_epsilon(noise: float, rate: float, delta: float) -> float:
    """The least epsilon at ``delta`` of one answer, by bisection."""
    if _compute_delta(noise, rate, 0.0) <= delta:
        return 0.0
    low, high = 0.0, 1.0
    while _compute_delta(noise, rate, high) > delta and high < _MOST_EPSILON:
        high = min(2 * high, _MOST_EPSILON)
    for _ in range(80):
        middle = (low + high) / 2
        low, high = (middle, high) if _compute_delta(noise, rate, middle) > delta else (low, middle)
    return (low + high) / 2


def _compute_delta(noise: float, rate: float, epsilon: float) -> float:
    """The larger hockey-stick divergence of both directions."""

    def cut(log_ratio: float) -> float:
        inner = (math.exp(log_ratio) - (1 - rate)) / rate
        return -math.inf if inner <= 0 else noise**2 * math.log(inner) + 0.5

    above, below = cut(epsilon), cut(-epsilon)
    tails = ndtr(-above / noise), ndtr((1 - above) / noise)
    forward = (1 - rate) * tails[0] + rate * tails[1] - math.exp(epsilon) * tails[0]
    heads = ndtr(below / noise), ndtr((below - 1) / noise)
    backward = heads[0] - math.exp(epsilon) * ((1 - rate) * heads[0] + rate * heads[1])
    return float(max(forward, backward))


def bound_by_guesses(canaries: int, guesses: int, correct: int, delta: float, confidence: float) -> float:
    """The lower bound on epsilon by guesses about many canaries (Theorem 5.2)."""
    low, high = 0.0, 50.0
    if _compute_chance(canaries, guesses, correct, low, delta) > 1 - confidence:
        return 0.0
    for _ in range(60):
        middle = (low + high) / 2
        is_refuted = _compute_chance(canaries, guesses, correct, middle, delta) <= 1 - confidence
        low, high = (middle, high) if is_refuted else (low, middle)
    return low


def weigh_guesses(correct: Sequence[int], canaries: int, noise: float) -> tuple[float, float]:
    """The evidence by guesses in several runs, and the claimed rate of correct guesses.

    A bet on each run multiplies the capital of a stake by ``1 + stake (share / rate - 1)``. The evidence is the mean
    capital of all stakes. The logarithm of its largest value is returned.
    """
    rate = float(ndtr(0.5 / noise))
    capital, largest = dict.fromkeys(_STAKES, 1.0), 1.0
    for each in correct:
        if not 0 <= each <= canaries:
            raise ValueError("there are more correct guesses than canaries")
        capital = {stake: value * (1 + stake * (each / canaries / rate - 1)) for stake, value in capital.items()}
        largest = max(largest, sum(capital.values()) / len(capital))
    return math.log(largest), rate


def _compute_chance(canaries: int, guesses: int, correct: int, epsilon: float, delta: float) -> float:
    chance = 1 / (1 + math.exp(-epsilon))
    below = [float(bdtr(number, guesses, chance)) for number in range(correct)]
    tail = 1 - below[-1] if below else 1.0
    steps = range(1, correct + 1)
    between = (below[-1] - (below[correct - each - 1] if each < correct else 0.0) for each in steps)
    slope = max((total / each for each, total in zip(steps, between, strict=True)), default=0.0)
    return min(1.0, tail + 2 * canaries * delta * slope)
