"""The page of the papers' figures: claims are judged by results, and absent systems by their pages."""

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import stats
from scipy.integrate import quad

from benchmarks import papers, papers_page
from benchmarks.claims import Claim, Finding, check, is_below
from benchmarks.environment import PAGES
from benchmarks.experiment import Experiment
from benchmarks.experiments import bound, composition, influence, paper_tables
from benchmarks.figures import read_lines
from benchmarks.papers import EXPERIMENTS, PAPERS, STUDIES
from benchmarks.papers_page import DIFFERS, NOT_RUN, PARTLY, REPRODUCED, judge
from benchmarks.records import REFERENCE, Record, open_sink, read
from benchmarks.runs import Job, execute
from benchmarks.tables.real import load

RUN = Record("table", "good", 100, 3, 10, kl=1.0)


def _write(folder: Path, *records: Record) -> None:
    with open_sink(folder / "some.csv") as sink:
        for record in records:
            sink(record)


def test_claims_compare_medians_at_each_place(tmp_path: Path) -> None:
    seeds = [replace(RUN, seed=seed, kl=kl) for seed, kl in enumerate((1.0, 2.0, 900.0))]
    _write(
        tmp_path,
        *seeds,
        replace(RUN, method="bad", kl=3.0),
        replace(RUN, size=20, kl=5.0),
        replace(RUN, size=20, method="bad", kl=4.0),
        replace(RUN, size=30, method="bad", kl=4.0),
    )
    finding = check(Claim("good is below bad", is_below("some", "good", ("bad", "other"))), tmp_path)
    assert (finding.held, finding.measured) == (1, 2)
    assert "closest at table, M = 20: 5.00 against 4.00" in finding.text
    among = check(Claim("small", is_below("some", "good", ("bad",), among=lambda size: size < 20)), tmp_path)
    assert (among.held, among.measured) == (1, 1)


def test_a_claim_without_results_is_not_run(tmp_path: Path) -> None:
    finding = check(Claim("good is below bad", is_below("some", "good", ("bad",))), tmp_path)
    assert finding == Finding("good is below bad: not run.", 0, 0)
    assert judge([finding], has_results=True) == NOT_RUN


@pytest.mark.parametrize(
    ("counts", "status"),
    [
        ([(3, 3), (2, 2)], REPRODUCED),
        ([(3, 3), (0, 2)], PARTLY),
        ([(1, 3)], PARTLY),
        ([(0, 3)], DIFFERS),
        ([(3, 3), (0, 0)], f"{REPRODUCED}; not all run"),
        ([(0, 0)], NOT_RUN),
        ([], NOT_RUN),
    ],
)
def test_status_follows_from_the_claims(counts: list[tuple[int, int]], status: str) -> None:
    assert judge([Finding("", held, measured) for held, measured in counts], has_results=True) == status
    assert judge([], has_results=False) == NOT_RUN


def test_a_system_is_absent_until_its_page_exists(tmp_path: Path) -> None:
    first = papers_page.write(tmp_path, tmp_path / "papers.md").read_text()
    assert "| – | private weights of groups | absent. In no paper" in first
    (tmp_path / "groups.md").write_text("# Groups\n")
    second = papers_page.write(tmp_path, tmp_path / "papers.md").read_text()
    assert "[own page](benchmarks/groups.md). In no paper" in second


def test_the_page_in_the_documents_is_that_of_the_stored_results(tmp_path: Path) -> None:
    written = papers_page.write(PAGES, tmp_path / "papers.md").read_text()
    assert written == (PAGES.parent / "papers.md").read_text()


def test_every_figure_names_results_of_the_command() -> None:
    known = {each.name for each in (*EXPERIMENTS, *STUDIES)}
    own = [figure for figure in papers_page.ALL if not figure.page]
    assert known >= {name for figure in own for name in figure.results} >= set(PAPERS)
    assert set(PAPERS) <= known


def test_small_tables_without_files_are_generated_or_installed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(paper_tables, "SHARED", tmp_path)
    monkeypatch.setattr(paper_tables, "TRAIN", tmp_path / "none")
    assert paper_tables.list_small() == ("synthetic", "election")
    assert paper_tables.list_large() == ("synth100k", "insurance9")
    for name, width in (("synthetic", 2), ("election", 10)):
        rows, held_out = paper_tables.make_small_rows(name)
        assert rows.x.shape == (500, width)
        assert held_out.x.shape == (50, width)
        assert set(np.unique(rows.y)) == {0.0, 1.0}


@pytest.mark.slow
@pytest.mark.parametrize("name", [each.name for each in EXPERIMENTS if each.name in PAPERS])
@pytest.mark.long
def test_each_experiment_runs_without_the_files(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, name: str) -> None:
    """From a clean clone: the first small run of each experiment of the papers ends with a KL."""
    monkeypatch.setattr(paper_tables, "SHARED", tmp_path)
    monkeypatch.setattr(paper_tables, "TRAIN", tmp_path / "none")
    work = next(each for each in EXPERIMENTS if each.name == name).work(bool(name))
    job = next(each for each in work if isinstance(each, Job))
    record = execute(replace(job, size=2))
    assert record.outcome == "finished"
    assert np.isfinite(record.kl)


def test_components_are_white() -> None:
    x = load("statsmodels", "anes96").drop(columns="vote").to_numpy(dtype=np.float64)
    np.testing.assert_allclose(np.cov(paper_tables.reduce(x, 10), rowvar=False), np.eye(10), atol=1e-8)


def test_bounds_are_written_and_drawn(tmp_path: Path) -> None:
    bound.measure(tmp_path / "bound.csv", quick=True)
    lines = read_lines(tmp_path / "bound.csv", bound.Line)
    assert all(line.bound == 0 for line in lines if line.size >= line.dimension)
    bound.draw(tmp_path / "bound.csv", tmp_path / "bound.png")
    assert (tmp_path / "bound.png").read_bytes().startswith(b"\x89PNG")
    assert bound.tabulate(tmp_path / "bound.csv").count("\n") == 7


def test_potentials_of_influence_follow_their_integrals() -> None:
    """By quadrature over x. As beta decreases, differences between points tend to the log-densities' ones."""
    mean, log_deviation, x = np.array([0.3, -1.0]), np.array([0.2, -0.5]), np.array([-1.0, 0.0, 4.0])
    for beta in (0.1, 0.5, 1.0):
        found = influence.compute_potentials(x, mean, log_deviation, beta)
        for place, (at, log_scale) in enumerate(zip(mean, log_deviation, strict=True)):
            law = stats.norm(at, np.exp(log_scale))
            mass = quad(lambda value, law=law, beta=beta: law.pdf(value) ** (1 + beta), -np.inf, np.inf)[0]
            np.testing.assert_allclose(found[:, place], law.pdf(x) ** beta / beta - mass / (1 + beta), rtol=1e-7)
    plain, limit = (influence.compute_potentials(x, mean, log_deviation, beta) for beta in (0.0, 1e-6))
    np.testing.assert_allclose(plain, stats.norm(mean, np.exp(log_deviation)).logpdf(x[:, None]))
    np.testing.assert_allclose(np.diff(limit, axis=0), np.diff(plain, axis=0), rtol=1e-4)


def test_influence_is_the_distance_of_two_posteriors() -> None:
    """Both posteriors on one grid; the plain one has the moments of Student's t for a mean."""
    rows = np.random.default_rng(1).standard_t(3, 200)
    for beta in (0.0, 0.25):
        parameters, without = influence.make_posterior(rows, beta)
        logs = influence.compute_log_posterior(np.append(rows, 4.0), parameters, beta)
        within = np.exp(logs - logs.max())
        expected = np.arccos(np.sqrt(without * within / within.sum()).sum())
        assert influence.compute_influences([4.0], parameters, without, beta)[0] == pytest.approx(expected, abs=1e-9)
    parameters, without = influence.make_posterior(rows, 0.0)
    assert parameters[0] @ without == pytest.approx(rows.mean(), abs=1e-3)
    spread = rows.std() / np.sqrt(len(rows) - 3)
    assert np.sqrt(np.square(parameters[0] - rows.mean()) @ without) == pytest.approx(spread, rel=0.02)


def test_strong_composition_follows_its_theorem() -> None:
    """At full rate and one iteration, from the exact curve; the curve of a Gaussian by integration."""
    for noise, delta in ((1.0, 1e-5), (3.0, 1e-3), (0.5, 1e-8)):
        epsilon = composition.compute_single_epsilon(noise, delta)
        upper, lower = stats.norm(1, noise), stats.norm(0, noise)
        start = noise**2 * epsilon + 0.5  # where the ratio of densities is exp(epsilon)
        assert upper.sf(start) - np.exp(epsilon) * lower.sf(start) == pytest.approx(delta, rel=1e-6)
    delta, best = 1e-5, np.inf
    for share in np.linspace(0.01, 0.99, 99):
        single = np.log1p(0.01 * np.expm1(composition.compute_single_epsilon(2.0, share * delta / (50 * 0.01))))
        slack = np.sqrt(2 * 50 * np.log(1 / ((1 - share) * delta)))
        best = min(best, slack * single + 50 * single * np.expm1(single))
    assert composition.compose_strongly(2.0, 0.01, 50, delta) == pytest.approx(best, rel=0.01)


def test_a_stopped_experiment_runs_the_rest_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A line without its end is a run that was not finished."""
    reference = replace(RUN, method="floor", outcome=REFERENCE)
    jobs = [Job(SimpleNamespace(name="table"), "good", 10, seed, epsilon=0.2) for seed in range(3)]  # type: ignore[arg-type]
    experiment = Experiment("some", "Some", "", lambda _: iter([reference, *jobs]))
    done, asked = replace(RUN, epsilon=0.2, kl=7.0), list[int]()

    def execute(job: Job) -> Record:
        asked.append(job.seed)
        return replace(done, seed=job.seed, kl=1.0)

    monkeypatch.setattr(papers, "_execute", execute)
    _write(tmp_path, reference, done, replace(done, seed=1))
    text = (tmp_path / "some.csv").read_text()
    (tmp_path / "some.part").write_text(text[: text.rstrip("\n").rfind("\n") + 9])
    papers.measure(experiment, tmp_path, quick=False, only=None, resume=True)
    assert asked == [1, 2]
    assert [(each.method, each.seed, each.kl) for each in read(tmp_path / "some.csv")] == [
        ("good", 0, 7.0), ("floor", 0, 1.0), ("good", 1, 1.0), ("good", 2, 1.0)
    ]  # fmt: skip
    papers.measure(experiment, tmp_path, quick=False, only=None)
    assert asked == [1, 2, 0, 1, 2]
