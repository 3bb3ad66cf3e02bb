"""Runs of peers: settings, processes, coded tables, failures, and the page."""

import math
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from benchmarks import environment
from benchmarks.environment import ROOT
from benchmarks.figures import write_lines
from benchmarks.peers import __main__ as command
from benchmarks.peers.contenders import CONTENDERS, COREVAULT, Contender
from benchmarks.peers.environments import PeerFailed, run_worker
from benchmarks.peers.measuring import derive_seed, measure_cell
from benchmarks.peers.page import list_failures, list_losses, list_rows, render_page, summarize
from benchmarks.peers.problem import Belief, Settings, measure_distance
from benchmarks.peers.results import FLOOR, Line, Notes, read_lines
from benchmarks.peers.synthetic import bin_values, encode_table, fit_synthetic
from benchmarks.peers.tables import PeerTable, make_heavy
from benchmarks.peers.tuning import DEVELOPMENT_SEEDS, choose_settings
from benchmarks.tables import DEVELOPMENT_SEEDS as LEAST_REPORT_SEED
from support.divergence import compute_divergence
from tests.benchmarks.peers.cases import draw_table

LINE = Line("visits", 100, 3, 1.0, 0.01, COREVAULT, 1, "{}", kl=2.0, mean_error=0.5, commit="abc")
ECHO = """
import sys
from benchmarks.peers.workers.protocol import serve

def answer(arrays, request):
    print("noise on standard output")
    if request["seed"] == 2:
        raise ValueError("no such seed")
    if request["seed"] == 3:
        sys.exit(4)
    if request["seed"] == 4:
        import time
        time.sleep(60)
    return {"mean": arrays["x"] * request["epsilon"]}

serve(answer)
"""


def lines_of(peer: str, *kls: float, epsilon: float = 1.0) -> list[Line]:
    return [
        replace(LINE, peer=peer, epsilon=epsilon, kl=kl, mean_error=kl / 4, seed=seed) for seed, kl in enumerate(kls)
    ]


def test_settings_are_chosen_by_the_median_of_all_seeds() -> None:
    asked = list[tuple[float, int]]()

    def measure(settings: Settings, seed: int) -> float:
        asked.append((settings["a"], seed))
        return {0.0: [9, 9, 9], 1.0: [1, 8, 8], 2.0: [2, 2, 2]}.get(settings["a"], [math.inf] * 3)[seed - 1]

    candidates = [{"a": float(value)} for value in range(6)]
    assert choose_settings(candidates, measure) == {"a": 2.0}
    assert (0.0, 2) not in asked


def test_a_grid_without_a_finite_release_is_refused() -> None:
    with pytest.raises(ValueError, match="no settings"):
        choose_settings([{"a": 1.0}], lambda settings, seed: math.nan)


def test_seeds_of_releases_differ_from_development_seeds() -> None:
    seeds = [derive_seed(LEAST_REPORT_SEED, "visits", epsilon, number) for epsilon in (0.2, 1.0) for number in range(5)]
    assert len({*seeds, *DEVELOPMENT_SEEDS}) == len(seeds) + len(DEVELOPMENT_SEEDS)


@pytest.mark.process
def test_a_worker_answers_and_survives_failures(tmp_path: Path) -> None:
    """An error leaves the process; an exit and a time-out end it, and the next request starts another."""
    module = "echo_peer"
    (tmp_path / f"{module}.py").write_text(ECHO)
    code = f"import sys, runpy; sys.path[:0] = [{str(tmp_path)!r}, {str(ROOT)!r}]; runpy.run_module({module!r})"
    (tmp_path / "start.py").write_text(code)
    with run_worker(Path(sys.executable), module, []) as worker:
        worker._command = [sys.executable, str(tmp_path / "start.py")]
        arrays = {"x": np.array([1.0, 2.0])}
        np.testing.assert_array_equal(worker.ask(arrays, {"epsilon": 3.0, "seed": 1}, 30)["mean"], [3.0, 6.0])
        with pytest.raises(PeerFailed, match="no such seed"):
            worker.ask(arrays, {"epsilon": 3.0, "seed": 2}, 30)
        with pytest.raises(PeerFailed):
            worker.ask(arrays, {"epsilon": 3.0, "seed": 3}, 30)
        with pytest.raises(PeerFailed, match="took longer than"):
            worker.ask(arrays, {"epsilon": 3.0, "seed": 4}, 0.5)
        np.testing.assert_array_equal(worker.ask(arrays, {"epsilon": 1.0, "seed": 1}, 30)["mean"], [1.0, 2.0])


def test_the_posterior_of_a_coded_table_is_nearly_exact() -> None:
    table = draw_table()
    coded = encode_table(table, 256)
    assert coded.codes.max(axis=0).tolist() == (coded.sizes - 1).tolist()
    assert table.case.exact is not None
    assert measure_distance(fit_synthetic(table, coded, coded.codes), table.case.exact).kl < 1e-3


def test_half_of_the_rows_count_as_the_whole_table() -> None:
    table = draw_table()
    coded, whole = encode_table(table, 64), np.linalg.slogdet
    full, half = (fit_synthetic(table, coded, coded.codes[::step]).precision for step in (1, 2))
    assert full is not None
    assert half is not None
    assert whole(half)[1] == pytest.approx(whole(full)[1], abs=0.3)


def test_bins_of_few_values_are_exact() -> None:
    codes, means = bin_values(np.array([5.0, 1.0, 5.0, 9.0]), 3)
    np.testing.assert_array_equal(means[codes], [5.0, 1.0, 5.0, 9.0])


def test_bins_hold_quantiles_and_the_range() -> None:
    values = np.exp(np.random.default_rng(0).standard_normal(10_000))
    codes, means = bin_values(values, 32)
    assert len(means) <= 33
    assert np.all(np.diff(means) > 0)
    assert np.bincount(codes).max() < 1000
    assert means[-1] > 0.8 * values.max()


def test_a_distance_is_the_divergence_of_both_normals() -> None:
    table = draw_table()
    exact = table.case.exact
    assert exact is not None
    mean, factor = exact.mean + 0.1, 1.3 * exact.factor
    found = measure_distance(Belief(mean, factor @ factor.T), exact)
    assert found.kl == pytest.approx(compute_divergence(replace(exact, mean=mean, factor=factor), exact))
    shift = exact.factor.T @ (mean - exact.mean)
    assert found.mean_error == pytest.approx(math.sqrt(shift @ shift / len(mean)))


def test_the_declared_norm_bounds_every_row() -> None:
    for table in (draw_table(), make_heavy(3)):
        assert np.linalg.norm(table.problem.x, axis=1).max() <= table.problem.norm
        assert np.all(table.problem.x[:, -1] == 1)


@pytest.mark.long
def test_corevault_runs_through_the_same_measure() -> None:
    contender = CONTENDERS[0]
    with contender.open(Path("unused")) as (make, versions):
        lines = list(measure_cell(replace(contender, seeds=2), make, draw_table(), 3.0, 7))
    assert versions == {}
    assert [each.failure for each in lines] == ["", ""]
    assert all(0 <= each.kl < 5 and each.covers for each in lines)
    assert lines[0].seed != lines[1].seed


def test_a_failure_of_a_peer_is_a_line_with_its_reason() -> None:
    def make(table: PeerTable, epsilon: float, settings: Settings, seed: int) -> Belief:
        raise PeerFailed("took longer than 3 s")

    for grid in ({}, {"a": (1.0, 2.0)}):
        lines = list(measure_cell(Contender("slow", "", make, grid), make, draw_table(), 1.0, 7))
        assert [each.failure for each in lines] == ["took longer than 3 s"]


def test_a_slow_peer_gets_no_further_epsilon_of_the_table(tmp_path: Path) -> None:
    asked = list[float]()

    def make(table: PeerTable, epsilon: float, settings: Settings, seed: int) -> Belief:
        asked.append(epsilon)
        raise PeerFailed("took longer than 3 s")

    run = command.Run(tmp_path / "peers.csv", tmp_path, (), (0.2, 1.0))
    lines = list(command.measure_contender(Contender("slow", "", make), {"small": draw_table()}, run, Notes(1)))
    assert asked == [0.2]
    assert [(each.epsilon, each.failure) for each in lines] == [
        (epsilon, "took longer than 3 s") for epsilon in (0.2, 1.0)
    ]


def test_a_run_of_some_peers_can_be_continued(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It writes lines and page with the floors; with all peers, the parts go away."""
    for module in (command, environment):
        monkeypatch.setattr(module, "find_commit", lambda: "abc")
    for only in (["dp-vi"], None):
        run = command.Run(tmp_path / "peers.csv", tmp_path, only, (1.0,))
        write_lines(run.part, lines_of(COREVAULT, 1.0)[:0], Line)
        Notes(5).write(run.notes)
        command.finish(run, {"insurance": draw_table()}, Notes(5))
        assert run.part.exists() == (only is not None)
        assert [each.peer for each in read_lines(run.out)] == [FLOOR]
        page = run.out.with_suffix(".md").read_text()
        assert "small table" in page
        assert "earlier" not in page
    write_lines(run.part, [replace(LINE, table="insurance", epsilon=1.0, commit="def")], Line)
    Notes(5).write(run.notes)
    command.finish(run, {"insurance": draw_table()}, Notes(5))
    assert "earlier lines: commits def" in " ".join(run.out.with_suffix(".md").read_text().split())


def test_lines_and_notes_are_read_as_written(tmp_path: Path) -> None:
    lines = [LINE, replace(LINE, kl=math.nan, failure="too slow, alas", covers=False)]
    write_lines(tmp_path / "lines.csv", lines, Line)
    assert str(read_lines(tmp_path / "lines.csv")) == str(lines)
    assert read_lines(tmp_path / "none.csv") == []
    notes = Notes(5, {"d3p": {"jax": "1"}})
    notes.write(tmp_path / "notes")
    assert Notes.read(tmp_path / "notes") == notes


def test_the_page_shows_medians_and_the_best_in_bold() -> None:
    lines = lines_of(COREVAULT, 1.0, 3.0, 2.0) + [
        replace(each, covers=False) for each in lines_of("DP-GD", 9.0, 4.0, 5.0)
    ]
    lines += [replace(LINE, peer=FLOOR, kl=0.5, mean_error=math.nan)]
    page = render_page(lines, {"visits": "visits to a doctor"}, "peers.csv", Notes(77), {"commit": "abc"})
    assert "| visits | 1 | **2.00** | 5.00† | 0.500 |" in page
    assert "| visits | 1 | **0.500** | 1.25 |" in page
    assert "base seed 77" in " ".join(page.split())
    assert "Nowhere on these tables." in page
    assert "- visits: visits to a doctor." in page


def test_the_page_names_every_place_where_corevault_is_not_first() -> None:
    lines = lines_of(COREVAULT, 4.0) + lines_of("diffprivlib", 1.0) + lines_of("diffprivlib", 9.0, epsilon=3.0)
    losses = list(list_losses(summarize(lines), list_rows(lines)))
    assert losses[0].startswith("- visits, ε = 1: the KL of diffprivlib is 4.00 times smaller. ")
    assert losses[1].startswith("- visits, ε = 1: the error of the mean of diffprivlib is 4.00 times smaller. ")
    assert any("ε = 3" in each for each in losses)


def test_a_loss_is_explained_by_an_error_that_does_not_fall() -> None:
    lines = [*lines_of(COREVAULT, 4.0), *lines_of(COREVAULT, 3.0, epsilon=3.0), *lines_of("DP-GD", 1.0, epsilon=3.0)]
    losses = list(list_losses(summarize(lines), list_rows(lines)))
    assert "Corevault's KL was 4.00 at ε = 1 and hardly falls" in losses[0]
    lines = [*lines_of(COREVAULT, 9.0), *lines_of(COREVAULT, 3.0, epsilon=3.0), *lines_of("DP-GD", 1.0, epsilon=3.0)]
    assert "hardly falls" not in "".join(list_losses(summarize(lines), list_rows(lines)))


def test_a_failed_release_empties_the_cell_and_is_listed() -> None:
    lines = [
        *lines_of(COREVAULT, 1.0),
        *lines_of("d3p", 0.1),
        replace(LINE, peer="d3p", kl=math.nan, failure="`killed`"),
    ]
    assert [place[2] for place in summarize(lines)] == [COREVAULT]
    assert list(list_failures(lines)) == ["- **d3p**: visits at ε = 1: `killed`"]


def test_names_of_contenders_are_unique_and_corevault_is_first() -> None:
    names = [each.name for each in CONTENDERS]
    assert names[0] == COREVAULT
    assert len(set(names)) == len(names)
    assert all(bool(each.make) != bool(each.requirements and each.run) for each in CONTENDERS)
