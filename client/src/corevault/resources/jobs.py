"""``client.jobs``: submit, follow and cancel jobs. Quotes share their request body."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from corevault import _following
from corevault._arguments import describe, require_mapping
from corevault._http import Http, quote_segment
from corevault._ids import read_id
from corevault.errors import InvalidArgument, JobFailed, WrongType
from corevault.model import Mechanism, ModelRequest
from corevault.pages import Page, fetch_page
from corevault.replies.dataset import Dataset
from corevault.replies.job import Job, JobEvent

DEFAULT_METHOD: Final = "dp-psvi-surrogate"
"""The method of jobs that name none; ``client.methods()`` lists the others."""


def job_request(
    dataset_id: str | Dataset,
    model: ModelRequest,
    *,
    method: str,
    size: int,
    epsilon: float | None,
    mechanism: Mechanism | None,
    parameters: Mapping[str, Any] | None,
) -> dict[str, Any]:
    """The body of a quote or a job.

    Raises ``InvalidArgument`` for both a target ε and a mechanism, and ``WrongType`` for another type of model or
    mechanism.
    """
    if epsilon is not None and mechanism is not None:
        raise InvalidArgument("Pass a target epsilon or a mechanism, not both.")
    if isinstance(model, type) or not hasattr(model, "to_json"):
        raise WrongType(
            f"model must be a model such as LogisticRegression(features=[...], target=...); {describe(model)}."
        )
    if not isinstance(mechanism, Mechanism | None):
        raise WrongType(f"mechanism must be a Mechanism; {describe(mechanism)}.")
    body: dict[str, Any] = {
        "dataset_id": read_id(dataset_id, Dataset),
        "method": method,
        "size": size,
        "model": model.to_json(),
    }
    if epsilon is not None:
        body["privacy"] = {"epsilon": epsilon}
    if mechanism is not None:
        body["privacy"] = mechanism.to_json()
    body["parameters"] = require_mapping({} if parameters is None else parameters, "parameters")
    return body


class Jobs:
    """Jobs. Each buys one release from the dataset's budget. Methods accept a ``Job`` as well as its id."""

    def __init__(self, http: Http) -> None:
        self._http = http

    def submit(
        self,
        dataset_id: str | Dataset,
        model: ModelRequest,
        *,
        size: int,
        method: str = DEFAULT_METHOD,
        epsilon: float | None = None,
        mechanism: Mechanism | None = None,
        parameters: Mapping[str, Any] | None = None,
        idempotency_key: str | None = None,
    ) -> Job:
        """Reserves the cost and queues the job.

        Pass an ``idempotency_key``, so that a restarted script gets the same job instead of buying another one. For
        jobs such a key never expires. For public data, omit both ``epsilon`` and ``mechanism``.

        Raises ``BudgetExceeded`` with the figures; no balance has changed then.
        """
        body = job_request(
            dataset_id, model, method=method, size=size, epsilon=epsilon, mechanism=mechanism, parameters=parameters
        )
        return Job.from_json(self._http.post("/v1/jobs", body, idempotency_key=idempotency_key))

    def get(self, job_id: str | Job) -> Job:
        """The current state of a job."""
        return Job.from_json(self._http.get(f"/v1/jobs/{quote_segment(read_id(job_id, Job))}"))

    def list(
        self, *, dataset_id: str | Dataset | None = None, status: str | None = None, limit: int | None = None
    ) -> Page[Job]:
        """Jobs that the key may see, newest first."""
        about = None if dataset_id is None else read_id(dataset_id, Dataset)
        return fetch_page(self._http, "/v1/jobs", Job, {"dataset_id": about, "status": status, "limit": limit})

    def cancel(self, job_id: str | Job) -> Job:
        """Cancels a job. It is charged if the run has opened the data. An ended job is returned unchanged."""
        return Job.from_json(self._http.post(f"/v1/jobs/{quote_segment(read_id(job_id, Job))}/cancel"))

    def events(self, job_id: str | Job, *, last_event_id: str | None = None) -> Iterator[JobEvent]:
        """The job's events as they arrive, up to ``end``. ``last_event_id`` resumes after an earlier event."""
        return _following.read_events(self._http, read_id(job_id, Job), last_event_id)

    def wait(
        self, job: str | Job, *, progress: bool = False, timeout_seconds: float | None = None, poll_seconds: float = 0.5
    ) -> Job:
        """Waits for the end of a job, and returns the succeeded job.

        Raises ``JobFailed`` for a job that failed or was cancelled, ``WaitTimeout`` after ``timeout_seconds``.
        """
        ended = _following.wait(
            self._http, read_id(job, Job), shown=progress, timeout_seconds=timeout_seconds, poll_seconds=poll_seconds
        )
        if ended.status != "succeeded":
            raise JobFailed(ended)
        return ended
