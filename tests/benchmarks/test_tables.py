"""Records, tables and pages are written, read and summarised."""

import json
import math
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.adult import MissingData
from benchmarks.environment import describe_environment
from benchmarks.experiment import ACCURACY, EPSILON, KL, Experiment
from benchmarks.experiments import gaussian_mean, logistic, privacy_sweep
from benchmarks.papers import EXPERIMENTS, measure
from benchmarks.plots import STYLES, draw
from benchmarks.readme import write
from benchmarks.records import REFERENCE, Record, open_sink, read
from benchmarks.runs import Job
from benchmarks.summaries import (
    LINES,
    find_place,
    format_number,
    list_lines,
    render_cell,
    render_tables,
    summarise,
    thin_out,
)
from tests.benchmarks.cases import case

pytestmark = pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")

RUN = Record("table", "psvi", 200, 3, 5, seed=1, kl=2.0, accuracy=0.5)


def work(quick: bool) -> Iterator[Job | Record]:
    yield replace(RUN, method="bound", outcome=REFERENCE)
    for seed in range(3):
        for method in ("uniform", "giga"):
            yield Job(case(), method, 5, seed)


EXPERIMENT = Experiment("small", "Small", "A table.", work)


def test_records_are_read_as_they_were_written(tmp_path: Path) -> None:
    records = [RUN, replace(RUN, epsilon=math.inf, outcome="stopped after 3 s at step 1 of 2")]
    with open_sink(tmp_path / "a.csv") as sink:
        for record in records:
            sink(record)
    assert [repr(record) for record in read(tmp_path / "a.csv")] == [repr(record) for record in records]


def test_quartiles_are_of_finished_runs() -> None:
    runs = [replace(RUN, kl=kl, seed=seed) for seed, kl in enumerate((1.0, 2.0, 3.0, 4.0, 50.0))]
    quartiles = summarise(runs, "kl")
    assert quartiles is not None
    assert (quartiles.lower, quartiles.median, quartiles.upper, quartiles.runs) == (2, 3, 4, 5)
    stopped = replace(RUN, kl=math.nan, outcome="stopped after 9 s at step 1 of 8")
    assert render_cell([*runs, stopped], KL) == "3.00; 1 of 6 not finished"
    assert render_cell([stopped], KL) == "stopped after 9 s at step 1 of 8"
    assert render_cell([], KL) == "–"
    assert render_cell([RUN], ACCURACY) == "0.5000"


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.0, "0"), (12345.6, "12,346"), (99.94, "99.9"), (1.234, "1.23"), (0.01234, "0.0123"), (1e-9, "1.0e-09")],
)
def test_numbers_have_three_digits(value: float, text: str) -> None:
    assert format_number(value) == text


def test_tables_have_a_line_per_method_and_a_column_per_place() -> None:
    runs = [replace(RUN, epsilon=epsilon, kl=epsilon) for epsilon in (0.1, 1.0)]
    runs += [replace(RUN, method="aim", epsilon=1.0, kl=0.25, outcome=REFERENCE)]
    runs += [replace(RUN, epsilon=math.inf, kl=0.01)]
    runs += [replace(run, data="other") for run in runs]
    table = render_tables(Experiment("e", "E", "", work, (KL,), {"": EPSILON}), runs).splitlines()
    assert table[0].split("|")[3:-1] == [" 0.1 ", " 1 ", " no noise "]
    assert table[2:] == [
        "| table | psvi | 0.100 | 1.00 | 0.0100 |",
        "| table | aim | – | 0.250 | – |",
        "| other | psvi | 0.100 | 1.00 | 0.0100 |",
        "| other | aim | – | 0.250 | – |",
    ]


def test_data_sets_with_other_places_have_a_separate_table() -> None:
    runs = [RUN, replace(RUN, data="large", size=50)]
    assert render_tables(EXPERIMENT, runs).count("| --- | --- | ---: |") == 2


def test_at_most_five_places_are_shown_with_both_ends() -> None:
    assert thin_out([1.0, 2.0]) == [1, 2]
    assert thin_out([float(value) for value in range(11)]) == [0, 2, 5, 8, 10]


def test_methods_have_a_fixed_order() -> None:
    methods = ("uniform", "at most", "dp-vi", "PSVI", "aim", "dp-psvi-surrogate, ε = 0.2")
    ordered = list_lines(replace(RUN, method=method) for method in methods)
    assert ordered == ["at most", "aim", "dp-psvi-surrogate, ε = 0.2", "PSVI", "uniform", "dp-vi"]


@pytest.mark.parametrize(
    "methods",
    [
        [label for _, _, label in gaussian_mean.METHODS],
        [label for _, _, label in logistic.SMALL_METHODS],
        [label for _, _, label in logistic.LARGE_METHODS],
        [*privacy_sweep.METHODS, "dp-psvi, clamped", "dp-vi, published settings"],
    ],
    ids=["gaussian mean", "small", "large", "sweep"],
)
def test_methods_of_a_figure_have_different_styles(methods: list[str]) -> None:
    places = [find_place(method) for method in methods]
    assert min(places) >= 0
    assert len({STYLES[LINES[place]] for place in places}) == len(methods)


def test_medians_are_divided_by_the_floor_of_an_experiment() -> None:
    runs = [replace(RUN, epsilon=epsilon, kl=kl) for epsilon in (0.1, 1.0) for kl in (3.0, 6.0, 90.0)]
    runs += [replace(RUN, method="floor", epsilon=0.1, kl=4.0, outcome=REFERENCE)]
    shown = render_tables(Experiment("e", "E", "", work, (KL,), {"": EPSILON}, floor="floor"), runs)
    assert shown.splitlines() == [
        "| data | median KL to the full posterior (nats) over the floor, by privacy ε (δ = 1/N) | 0.1 | 1 |",
        "| --- | --- | ---: | ---: |",
        "| table | psvi | 1.50 | – |",
    ]


def test_an_experiment_writes_lines_a_figure_and_a_page(tmp_path: Path) -> None:
    measure(EXPERIMENT, tmp_path, quick=True, only=None)
    records = read(tmp_path / "small.csv")
    assert [record.method for record in records] == ["bound", *["uniform", "giga"] * 3]
    draw(EXPERIMENT, records, tmp_path / "small.png")
    assert (tmp_path / "small.png").read_bytes().startswith(b"\x89PNG")
    (tmp_path / "other.md").write_text("# Another page\n\nOf another command.\n")
    page = write(tmp_path, (EXPERIMENT,)).read_text()
    assert page == write(tmp_path, (EXPERIMENT,)).read_text()
    assert "Other pages:\n\n- [Another page](other.md)\n\n## Small" in page
    assert "![Small](small.png)" in page
    assert f"| giga | {render_cell([each for each in records if each.method == 'giga'], KL)} |" in page


def test_measuring_one_method_keeps_the_lines_of_the_others(tmp_path: Path) -> None:
    old = [replace(RUN, method=method, kl=-1.0, outcome=outcome) for method, outcome in
           (("bound", REFERENCE), ("uniform", "finished"), ("giga", "finished"))]  # fmt: skip
    with open_sink(tmp_path / "small.csv", old):
        pass
    measure(EXPERIMENT, tmp_path, quick=True, only="giga")
    records = read(tmp_path / "small.csv")
    assert [record.method for record in records] == ["uniform", "bound", "giga", "giga", "giga"]
    assert [record.kl == -1 for record in records] == [True, False, False, False, False]


@pytest.mark.slow
def test_measuring_one_method_keeps_the_environment_of_the_others(tmp_path: Path) -> None:
    with open_sink(tmp_path / "small.csv", [RUN]):
        pass
    (tmp_path / "small.json").write_text('{"processor": "another one"}')
    measure(EXPERIMENT, tmp_path, quick=True, only="giga")
    environment_of_runs = json.loads((tmp_path / "small.json").read_text())
    assert environment_of_runs["processor"] == "another one"
    assert list(environment_of_runs) == ["processor", "giga:"]
    assert "commit" in environment_of_runs["giga:"]
    measure(EXPERIMENT, tmp_path, quick=True, only=None)
    assert json.loads((tmp_path / "small.json").read_text()) == describe_environment()


def test_missing_data_keeps_earlier_runs(tmp_path: Path) -> None:
    def missing(quick: bool) -> Iterator[Job | Record]:
        if quick:
            raise MissingData("a file")
        yield RUN

    with open_sink(tmp_path / "small.csv", [RUN]):
        pass
    with pytest.raises(MissingData):
        measure(replace(EXPERIMENT, work=missing), tmp_path, quick=True, only=None)
    assert len(read(tmp_path / "small.csv")) == 1


def test_experiments_have_distinct_names() -> None:
    assert len({each.name for each in EXPERIMENTS}) == len(EXPERIMENTS)
