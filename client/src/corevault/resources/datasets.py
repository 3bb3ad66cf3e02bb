"""``client.datasets``: declare, upload, watch, delete."""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, BinaryIO

from corevault import _resumable, _upload
from corevault._arguments import mapping, what_came
from corevault._content import check_start
from corevault._http import Http, segment
from corevault._ids import id_of, ids_of
from corevault._progress import Report, bytes_bar
from corevault.errors import ContentRejected, WaitTimeout
from corevault.pages import Page, fetch_page
from corevault.replies.dataset import Budget, Dataset, LedgerEntry
from corevault.replies.key import ApiKey
from corevault.schema import Schema

if TYPE_CHECKING:
    import os

    import pandas as pd

_ROW = {"kind": "row"}


class Datasets:
    """Datasets, their contents, budgets and ledgers. A dataset is named by its id, or by the ``Dataset`` itself."""

    def __init__(self, http: Http) -> None:
        self._http = http

    def create(
        self,
        name: str,
        schema: Schema,
        *,
        slots: int,
        epsilon: float | None = None,
        delta: float | None = None,
        sensitivity: str = "private",
        description: str = "",
        population: str | None = None,
        privacy_unit: Mapping[str, Any] = _ROW,
        shared_with: Sequence[str | ApiKey] = (),
        releases_public: bool = True,
        idempotency_key: str | None = None,
    ) -> Dataset:
        """Declares a table of at most ``slots`` units and opens its account (owner).

        ``epsilon`` is the limit of all jobs together; ``delta`` None takes the server's default. Public data
        (``sensitivity="public"``) has no account, so neither is given. All of this is public knowledge:
        declare what a codebook says, not what the rows say.
        """
        if not isinstance(schema, Schema):
            raise TypeError(f"schema must be a Schema, as in Schema(real('age', 0, 120)); {what_came(schema)}.")
        body: dict[str, Any] = {
            "name": name,
            "description": description,
            "sensitivity": sensitivity,
            "columns": schema.to_json(),
            "privacy_unit": mapping(privacy_unit, "privacy_unit"),
            "slots": slots,
            "shared_with": ids_of(shared_with, ApiKey),
            "releases_public": releases_public,
        }
        if population is not None:
            body["population"] = population
        if epsilon is not None:
            body["budget"] = _budget(epsilon, delta)
        return Dataset.from_json(self._http.post("/v1/datasets", body, idempotency_key=idempotency_key))

    def list(self, *, limit: int | None = None) -> Page[Dataset]:
        """The datasets that the key may see."""
        return fetch_page(self._http, "/v1/datasets", Dataset, {"limit": limit})

    def get(self, dataset_id: str | Dataset) -> Dataset:
        """Declared facts and status."""
        return Dataset.from_json(self._http.get(f"/v1/datasets/{_segment(dataset_id)}"))

    def update(
        self,
        dataset_id: str | Dataset,
        *,
        description: str | None = None,
        shared_with: Sequence[str | ApiKey] | None = None,
        releases_public: bool | None = None,
    ) -> Dataset:
        """Changes what may be changed; what is None stays. ``shared_with`` replaces the list of key ids."""
        changes: dict[str, Any] = {"description": description, "releases_public": releases_public}
        changes["shared_with"] = None if shared_with is None else ids_of(shared_with, ApiKey)
        body = {name: value for name, value in changes.items() if value is not None}
        return Dataset.from_json(self._http.once("PATCH", f"/v1/datasets/{_segment(dataset_id)}", body))

    def delete(self, dataset_id: str | Dataset) -> Mapping[str, Any]:
        """Destroys the data key; the ledger stays. Returns the signed deletion receipt."""
        receipt: Mapping[str, Any] = self._http.once("DELETE", f"/v1/datasets/{_segment(dataset_id)}")
        return receipt

    def upload(
        self,
        dataset_id: str | Dataset,
        source: "str | os.PathLike[str] | bytes | BinaryIO | Iterable[bytes] | pd.DataFrame",
        *,
        media_type: str | None = None,
        progress: bool | Callable[[int], None] = False,
        resumable: bool | None = None,
    ) -> Dataset:
        """Streams a table into the vault: a path, bytes, a binary file, a DataFrame or chunks of bytes.

        Never held whole; where the source can be read twice, a digest goes with it. The server answers once
        the bytes are sealed: ``wait_until_ready`` tells what became of them. ``progress`` shows a bar, or is
        called with the number of bytes that were sent.

        ``resumable`` None: what is known to be large goes in parts, which are sent again where the connection
        breaks; the rest goes in one request, which is never repeated. Raises ``UploadInterrupted`` where the
        server stays away, and ``ValueError`` for a zip archive (an Excel workbook) or a column that is named twice.
        """
        upload = _upload.prepare(source, media_type)
        check_start(upload)
        large = upload.length is not None and upload.length >= _resumable.LARGE_BYTES
        with bytes_bar(progress, "Uploading", upload.length) as report:
            if large if resumable is None else resumable:
                upload_id = _resumable.begin(self._http, id_of(dataset_id, Dataset), upload)
                return Dataset.from_json(
                    _resumable.send(self._http, id_of(dataset_id, Dataset), upload_id, upload, report)
                )
            chunks = _counted(upload.chunks(), report)
            path = f"/v1/datasets/{_segment(dataset_id)}/content"
            return Dataset.from_json(self._http.put_stream(path, chunks, upload.headers()))

    def resume(
        self,
        dataset_id: str | Dataset,
        upload_id: str,
        source: "str | os.PathLike[str] | bytes | BinaryIO | Iterable[bytes] | pd.DataFrame",
        *,
        progress: bool | Callable[[int], None] = False,
    ) -> Dataset:
        """Goes on with an upload that was interrupted, from the same source as before."""
        upload = _upload.prepare(source, _upload.CSV)
        with bytes_bar(progress, "Uploading", upload.length) as report:
            return Dataset.from_json(_resumable.send(self._http, id_of(dataset_id, Dataset), upload_id, upload, report))

    def wait_until_ready(
        self, dataset_id: str | Dataset, *, timeout_seconds: float = 600.0, poll_seconds: float = 0.25
    ) -> Dataset:
        """Waits for the newest content. Raises ``ContentRejected`` with its reason, or ``WaitTimeout``."""
        deadline = time.monotonic() + timeout_seconds
        while True:
            dataset = self.get(dataset_id)
            newest = dataset.content.status if dataset.content else None
            if (newest or dataset.status) == "ready":
                return dataset
            if (newest or dataset.status) == "rejected":
                raise ContentRejected((dataset.content.rejection if dataset.content else None) or "unknown")
            if time.monotonic() > deadline:
                missing = "Nothing was uploaded yet; call datasets.upload."
                raise WaitTimeout(
                    missing if newest is None else "The content is not ready yet; it is still being read."
                )
            time.sleep(poll_seconds)

    def budget(self, dataset_id: str | Dataset) -> Budget:
        """What is spent, reserved and left."""
        return Budget.from_json(self._http.get(f"/v1/datasets/{_segment(dataset_id)}/budget"))

    def set_budget(self, dataset_id: str | Dataset, *, epsilon: float, delta: float | None = None) -> Budget:
        """The new total limit (owner): lower at once, higher opens a tranche with ``delta``."""
        body = _budget(epsilon, delta)
        self._http.once("PUT", f"/v1/datasets/{_segment(dataset_id)}/budget", body)
        return self.budget(dataset_id)

    def ledger(self, dataset_id: str | Dataset, *, limit: int | None = None) -> Page[LedgerEntry]:
        """The account's entries, newest first (owner, auditor)."""
        return fetch_page(self._http, f"/v1/datasets/{_segment(dataset_id)}/ledger", LedgerEntry, {"limit": limit})


def _segment(dataset: str | Dataset) -> str:
    return segment(id_of(dataset, Dataset))


def _budget(epsilon: float, delta: float | None) -> dict[str, float]:
    return {"epsilon": epsilon} if delta is None else {"epsilon": epsilon, "delta": delta}


def _counted(chunks: Iterator[bytes], report: Report) -> Iterator[bytes]:
    done = 0
    for chunk in chunks:
        yield chunk
        done += len(chunk)
        report(done)
