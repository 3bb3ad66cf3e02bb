"""Randomness of noise and subsamples: laws with stated power, and no reuse."""

import multiprocessing
from concurrent.futures import ThreadPoolExecutor
from multiprocessing.connection import Connection

import numpy as np
import pytest
from scipy import stats

from app.inference.audit.mechanism import Cell, draw_sample
from app.inference.audit.one_run import ask_about_canaries
from app.inference.audit.subjects import list_subjects
from app.inference.core.model import Array64
from app.inference.private_zone.mechanisms import GRID, DiscreteGaussian
from app.inference.private_zone.rng import make_sampling_generator
from app.inference.private_zone.sampling import Subsamples
from app.privacy.audit.laws import AnswerLaw

CHANCE = 1e-9
REJECTED = 1e-6
SCALE = 3.0 * GRID
CELLS, BLOCK = 16, 2_500


def _draw(count: int) -> Array64:
    return DiscreteGaussian().perturb(np.zeros(count, dtype=np.int64), SCALE) / SCALE


def _test_scale(noise: Array64) -> float:
    """Two-sided p-value of the variance by chi-square."""
    below = float(stats.chi2.cdf(float(np.sum(np.square(noise))), len(noise)))
    return 2 * min(below, 1 - below)


def _miss_scale(draws: int, factor: float) -> float:
    """Compute the probability that noise of ``factor`` times the scale is not rejected."""
    least, most = (tail(REJECTED / 2, draws) / factor**2 for tail in (stats.chi2.ppf, stats.chi2.isf))
    return float(stats.chi2.cdf(most, draws) - stats.chi2.cdf(least, draws))


def _test_cells(noise: Array64) -> float:
    """Compute chi-square's p-value of cells with equal probability."""
    edges = stats.norm.ppf(np.arange(1, CELLS) / CELLS)
    return float(stats.chisquare(np.bincount(np.searchsorted(edges, noise), minlength=CELLS)).pvalue)


def _miss_cells(draws: int, factor: float) -> float:
    """Compute the same probability for cells."""
    shares = np.diff(stats.norm.cdf(stats.norm.ppf(np.arange(CELLS + 1) / CELLS) / factor))
    noncentrality = draws * float(np.sum((shares - 1 / CELLS) ** 2 * CELLS))
    return float(stats.ncx2.cdf(stats.chi2.isf(REJECTED, CELLS - 1), CELLS - 1, noncentrality))


def _test_blocks(noise: Array64) -> float:
    """Compute Kolmogorov and Smirnov's p-value of sums of squares over blocks, which are chi-square."""
    sums = np.square(noise).reshape(-1, BLOCK).sum(axis=1)
    return float(stats.kstest(sums, stats.chi2(BLOCK).cdf).pvalue)


def _miss_blocks(draws: int, factor: float) -> float:
    """Bound the same probability for blocks.

    At the sum with the largest distance between both laws, the share of sums below it is binomial. The statistic is at
    least that share's distance from the claimed probability, and the test rejects from ``most`` on.
    """
    count, law = draws // BLOCK, stats.chi2(BLOCK)
    sums = law.ppf(np.linspace(0.01, 0.99, 999))
    distances = np.abs(law.cdf(sums) - law.cdf(sums / factor**2))
    claimed, true = (float(law.cdf(sums[np.argmax(distances)] / each)) for each in (1, factor**2))
    most = float(stats.kstwo.isf(REJECTED, count))
    if true < claimed:
        return float(stats.binom.sf(count * (claimed - most), count, true))
    return float(stats.binom.cdf(count * (claimed + most), count, true))


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    ("draws", "least_error"), [(600_000, 0.02), pytest.param(1_500_000, 0.01, marks=pytest.mark.sweep)]
)
def test_w7_noise_has_its_law_to_one_percent_of_its_scale(draws: int, least_error: float) -> None:
    """W7: its variance shows 1 % of the scale; cells and blocks show ``least_error``.

    Draws with such an error are rejected at 10**-6, except with a probability below 10**-8.
    """
    noise = _draw(draws)
    for find_p, find_miss, error in (
        (_test_scale, _miss_scale, 0.01),
        (_test_cells, _miss_cells, least_error),
        (_test_blocks, _miss_blocks, least_error),
    ):
        assert find_p(noise) > CHANCE
        for factor in (1 + error, 1 - error):
            assert find_miss(draws, factor) < 1e-8
            assert find_p(factor * noise) < REJECTED
    assert stats.kstest(noise, "norm").pvalue > CHANCE
    assert stats.kstest(1.03 * noise, "norm").pvalue < REJECTED
    assert abs(float(np.corrcoef(noise[:-1], noise[1:])[0, 1])) * np.sqrt(draws) < stats.norm.isf(CHANCE / 2)
    for limit in (3.0, 4.0):
        beyond = int(np.sum(np.abs(noise) > limit))
        assert CHANCE < stats.binom.cdf(beyond, draws, 2 * stats.norm.sf(limit)) < 1 - CHANCE


def test_w7_no_noise_is_used_twice() -> None:
    """W7: one source, one scale; a value repeats by chance less than once in 30 million draws."""
    source, sums = DiscreteGaussian(), np.zeros(50, dtype=np.int64)
    drawn = np.concatenate([source.perturb(sums, 2.0**20 * GRID) for _ in range(40)])
    assert len(np.unique(drawn)) == len(drawn)


def test_w7_threads_do_not_share_noise() -> None:
    """W7: four threads draw from one source at once."""
    source, sums = DiscreteGaussian(), np.zeros(50, dtype=np.int64)
    with ThreadPoolExecutor(4) as pool:
        drawn = np.concatenate(list(pool.map(lambda _: source.perturb(sums, 2.0**20 * GRID), range(40))))
    assert len(np.unique(drawn)) == len(drawn)


def _send_draws(pipe: Connection, source: DiscreteGaussian) -> None:
    noise = source.perturb(np.zeros(50, dtype=np.int64), 2.0**20 * GRID)
    pipe.send((noise.tolist(), make_sampling_generator().integers(0, 2**62, 50).tolist()))


def test_w7_forked_processes_do_not_share_randomness() -> None:
    """W7: two children of a process that drew before, and the process itself, draw different numbers."""
    source, context = DiscreteGaussian(), multiprocessing.get_context("fork")
    source.perturb(np.zeros(50, dtype=np.int64), 2.0**20 * GRID)
    found: list[tuple[list[int], list[int]]] = []
    for _ in range(2):
        here, there = context.Pipe(duplex=False)
        child = context.Process(target=_send_draws, args=(there, source))
        child.start()
        found.append(here.recv())
        child.join()
    own = source.perturb(np.zeros(50, dtype=np.int64), 2.0**20 * GRID).tolist()
    noises = [*found[0][0], *found[1][0], *own]
    samples = [*found[0][1], *found[1][1], *make_sampling_generator().integers(0, 2**62, 50).tolist()]
    assert len(set(noises)) == len(noises)
    assert len(set(samples)) == len(samples)


def test_w7_a_repeated_attempt_has_fresh_noise() -> None:
    """W7: the same plan on the same table, as after the loss of a worker."""
    subject = next(each for each in list_subjects() if each.name == "mean_sum")
    first, second = (draw_sample(subject, Cell(1.0, 1.0, 100), 1).answers for _ in range(2))
    assert len(np.unique(np.concatenate([first, second]))) == 200


def test_w4_inclusion_does_not_depend_on_the_subsample_before() -> None:
    """W4: at a noise at which inclusion is visible; 40 canaries, 399 pairs of consecutive queries."""
    included = ask_about_canaries(AnswerLaw(0.05, 0.3), np.ones(40), 400) > 0.5
    assert CHANCE < stats.binom.cdf(included.sum(), included.size, 0.3) < 1 - CHANCE
    both = int((included[1:] & included[:-1]).sum())
    spread = np.sqrt(included[1:].size * 0.09 * 0.91 * 2)  # neighbouring pairs share a query
    assert abs(both - 0.09 * included[1:].size) < stats.norm.isf(CHANCE) * spread


@pytest.mark.parametrize("rates", [[(0.01, 20)], [(0.5, 20)]])
def test_w4_each_query_has_a_fresh_subsample(rates: list[tuple[float, int]]) -> None:
    """W4: subsamples that are stored, and subsamples that are drawn when they are needed."""
    samples, found = Subsamples(make_sampling_generator(), 2000, rates), set()
    for _ in range(20):
        positions = samples.next()
        assert positions is not None
        found.add(tuple(samples.union[positions].tolist()))
    assert len(found) == 20


@pytest.mark.parametrize("rates", [[(0.02, 3000)], [(0.3, 500)]])
def test_w4_pairs_of_slots_are_included_independently(rates: list[tuple[float, int]]) -> None:
    """W4: how often two slots are in one subsample is binomial, for every pair of 30 slots (Bonferroni)."""
    (rate, count) = rates[0]
    samples, included = Subsamples(make_sampling_generator(), 30, rates), np.zeros((count, 30))
    for run in range(count):
        positions = samples.next()
        assert positions is not None
        included[run, samples.union[positions]] = 1
    together = (included.T @ included)[np.triu_indices(30, 1)]
    tails = np.minimum(stats.binom.cdf(together, count, rate**2), stats.binom.sf(together - 1, count, rate**2))
    assert float(tails.min()) * 2 * len(together) > CHANCE
    assert CHANCE < stats.binom.cdf(included.sum(), included.size, rate) < 1 - CHANCE
