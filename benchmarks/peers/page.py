"""The page of the comparison: medians by table and epsilon, a column for each peer, the best in bold."""

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from benchmarks.environment import describe
from benchmarks.peers.contenders import CONTENDERS, COREVAULT, LEFT_OUT, Contender
from benchmarks.peers.results import FLOOR, Line, Notes
from benchmarks.summaries import NOTHING, format_number, wrap_paragraph

POINT: Final = "†"
PAGE: Final = """# Other ways to buy a private posterior

{introduction}

{circumstances}

## Distance of the released posterior

{kl_text}

{kl}

## Error of the mean

{mean_text}

{mean}

## Where Corevault is not first

{losses}

## Tables

{tables}

## Peers

{conditions}

{peers}

## Settings

{settings_text}

{settings}

## Failures

{failures}

Tried and left out:

{left_out}

## Versions

{versions}
"""
INTRODUCTION: Final = (
    "Written by `make peers`. Every peer releases a Gaussian belief about coefficients of a logistic regression. "
    "Rows, public bounds, prior and (ε, δ) are the same for all, with δ = 1/N. The reference is the Laplace "
    "approximation of the exact posterior on all rows. Medians are over {seeds} releases, fewer for slow peers; "
    "base seed {seed}. Every release: [{file}]({file})."
)
KL_TEXT: Final = (
    "Median KL from the released Gaussian to the exact posterior, in nats; the least is bold. "
    f"{POINT} marks a point estimate, which is given the exact posterior covariance at no cost. "
    f"The {FLOOR} is a reference: one release of the whole budget by a method that is given the posterior's mode and "
    "information (`benchmarks/floors.py`). A dash marks a peer that did not run there, or failed."
)
MEAN_TEXT: Final = (
    "Median error of the mean in posterior standard deviations, as the root mean square over the directions of the "
    "posterior. No covariance plays a part here. An error of 0.1 is invisible; one of 1 is as large as the posterior."
)
CONDITIONS: Final = (
    "Corevault's neighbours differ in one row that is replaced by zeros. The number of rows is public for every "
    "peer. A sum of bounded contributions changes in the same way if a row is absent, so peers with neighbours "
    "by presence keep their noise. Peers of this project are priced by the exact Gaussian trade-off curve. Corevault "
    "is priced by its RDP accountant, which asks for more noise. The settings of a peer are the best of its grid on "
    "the private table itself, at no cost. Corevault's methods run at their defaults."
)
SETTINGS_TEXT: Final = (
    "Chosen with development seeds on the same table and epsilon: the least median KL. On tables with more than 60 "
    "coefficients there is one such seed. The releases above have other seeds. The module of each peer explains its "
    "settings."
)


@dataclass(frozen=True, slots=True)
class Cell:
    """Medians over the releases of one peer; NaN without a release."""

    kl: float = math.nan
    mean_error: float = math.nan
    covers: bool = True
    settings: str = ""


def summarize(lines: Sequence[Line]) -> dict[tuple[str, float, str], Cell]:
    """Summarize lines by table, epsilon and peer; a release that failed makes the whole cell empty."""
    cells: dict[tuple[str, float, str], Cell] = {}
    for place in dict.fromkeys(each.cell for each in lines):
        of_cell = [each for each in lines if each.cell == place]
        if any(each.failure or not math.isfinite(each.kl) for each in of_cell):
            continue
        kl, error = (float(np.median([getattr(each, name) for each in of_cell])) for name in ("kl", "mean_error"))
        cells[place] = Cell(kl, error, of_cell[0].covers, of_cell[0].settings)
    return cells


def render_page(
    lines: Sequence[Line],
    tables: Mapping[str, str],
    file: str,
    notes: Notes,
    circumstances: Mapping[str, str],
) -> str:
    """Render the page. ``tables`` describes each table."""
    cells = summarize(lines)
    shown = [each for each in CONTENDERS if any(place[2] == each.name for place in cells)]
    rows = list_rows(lines)
    return PAGE.format(
        introduction=wrap_paragraph(
            INTRODUCTION.format(seeds=max(each.seeds for each in CONTENDERS), seed=notes.seed, file=file)
        ),
        circumstances=wrap_paragraph(describe(circumstances)),
        kl_text=wrap_paragraph(KL_TEXT),
        kl=render_table(cells, rows, shown, "kl"),
        mean_text=wrap_paragraph(MEAN_TEXT),
        mean=render_table(cells, rows, shown, "mean_error"),
        losses="\n".join(list_losses(cells, rows)) or "Nowhere on these tables.",
        tables="\n".join(f"- {name}: {text}." for name, text in tables.items()),
        conditions=wrap_paragraph(CONDITIONS),
        peers="\n".join(f"- **{each.name}**: {each.text}" for each in CONTENDERS),
        settings_text=wrap_paragraph(SETTINGS_TEXT),
        settings="\n".join(_render_settings(cells, rows, shown)),
        failures="\n".join(list_failures(lines)) or "None.",
        left_out="\n".join(f"- {name}: {reason}" for name, reason in LEFT_OUT.items()),
        versions="\n".join(_render_versions(notes.versions)),
    )


def list_rows(lines: Sequence[Line]) -> list[tuple[str, float]]:
    """The tables in their order, with their epsilons."""
    names = list(dict.fromkeys(each.table for each in lines))
    return [
        (name, epsilon) for name in names for epsilon in sorted({each.epsilon for each in lines if each.table == name})
    ]


def render_table(
    cells: Mapping[tuple[str, float, str], Cell],
    rows: Sequence[tuple[str, float]],
    shown: Sequence[Contender],
    quantity: str,
) -> str:
    """A line for each table and epsilon, with the best value in bold."""
    ends = [FLOOR] if quantity == "kl" else []
    head = ["table", "ε", *(each.name for each in shown), *ends]
    text = [head, ["---", *["---:"] * (len(head) - 1)]]
    for name, epsilon in rows:
        found = [cells.get((name, epsilon, each.name), Cell()) for each in shown]
        values = [getattr(each, quantity) for each in found]
        best = min((value for value in values if math.isfinite(value)), default=math.nan)
        line = [_render(each, value, best, quantity) for each, value in zip(found, values, strict=True)]
        line += [
            _render(floor, floor.kl, math.nan, quantity)
            for floor in (cells.get((name, epsilon, end), Cell()) for end in ends)
        ]
        text.append([name, f"{epsilon:g}", *line])
    return "\n".join(f"| {' | '.join(line)} |" for line in text)


def _render(cell: Cell, value: float, best: float, quantity: str) -> str:
    if math.isnan(value):
        return NOTHING
    mark = POINT if quantity == "kl" and not cell.covers else ""
    number = format_number(value)
    return f"**{number}**{mark}" if value == best else f"{number}{mark}"


def list_losses(cells: Mapping[tuple[str, float, str], Cell], rows: Sequence[tuple[str, float]]) -> Iterator[str]:
    """A line for each table, epsilon and quantity where another peer is nearer."""
    for name, epsilon in rows:
        for quantity, label in (("kl", "KL"), ("mean_error", "error of the mean")):
            others = {
                place[2]: getattr(cell, quantity)
                for place, cell in cells.items()
                if place[:2] == (name, epsilon) and place[2] not in {COREVAULT, FLOOR}
            }
            winner = min(others, key=lambda peer: others[peer], default="")
            value = getattr(cells.get((name, epsilon, COREVAULT), Cell()), quantity)
            if winner and not value <= others[winner]:
                ratio = format_number(value / others[winner])
                reasons = " ".join(filter(None, (explain(winner), *find_stall(cells, rows, name, epsilon))))
                yield f"- {name}, ε = {epsilon:g}: the {label} of {winner} is {ratio} times smaller. {reasons}"


def find_stall(
    cells: Mapping[tuple[str, float, str], Cell], rows: Sequence[tuple[str, float]], name: str, epsilon: float
) -> Iterator[str]:
    """Yields a sentence if Corevault's KL falls by less than a half."""
    before = [other for table, other in rows if table == name and other < epsilon]
    if before:
        now, then = (cells.get((name, each, COREVAULT), Cell()).kl for each in (epsilon, before[-1]))
        if now > then / 2:
            last = f"{format_number(then)} at ε = {before[-1]:g}"
            yield f"Corevault's KL was {last} and hardly falls, which is a weakness of its engine."


def explain(winner: str) -> str:
    """Why a peer can be nearer."""
    return REASONS.get(winner, "")


_LOOKED: Final = "Its settings were chosen on the private rows at no cost"
REASONS: Final = {
    "noisy Newton": f"{_LOOKED}.",
    "DP-GD": f"{_LOOKED}. It buys no covariance, for which Corevault spends a part of its budget.",
    "DP-GD, fixed": "It buys no covariance, for which Corevault spends a part of its budget.",
    "objective perturbation": f"{_LOOKED}. It buys no covariance and pays for one round only.",
    "one sample": f"{_LOOKED}. It buys no covariance and pays for one draw only.",
    "diffprivlib": f"{_LOOKED}. It gets 2ε, and the exact covariance.",
}


def list_failures(lines: Sequence[Line]) -> Iterator[str]:
    """A line for each peer and reason, with the places."""
    failed = [each for each in lines if each.failure]
    for peer, reason in dict.fromkeys((each.peer, each.failure) for each in failed):
        places = [
            f"{each.table} at ε = {each.epsilon:g}" for each in failed if (each.peer, each.failure) == (peer, reason)
        ]
        yield f"- **{peer}**: {'; '.join(places)}: `{reason.replace('`', '')}`"


def _render_settings(
    cells: Mapping[tuple[str, float, str], Cell], rows: Sequence[tuple[str, float]], shown: Sequence[Contender]
) -> Iterator[str]:
    for contender in shown:
        count = len(contender.candidates)
        if count == 1 and contender.grid:
            chosen = ", ".join(f"{key} {value:g}" for key, value in contender.candidates[0].items())
            yield f"- **{contender.name}**, the same everywhere: {chosen}"
        elif count > 1:
            yield f"- **{contender.name}**, from {count} candidates:"
            for name, epsilon in rows:
                if cell := cells.get((name, epsilon, contender.name)):
                    chosen = ", ".join(f"{key} {value:g}" for key, value in json.loads(cell.settings).items())
                    yield f"  - {name}, ε = {epsilon:g}: {chosen}"


def _render_versions(versions: Mapping[str, Mapping[str, str]]) -> Iterator[str]:
    for peer, packages in versions.items():
        if packages:
            yield f"- {peer}: {', '.join(f'{name} {version}' for name, version in packages.items())}"
