"""``client.jobs``: submit, follow and cancel jobs. Quotes share their request body."""

from collections.abc import AsyncGenerator, Iterator, Mapping
from typing import Any, Final

from corevault import _following
from corevault._arguments import describe, require_mapping, require_text
from corevault._http import Http, check_key, quote_segment
from corevault._ids import read_id
from corevault._io import blocking, iterate
from corevault._names import find_dataset_id, name_dataset
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
    size: int | None,
    epsilon: float | None,
    mechanism: Mechanism | None,
    parameters: Mapping[str, Any] | None,
    purpose: str | None = None,
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
        "model": model.to_json(),
    }
    if size is not None:
        body["size"] = size
    if purpose is not None:
        require_text(purpose, "purpose")
        body["purpose"] = purpose
    if epsilon is not None:
        body["privacy"] = {"epsilon": epsilon}
    if mechanism is not None:
        body["privacy"] = mechanism.to_json()
    body["parameters"] = require_mapping({} if parameters is None else parameters, "parameters")
    return body


class AsyncJobs:
    """The methods of ``Jobs`` for an ``AsyncClient``. Each is awaited, and ``events`` is iterated over.

    >>> asyncio.run(async_client.jobs.get(job)).status
    'succeeded'
    """

    def __init__(self, http: Http) -> None:
        self._http = http

    async def submit(
        self,
        dataset_id: str | Dataset,
        model: ModelRequest,
        *,
        size: int | None = None,
        method: str = DEFAULT_METHOD,
        epsilon: float | None = None,
        mechanism: Mechanism | None = None,
        parameters: Mapping[str, Any] | None = None,
        purpose: str | None = None,
        idempotency_key: str | None = None,
    ) -> Job:
        """Reserves the cost and queues the job.

        Without ``size``, the server chooses the smallest that can represent the model, and at least 20. ``purpose`` is
        one line that the dataset's owner and auditors see.

        Pass an ``idempotency_key``, so that a restarted script gets the same job instead of buying another one. For
        jobs such a key never expires. For public data, omit both ``epsilon`` and ``mechanism``.

        Raises ``BudgetExceeded`` with the figures; no balance has changed then.

        >>> client.jobs.submit("clinic", model, epsilon=0.1, purpose="Age and illness").status
        'queued'
        """
        body = job_request(
            dataset_id,
            model,
            method=method,
            size=size,
            epsilon=epsilon,
            mechanism=mechanism,
            parameters=parameters,
            purpose=purpose,
        )
        if idempotency_key is not None:
            check_key(idempotency_key)
        return Job.from_json(
            await self._http.post("/v1/jobs", await name_dataset(self._http, body), idempotency_key=idempotency_key)
        )

    async def get(self, job_id: str | Job) -> Job:
        """The current state of a job.

        >>> client.jobs.get(job).status
        'succeeded'
        """
        return Job.from_json(await self._http.get(f"/v1/jobs/{quote_segment(read_id(job_id, Job))}"))

    async def list(
        self, *, dataset_id: str | Dataset | None = None, status: str | None = None, limit: int | None = None
    ) -> Page[Job]:
        """Jobs that the key may see, newest first.

        >>> job.id in {each.id for each in client.jobs.list(dataset_id="clinic", status="succeeded")}
        True
        """
        about = None if dataset_id is None else await find_dataset_id(self._http, dataset_id)
        return await fetch_page(self._http, "/v1/jobs", Job, {"dataset_id": about, "status": status, "limit": limit})

    async def cancel(self, job_id: str | Job) -> Job:
        """Cancels a job. It is charged if the run has opened the data. An ended job is returned unchanged.

        >>> client.jobs.cancel(job).status  # it has ended
        'succeeded'
        """
        return Job.from_json(await self._http.post(f"/v1/jobs/{quote_segment(read_id(job_id, Job))}/cancel"))

    def events(self, job_id: str | Job, *, last_event_id: str | None = None) -> AsyncGenerator[JobEvent, None]:
        """The job's events as they arrive, up to ``end``, for ``async for``.

        >>> async def name_last_event(client, job):
        ...     return [event.name async for event in client.jobs.events(job)][-1]
        >>> asyncio.run(name_last_event(async_client, job))
        'end'
        """
        return _following.read_events(self._http, read_id(job_id, Job), last_event_id)

    async def wait(
        self, job: str | Job, *, progress: bool = False, timeout_seconds: float | None = None, poll_seconds: float = 0.5
    ) -> Job:
        """Waits for the end of a job, and returns the succeeded job.

        Raises ``JobFailed`` for a job that failed or was cancelled, ``WaitTimeout`` after ``timeout_seconds``.

        >>> client.jobs.wait(job).release_id == release.id
        True
        """
        ended = await _following.wait(
            self._http, read_id(job, Job), shown=progress, timeout_seconds=timeout_seconds, poll_seconds=poll_seconds
        )
        if ended.status != "succeeded":
            raise JobFailed(ended)
        return ended


class Jobs:
    """Jobs. Each buys one release from the dataset's budget. Methods accept a ``Job`` as well as its id.

    >>> client.jobs.get(job.id).id == client.jobs.get(job).id
    True
    """

    def __init__(self, calls: AsyncJobs) -> None:
        self._calls = calls

    submit = blocking(AsyncJobs.submit)
    get = blocking(AsyncJobs.get)
    list = blocking(AsyncJobs.list)
    cancel = blocking(AsyncJobs.cancel)
    wait = blocking(AsyncJobs.wait)

    def events(self, job_id: str | Job, *, last_event_id: str | None = None) -> Iterator[JobEvent]:
        """The job's events as they arrive, up to ``end``. ``last_event_id`` resumes after an earlier event.

        >>> [event.name for event in client.jobs.events(job)][-1]
        'end'
        """
        return iterate(self._calls.events(job_id, last_event_id=last_event_id))
