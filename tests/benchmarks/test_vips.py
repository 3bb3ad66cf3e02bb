"""The page about variational inference by noised statistics."""

from dataclasses import replace

from benchmarks.vips import EPSILONS, TARGETS, NormalRun, Run, render_page

RUN = Run("adult10", "vips", 0.5, 0, 30.0, 25.0, "centre-only")


def test_the_page_has_medians_targets_and_worst_runs() -> None:
    runs = [replace(RUN, kl=kl) for kl in (30.0, 36.0, 200.0)]
    runs += [replace(RUN, method="dp-psvi-surrogate", kl=3.0), replace(RUN, data="linear", kl=2000.0)]
    text = render_page(runs, [NormalRun(0.5, 0, 0.05, 4.0), NormalRun(0.5, 1, 0.03, 0.0)], {"commit": "abc"})
    assert "| adult10 | vips | 0.5 | 36 | 40 | 200 | 25 |" in text
    assert "| adult10 | dp-psvi-surrogate | 0.5 | 3 | – | 3 | 25 |" in text
    assert "| linear | vips | 0.5 | 2000 | – | 2000 | 25 |" in text
    assert "| 0.5 | 0.04 | 1.41 |" in text
    assert set(TARGETS) == set(EPSILONS)
