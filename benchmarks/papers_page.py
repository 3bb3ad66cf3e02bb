"""Writes ``docs/papers.md``: each figure of the papers, and whether the results reproduce it.

:mod:`benchmarks.system_figures` has the figures that other commands than ``make papers`` measure. A line of
:data:`OTHERS` has no claim.
"""

import json
import re
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Final

import numpy as np

from benchmarks.claims import Claim, Figure, Finding, Other, Pairs, check, is_below
from benchmarks.experiments import bound, composition, incremental, influence, progression
from benchmarks.figures import read_lines
from benchmarks.records import read
from benchmarks.robust_figures import ROBUST
from benchmarks.summaries import list_distinct, wrap_paragraph
from benchmarks.system_figures import MOVEMENTS, SYSTEMS

REPRODUCED, PARTLY, DIFFERS, NOT_RUN, ABSENT = "reproduced", "in part", "differs", "not run", "absent"


def _progress(folder: Path) -> Pairs:
    path = folder / "progression.csv"
    lines = read_lines(path, progression.Line) if path.exists() else []
    kl = {(line.method, line.size): line.kl for line in lines if line.kind == progression.ELLIPSE and line.size}
    sizes = sorted({size for _, size in kl})
    return [(f"M = {size}", kl["PSVI", size], kl["SparseVI", size]) for size in sizes]


def _grow(folder: Path) -> Pairs:
    path = folder / "bound.csv"
    lines = read_lines(path, bound.Line) if path.exists() else []
    last = {line.size: line.bound for line in lines if line.dimension == bound.DIMENSIONS[-1]}
    middle = {line.size: line.bound for line in lines if line.dimension == 250}
    return [(f"M = {size}, d = 250 and 500", middle[size], last[size]) for size in sorted(last) if size in middle]


def _read_influence(folder: Path, part: str) -> list[influence.Line]:
    path = folder / "influence.csv"
    return [line for line in read_lines(path, influence.Line) if line.part == part] if path.exists() else []


def _grow_with_distance(folder: Path) -> Pairs:
    lines = [line for line in _read_influence(folder, influence.INFLUENCE) if not line.beta and line.x >= 1]
    return [(f"x = {far.x:g}", near.influence, far.influence) for near, far in pairwise(lines)]


def _fall(folder: Path) -> Pairs:
    lines = _read_influence(folder, influence.INFLUENCE)
    groups = [[line for line in lines if line.beta == beta] for beta in influence.BETAS if beta]
    return [
        (f"β = {group[0].beta:g}", 2 * group[-1].influence, max(line.influence for line in group))
        for group in groups
        if group
    ]


def _fit_contaminated(folder: Path) -> Pairs:
    lines = _read_influence(folder, influence.FIT)
    errors = {(line.seed, line.beta): abs(line.deviation - 1) for line in lines}
    seeds = sorted({line.seed for line in lines})
    return [(f"table {seed}", errors[seed, influence.ROBUST], errors[seed, 0.0]) for seed in seeds]


def _compare_composition(name: str) -> Callable[[Path], Pairs]:
    def compare(folder: Path) -> Pairs:
        path = folder / "composition.csv"
        lines = read_lines(path, composition.Line) if path.exists() else []
        chosen = [line for line in lines if line.model == name]
        return [(f"B = {line.batch:,}, noise {line.noise:g}", line.accountant, line.strong) for line in chosen]

    return compare


def _compare_rounds(lower: str, upper: str, batch: int = 0) -> Claim:
    def compare(folder: Path) -> Pairs:
        path = folder / "incremental.csv"
        lines = read_lines(path, incremental.Line) if path.exists() else []
        pairs: Pairs = []
        for data in list_distinct(line.data for line in lines):
            for at in incremental.SIZES if lower.endswith(incremental.OF_ONE_SIZE) else incremental.IN_TABLE:
                one, other = (
                    [
                        line.kl
                        for line in lines
                        if (line.data, line.method, line.batch, line.round) == (data, name, size, at)
                    ]
                    for name, size in ((lower, batch), (upper, batch))
                )
                if one and other:
                    pairs.append((f"{data}, round {at}", float(np.median(one)), float(np.median(other))))
        return pairs

    rows = f" on B = {batch} rows" if batch else ""
    return Claim(f"{lower} is below {upper}{rows}", compare)


def _grow_privately(folder: Path) -> Pairs:
    path = folder / "private-sizes.csv"
    records = [each for each in read(path) if each.method == "ε = 0.2"] if path.exists() else []
    pairs: Pairs = []
    for data in list_distinct(each.data for each in records):
        many, few = ([each.kl for each in records if (each.data, each.size) == (data, size)] for size in (200, 20))
        if many and few:
            pairs.append((f"{data}, M = 200 and 20", float(np.median(many)), float(np.median(few))))
    return pairs


_PUBLISHED = tuple(f"published, q = 0.002, α = {alpha}" for alpha in (1, 10))
_ROWS = ("SparseVI", "GIGA, optimal", "GIGA, realistic", "uniform")
_PRIVATE = {"axis": "epsilon"}
FIGURES: Final = (
    Figure("T 2.1", "influence of outliers, and a β-posterior", ("influence",),
           (Claim("the influence on the posterior grows with the distance of a point", _grow_with_distance),
            Claim("far away, the influence on a β-posterior is less than half of the largest", _fall),
            Claim("the β-posterior's deviation is nearer to that of the right points", _fit_contaminated))),
    Figure("P 1a (T 4.1a)", "posteriors of growing coresets, d = 500", ("progression",),
           (Claim("PSVI is below SparseVI", _progress),)),
    Figure("P 1b (T 4.1b)", "lower bound for subsets by dimension", ("bound",),
           (Claim("the bound grows with d", _grow),)),
    Figure("P 2a, 2b (T 4.2a, b)", "Gaussian mean, d = 200 and 500", ("gaussian-mean",),
           (Claim("PSVI is below every other method", is_below("gaussian-mean", "PSVI", _ROWS)),
            Claim("SparseVI is above the bound",
                  is_below("gaussian-mean", "bound for any subset of rows", ("SparseVI",))))),
    Figure("P 2c (T 4.2c)", "linear regression", ("linear-regression",),
           (Claim("for 100 ≤ M ≤ 250, PSVI is below every other method",
                  is_below("linear-regression", "PSVI", _ROWS, among=lambda size: size >= 100)),),
           "The paper's GIGA does not improve with M; here it does. The prior's mean is zero here, and the mean of the "
           "targets there."),
    Figure("P 3 (T 4.3)", "large logistic regressions", ("logistic-large", "psvi-iterations"),
           (Claim("PSVI is below SparseVI", is_below("logistic-large", "PSVI", ("SparseVI",))),
            Claim("PSVI with published steps is below SparseVI",
                  is_below("logistic-large", "PSVI, published steps", ("SparseVI",)))),
           "The tables replace TRANSACTIONS, CHEMREACT100 and MUSIC, which cannot be had. PSVI needs 5,000 steps. "
           "Where it is then above SparseVI, the noise of its gradients limits both: larger batches help. With the "
           "published 500 steps α/t from weights N/M, weights hardly move, and points stop early."),
    Figure("P 4 (T 4.4)", "quality by ε, several M", ("privacy-sweep", "private-sizes"),
           (Claim("for ε ≤ 0.2, dp-psvi at its defaults is below DP-VI with published settings",
                  is_below("privacy-sweep", "dp-psvi, clamped", ("dp-vi, published settings",),
                           axis="epsilon", among=lambda epsilon: epsilon <= 0.2)),
            Claim("for ε ≤ 0.2, dp-psvi with published settings is below DP-VI with published settings",
                  is_below("privacy-sweep", "dp-psvi, published settings", ("dp-vi, published settings",),
                           axis="epsilon", among=lambda epsilon: epsilon <= 0.2)),
            Claim("200 private points at the defaults, ε = 0.2, are better than 20", _grow_privately),
            Claim("at ε = 0.2, dp-psvi at its defaults is below the published mechanism and steps, q = 0.002",
                  is_below("private-sizes", "ε = 0.2", _PUBLISHED))),
           "The published settings keep weights near N/M and give points 500 steps that decay as 1/t, on batches of "
           "0.2 % of the rows. The program of the paper samples 2 %. The defaults here have other steps, more of them, "
           "and larger batches."),
    Figure("S 5 (T A.1)", "GIGA by its number of projections", ("projections",),
           (Claim("1,000 projections are better than 100 (optimal weighting)",
                  is_below("projections", "optimal, J = 1,000", ("optimal, J = 100",))),)),
    Figure("S 6 (T A.2)", "small logistic regressions", ("logistic-small",),
           (Claim("for 5 ≤ M ≤ 20, PSVI is below SparseVI",
                  is_below("logistic-small", "PSVI", ("SparseVI",), among=lambda size: 5 <= size <= 20)),
            Claim("for M > 20, PSVI is below SparseVI",
                  is_below("logistic-small", "PSVI", ("SparseVI",), among=lambda size: size > 20)),
            Claim("for 5 ≤ M ≤ 20, PSVI with published steps is below SparseVI",
                  is_below("logistic-small", "PSVI, published steps", ("SparseVI",),
                           among=lambda size: 5 <= size <= 20))),
           "CHEMREACT cannot be had. Published steps stop early, as in Fig. 3."),
    Figure("S 7 (T A.3)", "KL by processor time", ("cpu-time",),
           (Claim("for M ≥ 100, PSVI takes less time than SparseVI (large tables)",
                  is_below("logistic-large", "PSVI", ("SparseVI",), quantity="seconds",
                           among=lambda size: size >= 100)),
            Claim("for M ≥ 100, PSVI takes less time than SparseVI (small tables)",
                  is_below("logistic-small", "PSVI", ("SparseVI",), quantity="seconds",
                           among=lambda size: size >= 100))),
           "The figure shows the runs of Fig. 3 and 6. Seconds are of another processor than the paper's."),
    Figure("S 8 (T A.4)", "incremental PSVI", ("incremental",),
           (_compare_rounds("incremental PSVI" + incremental.OF_ONE_SIZE, "SparseVI" + incremental.OF_ONE_SIZE),
            _compare_rounds("incremental PSVI, newest point" + incremental.OF_ONE_SIZE,
                            "SparseVI" + incremental.OF_ONE_SIZE),
            _compare_rounds("incremental PSVI" + incremental.OF_ONE_SIZE, "GIGA, optimal"),
            _compare_rounds("incremental PSVI", "SparseVI"),
            _compare_rounds("incremental PSVI, newest point", "SparseVI"),
            _compare_rounds("incremental PSVI", "SparseVI", incremental.BATCH)),
           "The paper moves only the newest point. Here all points move by default. Points move after the weights have "
           "settled: a point without weight would move to explain the whole residual, and ends far away. The unit of "
           "weights is N/M for the M at which a run ends. With N over the points so far, models of unknown noise "
           "diverged. In a run that ends at M = 100, the 100 steps of a round move each weight by about one unit. So "
           "all weights together are too small before about round 20. There incremental PSVI may be above SparseVI, "
           "because points move to replace missing weight. Runs that end at M have no such delay. Gradients on 256 "
           "rows reach a plateau, as in the paper."),
    Figure("V 2, 7, costs", "moments accountant and strong composition", ("composition",),
           (Claim("the accountant's ε of topics is below that of strong composition",
                  _compare_composition(composition.TOPICS)),
            Claim("the accountant's ε of belief networks is below that of strong composition",
                  _compare_composition(composition.NETWORK)))),
)  # fmt: skip
ALL: Final = (*FIGURES[:-1], *MOVEMENTS, *ROBUST, *SYSTEMS, FIGURES[-1])
OTHERS: Final = (
    Other("S Table 1 (T A.1), T Tables B.1, B.2", "data sets", why="Cannot be had (data), except for census income and "
          "phishing. Each figure names its tables."),
    Other("T 3.1, 3.2", "drawings of networks", why="Drawings: nothing to measure."),
    Other("T 3.3, Table 3.1", "statistics of the telephones", why="Cannot be had (data)."),
    Other("T 3.4", "order of the networks", why="Not measured: it only decides that order 1 is enough."),
    Other("T Table 3.2", "numbers of shapes", "mobility.md", "`corevault.risk` states these numbers (column `shapes` "
          "of a report), and tests compare them with known ones. The published 2,128 for directed graphs of four nodes "
          "should be 218."),
    Other("T 5.3 on generated rows, trained once", "neural linear regression", "neural.md"),
    Other("–", "private weights of groups", "groups.md", "In no paper: the private form of T 5.4."),
    Other("–", "robust private pseudocoresets", "robust.md", "In no paper: β-likelihoods behind the privacy wall."),
    Other("V 1, 4, 6", "drawings", why="Schematics, and the curve of a closed form: nothing to measure."),
    Other("V 5", "private logistic regression (VIPS), by KL", "vips.md", "The paper states areas only; see V 5 above."),
    Other("V 7, the paper's form with one bound for each pixel", "belief networks", "sbn.md",
          "Measured at K = 10, as is one bound for all pixels. At K = 100 its answers have 4 million values, and the "
          "grid takes 98 % of the clipping norm."),
)  # fmt: skip
INTRODUCTION: Final = """# Figures of the papers

Written by `make papers` from the results in [benchmarks](benchmarks/README.md). Edit the command, not this page.

P is *Bayesian Pseudocoresets* (2020), and S its supplement. T is the thesis that contains both; its numbers of the same
figures are in brackets. C is the poster about sequential Monte Carlo, and V *Variational Bayes in Private Settings*.

A claim is compared by medians, of the KL unless it names another quantity, at every table and place that was measured.
*Reproduced*: all claims hold everywhere. *In part*: some hold, or at some places. *Differs*: none holds. *Absent*: not
measured here, for the stated reason.
"""


def write(folder: Path, path: Path) -> Path:
    """Write the page from the results in ``folder``."""
    path.write_text("\n".join([INTRODUCTION, _tabulate(folder), *_describe(folder)]))
    return path


def judge(findings: list[Finding], *, has_results: bool) -> str:
    """The status of a figure by its claims."""
    held, measured = (sum(getattr(each, name) for each in findings) for name in ("held", "measured"))
    if not (has_results and measured):
        return NOT_RUN
    status = REPRODUCED if held == measured else PARTLY if held else DIFFERS
    return status if all(each.measured for each in findings) else f"{status}; not all run"


def _has_results(folder: Path, figure: Figure) -> bool:
    return any((folder / name).exists() for name in (figure.page, *(f"{each}.png" for each in figure.results)) if name)


def _tabulate(folder: Path) -> str:
    rows = ["| figure | shows | status |", "| --- | --- | --- |"]
    for figure in ALL:
        status = judge([check(each, folder) for each in figure.claims], has_results=_has_results(folder, figure))
        rows.append(f"| [{figure.name}](#{_link(figure)}) | {figure.content} | {status} |")
    for other in OTHERS:
        exists = bool(other.page) and (folder / other.page).exists()
        status = f"[own page](benchmarks/{other.page})" if exists else ABSENT
        rows.append(f"| {other.name} | {other.content} | {status}{'. ' + other.why if other.why else ''} |")
    return "\n".join(rows) + "\n"


def _link(figure: Figure) -> str:
    kept = "".join(each for each in figure.name.lower() if each.isalnum() or each in " -")
    return kept.replace(" ", "-")


def _describe(folder: Path) -> Iterator[str]:
    for figure in ALL:
        yield f"## {figure.name}\n"
        run = [name for name in figure.results if (folder / f"{name}.png").exists()]
        pages = [f"[the page](benchmarks/{figure.page})"] if figure.page and (folder / figure.page).exists() else []
        links = ", ".join([*pages, *(f"[{name}](benchmarks/{name}.png)" for name in run)]) or "no results yet"
        text = f"{_capitalise(figure.content)}: {links}. {_count(folder, figure)}"
        yield f"{wrap_paragraph(text.strip())}\n"
        for claim in figure.claims:
            finding = check(claim, folder)
            sign = "–" if not finding.measured else "yes" if finding.held == finding.measured else "no"
            yield _indent(f"- **{sign}:** {_capitalise(finding.text)}")
        yield f"\n{wrap_paragraph(figure.why)}\n" if figure.why else ""


def _capitalise(text: str) -> str:
    """Write the first letter large, unless it is Greek."""
    return text[0].upper() + text[1:] if text[0].isascii() else text


def _indent(text: str) -> str:
    return wrap_paragraph(text).replace("\n", "\n  ")


def _count(folder: Path, figure: Figure) -> str:
    """State the runs: data sets, dates and commits."""
    if figure.page:
        return _read_date(folder / figure.page)
    parts = []
    for name in figure.results:
        path, file = folder / f"{name}.csv", folder / f"{name}.json"
        if file.exists():
            stated = json.loads(file.read_text())
            parts.append(f"{name}: {_count_runs(path)}measured {stated['date']}, commit {stated['commit']}")
        elif not (folder / f"{name}.png").exists():
            parts.append(f"{name}: not run")
    return f"Run: {'; '.join(parts)}." if parts else ""


def _read_date(page: Path) -> str:
    """Read date and commit of a page of another command."""
    text = " ".join(page.read_text().split()) if page.exists() else ""
    found = re.search(r"date (\d{4}-\d\d-\d\d); commit ([^.]+)\.", text)
    return f"Measured {found[1]}, commit {found[2]}." if found else ""


def _count_runs(path: Path) -> str:
    try:
        records = read(path)
    except (KeyError, TypeError):  # the file of a study
        return ""
    runs = [record for record in records if record.outcome == "finished"]
    names = list_distinct(record.data for record in runs)
    return f"{len(runs):,} runs on {', '.join(names)}, "
