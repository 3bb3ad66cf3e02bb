"""Pages about topics and belief networks: corpora as described, and every figure from the runs."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from app.inference.conjugate.belief_network import PAIRS, SigmoidBelief
from benchmarks import news_topics, sbn, topic_batches, topics
from benchmarks.experiments import composition
from benchmarks.pixel_bounds import MATRICES, PixelBounds

RUN = topics.Line("run", 1.0, 0.05, 0, 360.0, 0.2, 6.5, "centre-only", 0.06, 0.05, 0.04, 12.0)
BITS = sbn.Line(sbn.QUARTER, 10, 3200, 19, 2.6, 2.59, 1.01, 0, 0.9, 3.5, "centre-only", 4.0)


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
    assert page.count("| 6.5 | 0.2 |") == len(topics.NOISES) + len(topics.SHARES)
    assert "not usable at a signal of 4 or less" in page
    topics.draw_picture(make_topic_lines(), (280.0, 506.0), tmp_path / "topics.png")
    assert (tmp_path / "topics.png").stat().st_size > 1000


def make_batch_lines(needed: float) -> list[topic_batches.Line]:
    lines = [
        topic_batches.Line(iterations, noise, seed, done, 100.0 + 2 * iterations + 10 * noise + seed - done)
        for seed in (0, 1, 2)
        for iterations in topic_batches.ITERATIONS
        for noise in (0.0, *composition.NOISES)
        for done in {iterations, *topic_batches.PLACES}
    ]
    return lines + [
        replace(line, noise=needed, perplexity=line.perplexity + 50)
        for line in lines
        if (line.noise, line.iterations) == (topics.USUAL_NOISE, topic_batches.LARGEST)
    ]


def test_the_page_about_batches_has_every_cost_and_both_compositions(tmp_path: Path) -> None:
    needed = topic_batches.find_needed_noise()
    lines = make_batch_lines(needed)
    page = topic_batches.render_page(lines, {"cores": "2"})
    text = page.replace("\n", " ")
    assert page.count("| 0.0125 | 80 |") == len(composition.NOISES) + 1
    assert "| 0.05 | 20 | 1.24 | 1.21 | " in page
    assert "| 0.05 | 20 | 0 | – | – | 121 |" in page  # the median of three runs
    assert "at the same noise: at 5 of 5 noise multipliers" in text
    worse = [replace(line, perplexity=1 / line.perplexity) for line in lines]
    assert "at the same noise: at 0 of 5 noise multipliers" in topic_batches.render_page(worse, {}).replace("\n", " ")
    assert "is 50 above that by the accountant after 5 iterations, and 50 after all." in text
    topic_batches.draw_picture(lines, tmp_path / "batches.png")
    assert (tmp_path / "batches.png").stat().st_size > 1000


def test_strong_composition_needs_more_noise_for_the_same_cost() -> None:
    needed, rate = topic_batches.find_needed_noise(), 1 / topic_batches.LARGEST
    strong = composition.compose_strongly(needed, rate, topic_batches.LARGEST, topic_batches.DELTA)
    assert needed > topics.USUAL_NOISE
    assert strong == pytest.approx(topics.compute_epsilon(topics.USUAL_NOISE, topic_batches.DELTA), rel=1e-2)


def test_a_run_is_measured_at_the_places_of_the_picture(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(topic_batches, "PLACES", (1, 3))
    _, codes = topics.draw_corpus(np.random.default_rng(0), 60)
    found = list(topic_batches.measure_run(codes[:50], codes[50:], iterations=3, noise=0.0, seed=0, each=True))
    (last,) = topic_batches.measure_run(codes[:50], codes[50:], iterations=3, noise=0.0, seed=0)
    assert [line.done for line in found] == [1, 3]
    assert found[-1] == last


def test_the_page_about_networks_has_every_setting(tmp_path: Path) -> None:
    lines = [replace(BITS, stated=stated, epsilon=stated) for stated in sbn.EPSILONS]
    lines += [replace(BITS, stated=0.0, batch=batch) for batch, _ in sbn.BATCHES]
    lines += [replace(BITS, stated=0.0, epsilon=0.0, right=0.91), replace(lines[0], seed=1, right=0.8)]
    pixels = replace(BITS, form=sbn.PIXELS, right=0.7, signal=0.0, grade="")
    lines += [replace(pixels, stated=stated, epsilon=stated) for stated in sbn.EPSILONS]
    lines += [replace(pixels, stated=0.0, epsilon=0.0, right=0.92)]
    page = sbn.render_page(lines, 0.866, {"cores": "2"})
    assert page.count("| 0.900 |") == len(sbn.EPSILONS) + len(sbn.BATCHES) - 1
    assert page.count("| 0.700 | – | – |") == len(sbn.EPSILONS)
    text = page.replace("\n", " ")
    assert "have 0.910 of the pixels right, and 0.920 with a bound for each pixel" in text
    assert "ε = 0.5: 0.700 with a bound for each pixel, and 0.850 with one bound" in text
    assert "| 0.850 |" in page  # the median of two runs
    sbn.draw_picture(lines, 0.866, tmp_path / "sbn.png")
    assert (tmp_path / "sbn.png").stat().st_size > 1000


def test_noise_of_the_published_form_hides_more_than_that_of_one_bound() -> None:
    """It has J times as many matrices, with J times the squared bound."""
    noise = sbn.find_noise(10, 2.6)
    one = sbn.compute_noise_edge(SigmoidBelief(sbn.PIXELS_OF_IMAGE, 10, 1.0, sbn.ROWS), PAIRS, noise)
    pixels = sbn.compute_noise_edge(PixelBounds(sbn.PIXELS_OF_IMAGE, 10, 1.0, sbn.ROWS), MATRICES, noise)
    lengths = {"one": [10, 7840, 55], "pixels": [10, 784, 7840, 7840, 784 * 55]}
    shares = {name: np.sqrt(np.array(each)) / np.sqrt(each).sum() for name, each in lengths.items()}
    expected = np.sqrt(784) * np.sqrt(shares["one"][2] / shares["pixels"][4])
    assert pixels / one == pytest.approx(expected)
    variance = 1.0
    for answer in range(1, sbn.USUAL[1]):
        weight = answer**-0.5
        variance = (1 - weight) ** 2 * variance + weight**2
    deviation = noise * 10 / np.sqrt(shares["one"][2]) * sbn.ROWS / 3200 * np.sqrt(variance)
    assert one == pytest.approx(deviation / 4 * np.sqrt(20) / (sbn.ROWS / 16))


def test_the_grid_takes_its_margin_of_the_clipping_norm() -> None:
    assert sbn.measure_loss(412_414) == pytest.approx(412_414 / 2**22, rel=0.01)
    assert sbn.measure_loss(4_200_000) == 1.0


def test_documents_are_words_of_articles_by_chance() -> None:
    """Articles with few known words are left out; absent places are null rows."""
    article = [f"w{place}" for place in range(150)]
    documents = news_topics.draw_documents(
        [article, article[:30], article[:10]], article[:120], np.random.default_rng(0)
    )
    assert [len(document) for document in documents] == [news_topics.LENGTH, 30]
    assert set(documents[0]) < set(article[:120])
    assert sorted(documents[1]) == sorted(article[:30])
    table = news_topics.make_table(documents, article)
    present = np.asarray(table.columns["_present"]).reshape(2, -1)
    assert present.sum(axis=1).tolist() == [news_topics.LENGTH, 30]
    codes = np.asarray(table.columns["word"]).reshape(2, -1)[1, :30]
    assert [article[code] for code in codes] == documents[1]


def test_frequent_words_are_known_without_the_most_frequent_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(news_topics, "COMMON", 1)
    monkeypatch.setattr(news_topics, "WORDS", 2)
    assert news_topics.choose_words([["the", "b", "c"], ["the", "c", "the"], ["the", "b", "d"]]) == ("b", "c")


def test_the_page_about_news_has_medians_of_every_setting() -> None:
    line = news_topics.Line("vips", 1.0, 4.9, 0, 3199, 900.0, 0.7, 2.5, "not-usable", "a b; c d", 2.0)
    exact = replace(line, what=news_topics.EXACT, epsilon=np.inf, noise=0.0, grade="centre-only")
    sampler = replace(line, what=news_topics.SAMPLER, epsilon=0.0, grade="")
    one = replace(line, what=news_topics.UNIGRAM, epsilon=0.0, grade="", perplexity=870.0)
    lines = [one, sampler, exact, line, replace(line, seed=1, perplexity=800.0)]
    page = news_topics.render_page(lines, {"cores": "2"})
    assert "| vips | 1 | 4.9 | 850 | 2.5 | 0.7 | not-usable | 2 |" in page
    assert "| vips, no noise | – | – | 900 | – | – | centre-only | 1 |" in page
    assert "| Gibbs sampler | – | – | 900 | – | – | – | 1 |" in page
    assert "- a b\n- c d\n" in page
    assert "No release with a usable grade is." in page
    better = replace(line, epsilon=4.0, grade="centre-only")
    assert "At ε = 4, **releases with a usable grade are.**" in news_topics.render_page(
        [*lines, better], {"cores": "2"}
    )
