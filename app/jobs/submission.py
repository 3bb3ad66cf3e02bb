"""The submission of a job: by the endpoint of the API, and by the form of the dashboard."""

from contextlib import suppress

from fastapi.responses import JSONResponse

from app.audit.journal import record
from app.auth.caller import Caller
from app.db import WriteSession
from app.errors import BudgetExceeded, CorevaultError
from app.http.requests.idempotency import Answer, IdempotentRequest, answer_once
from app.jobs import service
from app.jobs.lifecycle import Lifecycle
from app.jobs.schemas import JobBody
from app.jobs.views import make_job_view
from app.services import Services


def submit_job(services: Services, caller: Caller, request: IdempotentRequest, body: JobBody) -> JSONResponse:
    """Reserve a job's price and queue the job, once for each idempotency key. A refusal by the budget is counted.

    Raises:
        As :func:`app.jobs.service.submit` and :func:`app.http.requests.idempotency.answer_once`.
    """
    has_price = calibrate(services, caller, body)
    try:
        return _submit(services, caller, request, body, has_price=has_price)
    except BudgetExceeded:
        with services.database.write() as tx:
            services.ledger.record_refusal(tx, body.dataset_id)
        raise


def calibrate(services: Services, caller: Caller, body: JobBody) -> bool:
    """Calibrate the noise and cache it; return whether the job has a price.

    This happens before the account is locked, so that other requests do not wait for the calibration.
    """
    with suppress(CorevaultError), services.database.read() as session:
        service.price(session, services.ledger, caller, body)
        return True
    return False


def _submit(
    services: Services, caller: Caller, request: IdempotentRequest, body: JobBody, *, has_price: bool
) -> JSONResponse:
    def submit_once(tx: WriteSession) -> JSONResponse:
        def produce() -> Answer:
            service.check_room(tx, caller, services.limits.active_jobs)
            submitted = service.submit(tx, services.ledger, Lifecycle(services.ledger, services.queue), caller, body)
            job = submitted.job
            record(tx, job.id)
            return Answer.of(202, make_job_view(job, submitted.names), {"Location": f"/v1/jobs/{job.id}"})

        return answer_once(tx, caller.id, request, produce, lifetime=None)

    if not has_price:  # it will probably be refused, and a refusal makes its whole commit group start again
        return services.database.transact(submit_once)
    return services.group_commit.transact(submit_once, body.dataset_id)
