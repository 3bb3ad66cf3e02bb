"""The page about movements that identify."""

import numpy as np
from corevault import risk

from benchmarks.mobility import list_lines, measure, render_page


def test_the_page_has_every_size_and_kernel() -> None:
    rows = risk.simulate(people=12, places=9, visits=30, rng=np.random.default_rng(1))
    table = dict(zip(("aeroplane", "destination", "time"), rows.values(), strict=True))
    shapes, attacks, found = measure(table, sizes=(3, 5), kernels=("shortest-paths", "degrees"))
    text = render_page(shapes, attacks, {"commit": "abc"})
    assert text.count("| without |") == 2
    assert "| shortest-paths | " in text
    assert "mean rank of 6.5" in " ".join(text.split())
    assert found.people == 12
    lines = list(list_lines(shapes, attacks))
    assert {line.what for line in lines} >= {"3 places, with direction", "degrees"}
    assert all(0 <= line.value <= 1 for line in lines if line.name == "unique")
