"""The page of engines: fits beyond the limits and failures are named, and a run can be resumed."""

from pathlib import Path
from typing import Any

import pytest

from benchmarks.engines import FAR, WIDE, find_shortfalls, read_records, render_page, write_records

FIT: dict[str, Any] = {
    "model": "logistic",
    "engine": "stan",
    "parameters": 5,
    "mean": 0.02,
    "width": 0.01,
    "steps": 5.4,
    "seconds": 1.0,
    "noise": 1.0,
    "grade": "calibrated",
}
FAILED = {"model": "Poisson", "engine": "pymc", "failure": "no compiler"}


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"mean": FAR + 0.01}, "logistic in stan: mean 0.160, width 1.0%."),
        ({"width": WIDE + 0.01}, "logistic in stan: mean 0.020, width 6.0%."),
        ({"mean": FAR, "width": WIDE}, None),
    ],
)
def test_a_fit_beyond_a_limit_is_named(changes: dict[str, float], sentence: str | None) -> None:
    assert find_shortfalls([FIT | changes]) == ([] if sentence is None else [sentence])


def test_a_failure_is_on_the_page() -> None:
    page = render_page([FIT, FAILED], 2.0, {"pymc": "5"})
    assert "- Poisson in pymc failed: no compiler.\n" in page
    assert "| Poisson | pymc | | | failed | | | |\n" in page
    assert "No fit failed, and no fit is beyond a limit." in render_page([FIT], 2.0, {})


def test_failures_are_tried_again_after_a_stop(tmp_path: Path) -> None:
    write_records(tmp_path / "fits.csv", [FAILED, FIT])
    assert read_records(tmp_path / "none.csv") == []
    (kept,) = read_records(tmp_path / "fits.csv")
    assert (kept["model"], kept["engine"], float(kept["mean"])) == ("logistic", "stan", 0.02)
