"""Figures of the thesis about β-Cores (chapter 5), with their claims."""

import csv
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Final

import numpy as np

from benchmarks import neural_rounds
from benchmarks.claims import Claim, Figure, Pairs, is_below
from benchmarks.experiments import outliers, robust_logistic
from benchmarks.figures import read_lines
from benchmarks.records import read
from benchmarks.summaries import choose

Row = Mapping[str, str]
_BETA: Final = outliers.label_beta(robust_logistic.BETA)
_LARGE: Final = outliers.label_beta(outliers.BETAS[-1])
_MOST_LOSS, _LEAST_LOSS, _CLOSE, _CLOSE_ERRORS = 0.01, 0.05, 0.01, 0.1
_FIRST_ROUNDS: Final = (1, 2, 3)
"""Differences of accuracy: of β-Cores at most, of other methods at least, and between values of β."""


def read_rows(folder: Path, name: str) -> list[Row]:
    """Read the lines of a result as texts; none if the file does not exist."""
    path = folder / f"{name}.csv"
    if not path.exists():
        return []
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def find_median(rows: Iterable[Row], column: str, **where: str) -> float | None:
    """Find the median of a column over the rows with these texts; None without such a row."""
    values = [float(row[column]) for row in rows if all(row[name] == text for name, text in where.items())]
    return float(np.median(values)) if values else None


def _is_spoilt(data: str) -> bool:
    return not data.startswith("0%") and ", 0%" not in data


def _medians(folder: Path, name: str, method: str, quantity: str) -> dict[tuple[str, int], float]:
    path = folder / f"{name}.csv"
    records = choose(read(path), method=method) if path.exists() else []
    groups: dict[tuple[str, int], list[float]] = {}
    for each in records:
        groups.setdefault((each.data, each.size), []).append(getattr(each, quantity))
    return {place: float(np.median(values)) for place, values in groups.items()}


def _keep_order(method: str, factor: float) -> Callable[[Path], Pairs]:
    """Compare the KL at the most outliers with a multiple of that without."""
    most, none = outliers.name_table(outliers.SHARES[-1]), outliers.name_table(0)

    def compare(folder: Path) -> Pairs:
        kl = _medians(folder, "outliers", method, "kl")
        sizes = sorted(size for data, size in kl if data == most and (none, size) in kl)
        return [(f"M = {size}", kl[most, size], factor * kl[none, size]) for size in sizes]

    return compare


def _count_far(label: str) -> Callable[[Path], Pairs]:
    """Compare the number of outliers among the points with one half."""

    def compare(folder: Path) -> Pairs:
        path = folder / "outlier-points.csv"
        lines = read_lines(path, outliers.Line) if path.exists() else []
        places = {(each.share, each.size) for each in lines if each.kind == outliers.ELLIPSE and each.share}
        return [
            (f"{outliers.name_table(share)}, M = {size}", outliers.count_points(lines, share, label, size)[0], 0.5)
            for share, size in sorted(places)
        ]

    return compare


def _lose(method: str, loss: float, *, at_least: bool) -> Callable[[Path], Pairs]:
    """Compare accuracy on the spoilt table with that on the clean one.

    The latter is reduced by ``loss``.
    """
    clean, spoilt = (robust_logistic.name_table(share) for share in (0.0, robust_logistic.SHARES[-1]))

    def compare(folder: Path) -> Pairs:
        accuracy = _medians(folder, "robust-logistic", method, "accuracy")
        sizes = sorted(size for data, size in accuracy if data == spoilt and (clean, size) in accuracy)
        pairs = [(f"M = {size}", accuracy[spoilt, size], accuracy[clean, size] - loss) for size in sizes]
        return pairs if at_least else [(place, least, value) for place, value, least in pairs]

    return compare


def _compare_betas(folder: Path) -> Pairs:
    usual = _medians(folder, "robust-logistic", _BETA, "accuracy")
    pairs: Pairs = []
    for beta in robust_logistic.BETAS:
        other = _medians(folder, "robust-logistic", outliers.label_beta(beta), "accuracy")
        pairs += [(f"β = {beta:g}, {data}, M = {size}", abs(other[data, size] - usual[data, size]), _CLOSE)
                  for data, size in other if (data, size) in usual]  # fmt: skip
    return pairs


def _compare_rounds(lower: str, upper: str, *, wrong: bool) -> Callable[[Path], Pairs]:
    """Compare errors of two choices of batches after each round but the start."""

    def compare(folder: Path) -> Pairs:
        rows = read_rows(folder, "neural-rounds")
        pairs: Pairs = []
        for share, rounds in dict.fromkeys((row["wrong"], row["rounds"]) for row in rows if row["rounds"] != "0"):
            low, high = (find_median(rows, "rmse", wrong=share, rounds=rounds, choice=each) for each in (lower, upper))
            if low is not None and high is not None and bool(float(share)) == wrong:
                pairs.append((f"{float(share):.0%} wrong batches, round {rounds}", low, high))
        return pairs

    return compare


def _improve_at_once(choice: str) -> Callable[[Path], Pairs]:
    """Compare errors after the first rounds with that of the start."""

    def compare(folder: Path) -> Pairs:
        rows = [row for row in read_rows(folder, "neural-rounds") if row["choice"] == choice and float(row["wrong"])]
        pairs: Pairs = []
        for share in dict.fromkeys(row["wrong"] for row in rows):
            for rounds in _FIRST_ROUNDS:
                now, start = (find_median(rows, "rmse", wrong=share, rounds=str(each)) for each in (rounds, 0))
                if now is not None and start is not None:
                    pairs.append((f"{float(share):.0%} wrong batches, round {rounds}", now, start))
        return pairs

    return compare


def _compare_betas_by_rounds(folder: Path) -> Pairs:
    """Compare relative differences of errors, by other values of beta, with a limit."""
    rows, usual = read_rows(folder, "neural-rounds"), neural_rounds.label_beta(neural_rounds.BETA)
    pairs: Pairs = []
    for beta in neural_rounds.BETAS:
        for share, rounds in dict.fromkeys((row["wrong"], row["rounds"]) for row in rows if row["rounds"] != "0"):
            other, own = (
                find_median(rows, "rmse", wrong=share, rounds=rounds, choice=each)
                for each in (neural_rounds.label_beta(beta), usual)
            )
            if other is not None and own is not None:
                place = f"β = {beta:g}, {float(share):.0%} wrong batches, round {rounds}"
                pairs.append((place, abs(other / own - 1), _CLOSE_ERRORS))
    return pairs


def _compare_groups(upper: str, lower: str = "") -> Callable[[Path], Pairs]:
    """Compare accuracies on the spoilt table; without ``lower``, that of two groups with 75 %."""

    def compare(folder: Path) -> Pairs:
        rows = [row for row in read_rows(folder, "robust") if row["part"] == "groups" and float(row["wrong"]) > 0]
        pairs: Pairs = []
        for sets in dict.fromkeys(row["sets"] for row in rows):
            high = find_median(rows, "accuracy", method=upper, sets=sets)
            low = find_median(rows, "accuracy", method=lower, sets=sets) if lower else 0.75 if sets == "2" else None
            if low is not None and high is not None:
                pairs.append((f"{sets} groups", low, high))
        return pairs

    return compare


def _compare_shares(folder: Path) -> Pairs:
    rows = [row for row in read_rows(folder, "robust") if row["part"] == "groups" and float(row["wrong"]) > 0]
    pairs: Pairs = []
    for sets in dict.fromkeys(row["sets"] for row in rows):
        low, high = (
            find_median(rows, "chosen", method=each, sets=sets) for each in ("beta-cores, groups", "random groups")
        )
        if low is not None and high is not None:
            pairs.append((f"{sets} groups", low, high))
    return pairs


_NEURAL: Final = neural_rounds.label_beta(neural_rounds.BETA)
_BATCHES: Final = (("random batches", neural_rounds.RANDOM), ("SparseVI", neural_rounds.SPARSE_VI))
_OTHERS: Final = ("SparseVI", "PSVI", "uniform")
_GROUPS, _RANDOM, _SHAPLEY = "beta-cores, groups", "random groups", "Shapley values"
ROBUST: Final = (
    Figure("T 5.1a", "points and outliers", ("outlier-points",),
           (Claim("β-Cores have no outlier among their points", _count_far(outliers.BETA_CORES)),
            Claim("SparseVI has outliers among its points",
                  lambda folder: [(place, least, count)
                                  for place, count, least in _count_far(outliers.SPARSE_VI)(folder)]))),
    Figure("T 5.1b", "KL by the number of points, with outliers", ("outliers",),
           (Claim("with outliers, β-Cores are below every other method",
                  is_below("outliers", outliers.BETA_CORES, _OTHERS, tables=_is_spoilt)),
            Claim("with 30% outliers, the KL of β-Cores is less than ten times that without",
                  _keep_order(outliers.BETA_CORES, 10)),
            Claim("without outliers, β-Cores are below SparseVI",
                  is_below("outliers", outliers.BETA_CORES, (outliers.SPARSE_VI,),
                           tables=lambda data: not _is_spoilt(data)))),
           "Without outliers, the thesis has β-Cores on par with SparseVI. Here SparseVI has exact gradients, and so a "
           "much smaller KL."),
    Figure("T 5.2", "accuracy by the number of points, with wrong rows", ("robust-logistic",),
           (*(Claim(f"with wrong rows, the accuracy of {name} is below that of β-Cores",
                    is_below("robust-logistic", name, (_BETA,), quantity="accuracy", tables=_is_spoilt))
              for name in _OTHERS),
            *(Claim(f"wrong rows cost {name} more than 5 % of accuracy", _lose(name, _LEAST_LOSS, at_least=True))
              for name in _OTHERS),
            Claim("wrong rows cost β-Cores less than 1 % of accuracy", _lose(_BETA, _MOST_LOSS, at_least=False))),
           f"β-Cores with β = {robust_logistic.BETA:g}. One table; PHISHING and WEBSPAM cannot be had in full. The "
           "thesis states its shares of wrong rows in the figure only."),
    Figure("T 5.3", "neural linear regression", ("neural-rounds",),
           (*(Claim(f"with wrong batches, the error of β-Cores is below that of {name}",
                    _compare_rounds(_NEURAL, choice, wrong=True)) for name, choice in _BATCHES),
            Claim("with wrong batches, β-Cores improve with each of the first batches", _improve_at_once(_NEURAL)),
            *(Claim(f"without wrong batches, the error of β-Cores is below that of {name}",
                    _compare_rounds(_NEURAL, choice, wrong=False)) for name, choice in _BATCHES)),
           "Houses; songs cannot be had. The thesis does not state noise and values of outliers.", "neural-rounds.md"),
    Figure("T 5.4", "accuracy by the number of groups", ("robust-groups",),
           (Claim("two groups by β-Cores have more than 75 % of accuracy", _compare_groups(_GROUPS)),
            Claim("the accuracy of random groups is below that of β-Cores", _compare_groups(_GROUPS, _RANDOM)),
            Claim("the accuracy of random groups is below that of Shapley values", _compare_groups(_SHAPLEY, _RANDOM)),
            Claim("the accuracy of Shapley values is below that of β-Cores", _compare_groups(_GROUPS, _SHAPLEY))),
           "Census income replaces the patients, which cannot be had. β-Cores weigh the rows of a group; the others do "
           "not.", "robust.md"),
    Figure("T 5.5", "attributes of the chosen groups", ("robust-groups",),
           (Claim("groups of β-Cores have a smaller share of outliers than random groups", _compare_shares),),
           "In the thesis, one group with 10 % outliers entered, as a fourth. Here groups with outliers enter early.",
           "robust.md"),
    Figure("T 5.6a", "β-Cores by β, with outliers", ("outliers",),
           (Claim(f"with {_LARGE}, the KL at 30% outliers is less than twice that without", _keep_order(_LARGE, 2)),
            Claim(f"the default β = 0.01 is below {_LARGE}",
                  is_below("outliers", outliers.BETA_CORES, (_LARGE,))))),
    Figure("T 5.6b", "β-Cores by β, with wrong rows", ("robust-logistic",),
           (Claim("accuracies with other β differ by less than 1 % from those with β = 0.5", _compare_betas),)),
    Figure("T 5.6c", "neural linear regression by β", ("neural-rounds",),
           (Claim(f"errors with other β differ by less than a tenth from those with β = {neural_rounds.BETA:g}",
                  _compare_betas_by_rounds),), page="neural-rounds.md"),
)  # fmt: skip
"""Figures of chapter 5, in their order."""
