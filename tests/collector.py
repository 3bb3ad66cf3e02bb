"""A pytest plugin that spares the garbage collector the modules and the collected tests.

These are millions of objects that live until the end. Searching them takes seconds while all tests are collected, and
again at the end of each process.
"""

import atexit
import gc

import pytest

gc.disable()
atexit.register(gc.freeze)


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop() -> None:
    """Turn the garbage collector on for the tests."""
    gc.freeze()
    gc.enable()
