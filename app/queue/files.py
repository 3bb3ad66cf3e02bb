"""The broker of the one-folder installation: Celery's filesystem transport, with files that appear whole.

The transport as it ships writes messages and bindings in place, where a reader could meet half of one, and takes
messages by way of the system's temporary folder, outside of the data directory.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from queue import Empty
from typing import Any, Final
from uuid import uuid4

from kombu.transport import filesystem

POLLING_SECONDS: Final = 0.05


def folder_options(data_dir: Path) -> dict[str, Any]:
    """Makes the broker's folders (0700) and names them in the transport's options."""
    root = data_dir / "broker"
    messages, control = root / "messages", root / "control"
    for folder in (root, messages, control):
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return {
        "data_folder_in": str(messages),
        "data_folder_out": str(messages),
        "control_folder": str(control),
        "polling_interval": POLLING_SECONDS,
    }


class Channel(filesystem.Channel):
    """Writes aside and renames; takes a message by renaming it. (What is ignored here: kombu is untyped.)"""

    def _put(self, queue: str, payload: Mapping[str, Any], **_: Any) -> None:  # type: ignore[override]
        _write_whole(Path(self.data_folder_out) / f"{uuid4()}.{queue}.msg", payload)

    def _get(self, queue: str, timeout: float | None = None) -> Any:
        for message in sorted(Path(self.data_folder_in).glob(f"*.{queue}.msg"), key=_read_mtime):
            taken = message.with_suffix(".taken")
            try:
                message.rename(taken)
            except FileNotFoundError:
                continue  # another worker was faster
            try:
                return json.loads(taken.read_text())
            except ValueError:
                continue  # not of our writing: it is gone, and that is all
            finally:
                taken.unlink()
        raise Empty

    def _queue_bind(self, exchange: str, routing_key: str, pattern: str, queue: str) -> None:
        binding = (routing_key or "", pattern or "", queue or "")
        table = [tuple(entry) for entry in self.get_table(exchange)]  # type: ignore[no-untyped-call]
        if binding not in table:
            file = self._exchange_file(exchange)  # type: ignore[no-untyped-call]
            _write_whole(file, [binding, *table])


class Transport(filesystem.Transport):
    Channel = Channel


def _write_whole(target: Path, content: object) -> None:
    aside = target.with_name(f"{uuid4()}.new")
    aside.write_text(json.dumps(content))
    aside.rename(target)


def _read_mtime(message: Path) -> int:
    try:
        return message.stat().st_mtime_ns
    except FileNotFoundError:
        return 0
