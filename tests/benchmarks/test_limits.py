"""Figures of speed of whole runs, with their limits and their environment."""

import csv
import itertools
import time
from pathlib import Path

import pytest

from benchmarks.figures import Figure, read_csv, write_csv
from benchmarks.limits import measure_seconds, render_page
from benchmarks.runs import Job
from benchmarks.sources import NoNoise
from tests.benchmarks.cases import case


def test_the_time_of_a_run_excludes_its_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each reading of the clock adds a second: two for each gathering of rows, and one at either end."""
    readings = itertools.count()
    monkeypatch.setattr(time, "process_time", lambda: float(next(readings)))
    for job in (Job(case(), "uniform", 5, 0), Job(case(), "dp-psvi-surrogate", 5, 0, epsilon=1.0)):
        before = next(readings)
        results = measure_seconds(job, NoNoise())
        gathered = (next(readings) - before - 3) // 2
        assert gathered > 0
        assert results == gathered + 1


def test_figures_have_their_limits_and_environment(tmp_path: Path) -> None:
    results = [Figure("a query", 31.26, "ms", "at most 60"), Figure("a run", 0.2345, "s")]
    write_csv(tmp_path / "speed.csv", results, 1.25)
    with (tmp_path / "speed.csv").open(newline="") as stream:
        lines = list(csv.DictReader(stream))
    assert [(line["what"], line["value"], line["target"], line["load"]) for line in lines] == [
        ("a query", "31.3", "at most 60", "1.2"),
        ("a run", "0.234", "", "1.2"),
    ]
    assert all(line["processor"] and line["commit"] for line in lines)
    text = render_page(*read_csv(tmp_path / "speed.csv"))
    assert "| a query | 31.3 | ms | at most 60 |" in text
    assert "| a run | 0.234 | s |  |" in text
    assert f"cores {lines[0]['cores']}" in text.replace("\n", " ")
    assert "load before 1.2." in text.replace("\n", " ")
