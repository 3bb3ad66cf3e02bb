"""The census command: its declaration, its measurement, and its message about missing files."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from corevault import Pseudocoreset, Release

from demo import adult, census, census_figures
from demo.table import Tables
from tests.client.fake import TIME

ROWS = 400


def _tables() -> Tables:
    """Rows in which income follows age and sex."""
    rng = np.random.default_rng(9)
    frame = pd.DataFrame({"age": rng.integers(17, 91, ROWS), "sex": rng.choice(["Female", "Male"], ROWS)})
    score = (frame["age"] - 53) / 20 + (frame["sex"] == "Male")
    frame[census.TARGET] = (rng.random(ROWS) < 1 / (1 + np.exp(-score))).astype(int)
    return Tables(train=frame, held_out=frame)


def _core(tables: Tables, share: float = 1.0, *, trusted: bool = True) -> Pseudocoreset:
    """The table as a release. A ``share`` of its targets is correct, and the others are inverted."""
    design = [
        {
            "name": "age",
            "source": "age",
            "transform": {"kind": "affine", "type": "integer", "center": 53.5, "scale": 36.5},
        },
        {
            "name": "sex=Male",
            "source": "sex",
            "transform": {"kind": "indicator", "value": "Male", "reference": "Female"},
        },
        {"name": "intercept", "transform": {"kind": "constant", "value": 1}},
    ]
    release = Release.from_json(
        {"id": "rel_1", "dataset_id": "ds_1", "method": "dp-psvi", "size": ROWS, "design": design, "created_at": TIME}
        | {"model": {"family": "logistic-regression", "prior": {"scale": 1.0}}, "diagnostics": {"trusted": trusted}}
    )
    frame = tables.train
    u = np.column_stack([(frame["age"] - 53.5) / 36.5, frame["sex"] == "Male", np.ones(ROWS)]).astype(float)
    y = np.where(np.arange(ROWS) < share * ROWS, frame[census.TARGET], 1 - frame[census.TARGET]).astype(float)
    return Pseudocoreset(release, u, y, np.ones(ROWS))


def test_a_release_equal_to_the_table_has_no_gap() -> None:
    tables = _tables()
    result = adult.Judge(_core(tables), tables).measure(_core(tables), 1.0, 0, 2.0)
    assert result.gap == pytest.approx(0, abs=1e-9)
    assert result.kl == pytest.approx(0, abs=1e-6)
    assert result.trusted


def test_a_release_with_inverted_targets_has_a_large_gap() -> None:
    tables = _tables()
    result = adult.Judge(_core(tables), tables).measure(_core(tables, 0.0, trusted=False), 1.0, 0, 2.0)
    assert result.gap > 0.1
    assert not result.trusted


def test_the_summary_has_the_median_and_the_worst(tmp_path: Path) -> None:
    results = [
        census_figures.Result(1.0, run, gap, -0.3, 100.0 * gap, trusted=True, seconds=2.0)
        for run, gap in enumerate((0.1, 0.2, 0.6))
    ]
    results += [census_figures.Result(0.2, 0, 0.5, -0.3, 7.0, trusted=False, seconds=2.0)]
    columns = {str(column.header): list(column.cells) for column in census_figures.summarize(results).columns}
    assert (columns["median gap"], columns["worst gap"]) == (["0.2000", "0.5000"], ["0.6000", "0.5000"])
    assert (columns["runs"], columns["trusted"]) == (["3", "1"], ["3", "0"])
    census_figures.write_csv(tmp_path / "new" / "results.csv", results)
    census_figures.write_page(
        tmp_path / "new" / "results.md", "dp-vi", 150, 1e-6, results, measured_on="Measured on: an abacus."
    )
    page = (tmp_path / "new" / "results.md").read_text()
    assert "| 1 | 3 | 0.2000 | 0.6000 | 20 | 3 | 2.0 |" in page
    assert "\nMeasured on: an abacus.\n" in page
    written = pd.read_csv(tmp_path / "new" / "results.csv")
    assert written["gap"].tolist() == [0.1, 0.2, 0.6, 0.5]


def test_missing_files_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(census, "FILES", (tmp_path / "train.csv", tmp_path / "test.csv"))
    monkeypatch.setattr("sys.argv", ["adult"])
    assert adult.main() == 1
    assert "train.csv" in capsys.readouterr().out.replace("\n", "")


def test_rows_are_read_into_the_declared_columns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A missing answer is a category. Both spellings of the target are read."""
    row = "50, ?, 83311, Bachelors, 13, Divorced, ?, Husband, White, Male, 0, 0, 13, ?, "
    for name, income in (("train.csv", ">50K"), ("test.csv", "<=50K.")):
        (tmp_path / name).write_text(f"{row}{income}\n")
    monkeypatch.setattr(census, "FILES", (tmp_path / "train.csv", tmp_path / "test.csv"))
    tables = census.load()
    assert list(tables.train.columns) == census.SCHEMA.names
    assert (tables.train[census.TARGET].item(), tables.held_out[census.TARGET].item()) == (1, 0)
    declared = {column.name: column.categories for column in census.SCHEMA if column.categories is not None}
    assert len(declared) == 8
    assert all(tables.train[name].item() in categories for name, categories in declared.items())
