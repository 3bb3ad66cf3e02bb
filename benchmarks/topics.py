"""Topics of a generated corpus under noise: ``make topics``.

The corpus has 60,000 documents of 100 words, over 2,000 words and 20 topics. Word frequencies fall as in texts. Runs
have the plans, the oracle and the noise of the service.
"""

import argparse
import math
import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
from corevault import Topics
from numpy.typing import NDArray

from app.inference.conjugate import make_run_problem
from app.inference.conjugate.topics import LEAST_SIGNAL
from app.inference.core.belief import Block
from app.inference.core.facts import Column, DeclaredFacts
from app.inference.core.plan import Mechanism, MechanismPlan, ModelSpec, PlanRequest
from app.inference.core.release import BeliefRelease
from app.inference.private_zone.mechanisms import DiscreteGaussian, NoiseSource
from app.inference.private_zone.oracle import ClippedGaussianOracle
from app.inference.private_zone.queries import TopicSum
from app.inference.registry import make_plan
from app.inference.runner import run
from app.privacy.accounting import compute_cost
from app.privacy.events import GaussianEvent, PoissonSampledEvent, encode
from benchmarks.environment import PAGES, describe, describe_environment
from benchmarks.figures import format_three_digits, write_lines
from benchmarks.sources import NoNoise
from benchmarks.summaries import wrap_paragraph
from support.table import Table

DOCUMENTS, LENGTH, WORDS, TOPICS, FRESH = 60_000, 100, 2000, 20, 400
RATE, ITERATIONS = 0.05, 20
NOISES: Final = (1.0, 1.24, 1.5, 2.0, 3.0)
SHARES: Final = (0.025, 0.05, 0.1, 1.0)
USUAL_SHARE, USUAL_NOISE = 0.05, 1.24
PLANNED_NOISE: Final = 0.05
"""Noise multiplier of the plan of a run without noise: the least one of a request."""
LARGE: Final = (50, 8000, 20_000)
"""Topics, words and documents of the query that is timed."""
TARGET: Final = 420.0
"""Largest perplexity at noise 1.24 that this project set itself."""

Codes = NDArray[np.int64]

PAGE: Final = """# Topics under noise

{text}

{circumstances}

| noise multiplier | ε at δ = 1e-4 | ε at δ = 1e-6 | perplexity | signal | noise share | grade | seconds |
| ---: | ---: | ---: | ---: | ---: | ---: | --- | ---: |
{noises}

Without noise the perplexity is {exact}. The topics that made the corpus have {truth}; one topic of all words has
{unigram}. The target at noise 1.24 is at most {target:g}.

![Perplexity by noise and by clipping norm](topics.png)

The clipping norm is a share of the largest norm, here {length}. Below the norm of a typical document, it removes
length but no direction, and the noise falls with it. So small shares do not differ, and large ones only add noise. By
default the share is 0.5 / √max_rows, here {usual:g}. At noise 1.24:

| share | perplexity | signal | noise share |
| ---: | ---: | ---: | ---: |
{shares}

A release is not usable at a signal of {least:g} or less: near that, topics predict new documents about as well as one
topic of all words. [A lab note](../lab/topic-grades.md) has more corpora, and the limit of this rule.

A larger query has {large_topics} topics, {large_words:,} words and {large_documents:,} documents of {length} words.
The sum takes {large_sum} s, and the noise of its {large_values:,} values takes {large_noise} s.

## Published
Table 1 of *Variational Bayes in private settings* has the first words of one topic of Wikipedia (400,000 documents,
about 8,000 words, 50 topics; the noise multiplier 1.24 at a sampling rate of .05). The corpus is not public, and the
paper states no perplexity as a number. Its probabilities of the first three words, and the average ones here:

| | first | second | third |
| --- | ---: | ---: | ---: |
| published, without privacy | .0846 | .0508 | .0393 |
| published, moments accountant | .0318 | .0195 | .0149 |
| published, strong composition | .0118 | .0063 | .0055 |
{first_words}

The paper states ε = 2.44 for this mechanism, and no δ. Its clipping norm is a tenth of the largest norm. Both differ
here: see the first table, and the share 0.1.
"""
TEXT: Final = (
    "Written by `make topics`. A generated corpus of 60,000 documents of 100 words, over 2,000 words and 20 topics. "
    "Each run of `vips` has 20 iterations at a sampling rate of .05, and default parameters unless stated. Perplexity "
    "is the upper bound of `Topics.perplexity` on 400 new documents. Figures are medians of {runs} runs with different "
    "starts and noise. *Signal* and *noise share* are figures of the release's diagnostics. Every run: "
    "[topics.csv](topics.csv)."
)


@dataclass(frozen=True, slots=True)
class Line:
    """One run, or a figure of the corpus. ``first`` to ``third`` are average probabilities of topics' first words."""

    what: str
    noise: float
    share: float
    seed: int
    perplexity: float
    noise_share: float
    signal: float
    grade: str
    first: float
    second: float
    third: float
    seconds: float


def draw_corpus(rng: np.random.Generator, documents: int) -> tuple[NDArray[np.float64], Codes]:
    """Draw topics ``(K, V)``, and documents ``(d, LENGTH)`` with Dirichlet shares."""
    base = np.arange(1, WORDS + 1.0) ** -0.78
    topics = rng.dirichlet(80 * base / base.sum(), size=TOPICS)
    shares = rng.dirichlet(np.full(TOPICS, 0.1), size=documents)
    codes = np.empty((documents, LENGTH), dtype=np.int64)
    for document, mix in enumerate(shares @ topics):
        codes[document] = np.searchsorted(np.cumsum(mix) / mix.sum(), rng.random(LENGTH))
    return topics, np.minimum(codes, WORDS - 1)


def name_words(count: int) -> tuple[str, ...]:
    """Name the words by their code."""
    return tuple(f"w{code}" for code in range(count))


def list_documents(codes: Codes) -> list[list[str]]:
    """List documents as lists of words."""
    return [[f"w{code}" for code in document] for document in codes]


def make_facts(documents: int, words: int) -> DeclaredFacts:
    """Declare the table of a corpus."""
    unit = {"kind": "column", "column": "document", "max_rows": LENGTH}
    return DeclaredFacts((Column("word", "categorical", categories=name_words(words)),), documents, unit, "private")


def measure_run(codes: Codes, fresh: Codes, *, noise: float, share: float, seed: int, source: NoiseSource) -> Line:
    """Run once and measure the release."""
    start = time.process_time()
    planned = PLANNED_NOISE if isinstance(source, NoNoise) else noise
    prepared = prepare(codes, Mechanism(planned, RATE, ITERATIONS), share, seed, source)
    released = run(*prepared, np.random.default_rng(seed), lambda _: None)
    seconds = time.process_time() - start
    assert isinstance(released, BeliefRelease)
    topics = read_topics(released.blocks)
    best = np.sort(topics.probabilities, axis=1)[:, ::-1].mean(axis=0)
    return Line(
        what="without noise" if isinstance(source, NoNoise) else "run",
        noise=noise,
        share=share,
        seed=seed,
        perplexity=topics.perplexity(list_documents(fresh)),
        noise_share=float(released.diagnostics["noise_share"]),
        signal=float(released.diagnostics["signal"]),
        grade=str(released.reliability.grade),
        first=float(best[0]),
        second=float(best[1]),
        third=float(best[2]),
        seconds=seconds,
    )


def prepare(
    codes: Codes, mechanism: Mechanism, share: float, seed: int, source: NoiseSource
) -> tuple[MechanismPlan, DeclaredFacts, ClippedGaussianOracle]:
    """Prepare a run on documents ``(d, LENGTH)``: its plan, the declared facts, and the oracle."""
    facts = make_facts(len(codes), WORDS)
    spec = ModelSpec("latent-dirichlet-allocation", ("word",), None, topics=TOPICS)
    plan = make_plan(PlanRequest("vips", 1, spec, {"clipping_share": share}, mechanism), facts)
    columns: dict[str, NDArray[Any]] = {"word": codes.ravel().astype(np.uint16)}
    table = Table(columns | {"_present": np.ones(codes.size, dtype=np.uint8)}, LENGTH)
    model = make_run_problem(plan, facts).model
    sampling = np.random.default_rng(1000 + seed)
    return plan, facts, ClippedGaussianOracle(model, plan, facts, table, noise=source, sampling=sampling)


def read_topics(blocks: Sequence[Block]) -> Topics:
    """Read the blocks of a belief as the client does."""
    topics, document = (block.arrays for block in blocks)
    return Topics(tuple(topics["values"].tolist()), topics["concentration"], document["concentration"][0])


def measure_corpus(topics: NDArray[np.float64], codes: Codes, fresh: Codes) -> tuple[float, float]:
    """Measure the perplexities of the true topics and of one topic of all words."""
    truth = Topics(name_words(WORDS), topics * 1e9 + 1e-3, np.full(TOPICS, 0.1))
    counts = np.bincount(codes.ravel(), minlength=WORDS) + 0.1
    unigram = math.exp(-float(np.log(counts / counts.sum())[fresh].mean()))
    return truth.perplexity(list_documents(fresh)), unigram


def time_large_query(rng: np.random.Generator) -> tuple[float, float]:
    """Measure the seconds of the sum and of the noise of one large query."""
    topics, words, documents = LARGE
    facts = make_facts(documents, words)
    spec = ModelSpec("latent-dirichlet-allocation", ("word",), None, topics=topics)
    plan = make_plan(PlanRequest("vips", 1, spec, {}, Mechanism(1.24, 1.0, 1)), facts)
    problem = make_run_problem(plan, facts)
    model: Any = problem.model
    query = TopicSum(model.start(rng), 5.0)
    rows = rng.integers(0, words, (documents * LENGTH, 1)).astype(np.float32)
    start = time.process_time()
    sums = query.sum(model, rows, np.ones(len(rows), dtype=bool), LENGTH)
    middle = time.process_time()
    DiscreteGaussian().perturb(sums, query.scales(1.24))
    return middle - start, time.process_time() - middle


def compute_epsilon(noise: float, delta: float) -> float:
    """Compute the cost of the runs."""
    return compute_cost(encode([(PoissonSampledEvent(RATE, GaussianEvent(noise)), ITERATIONS)]), delta)


def measure(seeds: Sequence[int], documents: int) -> tuple[list[Line], tuple[float, float]]:
    """Measure all runs, and the perplexities of the truth and of one topic."""
    rng = np.random.default_rng(1)
    topics, codes = draw_corpus(rng, documents + FRESH)
    codes, fresh = codes[:documents], codes[documents:]
    lines = list[Line]()
    for seed in seeds:
        settings: list[tuple[float, float, NoiseSource]] = [(USUAL_NOISE, USUAL_SHARE, NoNoise())]
        settings += [(noise, USUAL_SHARE, DiscreteGaussian()) for noise in NOISES]
        settings += [(USUAL_NOISE, share, DiscreteGaussian()) for share in SHARES if share != USUAL_SHARE]
        for noise, share, source in settings:
            lines.append(measure_run(codes, fresh, noise=noise, share=share, seed=seed, source=source))
    return lines, measure_corpus(topics, codes, fresh)


def select(lines: Sequence[Line], what: str, noise: float, share: float) -> list[Line]:
    """Select the runs of one setting."""
    return [line for line in lines if (line.what, line.noise, line.share) == (what, noise, share)]


def _median(lines: Sequence[Line], name: str) -> str:
    return format_three_digits(statistics.median(getattr(line, name) for line in lines))


def render_page(
    lines: Sequence[Line], corpus: tuple[float, float], large: tuple[float, float], circumstances: dict[str, str]
) -> str:
    """Render the page."""
    exact = select(lines, "without noise", USUAL_NOISE, USUAL_SHARE)
    usual = select(lines, "run", USUAL_NOISE, USUAL_SHARE)
    noises, shares = [], []
    for noise in NOISES:
        runs = select(lines, "run", noise, USUAL_SHARE)
        costs = " | ".join(format_three_digits(compute_epsilon(noise, delta)) for delta in (1e-4, 1e-6))
        grades = ", ".join(sorted({line.grade for line in runs}))
        noises.append(
            f"| {noise:g} | {costs} | {_median(runs, 'perplexity')} | {_median(runs, 'signal')} | "
            f"{_median(runs, 'noise_share')} | {grades} | {_median(runs, 'seconds')} |"
        )
    for share in SHARES:
        runs = select(lines, "run", USUAL_NOISE, share)
        figures = " | ".join(_median(runs, name) for name in ("perplexity", "signal", "noise_share"))
        shares.append(f"| {share:g} | {figures} |")
    words = [
        f"| here, {name} | "
        + " | ".join(
            f"{statistics.median(getattr(line, place) for line in runs):.4f}"[1:]
            for place in ("first", "second", "third")
        )
        + " |"
        for name, runs in (("without noise", exact), ("noise 1.24", usual))
    ]
    return PAGE.format(
        text=wrap_paragraph(TEXT.format(runs=len(usual))),
        circumstances=wrap_paragraph(describe(circumstances)),
        noises="\n".join(noises),
        shares="\n".join(shares),
        first_words="\n".join(words),
        exact=_median(exact, "perplexity"),
        truth=format_three_digits(corpus[0]),
        unigram=format_three_digits(corpus[1]),
        target=TARGET,
        least=LEAST_SIGNAL,
        length=LENGTH,
        usual=USUAL_SHARE,
        large_topics=LARGE[0],
        large_words=LARGE[1],
        large_documents=LARGE[2],
        large_values=LARGE[0] * LARGE[1],
        large_sum=format_three_digits(large[0]),
        large_noise=format_three_digits(large[1]),
    )


def draw_picture(lines: Sequence[Line], corpus: tuple[float, float], path: Path) -> None:
    """Draw perplexity by noise and by share."""
    from matplotlib.figure import Figure  # noqa: PLC0415 - matplotlib takes a second

    figure = Figure(figsize=(9, 3.4), layout="constrained")
    left, right = figure.subplots(1, 2, sharey=True)
    exact = select(lines, "without noise", USUAL_NOISE, USUAL_SHARE)
    for axes, values, settings in (
        (left, NOISES, [(noise, USUAL_SHARE) for noise in NOISES]),
        (right, SHARES, [(USUAL_NOISE, share) for share in SHARES]),
    ):
        runs = [select(lines, "run", *setting) for setting in settings]
        axes.plot(values, [statistics.median(line.perplexity for line in each) for each in runs], "o-", label="vips")
        for level, name, style in (
            (corpus[1], "one topic", ":"),
            (statistics.median(line.perplexity for line in exact), "without noise", "--"),
            (corpus[0], "true topics", "-."),
        ):
            axes.axhline(level, linestyle=style, color="grey", label=name)
    left.set(xlabel="noise multiplier", ylabel="perplexity of new documents")
    right.set(xlabel="clipping norm, share of the largest", xscale="log")
    right.legend()
    figure.savefig(path, dpi=110)


def read_options(description: str | None, name: str, runs: int) -> argparse.Namespace:
    """Read the options of a benchmark: the CSV file, by default ``name``, the number of runs, and the documents."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=PAGES / name, help="the CSV file")
    parser.add_argument("--runs", type=int, default=runs, help="runs of each setting")
    parser.add_argument("--documents", type=int, default=DOCUMENTS, help="documents of the corpus")
    return parser.parse_args()


def main() -> None:
    """Measures everything, then writes figures, page and picture."""
    options = read_options(__doc__, "topics.csv", 3)
    lines, corpus = measure(range(options.runs), options.documents)
    large = time_large_query(np.random.default_rng(0))
    write_lines(options.out, lines)
    options.out.with_suffix(".md").write_text(render_page(lines, corpus, large, describe_environment()))
    draw_picture(lines, corpus, options.out.with_suffix(".png"))


if __name__ == "__main__":
    main()
