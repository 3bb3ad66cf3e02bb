"""Robust methods on tables with wrong rows: ``make robust``.

Public: the mean of normal rows, some of them moved far away (thesis, Fig. 5.1). Private: census income with wrong
features and flipped labels (thesis, section 5.3.2, Fig. 5.2). Groups: whole groups of people, some of them with
outliers (thesis, section 5.3.4, Fig. 5.4). Each run is a line of the CSV file; page and picture
depend on this file only.
"""

import os

os.environ |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}

import argparse
import csv
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any, Final

import matplotlib as mpl

mpl.use("Agg")

import matplotlib.pyplot as plt

from benchmarks.environment import PAGES, describe, write_environment
from benchmarks.figures import format_three_digits, write_lines
from benchmarks.robust_groups import draw_groups, median, render_attributes, render_groups
from benchmarks.robust_runs import (
    BATCH,
    COLUMNS,
    EPSILON,
    FEATURE_VARIANCE,
    FULL,
    MOVED,
    OUTLIERS,
    PERMUTATIONS,
    PREFIX,
    ROWS,
    SIZE,
    WRONG,
    Line,
    measure_groups,
    measure_private,
    measure_public,
)
from benchmarks.summaries import wrap_paragraph

DEFAULT: Final = "dp-psvi-surrogate"
MOST_KL, LEAST_RATIO, LEAST_ACCURACY, MOST_LOSS = 5.0, 10_000, 0.830, 0.002
"""Figures that this project set itself."""
PAGE: Final = """# Robust methods on tables with wrong rows

{text}

{circumstances}

## Public tables: `beta-cores`
{public_text}

| outliers | method | β | KL to the clean posterior | outliers among the chosen | rows | runs | processor time (s) |
| ---: | --- | ---: | ---: | ---: | ---: | ---: | ---: |
{public}

## Private tables: `beta`
{private_text}

| wrong rows | method | bounds | β | accuracy | grades | runs | processor time (s) |
| ---: | --- | ---: | ---: | ---: | --- | ---: | ---: |
{private}

![Divergence and accuracy by the share of wrong rows](robust.png)

## Groups and batches: `beta-cores`
{groups_text}

| outliers | choice | sets | β | accuracy | outliers among the rows | points | runs | processor time (s) |
| ---: | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |
{groups}

![Accuracy by the number of sets and of points](robust-groups.png)

How often each attribute is among the ten groups of *beta-cores, groups*, with outliers, over all runs:

| column | values, with counts |
| --- | --- |
{attributes}

## Targets
{targets}

## Published
The thesis states its results in figures and in words, not in numbers.

- **Fig. 5.1** (rows N(1, I), outliers N(10, I)): SparseVI and β-Cores are best at about 60 points. With outliers, only
  β-Cores keep their accuracy. [Benchmarks](README.md#mean-of-rows-with-outliers) have it by the number of points.
- **Fig. 5.2** (Adult and two other tables): the baselines lose "typically more than 5 %" of accuracy by outliers,
  β-Cores nothing. `python -m benchmarks.papers robust-logistic` measures it for the census.
- **Fig. 5.4** (hospital patients in 165 groups, which are not public): β-Cores with β = 0.6 reach more than 75 % of
  accuracy with at most two groups. Shapley values are better than random groups.
- **Fig. 5.5**: one of the chosen groups had 10 % outliers, and the others none. Groups of women and of older people
  were chosen more often.

[Figures of the papers](../papers.md) compares each of these statements with the results.
"""
TEXT: Final = (
    "Written by `make robust`; every run is a line of [robust.csv](robust.csv). Medians over runs. "
    "[Robust methods](../reference/methods.md#robust-methods) explains β."
)
PUBLIC_TEXT: Final = (
    f"{ROWS:,} rows N(0, I) in {COLUMNS} columns. A share of the rows is moved by {MOVED:g} in every column. M = "
    f"{SIZE}, defaults otherwise. Clean: the posterior of the rows that were not moved. The default β is 0.2 divided "
    f"by the number of columns, {0.2 / COLUMNS:g}."
)
PRIVATE_TEXT: Final = (
    "Census income, 30,162 rows, 10 whitened components (adult10), logistic regression, "
    f"ε = {EPSILON:g}, δ = 1/N. In a share of the rows, half of the features are replaced by N(0, "
    f"{FEATURE_VARIANCE:g}). In as many rows, the label is flipped. Accuracy is of clean held-out rows. *Bounds* are "
    "the declared bounds of the columns: narrow ones clamp wrong features, and rows with many of them count less. "
    "dp-psvi needs narrow bounds. *Full posterior*: of all rows, without privacy. Wrong labels shrink the coefficients "
    "with every β, so only predictions "
    "are compared."
)


GROUPS_TEXT: Final = (
    "The table of [private weights of groups](groups.md): census income in 80 groups, age by race by sex. A third of "
    "the groups has 10 % outliers, and a third 20 %. The second half of the table is without outliers. Accuracy is of "
    "clean held-out rows, by the posterior of the "
    f"released points. *Batches* are {BATCH} random rows. *Random groups* and *Shapley values* take all rows of the "
    f"groups with weight 1. Shapley values are mean gains in accuracy over {PERMUTATIONS} random orders of groups, of "
    f"which the first {PREFIX} count; the thesis takes 5,000 orders. They see the labels of held-out rows."
)


def read_lines(path: Path) -> list[Line]:
    """Read what :func:`main` wrote."""
    kinds: dict[str, Callable[[str], Any]] = {"str": str, "int": int, "float": lambda text: float(text or "nan")}
    with path.open(newline="") as file:
        return [
            Line(
                **{
                    each.name: kinds[getattr(each.type, "__name__", str(each.type))](row.get(each.name, "0"))
                    for each in fields(Line)
                }
            )
            for row in csv.DictReader(file)
        ]


def _group(lines: Sequence[Line], part: str) -> dict[tuple[float, str, float, float], list[Line]]:
    groups: dict[tuple[float, str, float, float], list[Line]] = {}
    for line in lines:
        if line.part == part:
            groups.setdefault((line.wrong, line.method, line.bound, line.beta), []).append(line)
    return dict(sorted(groups.items(), key=lambda item: (item[0][0], item[0][1] != FULL)))


def render_page(lines: Sequence[Line], circumstances: dict[str, str]) -> str:
    """Render the page."""
    public = [
        f"| {wrong:.0%} | `{method}` | {beta:g} | {format_three_digits(median(group, 'kl'))} | "
        f"{median(group, 'chosen'):.0%} | {median(group, 'rows'):g} | {len(group)} | "
        f"{format_three_digits(median(group, 'seconds'))} |"
        for (wrong, method, _, beta), group in _group(lines, "public").items()
    ]
    private = []
    for (wrong, method, bound, beta), group in _group(lines, "private").items():
        is_run = method != FULL
        grades = ", ".join(sorted({line.grade for line in group})) if is_run else "–"
        seconds = format_three_digits(median(group, "seconds")) if is_run else "–"
        name, accuracy = f"`{method}`" if is_run else method, median(group, "accuracy")
        private.append(
            f"| {wrong:.0%} | {name} | ±{bound:g} | {beta:g} | {accuracy:.4f} | {grades} | {len(group)} | {seconds} |"
        )
    return PAGE.format(
        groups_text=wrap_paragraph(GROUPS_TEXT),
        groups=render_groups(lines),
        attributes=render_attributes(lines),
        targets=render_targets(lines),
        text=wrap_paragraph(TEXT),
        circumstances=wrap_paragraph(describe(circumstances)),
        public_text=wrap_paragraph(PUBLIC_TEXT),
        private_text=wrap_paragraph(PRIVATE_TEXT),
        public="\n".join(public),
        private="\n".join(private),
    )


def render_targets(lines: Sequence[Line]) -> str:
    """Compare medians with the figures that this project set itself."""
    public, private = _group(lines, "public"), _group(lines, "private")
    parts = []
    robust = {key[0]: median(group, "kl") for key, group in public.items() if key[1] == "beta-cores"}
    plain = {key[0]: median(group, "kl") for key, group in public.items() if key[1] == "sparse-vi"}
    spoilt = [share for share in robust if share and share in plain]
    if spoilt:
        ratio = min(plain[share] / robust[share] for share in spoilt)
        parts.append(
            f"- Public tables: a KL of at most {MOST_KL:g} for every share of outliers. The largest median is "
            f"{format_three_digits(max(robust.values()))}. With outliers, SparseVI should have {LEAST_RATIO:,} times "
            f"this; it has at least {ratio:,.0f} times."
        )
    usual = {key: median(group, "accuracy") for key, group in private.items() if key[1] == DEFAULT}
    wrong = {key: value for key, value in usual.items() if key[0] == WRONG[-1] and key[3]}
    losses = [
        usual[share, name, bound, 0.0] - value
        for (share, name, bound, beta), value in usual.items()
        if beta and not share and (share, name, bound, 0.0) in usual
    ]
    if wrong and losses:
        (_, _, bound, beta), best = max(wrong.items(), key=lambda item: item[1])
        parts.append(
            f"- Private tables: an accuracy of at least {LEAST_ACCURACY:g} at {WRONG[-1]:.0%} wrong rows. The best "
            f"median of the default method is {best:.4f}, with bounds ±{bound:g} and β = {beta:g}. Without wrong rows, "
            f"β should cost at most {MOST_LOSS:g}; the most that it costs is {max(losses):.4f}."
        )
    return "\n".join(map(wrap_paragraph, parts))


def draw(lines: Sequence[Line], path: Path) -> None:
    """Draw divergences and accuracies by the share of wrong rows."""
    figure, panels = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
    for panel, part, name in ((panels[0], "public", "kl"), (panels[1], "private", "accuracy")):
        curves: dict[str, list[tuple[float, float]]] = {}
        for (wrong, method, bound, beta), group in _group(lines, part).items():
            label = method if method == FULL else f"{method}, ±{bound:g}, β = {beta:g}"
            curves.setdefault(label, []).append((wrong, median(group, name)))
        for marker, (label, points) in zip("os^vD<>Px*", curves.items(), strict=False):
            panel.plot(*zip(*points, strict=True), marker=marker, label=label, linewidth=1)
        panel.set_xlabel("share of outliers" if part == "public" else "share of wrong features, and of wrong labels")
        panel.legend(fontsize=7)
    panels[0].set_yscale("log")
    panels[0].set_ylabel("KL to the clean posterior (nats)")
    panels[1].set_ylabel("accuracy on clean rows")
    figure.savefig(path, dpi=110)
    plt.close(figure)


def main() -> None:
    """Measures one part or both, then writes page and picture."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=PAGES / "robust.csv", help="the CSV file")
    parser.add_argument("--seeds", type=int, default=5, help="runs of each setting")
    parser.add_argument("--slow", type=int, default=2, help="runs of each setting of dp-psvi")
    parser.add_argument(
        "--part", choices=("public", "private", "groups"), help="measure one part, and keep the lines of the others"
    )
    parser.add_argument("--render", action="store_true", help="write page and picture of the existing lines")
    options = parser.parse_args()
    parts = () if options.render else (options.part,) if options.part else ("public", "private", "groups")
    kept = read_lines(options.out) if options.out.exists() and (options.render or options.part) else []
    lines = [line for line in kept if line.part not in parts]
    work: dict[str, Iterator[Line]] = {
        "public": measure_public(OUTLIERS, options.seeds),
        "private": measure_private(WRONG, options.seeds, options.slow),
        "groups": measure_groups(options.seeds),
    }
    for part in parts:
        for line in work[part]:
            lines.append(line)
            write_lines(options.out, lines)
            print(line, flush=True)
    circumstances = options.out.with_suffix(".json")
    if parts:
        write_environment(circumstances, options.part)
    options.out.with_suffix(".md").write_text(render_page(lines, json.loads(circumstances.read_text())))
    draw(lines, options.out.with_suffix(".png"))
    draw_groups(lines, options.out.with_name(f"{options.out.stem}-groups.png"))


if __name__ == "__main__":
    main()
