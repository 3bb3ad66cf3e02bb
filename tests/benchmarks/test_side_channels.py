"""The statistics of the side-channel benchmark: planted differences are found, and equal laws are not."""

import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

from app.inference.registry import DEFAULT
from benchmarks.observed_jobs import JOBS, PLACE, UNITS, Observation, make_table, measure_processor
from benchmarks.side_channels import CHANCE, LEAST_ROUNDS, Comparison, Round, compare, list_findings, render_page
from benchmarks.side_channels import ROUNDS as DEFAULTS

ROUNDS = LEAST_ROUNDS


def draw_rounds(*, slower: float = 1.0, longer: float = 0.0, word: str = "usual") -> list[Round]:
    """Draw rounds in which the extreme unit differs as given; times and sizes vary from round to round."""
    rng, rounds = np.random.default_rng(1), list[Round]()
    for number in range(ROUNDS):
        one: dict[str, Observation] = {}
        for unit in UNITS:
            is_extreme = unit == "extreme"
            one[unit] = {
                "run: seconds": float(rng.lognormal(0, 0.05)) * (slower if is_extreme else 1.0),
                "job: bytes": 900.0 + number + (longer if is_extreme else 0.0),
                "release: bytes (noised)": float(rng.integers(700, 720)),
                "outcome": word if is_extreme else "usual",
            }
        rounds.append(one)
    return rounds


def find(rounds: list[Round]) -> set[tuple[str, str]]:
    return {(each.unit, each.observable) for each in list_findings(list(compare("work", rounds)))}


def test_equal_laws_have_no_finding() -> None:
    assert find(draw_rounds()) == set()


@pytest.mark.parametrize(
    ("rounds", "observable"),
    [
        (draw_rounds(slower=1.1), "run: seconds"),
        (draw_rounds(longer=1.0), "job: bytes"),
        (draw_rounds(word="other"), "outcome"),
    ],
    ids=["time", "size", "text"],
)
def test_planted_differences_are_found(rounds: list[Round], observable: str) -> None:
    """W3: a tenth more time, one byte, or another word."""
    assert find(rounds) == {("extreme", observable)}


def test_texts_that_differ_as_often_as_the_controls_are_no_finding() -> None:
    rounds = draw_rounds()
    for number, one in enumerate(rounds):
        for unit, seen in one.items():
            seen["outcome"] = f"{number} {unit}"
    assert find(rounds) == set()


def test_the_page_states_findings_and_counts() -> None:
    comparisons = list(compare("work", draw_rounds(word="other")))
    page = render_page(comparisons, {"python": "3"})
    assert "work, unit extreme: *outcome* (differs in 36 of 36 rounds" in page
    assert "| work | extreme | 3 | 1 | 1 | 1 |" in page
    assert "None." in render_page([replace(each, p_value=1.0) for each in comparisons], {"python": "3"})


def test_the_least_number_of_rounds_can_show_a_difference() -> None:
    """Of any of 1,000 numbers; otherwise the page could only state that nothing was found."""
    found = [each for each in compare("work", draw_rounds(slower=9.0)) if each.observable == "run: seconds"]
    assert min(each.p_value for each in found) < CHANCE / 1_000
    assert min(DEFAULTS.values()) >= LEAST_ROUNDS


def test_noised_values_are_marked() -> None:
    comparison = Comparison("work", "usual", "release: bytes (noised)", "number", 1, 1, 1.0, 1.0, 1.0, 1.0)
    assert comparison.is_noised
    assert not comparison.is_time


def test_tables_differ_in_one_row() -> None:
    """All tables are neighbours: with the unit left out, they are the same."""
    tables = {unit: make_table(unit).decode().splitlines() for unit in UNITS}
    assert len({tuple(lines[: PLACE + 1] + lines[PLACE + 2 :]) for lines in tables.values()}) == 1
    assert len({lines[PLACE + 1] for lines in tables.values()}) == len(UNITS)


def test_every_work_has_rounds() -> None:
    """W3: uploads, one method with a fixed number of queries, and the default method."""
    assert set(DEFAULTS) == {"upload", *JOBS}
    assert DEFAULT in JOBS


def test_processor_time_of_children_counts() -> None:
    """Each upload is read in a child."""
    began = measure_processor()
    subprocess.run([sys.executable, "-c", "sum(range(3_000_000))"], check=True)
    assert measure_processor() - began > 0.02
