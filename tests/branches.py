"""A pytest plugin that measures branch coverage of the privacy packages.

Tracing slows down every call in a process, so only tests of these packages are traced. Tests marked ``slow`` and those
of Hypothesis are not traced. They make many calls, and a branch that only they take needs an example in another test.
"""

import os
from collections.abc import Generator
from pathlib import Path
from unittest.mock import patch

import coverage
import pytest

from workers.enclave import ingest_parent

FOLDERS = frozenset(Path(__file__).parent / name for name in ("privacy_core", "ledger", "enclave"))
UNMEASURED = frozenset({"slow", "long", "hypothesis"})
PARSING = frozenset({"test_ingest_parent.py", "test_grouping.py"})
"""Parsing processes are traced in these tests only, because each one loads the tracer."""
_EXIT = os._exit
"""The tracer replaces it, so that a fork of this process would save all of this process's data for seconds."""


class BranchPlugin:
    """Traces the measured tests without their fixtures, and the parsing processes that they start."""

    def __init__(self) -> None:
        self._coverage = coverage.Coverage(data_suffix=True)
        self._variables: dict[str, str] = {}

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Generator[None, object, object]:
        if not is_measured(item):
            return (yield)
        self._coverage.start()
        os._exit = _EXIT
        self._variables |= {name: os.environ.pop(name) for name in list(os.environ) if name.startswith("COVERAGE_")}
        try:
            with patch.dict(ingest_parent._ENVIRONMENT, self._variables if item.path.name in PARSING else {}):
                return (yield)
        finally:
            self._coverage.stop()

    def pytest_sessionfinish(self) -> None:
        self._coverage.save()


def is_measured(item: pytest.Item) -> bool:
    """Whether the branches that the test takes are counted."""
    return item.path.parent in FOLDERS and not any(mark.name in UNMEASURED for mark in item.iter_markers())


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(BranchPlugin())
