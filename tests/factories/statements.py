"""Compiled SQL that all tests of a process share.

SQLAlchemy keeps compiled statements for each engine, and almost every test makes an engine. Compilation took a third of
the time of tests with a database. A server has one engine, so it compiles them once too.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

from sqlalchemy import Engine, create_engine
from sqlalchemy.engine.interfaces import CompiledCacheType

_COMPILED: CompiledCacheType = {}
_ENGINE = create_engine("sqlite://")
_ENGINE.connect().close()  # sets up the dialect, which is part of the keys of compiled statements


@contextmanager
def compiled_once() -> Iterator[None]:
    """Let all SQLite engines that the application makes use the same compiled statements."""
    with patch("app.db.engine.create_engine", _create_engine):
        yield


def _create_engine(url: str, **options: Any) -> Engine:
    if not url.startswith("sqlite"):
        return create_engine(url, **options)
    engine = create_engine(url, execution_options={"compiled_cache": _COMPILED}, **options)
    engine.dialect = _ENGINE.dialect
    return engine
