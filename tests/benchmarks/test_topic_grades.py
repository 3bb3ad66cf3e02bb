"""Corpora of the lab note about topics: their documents, their lines, and the table of the note."""

import math
from dataclasses import replace

import numpy as np
import pytest

from benchmarks.environment import PAGES
from benchmarks.figures import read_lines
from benchmarks.topic_grades import (
    CORPORA,
    FRESH,
    GENERATED,
    NEWS,
    Line,
    Shape,
    draw_documents,
    measure_corpus,
    render_table,
)

SMALL = Shape(300, 50, 3, 20)
LINE = Line(
    corpus=GENERATED,
    documents=20_000,
    words=1000,
    topics=10,
    length="50",
    concentration=80.0,
    mix=0.1,
    noise=1.0,
    seed=0,
    perplexity=90.0,
    one_topic=100.0,
    gain=0.1,
    noise_share=0.05,
    signal=6.0,
)


def test_the_lab_note_has_the_table_of_the_results() -> None:
    page = (PAGES.parent / "lab" / "topic-grades.md").read_text()
    assert render_table(read_lines(PAGES / "topic-grades.csv", Line)) in page


def test_every_corpus_of_the_command_has_its_noised_lines() -> None:
    lines = read_lines(PAGES / "topic-grades.csv", Line)
    for shape, noises, _ in CORPORA:
        own = [line for line in lines if (line.documents, line.words, line.concentration, line.mix) == (
            shape.documents, shape.words, shape.concentration, shape.mix)]  # fmt: skip
        assert [line.noise for line in own if line.noise] == [noise for noise in noises if noise]
    assert any(line.corpus == NEWS for line in lines)


def test_limits_are_of_runs_with_noise() -> None:
    lines = [
        replace(LINE, noise=0.0, gain=0.3, signal=math.nan),
        LINE,
        replace(LINE, signal=4.0, gain=0.02),
        replace(LINE, signal=2.5, gain=-0.1),
        replace(LINE, signal=1.5, gain=-0.2),
    ]
    row = "| generated, 50 words a document | 20,000 | 1,000 | 10 | 0.30 | 4 | 2.5 |"
    assert row in render_table(lines)
    assert "| 0.30 | 4 | – |" in render_table(lines[:3])


def test_documents_are_words_whose_frequencies_fall() -> None:
    codes = draw_documents(SMALL, np.random.default_rng(0))
    assert codes.shape == (SMALL.documents + FRESH, SMALL.length)
    counts = np.bincount(codes.ravel(), minlength=SMALL.words)
    assert counts[:5].sum() > 3 * counts[-5:].sum()


def test_a_run_is_compared_with_one_topic() -> None:
    exact, noised = measure_corpus(SMALL, (0.0, 50.0))
    assert exact.gain == pytest.approx(math.log(exact.one_topic / exact.perplexity))
    assert exact.one_topic == noised.one_topic
    assert math.isnan(exact.signal)
    assert noised.perplexity > exact.perplexity
    assert noised.signal < 4
