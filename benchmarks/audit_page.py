"""Renders the page of the privacy audit from its records."""

import math
from typing import Any, Final

from app.inference.audit.mechanism import CONFIDENCE, DELTA
from app.inference.audit.report import RATE, Record
from app.privacy.audit.bounds import (
    Counts,
    bound_epsilon_by_shape,
    bound_family,
    choose_threshold,
)
from app.privacy.audit.laws import AnswerLaw
from app.privacy.audit.thresholds import ALARM
from benchmarks.audit_summary import HALF_EACH, share_by_parts, summarise
from benchmarks.summaries import wrap_paragraph

SHARES: Final = (0.05, 0.25, 0.5, 0.75, 0.95)
"""Shares of watches whose number of answers is shown."""
WATCHES: Final = 20
GOAL: Final = 0.9
"""Share of the claim for which the number of answers is computed."""


def render(records: dict[str, list[Record]]) -> str:
    """Render the page from the records of all sections."""
    parts = [INTRODUCTION, f"## Summary\n{wrap_paragraph(summarise(records))}"]
    for title, text, section, columns in LAYOUT:
        rows = [[_show(record, column) for column in columns.values()] for record in records.get(section, [])]
        parts.append(f"## {title}\n{text}\n\n{_make_table(list(columns), rows)}")
    parts.append(make_parts_section(records["canaries"], records["sampling"][0]))
    return "\n\n".join(parts) + "\n"


def make_parts_section(records: list[Record], sampling: Record) -> str:
    """Make the section about rate and noise measured in separate cells."""
    rows = []
    for record in (each for each in records if each["rate"] == 1):
        claim, share = AnswerLaw(record["noise"], RATE), share_by_parts(record, sampling)
        numbers = [f"{record['noise']:g}", f"{claim.compute_epsilon(DELTA):.4g}", f"{100 * share:.1f} %"]
        rows.append([*numbers, f"{find_answers(claim, GOAL):.2g}"])
    heads = ["noise σ", "claimed ε", "shown share", f"answers for {100 * GOAL:g} % directly"]
    return f"{BY_PARTS}\n\n{_make_table(heads, rows)}"


def find_answers(claim: AnswerLaw, share: float) -> float:
    """Find how many answers should show a share of a claim, to a hundredth."""
    least, most = 1e3, 1e12
    while most > 1.01 * least:
        middle = math.sqrt(least * most)
        least, most = (least, middle) if expect_share(claim, middle) >= share else (middle, most)
    return most


def expect_share(claim: AnswerLaw, answers: float) -> float:
    """Compute the share of a claim that expected counts of answers show."""
    half = round(answers / 2)
    threshold = choose_threshold(claim, half, half, lambda counts: bound_family(counts, claim, CONFIDENCE))
    true, false = (float(claim.exceed(threshold, present=flag)) * half for flag in (True, False))
    expected = Counts(true, half, false, half)
    return bound_epsilon_by_shape(expected, claim, DELTA, CONFIDENCE) / claim.compute_epsilon(DELTA)


def _make_table(heads: list[str], rows: list[list[str]]) -> str:
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _show(record: Record, column: str) -> str:
    if column.startswith("share of "):
        return f"{100 * record[column.removeprefix('share of ')] / record['epsilon']:.1f} %"
    if column.startswith("percent of "):
        return f"{100 * record[column.removeprefix('percent of ')]:.1f} %"
    if column == "evidence":
        return f"{math.exp(max(record.get('law_evidence', 0.0), record.get('privacy_evidence', 0.0))):.3g}"
    if column == "answers of all":
        return f"{record['counts'][1] + record['counts'][3]:,}"
    if column.startswith("quantile "):
        return f"{record['answers'][column.removeprefix('quantile ')]:,.0f}"
    return _show_value(record[column])


def _show_value(value: Any) -> str:
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "**no**"
    if isinstance(value, float):
        return f"{value:,.0f}" if value >= 10_000 else f"{value:.4g}"
    return f"{value:,}" if isinstance(value, int) else str(value)


INTRODUCTION: Final = f"""# Privacy audit

The audit attacks the privacy mechanism, and compares the success with the guarantee. It uses simulated tables and the
code of real runs: oracle, sampler, clipping, grid and noise. `make audit` writes this page. `corevaultd audit` runs a
smaller audit and fails if an attack exceeds the guarantee.

- **Neighbours.** One unit, the *canary*, is in a table or not. All other units contribute nothing. The canary's
  contribution has the clipping norm, which is the worst case.
- **Attack.** Each answer is projected on the canary's contribution. By the likelihood ratio, a threshold is the best
  test (Neyman and Pearson).
- **Shown share.** A lower bound on ε at δ = {DELTA:g}, divided by the claimed ε. The bound fails with probability
  {1 - CONFIDENCE:.3g} at most, so the share should not exceed 100 %. It comes from Clopper-Pearson bounds on both error
  rates, and from the claimed family of trade-off curves.
- **By one point.** The same bound without an assumption about the curve. It cannot come close to 100 % at a small δ.
- **Evidence.** The largest value of e-processes against the claim. A true claim reaches {ALARM:,.0f} with a probability
  of at most {1 / ALARM:g}, at any time.

All records, with the raw counts, are in [audit.json](benchmarks/audit.json). The statistics are in `app/privacy/audit`,
the attacks in `app/inference/audit`."""

BY_PARTS: Final = f"""## Sampling rate and noise by parts
At the rate {RATE:g} most answers do not contain the canary, so a direct bound needs very many answers. Here two cells
are combined. The rate comes from a cell whose noise is so small that inclusion is visible. The noise comes from a cell
at rate 1. The combination assumes that the sampler does not depend on the noise. Each bound holds at
{100 * HALF_EACH:.4g} %, so both hold at {100 * CONFIDENCE:.4g} %. The last column is the number of answers of which
a direct bound is expected to show {100 * GOAL:g} %."""

ALL_KINDS: Final = """\
Answers of all kinds of queries in turn, for units of one row and of three. Subsamples at the rate 0.3 are drawn without
replacement, and those at 0.02 by their gaps. The number of answers limits the shares here. More answers of one kind
follow."""

MANY: Final = f"""\
Two hundred orthogonal canaries in each answer, which makes many answers fast. At the rate {RATE:g}, the number of
answers limits the share. *Sampling rate and noise by parts* states how many a direct bound needs, and combines two
cells instead."""

VISIBLE_RATE: Final = """\
The same at so little noise that an answer shows whether its canary was in the subsample. *Shown rate* is a lower bound
on the sampling rate."""

WHOLE_RUNS: Final = """\
All answers of a run up to its release, as one normal number. The attacker has the rows of all other people and
subtracts their contributions. Their rows are chosen so that no parameter explains the canary: its contributions then
stay as long as the clipping norm through the whole run. `mu` is the separation that the accountant prices, *reached*
its mean for this canary, and *shown* a lower bound from the runs. `mu` is large, so that few runs suffice."""

FINAL: Final = """\
The attacker sees the release, but no answer. Shadow runs of the whole method, fit included, train a likelihood ratio of
two normal laws. It reads a few numbers that describe the release in the canary's direction. Fresh runs test it, at a
threshold from training. *Shown* is a lower bound on `mu` by Clopper-Pearson. *Estimate* is the Gaussian separation with
the same area under the curve, without a bound. *By all answers* is the share that the answers of the same runs show, as
in the section before. A release shows less than the answers, because points and fit keep only a part of them. The price
does not count on it."""

ONE_RUN: Final = """\
One run with a thousand canaries. The bound by guesses assumes nothing (Steinke, Nasr & Jagielski 2023). It covers runs
that reveal all canaries at once with a probability of δ. *At most* is this bound if every guess were correct. If it is
below 100 %, guesses in one run of this size have no power: no defect makes them refute the claim. The shown share
assumes that canaries are independent."""

GUESSES: Final = """\
Guesses about every canary, in runs with fresh coins. Under the claim, a guess is correct with at most the *allowed*
probability. Canaries of one run may depend on each other. *Power* is the share of simulated audits that refute the
claim if noise has half of its planned scale. The report as a whole refutes a true claim once in 1,000 times at most."""

TREES: Final = """\
Adaptive analysts, as exact trees of two to four mechanisms. The numbers are the spent δ divided by the limit. Two
plausible rules fail: the least ε over all orders, and several orders that each use all of δ."""

GENTLE: Final = f"""\
The number of answers after which a share of {WATCHES} audits has found a break, by the evidence against the claimed
law. *Expected* is computed by quadrature. Answers are simulated from the broken law; `make mutants` breaks the code
itself ([results](benchmarks/mutants.md)). The audit finds longer contributions without any answer, by their norm."""

LAYOUT: Final[tuple[tuple[str, str, str, dict[str, str]], ...]] = (
    (
        "Contributions",
        "The norm of the canary's contribution in clipping norms, without statistics. More than 1 would break W5.",
        "contributions",
        {"query": "query", "unit of one row": "one_row", "unit of three rows": "three_rows", "holds": "holds"},
    ),
    (
        "Every kind of query",
        ALL_KINDS,
        "mechanism",
        {
            "noise σ": "noise",
            "rate q": "rate",
            "answers": "answers of all",
            "claimed ε": "epsilon",
            "shown share": "share of by_shape",
            "by one point": "share of alone",
            "evidence": "evidence",
            "holds": "holds",
        },
    ),
    (
        "Many answers",
        MANY,
        "canaries",
        {
            "noise σ": "noise",
            "rate q": "rate",
            "answers": "answers of all",
            "claimed ε": "epsilon",
            "shown share": "share of by_shape",
            "evidence": "evidence",
            "holds": "holds",
        },
    ),
    (
        "Sampling rate",
        VISIBLE_RATE,
        "sampling",
        {
            "noise σ": "noise",
            "rate q": "rate",
            "answers": "answers of all",
            "shown rate": "parameter",
            "evidence": "evidence",
            "holds": "holds",
        },
    ),
    (
        "Whole runs",
        WHOLE_RUNS,
        "transcripts",
        {
            "method": "method",
            "runs": "runs",
            "mu": "mu",
            "reached": "reached",
            "shown": "shown",
            "claimed ε": "epsilon",
            "shown share": "share of by_shape",
            "holds": "holds",
        },
    ),
    (
        "Final release alone",
        FINAL,
        "releases",
        {
            "method": "method",
            "claimed ε": "epsilon",
            "shadow runs": "shadows",
            "runs": "runs",
            "mu": "mu",
            "estimate": "estimate",
            "shown": "shown",
            "shown share": "share of by_shape",
            "by one point": "share of alone",
            "by all answers": "share of by_answers",
            "holds": "holds",
        },
    ),
    (
        "One run",
        ONE_RUN,
        "one-run",
        {
            "noise σ": "noise",
            "queries": "queries",
            "guesses": "guesses",
            "correct": "correct",
            "claimed ε": "epsilon",
            "by guesses": "share of by_guesses",
            "at most": "share of most_by_guesses",
            "shown share": "share of by_shape",
            "holds": "holds",
        },
    ),
    (
        "Guesses in several runs",
        GUESSES,
        "guesses",
        {
            "noise σ": "noise",
            "queries": "queries",
            "canaries": "canaries",
            "runs": "runs",
            "claimed ε": "epsilon",
            "correct": "percent of accuracy",
            "allowed": "percent of most_accuracy",
            "evidence": "evidence",
            "power": "percent of power",
            "holds": "holds",
        },
    ),
    (
        "Filter",
        TREES,
        "filter",
        {
            "ε": "epsilon",
            "δ": "delta",
            "mechanisms": "levels",
            "filter": "filter",
            "filter of many orders": "wide_filter",
            "least ε": "free_minimum",
            "no union bound": "without_union_bound",
            "holds": "holds",
        },
    ),
    (
        "Gentle breaks",
        GENTLE,
        "detection",
        {"break": "break", "noise σ": "noise", "rate q": "rate", "expected": "expected"}
        | {f"{100 * share:g} %": f"quantile {share:g}" for share in SHARES},
    ),
)
