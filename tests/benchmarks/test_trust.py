"""Trust, judged beside the truth: what counts as far off, and what the page says of it."""

import csv
import math
from copy import deepcopy
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from app.inference.core.plan import MechanismPlan
from app.inference.core.release import Pseudocoreset
from benchmarks import trust
from benchmarks.figures import write_lines
from benchmarks.sources import RoundedNoise
from benchmarks.trust import Outcome, draw_case, release
from benchmarks.trust_page import draw, far, page
from support.surrogate_tables import Case, build

NEAR = Outcome("labels", 1, "logistic-regression", "rare", "drawn", 3, 300, 270, 4.2, 3.0, 2.0, trusted=True)
ASTRAY = replace(NEAR, kl=51.0, noise_kl=5.0)


def test_far_off_is_what_stated_noise_does_not_explain() -> None:
    assert not far(NEAR)
    assert far(ASTRAY)
    assert not far(replace(ASTRAY, noise_kl=5.2))
    assert not far(replace(ASTRAY, kl=49.0, noise_kl=0.0))
    for value in (math.nan, math.inf):
        assert far(replace(NEAR, kl=value))
        assert far(replace(NEAR, noise_kl=value))


def test_the_page_counts_by_trust_and_by_group() -> None:
    text = page([NEAR, ASTRAY, replace(ASTRAY, design="zero", trusted=False)], {"commit": "abc"})
    assert "| **labels** | 3 | 2 | 1 | 1 | 5.85; 9.33 |" in text
    assert "| rare | 2 | 2 | 1 | 0 | 5.85; 9.33 |" in text
    assert "| zero | 1 | 0 | 0 | 1 | – |" in text
    assert "| drawn, by signal | 3 | 2 | 1 | 1 |" in text


def test_rows_coins_and_noise_are_streams_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """A release must not know the numbers that its table was made of."""
    streams: list[np.random.Generator] = []

    def built(case: Case, plan: MechanismPlan, noise: RoundedNoise, coins: int) -> Pseudocoreset:
        streams.extend(deepcopy(rng) for rng in (noise._rng, np.random.default_rng(coins)))
        return build(case, plan, noise, coins)

    monkeypatch.setattr(trust, "build", built)
    seed = next(seed for seed in range(50) if draw_case("labels", seed)[0].slots == 300)
    release("labels", seed)
    streams.append(np.random.default_rng(seed))  # the rows'
    assert len({float(rng.random()) for rng in streams}) == 3
    assert draw_case("labels", 3) != draw_case("numbers", 3)


def test_the_same_seed_gives_the_same_release(tmp_path: Path) -> None:
    """A line of the file is enough to look at a table that went astray."""
    seed = next(seed for seed in range(50) if draw_case("labels", seed)[0].slots == 300)
    found = release("labels", seed)
    assert found == release("labels", seed)
    assert math.isfinite(found.kl)
    write_lines(tmp_path / "trust.csv", [found])
    with (tmp_path / "trust.csv").open(newline="") as stream:
        (line,) = csv.DictReader(stream)
    assert (line["seed"], line["design"], line["trusted"]) == (str(seed), found.design, str(found.trusted))


def test_the_picture_is_drawn_whatever_is_missing(tmp_path: Path) -> None:
    draw([NEAR, replace(NEAR, kl=math.nan, trusted=False)], tmp_path / "trust.png")
    assert (tmp_path / "trust.png").stat().st_size > 0
