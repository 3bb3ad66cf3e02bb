"""Numbers in explanations agree with the code that prices jobs."""

import re
from pathlib import Path

import pytest

from app.privacy.risk import compute_gaussian_true_positives
from tools.guide.figures import FALSE_POSITIVES, FOLDER, compose_jobs, draw_composition, list_risks

PAGE = (FOLDER / "epsilon-and-delta.md").read_text()


def _read_rows(head: str) -> list[list[str]]:
    table = PAGE.partition(f"| {head} |")[2].split("\n\n")[0]
    return [[cell.strip() for cell in line.split("|")[1:-1]] for line in table.splitlines()[2:]]


def test_risks_of_the_page_are_those_of_the_code() -> None:
    rows = [[f"{epsilon:g}", f"{odds:.2g}", f"{100 * power:.2g}"] for epsilon, odds, power in list_risks()]
    stated = [
        [epsilon, odds.partition(" to ")[0], power.removesuffix(" %")] for epsilon, odds, power in _read_rows("ε")
    ]
    assert [[float(f"{float(cell):.2g}") for cell in row] for row in stated] == [
        [float(c) for c in row] for row in rows
    ]


def test_composed_costs_of_the_page_are_those_of_the_code() -> None:
    rows = _read_rows("jobs of ε = 0.3 each")
    assert len(rows) == 5
    for count, total, together in rows:
        assert float(total) == pytest.approx(0.3 * int(count))
        assert together == f"{compose_jobs(0.3, int(count)):.2f}"


def test_one_better_job_costs_less_than_four_poor_ones() -> None:
    assert compose_jobs(0.6, 1) < compose_jobs(0.3, 4)


def test_bound_of_the_figure_exceeds_an_attack_on_the_mechanism() -> None:
    """The bound for a cost of 1 exceeds an exact attack that costs less."""
    power = {epsilon: power for epsilon, _, power in list_risks()}
    assert FALSE_POSITIVES < compute_gaussian_true_positives(FALSE_POSITIVES, 0.2) < power[1.0]


def test_figures_are_reproducible_and_load_nothing(tmp_path: Path) -> None:
    draw_composition(tmp_path / "a.svg", most=3)
    draw_composition(tmp_path / "b.svg", most=3)
    assert (tmp_path / "a.svg").read_bytes() == (tmp_path / "b.svg").read_bytes()
    for figure in FOLDER.glob("*.svg"):
        assert not re.search(r"(?:href|src)=\"https?:", figure.read_text())
