"""An experiment: its runs, and the quantities to show."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from benchmarks.records import Record
from benchmarks.runs import Job

SIZE: Final = "size"
EPSILON: Final = "epsilon"
AXES: Final = {
    SIZE: "points M",
    EPSILON: "privacy ε (δ = 1/N)",
    "rows": "rows N",
    "parameters": "parameters D",
}


@dataclass(frozen=True, slots=True)
class Quantity:
    """A column of :class:`Record` to show, with the label of its axis."""

    name: str
    label: str
    logarithmic: bool = True
    in_figure: bool = True


KL: Final = Quantity("kl", "KL to the full posterior (nats)")
RELATIVE_KL: Final = Quantity("relative_kl", "KL over the prior's", in_figure=False)
ACCURACY: Final = Quantity("accuracy", "held-out accuracy", logarithmic=False, in_figure=False)
LOG_LIKELIHOOD: Final = Quantity(
    "log_likelihood", "held-out log-likelihood (nats a row)", logarithmic=False, in_figure=False
)
SECONDS: Final = Quantity("seconds", "processor time (s)", in_figure=False)
MEMORY: Final = Quantity("peak_mib", "peak memory (MiB)", in_figure=False)
EVERYTHING: Final = (KL, RELATIVE_KL, ACCURACY, LOG_LIKELIHOOD, SECONDS, MEMORY)

Work = Callable[[bool], Iterator[Job | Record]]
"""A function that yields runs in order, and references as records. True selects a few small runs as a check."""


@dataclass(frozen=True, slots=True)
class Experiment:
    """An experiment with its runs and quantities.

    ``axes`` maps a data set to the column of :class:`Record` that varies; ``""`` is the key of all other data sets.
    ``floor`` names a reference by which medians are divided, and ``target`` one that they should not exceed; "" for no
    reference.
    """

    name: str
    title: str
    text: str
    work: Work
    quantities: Sequence[Quantity] = EVERYTHING
    axes: Mapping[str, str] = field(default_factory=lambda: {"": SIZE})
    floor: str = ""
    target: str = ""

    def axis(self, data: str) -> str:
        """The column that varies in ``data``."""
        return self.axes.get(data, self.axes.get("", SIZE))
