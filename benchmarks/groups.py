"""Private weights of groups of people: ``make groups``.

Census income in 80 groups: age by race by sex. The first experiment weighs a few groups of a table with outliers
(thesis, section 5.3.4). In the second one, groups with wrong labels should disagree. Each run is a line of the CSV
file; page and picture depend on this file only.
"""

import os

os.environ |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}

import argparse
import json
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import matplotlib as mpl
import numpy as np

mpl.use("Agg")

import matplotlib.pyplot as plt

from app.inference.conjugate import make_run_problem
from app.inference.core.plan import MechanismPlan, PlanRequest
from app.inference.core.problems import name_parameters
from app.inference.core.release import GroupWeights, Pseudocoreset, Released
from app.inference.post.laplace import Laplace
from app.inference.private_zone.mechanisms import DiscreteGaussian
from app.inference.private_zone.oracle import ClippedGaussianOracle
from app.inference.private_zone.rng import make_sampling_generator
from app.inference.registry import find_method
from app.inference.runner import run
from app.privacy.calibration import calibrate
from benchmarks.environment import PAGES, describe, describe_environment
from benchmarks.figures import read_lines, write_lines
from benchmarks.group_tables import GROUPED_BY, GroupedCase, make_grouped_case
from benchmarks.measures import fit_posterior
from benchmarks.sources import NoNoise
from benchmarks.summaries import wrap_paragraph

EPSILONS: Final = (0.3, 1.0)
SIZES: Final = (1, 2, 5, 10)
BELIEF_SHARE: Final = 0.5
WRONG_LABELS: Final = (0.0, 0.0, 0.0, 1.0)
CLASSES: Final = ((0, 100), (100, 500), (500, 1500), (1500, 10_000))
GUESS: Final = 0.5
NO_NOISE: Final = 1e-3
RANDOM, PRIVATE, AT_POSTERIOR = "random groups", "dp-groups", "dp-groups at a posterior"
EXACT, FULL = "dp-groups, no noise", "all rows"
PAGE: Final = """# Private weights of groups

{text}

{circumstances}

## A few groups for the whole table
{weights_text}

| ε | choice | groups | accuracy | outliers among the rows | runs |
| ---: | --- | ---: | ---: | ---: | ---: |
{weights}

![Accuracy by the number of groups](groups.png)

## Groups that disagree
{agreement_text}

| ε | rows of a group | above noise | negative agreement, wrong labels | negative agreement, right labels | runs |
| ---: | --- | ---: | ---: | ---: | ---: |
{agreement}

## Published
The thesis has no private form. Its public one reaches more than 75 % of accuracy with at most two of 165 groups of
hospital patients (Fig. 5.4), which are not public. [Robust methods](robust.md) has the public form on this table.
"""
TEXT: Final = (
    "Written by `make groups`; every run is a line of [groups.csv](groups.csv). Census income, 30,162 rows, 10 "
    "whitened components within ±4, logistic regression. Age in eight bands, race and sex make 80 groups. The largest "
    "one has 2,721 rows, and half of them have fewer than 100. δ = 1e-6. Medians over runs."
)
WEIGHTS_TEXT: Final = (
    "A third of the groups has 10 % outliers, and a third 20 %: half of the features are wrong, and the label is "
    "flipped. Accuracy is of clean held-out rows, by the posterior of the weighted rows; without a weighted group "
    "it is stated as 0.5. *Random groups* have equal weights, which add up to the number of rows. `dp-groups` has the "
    "defaults: all of ε buys the groups, at the prior. *At a posterior*: half of ε buys a posterior from the "
    "default method, and the other half the groups there. *No noise*: the defaults with exact answers."
)
AGREEMENT_TEXT: Final = (
    "All labels of one group in four are flipped. The belief is the prior, and all of ε buys the groups. The last "
    "shares are of the groups above noise; the table has the means of all runs."
)


@dataclass(frozen=True, slots=True)
class Line:
    """One run with one number of groups, or with one class of groups.

    ``wrong`` and ``right`` are the shares of groups above noise with a negative agreement.
    """

    part: str
    epsilon: float
    choice: str
    groups: int
    seed: int
    accuracy: float = math.nan
    outliers: float = math.nan
    least: int = 0
    above: float = math.nan
    wrong: float = math.nan
    right: float = math.nan


def carry_out(grouped: GroupedCase, method: str, size: int, parameters: dict[str, Any], epsilon: float) -> Released:
    """Carry out a private method; an infinite ``epsilon`` means exact answers."""
    case, found = grouped.case, find_method(method)

    def plan(noise: float) -> MechanismPlan:
        request = PlanRequest(method, size, case.spec, parameters, noise_multiplier=noise)
        return found.plan(request, case.facts)

    assert case.facts.delta is not None
    is_exact = math.isinf(epsilon)
    noise = NO_NOISE if is_exact else calibrate(lambda noise: plan(noise).events, epsilon, case.facts.delta)
    planned = plan(noise)
    oracle = ClippedGaussianOracle(
        make_run_problem(planned, case.facts).model,
        planned,
        case.facts,
        case.source,
        noise=NoNoise() if is_exact else DiscreteGaussian(),
        sampling=make_sampling_generator(),
    )
    return run(planned, case.facts, oracle, np.random.default_rng(), lambda _: None)


def state_belief(grouped: GroupedCase, posterior: Laplace, doubt: Any = None) -> dict[str, Any]:
    """State a belief as a request does: the posterior, and the error of its mean."""
    inverse = np.linalg.inv(posterior.factor)
    covariance = inverse.T @ inverse + (0 if doubt is None else doubt)
    names = list(name_parameters(grouped.case.problem))
    return {
        "parameters": names,
        "mean": posterior.mean.tolist(),
        "covariance": ((covariance + covariance.T) / 2).tolist(),
    }


def measure_weights(seed: int, epsilons: Sequence[float], sizes: Sequence[int]) -> Iterator[Line]:
    """Measure posteriors of a few groups on a table with outliers."""
    grouped = make_grouped_case(seed)
    rng = np.random.default_rng((seed, 5))

    def judge(epsilon: float, choice: str, groups: int, weight: Any) -> Line:
        rows = grouped.sizes * (weight > 0)
        accuracy = grouped.measure_accuracy(grouped.fit_groups(weight)) if rows.any() else GUESS
        return Line(
            "weights",
            epsilon,
            choice,
            groups,
            seed,
            accuracy=accuracy,
            outliers=float(rows @ grouped.outliers / max(rows.sum(), 1)),
        )

    yield judge(math.nan, FULL, len(grouped.outliers), np.ones(len(grouped.outliers)))
    chosen_by = {"groups": list(GROUPED_BY)}
    for size in sizes:
        order = rng.permutation(np.flatnonzero(grouped.sizes))[:size]
        equal = np.zeros(len(grouped.outliers))
        equal[order] = grouped.sizes.sum() / grouped.sizes[order].sum()
        yield judge(math.nan, RANDOM, size, equal)
        found = carry_out(grouped, "dp-groups", size, chosen_by, math.inf)
        assert isinstance(found, GroupWeights)
        yield judge(math.nan, EXACT, size, found.weight)
    for epsilon in epsilons:
        for name, share in ((PRIVATE, 0.0), (AT_POSTERIOR, BELIEF_SHARE)):
            given = chosen_by | _buy_belief(grouped, share * epsilon)
            for size in sizes:
                found = carry_out(grouped, "dp-groups", size, given, (1 - share) * epsilon)
                assert isinstance(found, GroupWeights)
                yield judge(epsilon, name, size, found.weight)


def _buy_belief(grouped: GroupedCase, epsilon: float) -> dict[str, Any]:
    """Buy a posterior from the default method; without a budget, the belief is the prior."""
    if not epsilon:
        return {}
    bought = carry_out(grouped, "dp-psvi-surrogate", 20, {}, epsilon)
    assert isinstance(bought, Pseudocoreset)
    return {"belief": state_belief(grouped, fit_posterior(grouped.case, bought), bought.doubt)}


def measure_agreement(seed: int, epsilons: Sequence[float]) -> Iterator[Line]:
    """Measure which groups of wrong labels disagree with the others."""
    grouped = make_grouped_case(seed, WRONG_LABELS)
    for epsilon in epsilons:
        found = carry_out(grouped, "dp-groups", 10, {"groups": list(GROUPED_BY)}, epsilon)
        assert isinstance(found, GroupWeights)
        for least, most in CLASSES:
            inside = (grouped.sizes >= max(least, 1)) & (grouped.sizes < most)
            seen, wrong = inside & (found.above_noise > 0), grouped.outliers > 0
            yield Line(
                "agreement",
                epsilon,
                PRIVATE,
                int(inside.sum()),
                seed,
                least=least,
                above=float(found.above_noise[inside].mean()),
                wrong=_share(found.agreement[seen & wrong] < 0),
                right=_share(found.agreement[seen & ~wrong] < 0),
            )


def _share(values: Any) -> float:
    return float(values.mean()) if len(values) else math.nan


def _list_groups(lines: Sequence[Line], key: Callable[[Line], Any]) -> dict[Any, list[Line]]:
    groups: dict[Any, list[Line]] = {}
    for line in lines:
        groups.setdefault(key(line), []).append(line)
    return groups


def _median(lines: Sequence[Line], name: str) -> float:
    values = [getattr(line, name) for line in lines if not math.isnan(getattr(line, name))]
    return float(np.median(values)) if values else math.nan


def _mean(lines: Sequence[Line], name: str) -> str:
    values = [getattr(line, name) for line in lines if not math.isnan(getattr(line, name))]
    return f"{np.mean(values):.0%}" if values else "–"


def render_page(lines: Sequence[Line], circumstances: dict[str, str]) -> str:
    """Render the page."""
    weights, agreement = [], []
    parts = _list_groups(lines, lambda line: line.part)
    order = _list_groups(parts["weights"], lambda line: (_price(line), line.choice, line.groups))
    for (price, choice, groups), runs in sorted(order.items(), key=lambda item: (item[0][1] != FULL, *item[0])):
        weights.append(
            f"| {price} | {choice} | {groups} | {_median(runs, 'accuracy'):.4f} | {_median(runs, 'outliers'):.0%} | "
            f"{len(runs)} |"
        )
    for (price, least), runs in sorted(
        _list_groups(parts["agreement"], lambda each: (_price(each), each.least)).items()
    ):
        most = dict(CLASSES)[least]
        agreement.append(
            f"| {price} | {max(least, 1):,} to {most - 1:,} | {_mean(runs, 'above')} | {_mean(runs, 'wrong')} | "
            f"{_mean(runs, 'right')} | {len(runs)} |"
        )
    return PAGE.format(
        text=wrap_paragraph(TEXT),
        circumstances=wrap_paragraph(describe(circumstances)),
        weights_text=wrap_paragraph(WEIGHTS_TEXT),
        agreement_text=wrap_paragraph(AGREEMENT_TEXT),
        weights="\n".join(weights),
        agreement="\n".join(agreement),
    )


def _price(line: Line) -> str:
    return "–" if math.isnan(line.epsilon) else f"{line.epsilon:g}"


def draw(lines: Sequence[Line], path: Path) -> None:
    """Draw accuracies by the number of groups."""
    figure, panel = plt.subplots(figsize=(6, 4), layout="constrained")
    runs = [line for line in lines if line.part == "weights"]
    curves = _list_groups(runs, lambda line: (line.choice, _price(line)))
    for marker, ((choice, price), own) in zip("os^vD<>", curves.items(), strict=False):
        label = choice if price == "–" else f"{choice}, ε = {price}"
        points = sorted(
            (size, _median(each, "accuracy")) for size, each in _list_groups(own, lambda x: x.groups).items()
        )
        if choice == FULL:
            panel.axhline(points[0][1], color="#6b7280", lw=1, ls="--", label=label)
        else:
            panel.plot(*zip(*points, strict=True), marker=marker, lw=1, label=label)
    panel.set(xlabel="groups", ylabel="accuracy on clean rows", xscale="log")
    panel.set_xticks(SIZES, [str(size) for size in SIZES])
    panel.legend(fontsize=8)
    figure.savefig(path, dpi=110)
    plt.close(figure)


def main() -> None:
    """Measures both experiments, then writes page and picture."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=PAGES / "groups.csv", help="the CSV file")
    parser.add_argument("--seeds", type=int, default=5, help="runs of each setting")
    parser.add_argument("--render", action="store_true", help="write page and picture of the existing lines")
    options = parser.parse_args()
    circumstances = options.out.with_suffix(".json")
    if not options.render:
        lines = list[Line]()
        for seed in range(options.seeds):
            for line in (*measure_weights(seed, EPSILONS, SIZES), *measure_agreement(seed, EPSILONS)):
                print(line, flush=True)
                lines.append(line)
            write_lines(options.out, lines)
        circumstances.write_text(json.dumps(describe_environment(), indent=1) + "\n")
    lines = read_lines(options.out, Line)
    options.out.with_suffix(".md").write_text(render_page(lines, json.loads(circumstances.read_text())))
    draw(lines, options.out.with_suffix(".png"))


if __name__ == "__main__":
    main()
