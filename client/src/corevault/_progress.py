"""Optional progress bars. They show planned steps and sent bytes, and nothing that depends on rows."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Protocol


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
    from rich import progress as rich  # noqa: PLC0415 - imported for a bar only

    columns = (rich.TextColumn("{task.description}"), rich.BarColumn(), rich.DownloadColumn(), rich.TimeElapsedColumn())
    with rich.Progress(*columns, console=_make_console()) as bar:
        task = bar.add_task(label, total=total)
        yield lambda done, stage="", /: bar.update(task, completed=done, description=stage or label)


@contextmanager
def show_fraction(shown: bool, label: str) -> Iterator[Report]:
    """A bar for a fraction in [0, 1], with the stage at its right."""
    if not shown:
        yield _silent
        return
    from rich import progress as rich  # noqa: PLC0415 - imported for a bar only

    columns = (rich.TextColumn("{task.description}"), rich.BarColumn(), rich.TaskProgressColumn())
    last = (rich.TimeElapsedColumn(), rich.TextColumn("{task.fields[stage]}"))
    with rich.Progress(*columns, *last, console=_make_console()) as bar:
        task = bar.add_task(label, total=1.0, stage="")
        yield lambda done, stage="", /: bar.update(task, completed=done, stage=stage)


def _make_console() -> Any:
    """The terminal behind standard error, so that standard output has results only."""
    from rich.console import Console  # noqa: PLC0415 - imported for a bar only

    return Console(stderr=True)
