"""The page about the noise of merged releases."""

import pytest

from benchmarks.merged_noise import Run, deal, draw_tables, measure, render_page


@pytest.mark.long
def test_parts_share_all_rows_and_statements_are_compared() -> None:
    name, bound, draw = next(draw_tables())
    rows = draw()
    few = type(rows)(rows.x[:3000], rows.y[:3000])
    whole, parts = deal(name, few, bound, 2)
    assert sum(part.facts.slots for part in parts) == whole.facts.slots == 3000
    run = measure(whole, parts, 0)
    assert 0 < run.dependent < run.independent < 100
    assert 0 < run.combined_dependent < run.combined_independent < 100
    text = render_page([run, Run("other", 0, 1.0, 2.0, 0.5, 3.0, 0.25)], {"commit": "abc"})
    assert "| other | 1 | 2 | 0.5 | 3 | 0.25 |" in text
