"""Differences between neighbouring tables, beyond noised answers: ``make side-channels``.

Tables that differ in one unit take turns: each is uploaded, and each gets a job, over HTTP. Everything that a caller
sees is compared with the table in which the unit is absent: times, sizes, statuses, headers, texts, events, ids and
errors. A second table without the unit is the control.
"""

import os

os.environ |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}

import argparse
import json
import logging
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
import structlog
from scipy import stats

from benchmarks.environment import PAGES, describe, describe_environment
from benchmarks.figures import write_lines
from benchmarks.observed_jobs import UNITS, Observation, Value, open_observer
from benchmarks.summaries import wrap_paragraph

ROUNDS: Final = {"upload": 40, "dp-psvi": 40, "dp-psvi-surrogate": 36}
"""Rounds of each work. In a round, every table has its turn once, in random order."""
CHANCE: Final = 0.001
"""Chance that a measurement without any difference states a finding."""
LEAST_ROUNDS: Final = 36
"""With fewer rounds, no difference of numbers could have a p-value that is a finding."""
REFERENCE, CONTROL = "absent", "absent again"

Round = Mapping[str, Observation]


@dataclass(frozen=True, slots=True)
class Comparison:
    """One observable of one table, compared with the table without the unit.

    For numbers, ``ratio`` is the median over rounds, from ``low`` to ``high`` at 95 %. For texts, these are the shares
    of rounds in which the texts differ. ``p_value`` assumes no difference. ``differing`` counts rounds that differ.
    """

    work: str
    unit: str
    observable: str
    kind: str
    rounds: int
    differing: int
    ratio: float
    low: float
    high: float
    p_value: float

    @property
    def is_noised(self) -> bool:
        """Whether the observable is a function of noised answers."""
        return self.observable.endswith("(noised)")

    @property
    def is_time(self) -> bool:
        """Whether the observable is a duration."""
        return self.observable.endswith("seconds") or "time between" in self.observable


def compare(work: str, rounds: Sequence[Round]) -> Iterator[Comparison]:
    """Compare all observables of all tables with the reference, round by round."""
    for observable in rounds[0][REFERENCE]:
        reference = [each[REFERENCE].get(observable, "") for each in rounds]
        control = [each[CONTROL].get(observable, "") for each in rounds]
        for unit in (unit for unit in UNITS if unit != REFERENCE):
            values = [each[unit].get(observable, "") for each in rounds]
            if isinstance(reference[0], float):
                yield _compare_numbers(work, unit, observable, reference, values)
            else:
                yield _compare_texts(work, unit, observable, (reference, control), values)


def _compare_numbers(
    work: str, unit: str, observable: str, reference: Sequence[Value], values: Sequence[Value]
) -> Comparison:
    """Compare pairs by Wilcoxon's signed-rank test; the interval is by order statistics of the pairs' ratios."""
    pairs = np.array([reference, values], dtype=float)
    ratios = np.sort((pairs[1] + 1e-12) / (pairs[0] + 1e-12))
    different = int(np.sum(pairs[0] != pairs[1]))
    p_value = float(stats.wilcoxon(pairs[1], pairs[0], method="approx").pvalue) if different else 1.0
    count = len(ratios)
    place = max(0, int(stats.binom.ppf(0.025, count, 0.5)) - 1)
    low, high = float(ratios[place]), float(ratios[count - 1 - place])
    return Comparison(work, unit, observable, "number", count, different, float(np.median(ratios)), low, high, p_value)


def _compare_texts(
    work: str, unit: str, observable: str, references: tuple[Sequence[Value], Sequence[Value]], values: Sequence[Value]
) -> Comparison:
    """Compare the number of texts that differ from the reference, by Fisher's exact test.

    It is compared with the same number of the control.
    """
    reference, control = references
    count = len(reference)
    differing = sum(one != other for one, other in zip(reference, values, strict=True))
    usual = sum(one != other for one, other in zip(reference, control, strict=True))
    p_value = float(stats.fisher_exact([[differing, count - differing], [usual, count - usual]]).pvalue)
    interval = stats.binomtest(differing, count).proportion_ci(0.95)
    return Comparison(
        work, unit, observable, "text", count, differing, differing / count, interval.low, interval.high, p_value
    )


def list_findings(comparisons: Sequence[Comparison]) -> list[Comparison]:
    """List comparisons whose difference chance does not explain (Bonferroni)."""
    return [each for each in comparisons if each.p_value < CHANCE / len(comparisons)]


PAGE: Final = """# Side channels of whole jobs

{text}

{circumstances}

## Findings
{findings}

## Times
Ratio to the table without the unit: the median over rounds, and its interval at 95 %. A ratio whose interval contains 1
shows no difference. Its ends bound a difference that is not excluded.

{times}

## Sizes, texts and codes
Number of observables of each kind, and of rounds in which one of them differed from the table without the unit.

{others}
"""


def render_page(comparisons: Sequence[Comparison], circumstances: Mapping[str, str]) -> str:
    """Render the page."""
    rounds = ", ".join(f"{count} of {work}" for work, count in count_rounds(comparisons).items())
    text = (
        "Written by `make side-channels`. Tables that differ in one unit take turns, over HTTP and through the code "
        f"of the service: {rounds}. In the first table the unit is absent. In the others it is absent again (control), "
        "usual, or has extreme cells. Everything that a caller can see is compared. Ids, times, digests and fractions "
        "in texts are masked; lengths are compared too. Noised answers, and sizes that follow from them, are "
        f"differentially private, so they may differ a little. With {len(comparisons)} comparisons, a p-value below "
        f"{CHANCE / len(comparisons):.1e} is a finding. Without any difference, one measurement in {1 / CHANCE:,.0f} "
        "has one. Every comparison: [side-channels.csv](side-channels.csv)."
    )
    findings = [
        f"- {each.work}, unit {each.unit}: *{each.observable}* ({_describe(each)}, p = {each.p_value:.1e})"
        for each in list_findings(comparisons)
    ]
    return PAGE.format(
        text=wrap_paragraph(text),
        circumstances=wrap_paragraph(describe(circumstances)),
        findings="\n".join(findings) or "None.",
        times=_render_times(comparisons),
        others=_render_others(comparisons),
    )


def count_rounds(comparisons: Sequence[Comparison]) -> dict[str, int]:
    """Count the rounds of each work."""
    return {each.work: each.rounds for each in comparisons}


def _describe(comparison: Comparison) -> str:
    if comparison.kind == "text":
        return f"differs in {comparison.differing} of {comparison.rounds} rounds"
    return f"ratio {_format(comparison)}"


def _format(comparison: Comparison) -> str:
    return f"{comparison.ratio:.3f} ({comparison.low:.3f} to {comparison.high:.3f})"


def _render_times(comparisons: Sequence[Comparison]) -> str:
    units = [unit for unit in UNITS if unit != REFERENCE]
    lines = [f"| work | observable | {' | '.join(units)} |", f"| --- | --- | {' | '.join('---:' for _ in units)} |"]
    found = {(each.work, each.observable, each.unit): each for each in comparisons}
    times = dict.fromkeys((each.work, each.observable) for each in comparisons if each.is_time)
    for work, name in times:
        cells = [_format(found[work, name, unit]) for unit in units]
        lines.append(f"| {work} | {name} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _render_others(comparisons: Sequence[Comparison]) -> str:
    lines = ["| work | unit | observables | equal in every round | differing, by chance as in the control | noised |"]
    lines.append("| --- | --- | ---: | ---: | ---: | ---: |")
    others = [each for each in comparisons if not each.is_time]
    for work, unit in dict.fromkeys((each.work, each.unit) for each in others):
        mine = [each for each in others if (each.work, each.unit) == (work, unit)]
        noised = sum(each.is_noised for each in mine)
        equal = sum(each.differing == 0 and not each.is_noised for each in mine)
        lines.append(f"| {work} | {unit} | {len(mine)} | {equal} | {len(mine) - noised - equal} | {noised} |")
    return "\n".join(lines)


def measure(rounds: Mapping[str, int]) -> Iterator[list[Comparison]]:
    """Observe all works, and compare the tables after each work."""
    order = random.SystemRandom()
    with open_observer() as observer:
        for work, count in rounds.items():
            seen = list[Round]()
            for number in range(count + 1):
                units = order.sample(list(UNITS), len(UNITS))
                one = {unit: observer.observe(unit, work) for unit in units}
                if number:  # the first round fills caches
                    seen.append(one)
            yield list(compare(work, seen))


def main() -> None:
    """Measure, and write all comparisons and the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=json.loads, default=ROUNDS, help="JSON with the rounds of each work")
    parser.add_argument("--out", type=Path, default=PAGES / "side-channels.csv", help="the CSV file")
    options = parser.parse_args()
    if min(options.rounds.values()) < LEAST_ROUNDS:
        parser.error(f"with fewer than {LEAST_ROUNDS} rounds nothing could be found")
    circumstances = describe_environment() | {"load before": f"{os.getloadavg()[0]:.1f}"}
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR))
    comparisons = list[Comparison]()
    for found in measure(options.rounds):
        comparisons += found
        write_lines(options.out, comparisons)
        options.out.with_suffix(".md").write_text(render_page(comparisons, circumstances))
    for each in list_findings(comparisons):
        print(each)


if __name__ == "__main__":
    main()
