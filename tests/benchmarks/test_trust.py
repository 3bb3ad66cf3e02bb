"""The trusted flag against the full posterior: far-off releases, and the page."""

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
from benchmarks.trust_page import draw, is_far, render_page
from support.surrogate_tables import Case, build

NEAR = Outcome("labels", 1, "logistic-regression", "rare", "drawn", 3, 300, 270, 4.2, 3.0, 2.0, trusted=True)
FAR = replace(NEAR, kl=51.0, noise_kl=5.0)


def test_a_kl_that_stated_noise_does_not_explain_is_far_off() -> None:
    assert not is_far(NEAR)
    assert is_far(FAR)
    assert not is_far(replace(FAR, noise_kl=5.2))
    assert not is_far(replace(FAR, kl=49.0, noise_kl=0.0))
    for value in (math.nan, math.inf):
        assert is_far(replace(NEAR, kl=value))
        assert is_far(replace(NEAR, noise_kl=value))


def test_the_page_counts_by_trust_and_by_group() -> None:
    text = render_page([NEAR, FAR, replace(FAR, design="zero", trusted=False)], {"commit": "abc"})
    assert "| **labels** | 3 | 2 | 1 | 1 | 5.85; 9.33 |" in text
    assert "| rare | 2 | 2 | 1 | 0 | 5.85; 9.33 |" in text
    assert "| zero | 1 | 0 | 0 | 1 | – |" in text
    assert "| drawn, by signal | 3 | 2 | 1 | 1 |" in text


def test_rows_choices_and_noise_have_separate_streams(monkeypatch: pytest.MonkeyPatch) -> None:
    """A release must not share the random numbers of its table."""
    streams: list[np.random.Generator] = []

    def build_and_record(case: Case, plan: MechanismPlan, noise: RoundedNoise, coins: int) -> Pseudocoreset:
        streams.extend(deepcopy(rng) for rng in (noise._rng, np.random.default_rng(coins)))
        return build(case, plan, noise, coins)

    monkeypatch.setattr(trust, "build", build_and_record)
    seed = next(seed for seed in range(50) if draw_case("labels", seed)[0].slots == 300)
    release("labels", seed)
    streams.append(np.random.default_rng(seed))  # the rows'
    assert len({float(rng.random()) for rng in streams}) == 3
    assert draw_case("labels", 3) != draw_case("numbers", 3)


def test_the_same_seed_gives_the_same_release(tmp_path: Path) -> None:
    """A line of the file is enough to run a bad table again."""
    seed = next(seed for seed in range(50) if draw_case("labels", seed)[0].slots == 300)
    outcome = release("labels", seed)
    assert outcome == release("labels", seed)
    assert math.isfinite(outcome.kl)
    write_lines(tmp_path / "trust.csv", [outcome])
    with (tmp_path / "trust.csv").open(newline="") as stream:
        (line,) = csv.DictReader(stream)
    assert (line["seed"], line["design"], line["trusted"]) == (str(seed), outcome.design, str(outcome.trusted))


def test_the_picture_is_drawn_with_missing_values(tmp_path: Path) -> None:
    draw([NEAR, replace(NEAR, kl=math.nan, trusted=False)], tmp_path / "trust.png")
    assert (tmp_path / "trust.png").stat().st_size > 0
