"""Claims about figures that other commands measure, by results that hold or break them."""

from collections.abc import Callable
from pathlib import Path

import pytest

from benchmarks import papers_page, robust_figures, system_figures
from benchmarks.claims import Figure, check
from benchmarks.environment import PAGES


def _find(name: str) -> Figure:
    return next(each for each in papers_page.ALL if each.name == name)


def _check(name: str, place: int, folder: Path) -> tuple[int, int]:
    found = check(_find(name).claims[place], folder)
    return found.held, found.measured


@pytest.mark.parametrize("figure", [each for each in papers_page.ALL if each.page], ids=lambda each: each.name)
def test_claims_of_other_pages_are_measured(figure: Figure) -> None:
    """The page of a figure exists and states its commit."""
    text = " ".join((PAGES / figure.page).read_text().split())
    assert "; commit " in text
    assert all(check(claim, PAGES).measured for claim in figure.claims)
    assert all((PAGES / f"{name}.png").exists() for name in figure.results)


@pytest.mark.parametrize("figure", papers_page.ALL, ids=lambda each: each.name)
def test_claims_without_results_are_not_run(figure: Figure, tmp_path: Path) -> None:
    assert not any(check(claim, tmp_path).measured for claim in figure.claims)


def _write(folder: Path, name: str, *lines: str) -> None:
    (folder / f"{name}.csv").write_text("\n".join(lines) + "\n")


def test_movements_are_compared_by_places_and_kernels(tmp_path: Path) -> None:
    lines = ["what,name,value"]
    for places, without, with_directions in ((4, 0.1, 0.2), (5, 0.3, 0.25)):
        for direction, value in (("without", without), ("with", with_directions)):
            lines.append(f'"{places} places, {direction} direction",unique,{value}')
            lines.append(f'"{places} places, {direction} direction",median_class,{places - 3}')
    for kernel, rank, loss in (("deep-shortest-paths", 9, -0.5), ("degrees", 5, 0.1)):
        lines += [
            f"{kernel},mean_rank,{rank}",
            f"{kernel},mean_rank_by_chance,7",
            f"{kernel},median_privacy_loss,{loss}",
        ]
    _write(tmp_path, "mobility", *lines)
    assert _check("T 3.5", 0, tmp_path) == (1, 2)
    assert _check("T 3.5", 1, tmp_path) == (1, 1)
    assert _check("T 3.6", 0, tmp_path) == (0, 1)  # a median group of 2 is not alone
    assert _check("T 3.7, 3.8", 0, tmp_path) == (1, 2)
    assert _check("T 3.7, 3.8", 1, tmp_path) == (0, 1)
    assert _check("T 3.9", 0, tmp_path) == (1, 1)


def test_memories_are_compared_at_each_size(tmp_path: Path) -> None:
    rows = [("all rows", 2000, 1.0, 100), ("coreset", 25, 9.0, 10), ("reservoir", 25, 99.0, 10)]
    rows += [("coreset", 50, 1.9, 20), ("reservoir", 50, 1.5, 20)]
    lines = [f"some,{memory},{size},0,{kl},0,{evaluations},1,1" for memory, size, kl, evaluations in rows]
    _write(tmp_path, "scmc", "data,memory,size,seed,kl,points_kl,evaluations,resamplings,seconds", *lines)
    name = "C, three experiments"
    assert [_check(name, place, tmp_path) for place in range(3)] == [(1, 1), (1, 2), (2, 2)]


def test_topics_are_compared_by_batches_and_iterations(tmp_path: Path) -> None:
    rows = [(40, 1, 40, 300.0), (20, 1, 20, 290.0), (20, 0, 1, 200.0), (20, 0, 20, 100.0)]
    rows += [(20, noise, done, value) for noise, done, value in ((1, 1, 400.0), (4, 1, 390.0), (4, 20, 500.0))]
    lines = [f"{count},{noise},0,{done},{perplexity}" for count, noise, done, perplexity in rows]
    _write(tmp_path, "topic-batches", "iterations,noise,seed,done,perplexity", *lines)
    assert _check("V 2", 0, tmp_path) == (1, 1)
    assert [_check("V 3", place, tmp_path) for place in range(2)] == [(2, 2), (1, 2)]


def test_areas_are_means_over_splits(tmp_path: Path) -> None:
    methods: list[tuple[str, str, Callable[[int], float]]] = [
        ("full posterior", "inf", lambda _: 0.9),
        *(("vips", epsilon, lambda split: 0.7 + 0.2 * split) for epsilon in ("0.5", "1", "2", "4")),
        *(("objective perturbation, δ = 0", epsilon, lambda _: 0.79) for epsilon in ("0.5", "1", "2", "4")),
    ]
    lines = [
        f'some,3,"{method}",{epsilon},{split},{area(split)}' for method, epsilon, area in methods for split in (0, 1)
    ]
    _write(tmp_path, "auc", "data,coefficients,method,epsilon,split,auc", *lines)
    assert [_check("V 5", place, tmp_path) for place in range(2)] == [(4, 4), (4, 4)]


def test_rounds_are_compared_with_other_choices_and_the_start(tmp_path: Path) -> None:
    lines = [
        f'{wrong},"{choice}",{rounds},{rmse}'
        for wrong, choice, rounds, rmse in (
            *((0.3, "β-Cores, β = 0.6", rounds, rmse) for rounds, rmse in enumerate((0.9, 0.8, 0.95))),
            *((0.3, "SparseVI", rounds, rmse) for rounds, rmse in enumerate((0.9, 0.85, 0.85))),
            *((0.3, "β-Cores, β = 0.2", rounds, rmse) for rounds, rmse in enumerate((0.9, 0.85, 0.8))),
            *((0, choice, rounds, 0.5) for choice in ("β-Cores, β = 0.6", "random batches") for rounds in (0, 1)),
        )
    ]
    _write(tmp_path, "neural-rounds", "wrong,choice,rounds,rmse", *lines)
    found = [_check("T 5.3", place, tmp_path) for place in range(5)]
    assert found == [(0, 0), (1, 2), (1, 2), (0, 1), (0, 0)]
    assert _check("T 5.6c", 0, tmp_path) == (1, 2)


def test_groups_are_compared_where_rows_are_wrong(tmp_path: Path) -> None:
    lines = [
        f'groups,"{method}",{wrong},{sets},{accuracy},{chosen}'
        for method, wrong, sets, accuracy, chosen in (
            ("beta-cores, groups", 0.1, 2, 0.76, 0.05),
            ("random groups", 0.1, 2, 0.7, 0.1),
            ("Shapley values", 0.1, 2, 0.8, 0.0),
            ("beta-cores, groups", 0, 2, 0.5, 0),
        )
    ]
    _write(tmp_path, "robust", "part,method,wrong,sets,accuracy,chosen", *lines)
    assert [_check("T 5.4", place, tmp_path) for place in range(4)] == [(1, 1), (1, 1), (1, 1), (0, 1)]
    assert _check("T 5.5", 0, tmp_path) == (1, 1)


def test_a_median_of_no_rows_is_none(tmp_path: Path) -> None:
    assert robust_figures.find_median([], "kl") is None
    assert robust_figures.read_rows(tmp_path, "none") == []
    assert system_figures.WITH in "with directions"
