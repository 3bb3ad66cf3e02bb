"""Loading of the libraries that price jobs, while the API starts.

They load on first use, which takes one second or more. The first quote would wait for it.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Final

import structlog

from app.inference import dry_run, registry
from app.inference.core.facts import Column, DeclaredFacts
from app.inference.core.plan import ModelSpec, PlanRequest
from app.jobs.planning import NoiseCache, Wish, make_plan

_DELTA: Final = 1e-6
_FACTS: Final = DeclaredFacts(
    (Column("x", "real", -1.0, 1.0), Column("y", "binary")), 1000, {"kind": "row"}, "private", _DELTA
)
_WISH: Final = Wish(PlanRequest(registry.DEFAULT, 4, ModelSpec("logistic-regression", ("x",), "y")), 1.0)


@cache
def load_pricing() -> None:
    """Price and dry-run a small job of the default method, once in a process. The result is discarded."""
    plan = make_plan(_WISH, _FACTS, _DELTA, NoiseCache(), lambda _: True)
    dry_run.carry_out(plan, _FACTS, to_the_end=False)


@contextmanager
def preload_pricing() -> Iterator[None]:
    """Load in a thread; the end of the context waits for it. A failure is logged, and the first quote tries again."""

    def load() -> None:
        try:
            load_pricing()
        except Exception as error:  # noqa: BLE001  (the API starts after any error)
            structlog.get_logger().warning("pricing not loaded", kind=type(error).__name__)

    thread = threading.Thread(target=load, name="preload", daemon=True)
    thread.start()
    try:
        yield
    finally:
        thread.join()
