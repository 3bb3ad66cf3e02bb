"""``client.datasets``: declare, check, upload and delete datasets; with the calls of their accounts."""

import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from corevault import _resumable, _upload
from corevault._arguments import as_json, describe, require_mapping, require_number
from corevault._check import check_table
from corevault._content import check_start
from corevault._http import quote_segment
from corevault._ids import read_id, read_ids
from corevault._io import blocking
from corevault._names import find_dataset_id
from corevault._progress import Report, show_bytes
from corevault._warnings import warn_caller
from corevault.errors import ContentRejected, InvalidArgument, TooManyNullRows, WaitTimeout, WrongType
from corevault.pages import Page, fetch_page
from corevault.replies.dataset import Content, Dataset, OpenUpload
from corevault.replies.key import ApiKey
from corevault.resources.accounts import Accounts, AsyncAccounts, make_limit
from corevault.schema import Schema

_ROW = {"kind": "row"}
_NOTHING_UPLOADED = "The dataset has no content; call datasets.upload first."
_STILL_READING = (
    "The content is not ready within timeout_seconds. The server is still reading it; call wait_until_ready again."
)


class AsyncDatasets(AsyncAccounts):
    """The methods of ``Datasets`` for an ``AsyncClient``. Each is awaited.

    >>> asyncio.run(async_client.datasets.get("clinic")).status
    'ready'
    """

    async def create(
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
        series: str | None = None,
        privacy_unit: Mapping[str, Any] = _ROW,
        shared_with: Sequence[str | ApiKey] = (),
        releases_public: bool = True,
        idempotency_key: str | None = None,
    ) -> Dataset:
        """Declares a table of at most ``slots`` units and opens its account (owner).

        ``epsilon`` is the limit of all jobs together. Without ``delta`` the server's default applies. Public data
        (``sensitivity="public"``) has no account, so omit both. The declaration is public: take it from a codebook,
        never from the rows.

        Releases protect one ``privacy_unit``, by default a row. If a person may have several rows, pass
        ``{"kind": "column", "column": "patient", "max_rows": 4}``. Then all rows with the same value of this declared
        column are one unit, and at most ``max_rows`` of them are kept.

        ``series`` names a series of your datasets in which each person counts once: the rows of a person become null in
        all of them but the first one that received them. Their ``privacy_unit`` is the same declared column.

        Warnings of the server, such as about a limit that guarantees little, are issued as Python warnings.

        >>> client.datasets.create("visits", schema, slots=500, epsilon=1.0).status
        'created'
        """
        if not isinstance(schema, Schema):
            raise WrongType(f"schema must be a Schema, as in Schema(real('age', 0, 120)); {describe(schema)}.")
        body: dict[str, Any] = {
            "name": name,
            "description": description,
            "sensitivity": sensitivity,
            "columns": schema.to_json(),
            "privacy_unit": require_mapping(privacy_unit, "privacy_unit"),
            "slots": slots,
            "shared_with": read_ids(shared_with, ApiKey),
            "releases_public": releases_public,
        }
        if population is not None:
            body["population"] = population
        if series is not None:
            body["series"] = series
        if epsilon is not None:
            body["budget"] = make_limit(epsilon, delta)
        dataset = Dataset.from_json(await self._http.post("/v1/datasets", body, idempotency_key=idempotency_key))
        for warning in dataset.raw.get("warnings") or ():
            warn_caller(f"{_name_member(warning['pointer'], schema)}: {warning['message']}")
        return dataset

    async def list(self, *, limit: int | None = None) -> Page[Dataset]:
        """The datasets that the key may see.

        >>> "clinic" in {each.name for each in client.datasets.list()}
        True
        """
        return await fetch_page(self._http, "/v1/datasets", Dataset, {"limit": limit})

    async def get(self, dataset_id: str | Dataset) -> Dataset:
        """The declared facts and the status of a dataset.

        >>> client.datasets.get("clinic").schema.names
        ['age', 'sex', 'sick']
        """
        return Dataset.from_json(await self._http.get(f"/v1/datasets/{await self._quote_id(dataset_id)}"))

    async def update(
        self,
        dataset_id: str | Dataset,
        *,
        description: str | None = None,
        shared_with: Sequence[str | ApiKey] | None = None,
        releases_public: bool | None = None,
        allocations: Mapping[str | ApiKey, float] | None = None,
    ) -> Dataset:
        """Changes the given members of a dataset (owner).

        ``shared_with`` replaces the list of key ids. ``allocations`` replaces the part of the limit that each key may
        spend: an ε by the id of the key.

        >>> client.datasets.update("clinic", description="Visits of one year.").raw["description"]
        'Visits of one year.'
        """
        changes: dict[str, Any] = {"description": description, "releases_public": releases_public}
        changes["shared_with"] = None if shared_with is None else read_ids(shared_with, ApiKey)
        if allocations is not None:
            parts = require_mapping(allocations, "allocations").items()
            changes["allocations"] = [{"key_id": read_id(key, ApiKey), "epsilon": part} for key, part in parts]
        body = as_json({name: value for name, value in changes.items() if value is not None})
        return Dataset.from_json(
            await self._http.send_once("PATCH", f"/v1/datasets/{await self._quote_id(dataset_id)}", body)
        )

    async def delete(self, dataset_id: str | Dataset) -> Mapping[str, Any]:
        """Destroys the data key (owner); the ledger remains. Returns the signed deletion receipt.

        >>> mistake = client.datasets.create("mistake", schema, slots=500, epsilon=1.0)
        >>> client.datasets.delete(mistake)["statement"]["dataset_id"] == mistake.id
        True
        """
        receipt: Mapping[str, Any] = await self._http.send_once(
            "DELETE", f"/v1/datasets/{await self._quote_id(dataset_id)}"
        )
        return receipt

    async def upload(
        self,
        dataset_id: str | Dataset,
        source: object,
        *,
        media_type: str | None = None,
        max_null_share: float | None = 0.01,
        progress: bool | Callable[[int], None] = False,
        resumable: bool | None = None,
    ) -> Dataset:
        """Checks a table against the declared columns, and streams it to the server.

        ``source`` is one of these:

        - a path, bytes, a file that is open in binary mode, or an iterable of bytes;
        - a pandas or polars DataFrame, a pyarrow Table, or a mapping of column names to lists or arrays, sent as CSV.

        Memory is bounded. Without ``media_type``, the first bytes or a path's suffix determine it.

        A source that can be read twice is first checked on this machine, as by ``schema.check``. The upload stops with
        ``TooManyNullRows`` if more than ``max_null_share`` of the rows would be null. It stops with ``InvalidArgument``
        if the columns are not the declared ones, or if there are more rows than slots. 1.0 allows any share of null
        rows, None skips the check. ``misfits`` of the check are issued as warnings.

        The server answers after it has stored the bytes; ``wait_until_ready`` waits until it has read them.
        ``progress`` is True for a bar, or a function that is called with the number of bytes sent.

        ``resumable`` selects an upload in parts, each of which is retried after a broken connection. By default this
        applies to sources of 64 MiB or more. Other sources go in one request, which is not retried. Raises
        ``UploadInterrupted`` if the server remains unreachable.

        >>> second = client.datasets.create("second", schema, slots=500, epsilon=1.0)
        >>> client.datasets.upload(second, {"age": [30, 60], "sex": ["female", "male"], "sick": [0, 1]}).name
        'second'
        >>> client.datasets.wait_until_ready(second).status
        'ready'
        """
        if max_null_share is not None:
            require_number(max_null_share, "max_null_share", lower=0.0, upper=1.0)
        upload = await self._http.call(_upload.prepare, source, media_type)
        await self._http.call(check_start, upload)
        dataset_id = await find_dataset_id(self._http, dataset_id)
        if max_null_share is not None and upload.repeatable:
            await self._check_rows(dataset_id, upload, max_null_share)
        upload = await self._http.call(_upload.add_digest, upload)
        large = upload.length is not None and upload.length >= _resumable.LARGE_BYTES
        with show_bytes(progress, "Uploading", upload.length) as report:
            if large if resumable is None else resumable:
                upload_id = await _resumable.begin(self._http, dataset_id, upload)
                return Dataset.from_json(await _resumable.send(self._http, dataset_id, upload_id, upload, report))
            chunks = _count(upload.chunks(), report)
            path = f"/v1/datasets/{await self._quote_id(dataset_id)}/content"
            return Dataset.from_json(await self._http.put_stream(path, chunks, upload.headers()))

    async def _check_rows(self, dataset_id: str | Dataset, upload: _upload.Upload, max_null_share: float) -> None:
        dataset = await self.get(dataset_id)
        unit = (dataset.privacy_unit or {}).get("column")
        check = await self._http.call(check_table, dataset.schema.columns, upload, unit)
        if check.absent or check.unknown:
            indexed = [name for name in check.absent if name in upload.index]
            hint = f" Call reset_index() first, because the index holds {', '.join(indexed)}." if indexed else ""
            raise InvalidArgument(f"{check.describe_columns()}{hint}")
        if not check.rows:
            raise InvalidArgument("The table has no rows; upload a table with at least one row.")
        if dataset.most_rows is not None and check.rows > dataset.most_rows:
            raise InvalidArgument(
                f"The table has {check.rows:,} rows, and the dataset {dataset.slots:,} slots, which cannot change. "
                "Nothing was sent. Create a dataset with more slots for the same population, and upload it there."
            )
        if check.null_share > max_null_share:
            raise TooManyNullRows(check, max_null_share)
        for misfit in check.misfits:
            warn_caller(f"The upload's check: {misfit}")

    async def open_uploads(self, dataset_id: str | Dataset, *, limit: int | None = None) -> Page[OpenUpload]:
        """The incomplete uploads in parts (owner). Each can be resumed or discarded.

        >>> client.datasets.open_uploads("clinic").items
        ()
        """
        return await fetch_page(
            self._http, f"/v1/datasets/{await self._quote_id(dataset_id)}/uploads", OpenUpload, {"limit": limit}
        )

    async def discard_upload(self, dataset_id: str | Dataset, upload_id: str | OpenUpload) -> None:
        """Discards an upload in parts and deletes its bytes (owner).

        >>> for upload in client.datasets.open_uploads("halted"):
        ...     client.datasets.discard_upload("halted", upload)
        """
        place = quote_segment(read_id(upload_id, OpenUpload))
        await self._http.send_once("DELETE", f"/v1/datasets/{await self._quote_id(dataset_id)}/uploads/{place}")

    async def resume(
        self,
        dataset_id: str | Dataset,
        upload_id: str | OpenUpload,
        source: object,
        *,
        progress: bool | Callable[[int], None] = False,
    ) -> Dataset:
        """Continues an interrupted upload in parts from the same source (owner).

        ``open_uploads`` lists the uploads that can be continued.

        >>> for upload in client.datasets.open_uploads("paused"):
        ...     client.datasets.resume("paused", upload, table).name
        'paused'
        """
        upload_name, upload = read_id(upload_id, OpenUpload), await self._http.call(_upload.open_source, source)
        dataset = await find_dataset_id(self._http, dataset_id)
        with show_bytes(progress, "Uploading", upload.length) as report:
            return Dataset.from_json(await _resumable.send(self._http, dataset, upload_name, upload, report))

    async def wait_until_ready(
        self, dataset_id: str | Dataset, *, timeout_seconds: float = 600.0, poll_seconds: float = 0.25
    ) -> Dataset:
        """Waits until the server has read the newest content.

        Raises ``ContentRejected`` with the reason and the columns, and ``WaitTimeout``.

        >>> client.datasets.wait_until_ready("clinic").status
        'ready'
        """
        require_number(timeout_seconds, "timeout_seconds")
        require_number(poll_seconds, "poll_seconds", lower=0.0)
        deadline = time.monotonic() + timeout_seconds
        dataset_id = await find_dataset_id(self._http, dataset_id)
        while True:
            dataset = await self.get(dataset_id)
            newest = dataset.content.status if dataset.content else None
            if (newest or dataset.status) == "ready":
                return dataset
            if (newest or dataset.status) == "rejected":
                raise _rejection(dataset)
            if time.monotonic() > deadline:
                raise WaitTimeout(_NOTHING_UPLOADED if newest is None else _STILL_READING)
            await self._http.io.sleep(poll_seconds)


class Datasets(Accounts):
    """Datasets, their contents, budgets and ledgers. Methods accept a ``Dataset``, its id or its name.

    A name costs one request. It must be the name of one dataset that is not deleted.

    >>> client.datasets.get("clinic").id == client.datasets.get(dataset).id
    True
    """

    create = blocking(AsyncDatasets.create)
    list = blocking(AsyncDatasets.list)
    get = blocking(AsyncDatasets.get)
    update = blocking(AsyncDatasets.update)
    delete = blocking(AsyncDatasets.delete)
    upload = blocking(AsyncDatasets.upload)
    open_uploads = blocking(AsyncDatasets.open_uploads)
    discard_upload = blocking(AsyncDatasets.discard_upload)
    resume = blocking(AsyncDatasets.resume)
    wait_until_ready = blocking(AsyncDatasets.wait_until_ready)


def _rejection(dataset: Dataset) -> ContentRejected:
    if dataset.rejection is not None:
        return ContentRejected(dataset.rejection.code, dataset.rejection.columns)
    content = dataset.content or Content()  # servers of earlier versions state the code only
    return ContentRejected(content.rejection or "unknown")


def _count(chunks: Iterator[bytes], report: Report) -> Iterator[bytes]:
    done = 0
    for chunk in chunks:
        yield chunk
        done += len(chunk)
        report(done)


def _name_member(pointer: str, schema: Schema) -> str:
    """The column or other member of a declaration that a JSON pointer names."""
    found = re.fullmatch(r"/columns/([0-9]{1,6})/name", pointer)
    names = schema.names
    return names[int(found[1])] if found and int(found[1]) < len(names) else pointer.rpartition("/")[2]
