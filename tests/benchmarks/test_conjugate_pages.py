"""Pages about topics and belief networks: corpora as described, and every figure from the runs."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from benchmarks import sbn, topics

RUN = topics.Line("run", 1.0, 0.05, 0, 360.0, 0.2, "centre-only", 0.06, 0.05, 0.04, 12.0)
BITS = sbn.Line(10, 3200, 19, 2.6, 2.59, 1.01, 0, 0.9, 3.5, "centre-only", 4.0)


def make_topic_lines() -> list[topics.Line]:
    runs = [replace(RUN, noise=noise) for noise in topics.NOISES]
    runs += [replace(RUN, noise=topics.USUAL_NOISE, share=share) for share in topics.SHARES if share != 0.05]
    return [*runs, replace(RUN, what="without noise", noise=topics.USUAL_NOISE, perplexity=290.0)]


def test_a_corpus_has_documents_of_words_with_falling_frequencies() -> None:
    true, codes = topics.draw_corpus(np.random.default_rng(0), 500)
    assert (true.shape, codes.shape) == ((topics.TOPICS, topics.WORDS), (500, topics.LENGTH))
    np.testing.assert_allclose(true.sum(axis=1), 1)
    counts = np.bincount(codes.ravel(), minlength=topics.WORDS)
    assert counts[:200].sum() > 3 * counts[-200:].sum()


def test_a_query_of_the_page_costs_as_the_accountant_says() -> None:
    assert topics.compute_epsilon(1.24, 1e-4) == pytest.approx(1.21, abs=0.01)
    assert topics.compute_epsilon(1.24, 1e-6) == pytest.approx(1.84, abs=0.01)


def test_the_page_about_topics_has_every_setting(tmp_path: Path) -> None:
    page = topics.render_page(make_topic_lines(), (280.0, 506.0), (1.8, 4.3), {"cores": "2"})
    assert page.count("| 360 |") == len(topics.NOISES) + len(topics.SHARES)
    assert "Without noise the perplexity is 290." in page
    assert "400,000 values" in page
    topics.draw_picture(make_topic_lines(), (280.0, 506.0), tmp_path / "topics.png")
    assert (tmp_path / "topics.png").stat().st_size > 1000


def test_the_page_about_networks_has_every_setting(tmp_path: Path) -> None:
    lines = [replace(BITS, stated=stated, epsilon=stated) for stated in sbn.EPSILONS]
    lines += [replace(BITS, stated=0.0, batch=batch) for batch, _ in sbn.BATCHES]
    lines += [replace(BITS, stated=0.0, epsilon=0.0, right=0.91), replace(lines[0], seed=1, right=0.8)]
    page = sbn.render_page(lines, 0.866, {"cores": "2"})
    assert page.count("| 0.900 |") == len(sbn.EPSILONS) + len(sbn.BATCHES) - 1
    assert "| 0.850 |" in page  # the median of two runs
    assert "10 hidden units have 0.910 of the pixels right" in page
    sbn.draw_picture(lines, 0.866, tmp_path / "sbn.png")
    assert (tmp_path / "sbn.png").stat().st_size > 1000
