"""Random and real tables by kind: their declarations, units and targets."""

from collections import Counter

import numpy as np
import pytest

from app.inference.core.facts import Column
from app.inference.core.row_source import PRESENT
from benchmarks import sweep_options
from benchmarks.cases import Case, compute_full_posterior
from benchmarks.tables import DEVELOPMENT_SEEDS, KINDS, Tables, draw_seed, real
from benchmarks.tables.columns import DESIGNS, draw_features
from benchmarks.tables.drawn import Features, Target, Values, assemble, compute_coordinates, draw_counts
from benchmarks.tables.real import SOURCES, MissingPackage, draw_real
from benchmarks.tables.targets import (
    GAUSSIAN,
    LINEAR,
    LOGISTIC,
    MOST_LOG_RATE,
    draw_direction,
    draw_limited_log_rates,
    draw_log_rates,
    make_labels,
    make_number,
)

GENERATED = [name for name, kind in KINDS.items() if kind.group != "real"]


def rows_of(case: Case) -> dict[str, Values]:
    table = case.source.gather(np.arange(case.source.slots))
    present = table[PRESENT].astype(bool)
    return {name: values[present] for name, values in table.items()}


@pytest.mark.parametrize("kind", GENERATED)
def test_a_kind_draws_valid_requests_within_their_bounds(kind: str) -> None:
    for number in range(2):
        case = Tables(1, (kind,)).draw(number).case
        facts, rows = case.facts, rows_of(case)
        assert case.problem.model.dimension > 0
        assert facts.delta is not None
        assert 0 < facts.delta <= 0.1 / facts.slots
        assert (case.source.slots, case.source.rows_per_slot) == (facts.slots, facts.rows_per_unit)
        for column in facts.columns:
            values = rows[column.name]
            assert np.isfinite(values).all()
            lower = 0.0 if column.lower is None else column.lower
            upper = max(len(column.categories) - 1, 1) if column.upper is None else column.upper
            assert np.all((values >= lower) & (values <= upper))


def test_rates_of_well_behaved_counts_are_linear_and_others_stop() -> None:
    """A rate that stops to rise is a misfit, because the model's would not."""
    direction = np.append(np.linspace(-2, 2, 50), 40.0)
    for seed in range(20):
        rates = draw_log_rates(np.random.default_rng(seed), direction)
        slope = np.diff(rates) / np.diff(direction)
        assert np.ptp(slope) < 1e-9
        assert slope[0] > 0
        assert rates.max() <= MOST_LOG_RATE + 1e-9
        limited = draw_limited_log_rates(np.random.default_rng(seed), direction)
        assert limited[-1] == MOST_LOG_RATE
        assert np.diff(limited)[0] / np.diff(direction)[0] >= slope[0] - 1e-12


def test_a_block_holds_every_kind_by_its_weight() -> None:
    tables, size = Tables(5), sum(kind.weight for kind in KINDS.values())
    for block in range(2):
        counts = Counter(tables.kind(number) for number in range(block * size, (block + 1) * size))
        assert counts == {name: kind.weight for name, kind in KINDS.items()}
    assert [tables.kind(number) for number in range(size)] != [tables.kind(size + number) for number in range(size)]


def test_a_table_depends_on_seed_and_number_only() -> None:
    kinds = ("logistic", "one row", "Poisson")
    one, again, other = Tables(7, kinds).draw(4), Tables(7, kinds).draw(4), Tables(8, kinds).draw(4)
    assert (one.kind, one.what, one.case.facts, one.case.name) == (
        again.kind,
        again.what,
        again.case.facts,
        again.case.name,
    )
    for name, values in rows_of(one.case).items():
        assert np.array_equal(values, rows_of(again.case)[name])
    assert one.case.name != other.case.name
    assert one.what != other.what
    alone = Tables(7, kinds[:1])
    assert len({alone.draw(number).what for number in range(4)}) == 4


def test_fresh_seeds_are_not_for_development() -> None:
    seeds = {draw_seed() for _ in range(20)}
    assert len(seeds) == 20
    assert min(seeds) >= DEVELOPMENT_SEEDS


def test_rows_of_a_unit_are_next_to_each_other() -> None:
    features = Features("", (Column("x0", "real", -1, 1),), (np.array([0.1, 0.2, 0.3, 4.0]),))
    case = assemble(features, make_labels(LOGISTIC, np.array([1, 0, 1, 1])), counts=np.array([1, 3]), slots=3)
    table = case.source.gather(np.arange(3))
    assert table[PRESENT].tolist() == [1, 0, 0, 1, 1, 1, 0, 0, 0]
    assert table["x0"].tolist() == [0.1, 0, 0, 0.2, 0.3, 1.0, 0, 0, 0]
    assert table["y"].tolist() == [1, 0, 0, 0, 1, 1, 0, 0, 0]
    assert case.facts.rows_per_unit == 3


@pytest.mark.parametrize("seed", range(30))
def test_counts_of_units_add_up_to_the_rows(seed: int) -> None:
    counts = draw_counts(np.random.default_rng(seed), 100)
    assert counts.sum() == 100
    assert counts.min() >= 1


@pytest.mark.parametrize("design", DESIGNS)
def test_coordinates_are_those_of_the_design(design: str) -> None:
    features = draw_features(np.random.default_rng(3), 50, design)
    case = assemble(features, make_labels(LOGISTIC, np.zeros(50)))
    x, _, _ = case.problem.design.encode(case.source.gather(np.arange(50)))
    np.testing.assert_allclose(compute_coordinates(features), x[:, :-1], atol=1e-6)


def test_a_direction_ignores_constant_columns() -> None:
    """Rounding makes the variance of a constant column positive; it must not be divided by."""
    constant = Column("x0", "real", -1, 1)
    values = np.full(1000, 0.1) + 1e-17 * np.arange(1000)
    assert np.all(draw_direction(np.random.default_rng(0), Features("", (constant,), (values,))) == 0)
    varied = Features("", (constant, Column("x1", "real", -1, 1)), (values, np.linspace(-1, 1, 1000)))
    for seed in range(5):
        assert draw_direction(np.random.default_rng(seed), varied).std() == pytest.approx(1)


def test_bounds_of_numeric_targets_contain_them() -> None:
    for seed in range(10):
        rng = np.random.default_rng(seed)
        values = rng.normal(5, 2, 100)
        column = make_number(rng, values, None).column
        assert column is not None
        assert column.lower is not None
        assert column.upper is not None
        assert column.lower <= values.min() < values.max() <= column.upper


@pytest.mark.parametrize(("kind", "positives"), [("20 positives in 20,000", 20), ("2 positives in 100,000", 2)])
def test_rare_outcomes_are_as_many_as_their_kind_says(kind: str, positives: int) -> None:
    for number in range(3):
        assert rows_of(Tables(2, (kind,)).draw(number).case)["y"].sum() == positives


def test_null_rows_do_not_inform_the_full_posterior() -> None:
    """The Gaussian mean counts rows by their presence, not by their values."""
    features = Features("", (Column("x0", "real", -1, 1),), (np.array([0.5, 0.7]),))
    few, many = (assemble(features, Target(GAUSSIAN, None, np.empty(0), 0.2), slots=slots) for slots in (2, 50))
    assert compute_full_posterior(few).mean == pytest.approx(compute_full_posterior(many).mean)
    assert compute_full_posterior(few).mean[0] == pytest.approx(0.6 * 50 / 51, abs=1e-6)


def find_source(name: str, family: str) -> real.Source:
    return next(each for each in SOURCES if each.name == name and each.family == family)


@pytest.mark.slow
def test_real_tables_are_declared_well_and_badly() -> None:
    source = find_source("modechoice", LOGISTIC)
    well, badly = (draw_real(np.random.default_rng(0), "", source, well=well).case for well in (True, False))
    for case in (well, badly):
        assert (case.facts.slots, case.facts.rows_per_unit, len(rows_of(case)["y"])) == (210, 4, 840)
        assert rows_of(case)["y"].sum() == 210
    assert [column.type for column in well.facts.columns[:2]] == ["categorical", "integer"]
    for column in badly.facts.columns[:-1]:
        values = rows_of(badly)[column.name]
        assert column.type != "categorical"
        assert column.lower is not None
        assert column.upper is not None
        assert 5 <= (column.upper - column.lower) / (values.max() - values.min()) <= 10
        assert column.lower <= values.min() < values.max() <= column.upper


@pytest.mark.slow
def test_bounds_of_real_targets_are_wider_if_declared_badly() -> None:
    source = find_source("fair", LINEAR)
    well, badly = (
        draw_real(np.random.default_rng(0), "", source, well=well).case.facts.columns[-1] for well in (True, False)
    )
    assert (well.lower, round(well.upper or 0)) == (0, 58)
    assert (badly.upper or 0) - (badly.lower or 0) > 5 * 57


def test_missing_packages_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(real, "PACKAGES", {"no_such_package": "such-a-package"})
    monkeypatch.setattr(sweep_options, "PACKAGES", real.PACKAGES)
    assert real.list_missing_packages() == ["such-a-package"]
    with pytest.raises(MissingPackage, match="such-a-package"):
        real.load("no_such_package", "table")
    with pytest.raises(SystemExit, match="pip install such-a-package"):
        sweep_options.check_packages(["rare", "real"])
    sweep_options.check_packages(["rare"])
