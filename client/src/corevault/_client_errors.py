"""Errors that the client finds itself; see ``corevault.errors``."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from corevault._check import TableCheck
    from corevault.replies.job import Job


class CorevaultError(Exception):
    """Base of all errors of this package. ``detail`` is the message.

    >>> try:
    ...     client.datasets.get("unknown")
    ... except CorevaultError as error:
    ...     print(type(error).__name__)
    NotFound
    """

    def __init__(self, detail: str) -> None:
        super().__init__(detail)
        self.detail = detail


class InvalidArgument(CorevaultError, ValueError):
    """An argument is wrong. Nothing was sent to the server.

    >>> integer("age", 90, 17)
    Traceback (most recent call last):
        ...
    corevault.errors.InvalidArgument: Column 'age': lower must be below upper.
    """


class WrongType(InvalidArgument, TypeError):
    """An argument has a type that is not accepted.

    >>> LogisticRegression(features="age", target="sick")
    Traceback (most recent call last):
        ...
    corevault.errors.WrongType: features must be a list of column names, not one name.
    """


class MissingColumn(InvalidArgument, KeyError):
    """A table lacks a column that is needed.

    >>> example().predict({"age": [30]})
    Traceback (most recent call last):
        ...
    corevault.errors.MissingColumn: The table has no column 'smoker', from which the design is computed.
    """

    def __str__(self) -> str:
        return self.detail  # a KeyError would print quotation marks


class UnreadableSource(InvalidArgument, OSError):
    """A file does not exist or cannot be read; the cause is chained.

    >>> Schema(binary("sick")).check("missing.csv")
    Traceback (most recent call last):
        ...
    corevault.errors.UnreadableSource: missing.csv cannot be read; check that it exists and that you may read it.
    """

    def __str__(self) -> str:
        return self.detail


class TooManyNullRows(CorevaultError, ValueError):
    """Too many rows of a table would be null. Nothing was sent to the server.

    ``check`` is the ``TableCheck`` with the counts of each column, and ``max_null_share`` the share allowed.

    >>> client.datasets.upload("clinic", {"age": [None, 30], "sex": ["male", "male"], "sick": [0, 1]})
    Traceback (most recent call last):
        ...
    corevault.errors.TooManyNullRows: 1 of 2 rows do not fit the declared columns, so they would be null; ...
    """

    def __init__(self, check: "TableCheck", max_null_share: float) -> None:
        super().__init__(
            f"{check.null_rows} of {check.rows} rows do not fit the declared columns, so they would be null; "
            f"max_null_share allows a share of {max_null_share:.3g}. Correct these cells, or pass a larger "
            f"max_null_share.{check.counts()}{check.list_advice()}"
        )
        self.check = check
        self.max_null_share = max_null_share


class NotConverged(CorevaultError, ArithmeticError):
    """Newton's method did not reach the mode of a posterior.

    >>> issubclass(NotConverged, ArithmeticError)
    True
    """


class MissingDependency(CorevaultError, ImportError):
    """An optional package is needed and not installed.

    >>> issubclass(MissingDependency, ImportError)
    True
    """


class ClientClosed(CorevaultError, RuntimeError):
    """The client was used after it was closed.

    >>> other = Client("https://corevault.example")
    >>> other.close()
    >>> other.me()
    Traceback (most recent call last):
        ...
    corevault.errors.ClientClosed: This client is closed; make a new one, and use it inside its with block.
    """


class ConnectionFailed(CorevaultError):
    """The server could not be reached, or the connection broke; the cause is chained.

    >>> Client("http://127.0.0.1:9", max_retries=0).me()
    Traceback (most recent call last):
        ...
    corevault.errors.ConnectionFailed: No answer from http://127.0.0.1:9 (ConnectError); check base_url, ...
    """


class UploadInterrupted(CorevaultError):
    """An upload was interrupted, and all attempts to continue it failed. The cause is chained.

    ``datasets.resume(dataset_id, upload_id, source)`` continues it from ``offset`` within 24 hours.

    >>> error = UploadInterrupted("upl_1", 4096)
    >>> error.upload_id, error.offset
    ('upl_1', 4096)
    """

    def __init__(self, upload_id: str, offset: int) -> None:
        super().__init__(
            f"The upload {upload_id} was interrupted after {offset} bytes. Call datasets.resume within 24 hours to "
            "continue it."
        )
        self.upload_id = upload_id
        self.offset = offset


class UnexpectedReply(CorevaultError):
    """The server's answer does not have the shape of the contract.

    >>> Cost.from_json({"epsilon": 0.5})
    Traceback (most recent call last):
        ...
    corevault.errors.UnexpectedReply: The server's answer lacks members of Cost.
    """


class VerificationError(CorevaultError):
    """A signature, digest or statement does not hold; do not use the release.

    >>> client.releases.verify(release, pinned_keys=["not a key"])
    Traceback (most recent call last):
        ...
    corevault.errors.VerificationError: The key is not base64; pass the public_key, not the key_id.
    """


class WaitTimeout(CorevaultError):
    """A wait took longer than allowed. The job or the ingestion continues on the server.

    >>> waiting = client.datasets.create("waiting", schema, slots=500, epsilon=1.0)
    >>> client.datasets.wait_until_ready(waiting, timeout_seconds=0)
    Traceback (most recent call last):
        ...
    corevault.errors.WaitTimeout: The dataset has no content; call datasets.upload first.
    """


_REMEDIES: Mapping[str, str] = {
    "malformed": "upload UTF-8 CSV with commas and a header that names each column once, Parquet, or an Arrow stream; "
    "Excel workbooks and compressed files are not read",
    "empty": "the file has no rows below the header; upload a file with rows",
    "missing_column": "the header must name every declared column as declared, separated by commas",
    "unknown_column": "the file has a column that is not declared, perhaps a data frame's index; remove it",
    "wrong_type": "the file's type of a column, such as date, list or structure, cannot be the declared one; upload "
    "numbers or text",
    "too_large": "the file is larger than the server accepts; upload fewer rows or a smaller format",
    "too_many_units": "the file has more units than the declared slots, which cannot change; create a dataset with "
    "more slots for the same population, and upload the file there",
    "duplicate_content": "the same bytes belong to another of your populations, perhaps that of a deleted dataset; "
    "create the dataset with that population, whose name is the id of its first dataset unless you chose one",
    "digest_mismatch": "the bytes changed in transit; upload the file again",
    "series_mismatch": "the earlier uploads of the series do not verify; the file has no fault; ask the operator",
}


class ContentRejected(CorevaultError):
    """The uploaded file was rejected.

    ``reason`` is the stable code, such as ``missing_column``. ``columns`` are the affected columns.

    >>> error = ContentRejected("missing_column", ["age"])
    >>> error.reason, error.columns
    ('missing_column', ('age',))
    """

    def __init__(self, reason: str, columns: Sequence[str] = ()) -> None:
        remedy = f" ({_REMEDIES[reason]})" if reason in _REMEDIES else ""
        names = f"; columns: {', '.join(columns)}" if columns else ""
        super().__init__(f"The uploaded content was rejected: {reason}{remedy}{names}.")
        self.reason = reason
        self.columns = tuple(columns)


_FAILURES: Mapping[str, str] = {
    "run_failed": "the run ended with an error; ask the operator, who can find the cause in the worker's log",
    "interrupted": "the run lost its worker too often; submit the job again",
    "dataset_deleted": "the dataset was deleted; submit the job for another dataset",
}


class JobFailed(CorevaultError):
    """A job ended without a release. ``job`` is its last state, with ``job.error`` if it failed.

    ``job.settlement`` holds the charge, which the message states.

    >>> from corevault.replies.job import JobError
    >>> failed = Job(id="job_1", dataset_id="ds_1", status="failed", error=JobError(code="run_failed"))
    >>> JobFailed(failed).job.error.code
    'run_failed'
    """

    def __init__(self, job: "Job") -> None:
        code = job.error.code if job.error else ""
        remedy = f": {_FAILURES[code]}" if code in _FAILURES else ""
        failure = f" ({code}{remedy})" if code else ""
        charge = f" It charged {job.settlement}." if job.settlement else ""
        super().__init__(f"Job {job.id} {job.status}{failure}.{charge}")
        self.job = job
