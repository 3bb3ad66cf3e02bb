"""Processes that tests start on a free port, and that end with the test."""

import os
import signal
import socket
from abc import ABC, abstractmethod
from collections.abc import Iterable
from contextlib import suppress
from types import TracebackType
from typing import Self


class Started(ABC):
    """A context manager that starts something and ends it, also after a failed start."""

    @abstractmethod
    def begin(self) -> None:
        """Start, and return once it can be used."""

    @abstractmethod
    def end(self) -> None:
        """Stop all processes, in any state, and release all resources."""

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
    """Find a free port of the loopback interface."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def kill(pids: Iterable[int]) -> None:
    """Send SIGKILL to each process; processes that have ended already are ignored."""
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
