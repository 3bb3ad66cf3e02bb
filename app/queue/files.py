"""The filesystem broker of the one-folder installation, with atomic writes.

It extends Celery's filesystem transport. That transport writes messages and bindings in place, so that a reader could
read half of one. It also moves messages through the system's temporary folder, which is outside the data directory.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from queue import Empty
from typing import Any, Final
from uuid import uuid4

from kombu.transport import filesystem

POLLING_SECONDS: Final = 0.05


def prepare_folders(data_dir: Path) -> dict[str, Any]:
    """Create the broker's folders (mode 0700) and return the transport's options with them."""
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
    """Writes to a temporary file and renames it; takes a message by renaming it.

    The ``type: ignore`` comments are for kombu, which has no types.
    """

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
                continue  # not written by this class: drop it
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
