"""Private topics by size of batch, composition and iteration: ``make topic-batches``.

Figures 2 and 3 of Park et al., *Variational Bayes in private settings*, 2020. The corpus is that of
:mod:`benchmarks.topics`. A run is one pass over the documents. Composition changes its stated cost, not its noise: one
run has a cost by the accountant, and a larger one by strong composition.
"""

import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
from scipy.optimize import brentq

from app.inference.core.plan import Mechanism
from app.inference.private_zone.mechanisms import DiscreteGaussian, NoiseSource
from app.inference.registry import find_private_method
from app.privacy.accounting import compute_cost
from app.privacy.events import GaussianEvent, PoissonSampledEvent, encode
from benchmarks.environment import describe, describe_environment
from benchmarks.experiments.composition import NOISES, compose_strongly
from benchmarks.figures import format_three_digits, write_lines
from benchmarks.plots import open_figure
from benchmarks.sources import NoNoise
from benchmarks.summaries import render_rows, wrap_paragraph
from benchmarks.topics import (
    FRESH,
    PLANNED_NOISE,
    USUAL_NOISE,
    USUAL_SHARE,
    Codes,
    draw_corpus,
    list_documents,
    prepare,
    read_options,
    read_topics,
)

ITERATIONS: Final = (80, 40, 20)
"""Iterations of one pass: batches of 5,000, 10,000 and 20,000 of the paper's 400,000 documents."""
LARGEST: Final = 20
"""Iterations with the largest batch, of the figure by iteration."""
PLACES: Final = (1, 2, 3, 5, 7, 10, 15, LARGEST)
"""Iterations after which that figure has a point."""
DELTA: Final = 1e-4

PAGE: Final = """# Topics by batch, composition and iteration

{text}

{circumstances}

## Cost and perplexity, Fig. 2
{costs}
Larger batches have the lower perplexity at the same noise: {batches}.

## Perplexity by iteration, Fig. 3
Batches of {rate:g} of the documents, ε = {epsilon} by each composition. Strong composition needs the noise multiplier
{needed}.

{iterations}
{gaps}

![Perplexity by cost and by iteration](topic-batches.png)
"""
TEXT: Final = (
    "Written by `make topic-batches`. The corpus of [topics](topics.md), and runs of `vips` with the noise and the "
    "batches of Fig. 2 and 3 of *Variational Bayes in private settings*: one pass over the documents, δ = 1e-4. "
    "Perplexity is the upper bound of `Topics.perplexity` on 400 new documents. Figures are medians of {runs} runs. "
    "The corpus of the paper, 400,000 articles of Wikipedia, is not public, so its figures cannot be compared as "
    "numbers. Every run: [topic-batches.csv](topic-batches.csv)."
)


@dataclass(frozen=True, slots=True)
class Line:
    """The perplexity of a run after ``done`` of its ``iterations``. ``noise`` is 0 without noise."""

    iterations: int
    noise: float
    seed: int
    done: int
    perplexity: float


def measure_run(
    codes: Codes, fresh: Codes, *, iterations: int, noise: float, seed: int, each: bool = False
) -> Iterator[Line]:
    """Run once; measure the last belief, and with ``each`` those at all :data:`PLACES`."""
    mechanism = Mechanism(noise or PLANNED_NOISE, 1 / iterations, iterations)
    source: NoiseSource = DiscreteGaussian() if noise else NoNoise()
    plan, facts, oracle = prepare(codes, mechanism, USUAL_SHARE, seed, source)
    method, rng = find_private_method("vips"), np.random.default_rng(seed)
    state = method.init(plan, facts, rng)
    for done in range(1, plan.steps + 1):
        state = method.step(rng, state, oracle)
        if done == plan.steps or (each and done in PLACES):
            topics = read_topics(state.setup.model.conclude(state.averages, ["word"]).blocks)
            yield Line(iterations, noise, seed, done, topics.perplexity(list_documents(fresh)))


def compute_epsilon(noise: float, iterations: int) -> float:
    """Compute the cost of a run by the ledger's accountant."""
    return compute_cost(encode([(PoissonSampledEvent(1 / iterations, GaussianEvent(noise)), iterations)]), DELTA)


def find_needed_noise() -> float:
    """Find the noise at which strong composition states the accountant's cost.

    That is its cost at the usual noise.
    """
    cost = compute_epsilon(USUAL_NOISE, LARGEST)

    def miss(noise: float) -> float:
        return compose_strongly(noise, 1 / LARGEST, LARGEST, DELTA) - cost

    return float(brentq(miss, USUAL_NOISE, 100 * USUAL_NOISE, xtol=1e-3))


def measure(seeds: Sequence[int], documents: int) -> Iterator[Line]:
    """Measure all runs."""
    _, codes = draw_corpus(np.random.default_rng(1), documents + FRESH)
    codes, fresh = codes[:documents], codes[documents:]
    followed = {0.0, USUAL_NOISE, find_needed_noise()}
    for seed in seeds:
        for iterations in ITERATIONS:
            for noise in sorted({0.0, *NOISES} | (followed if iterations == LARGEST else set())):
                each = iterations == LARGEST and noise in followed
                yield from measure_run(codes, fresh, iterations=iterations, noise=noise, seed=seed, each=each)


def find_median(lines: Sequence[Line], iterations: int, noise: float, done: int | None = None) -> float:
    """Find the median perplexity after ``done`` iterations, by default after all."""
    place = iterations if done is None else done
    found = [
        each.perplexity for each in lines if (each.iterations, each.noise, each.done) == (iterations, noise, place)
    ]
    return statistics.median(found)


def render_page(lines: Sequence[Line], circumstances: dict[str, str]) -> str:
    """Render the page."""
    needed = find_needed_noise()
    return PAGE.format(
        text=wrap_paragraph(TEXT.format(runs=len({line.seed for line in lines}))),
        circumstances=wrap_paragraph(describe(circumstances)),
        costs=_render_costs(lines),
        batches=_count_ordered(lines),
        rate=1 / LARGEST,
        epsilon=format_three_digits(compute_epsilon(USUAL_NOISE, LARGEST)),
        needed=format_three_digits(needed),
        iterations=_render_iterations(lines, needed),
        gaps=wrap_paragraph(_compare_gaps(lines, needed)),
    )


def _render_costs(lines: Sequence[Line]) -> str:
    head = ["share of a batch", "iterations", "noise multiplier", "ε by the accountant", "ε by strong composition",
            "perplexity"]  # fmt: skip
    rows = []
    for iterations in ITERATIONS:
        for noise in (0.0, *NOISES):
            costs = ["–", "–"]
            if noise:
                both = compute_epsilon(noise, iterations), compose_strongly(noise, 1 / iterations, iterations, DELTA)
                costs = [format_three_digits(cost) for cost in both]
            perplexity = format_three_digits(find_median(lines, iterations, noise))
            rows.append([f"{1 / iterations:g}", str(iterations), f"{noise:g}", *costs, perplexity])
    return render_rows(head, rows)


def _count_ordered(lines: Sequence[Line]) -> str:
    """State at how many noise multipliers each larger batch is better."""
    held = 0
    for noise in NOISES:
        found = [find_median(lines, iterations, noise) for iterations in ITERATIONS]
        held += found == sorted(found, reverse=True)
    return f"at {held} of {len(NOISES)} noise multipliers"


def _render_iterations(lines: Sequence[Line], needed: float) -> str:
    head = ["iteration", "without noise", "accountant", "strong composition"]
    rows = []
    for done in PLACES:
        found = [find_median(lines, LARGEST, noise, done) for noise in (0.0, USUAL_NOISE, needed)]
        rows.append([str(done), *map(format_three_digits, found)])
    return render_rows(head, rows)


def _compare_gaps(lines: Sequence[Line], needed: float) -> str:
    """Compare the gap between both compositions early and at the end."""
    gaps = [
        find_median(lines, LARGEST, needed, done) - find_median(lines, LARGEST, USUAL_NOISE, done)
        for done in (LARGEST // 4, LARGEST)
    ]
    first, last = map(format_three_digits, gaps)
    return (
        "The paper finds that the gaps between methods remain about constant. Here, the perplexity by strong "
        f"composition is {first} above that by the accountant after {LARGEST // 4} iterations, and {last} after all."
    )


def draw_picture(lines: Sequence[Line], path: Path) -> None:
    """Draw perplexity by cost for each batch, and by iteration."""
    with open_figure(path, "Private topics", (9.0, 3.8), (1, 2)) as (_, (left, right)):
        for place, iterations in enumerate(ITERATIONS):
            perplexities = [find_median(lines, iterations, noise) for noise in NOISES]
            accountant = [compute_epsilon(noise, iterations) for noise in NOISES]
            strong = [compose_strongly(noise, 1 / iterations, iterations, DELTA) for noise in NOISES]
            label, colour = f"batches of {1 / iterations:g}", f"C{place}"
            left.plot(accountant, perplexities, "o-", color=colour, lw=1, ms=4, label=label)
            left.plot(strong, perplexities, "s--", color=colour, lw=1, ms=4)
        left.plot([], [], "s--", color="grey", label="strong composition")
        left.set(xlabel=f"ε at δ = {DELTA:g}", ylabel="perplexity of new documents", xscale="log")
        left.legend(frameon=False)
        names = {0.0: "without noise", USUAL_NOISE: "accountant", find_needed_noise(): "strong composition"}
        for noise, name in names.items():
            right.plot(PLACES, [find_median(lines, LARGEST, noise, done) for done in PLACES], "o-", ms=3, label=name)
        right.set(xlabel="iteration", yscale="log")
        right.legend(frameon=False)


def main() -> None:
    """Measure all runs, then write figures, page and picture."""
    options = read_options(__doc__, "topic-batches.csv", 2)
    lines = list(measure(range(options.runs), options.documents))
    write_lines(options.out, lines)
    options.out.with_suffix(".md").write_text(render_page(lines, describe_environment()))
    draw_picture(lines, options.out.with_suffix(".png"))


if __name__ == "__main__":
    main()
