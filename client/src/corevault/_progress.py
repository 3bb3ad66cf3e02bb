"""Optional progress bars. They show planned steps and sent bytes, and nothing that depends on rows."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Protocol

from rich.progress import BarColumn, DownloadColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn


class Report(Protocol):
    """A function that receives progress: the amount done, and a word for the stage."""

    def __call__(self, done: float, stage: str = "", /) -> None:
        """``done`` is in the units of the bar's total."""


def _silent(done: float, stage: str = "", /) -> None:
    pass


@contextmanager
def show_bytes(shown: bool | Callable[[int], None], label: str, total: int | None) -> Iterator[Report]:
    """A bar for an upload, or calls of ``shown`` with the bytes sent. Without ``total`` the bar pulses."""
    if callable(shown):
        report = shown
        yield lambda done, _="", /: report(int(done))
        return
    if not shown:
        yield _silent
        return
    with Progress(TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TimeElapsedColumn()) as bar:
        task = bar.add_task(label, total=total)
        yield lambda done, stage="", /: bar.update(task, completed=done, description=stage or label)


@contextmanager
def show_fraction(shown: bool, label: str) -> Iterator[Report]:
    """A bar for a fraction in [0, 1], with the stage at its right."""
    if not shown:
        yield _silent
        return
    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeElapsedColumn())
    with Progress(*columns, TextColumn("{task.fields[stage]}")) as bar:
        task = bar.add_task(label, total=1.0, stage="")
        yield lambda done, stage="", /: bar.update(task, completed=done, stage=stage)
