"""Supervisor that runs child processes until a signal, and then ends them."""

import signal
import time
from collections.abc import Iterable, Sequence
from typing import Final

import typer

from app.cli.processes import Child, adopt_orphans, find_orphans, kill, reap

STOP: Final = frozenset({signal.SIGTERM, signal.SIGINT, signal.SIGHUP})
GRACE_SECONDS: Final = 12.0
FIRST_DELAY_SECONDS, LONGEST_DELAY_SECONDS = 0.25, 30.0
STEADY_SECONDS: Final = 30.0
_IDLE_SECONDS = 1.0


def supervise(children: Sequence[Child]) -> None:
    """Run the children until a signal, then stop all of them.

    A child that ends is restarted; the delay grows with its failures.
    """
    adopt_orphans()
    watched = STOP | {signal.SIGCHLD}
    signal.pthread_sigmask(
        signal.SIG_BLOCK, watched
    )  # blocked signals wait for sigtimedwait, so there is no race and no handler
    try:
        for child in children:
            child.start(time.monotonic())
        while not _is_stop_signal(watched, _wait_seconds(children)):
            _restart_ended(children, time.monotonic())
    finally:
        _stop(children)


def compute_delay_seconds(failures: int) -> float:
    """Return the wait before the next start, after this many failures in a row."""
    return float(min(FIRST_DELAY_SECONDS * 2.0 ** min(failures - 1, 16), LONGEST_DELAY_SECONDS))


def _is_stop_signal(watched: Iterable[signal.Signals], seconds: float) -> bool:
    """Wait for a signal for at most ``seconds``; return whether it asks to stop."""
    received = signal.sigtimedwait(watched, seconds)
    return received is not None and received.si_signo in STOP


def _wait_seconds(children: Sequence[Child]) -> float:
    now = time.monotonic()
    due = [child.restart_at - now for child in children if child.process is None]
    return max(0.0, min([_IDLE_SECONDS, *due]))


def _restart_ended(children: Sequence[Child], now: float) -> None:
    reap(find_orphans(children))
    for child in children:
        if child.process is not None and child.process.poll() is not None:
            child.failures = 1 if now - child.started_at > STEADY_SECONDS else child.failures + 1
            child.restart_at = now + compute_delay_seconds(child.failures)
            typer.echo(f"corevaultd: {child.name} ended ({child.process.returncode}); restarting it", err=True)
            child.process = None
        if child.process is None and now >= child.restart_at:
            child.start(now)


def _stop(children: Sequence[Child]) -> None:
    """Terminate the children; kill all orphans and children that do not end in time."""
    deadline = time.monotonic() + GRACE_SECONDS
    for child in children:
        child.send(signal.SIGTERM)
    while any(child.running for child in children) and time.monotonic() < deadline:
        signal.sigtimedwait({signal.SIGCHLD}, 0.1)
    for child in children:
        child.send(signal.SIGKILL)
        if child.process is not None:
            child.process.wait()
    while left := find_orphans(children):
        kill(left)
        reap(left)
        signal.sigtimedwait({signal.SIGCHLD}, 0.05)
