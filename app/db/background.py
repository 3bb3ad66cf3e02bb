"""Small writes that no request waits for: one thread runs them, each in a separate transaction."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Lock

import structlog

from app.db.session import Database, WriteSession

Write = Callable[[WriteSession], None]


class BackgroundWriter:
    """Runs writes that may be lost; a failed write is logged by its kind and not repeated."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="background-writer")
        self._waiting: set[str] = set()
        self._lock = Lock()

    def soon(self, name: str, write: Write) -> None:
        """Queue ``write``, unless a write of that name is waiting or running."""
        with self._lock:
            if name in self._waiting:
                return
            self._waiting.add(name)
        self._pool.submit(self._run, name, write)

    def finish(self) -> None:
        """Wait for the writes that are queued so far."""
        self._pool.submit(lambda: None).result()

    def close(self) -> None:
        """Finish the running write and drop the others."""
        self._pool.shutdown(cancel_futures=True)

    def _run(self, name: str, write: Write) -> None:
        try:
            with self._database.write() as tx:
                write(tx)
        except Exception as error:  # noqa: BLE001  (requests continue after any error)
            structlog.get_logger().warning("background write failed", kind=type(error).__name__)
        finally:
            with self._lock:
                self._waiting.discard(name)
