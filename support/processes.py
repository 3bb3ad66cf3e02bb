"""Processes that a test starts: on a port of their own, and ended however the test goes."""

import os
import signal
import socket
from abc import ABC, abstractmethod
from collections.abc import Iterable
from contextlib import suppress
from types import TracebackType
from typing import Self


class Started(ABC):
    """``with`` begins it, and ends it, also when it began by half only."""

    @abstractmethod
    def begin(self) -> None:
        """Start, and return once it can be used."""

    @abstractmethod
    def end(self) -> None:
        """Stop what runs, in whatever state it is, and give back what it holds."""

    def __enter__(self) -> Self:
        try:
            self.begin()
        except BaseException:
            self.end()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.end()


def free_port() -> int:
    """A port of loopback that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def kill(pids: Iterable[int]) -> None:
    """SIGKILL each, at once; a child that has followed its parent meanwhile is gone already."""
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
