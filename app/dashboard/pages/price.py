"""Price a job by a form, look at the quote, and submit the job."""

import json
from typing import Annotated, Final

from fastapi import Query, Request
from starlette.responses import RedirectResponse, Response

from app.auth.caller import Caller
from app.context import note_refusal
from app.dashboard.forms import Mistakes, SentForm
from app.dashboard.job_forms import JobForm, make_body, make_mistakes, write_python
from app.dashboard.job_quotes import ShownQuote, quote_form
from app.dashboard.once_forms import draw_form_key, read_once
from app.dashboard.rendering import PREFIX, Twin, find_origin, render
from app.dashboard.routing import make_page_router
from app.dashboard.visitors import RunnerVisitor
from app.datasets import access, views
from app.datasets import repository as datasets
from app.datasets.models import Dataset
from app.errors import (
    BudgetExceeded,
    CorevaultError,
    IdempotencyConflict,
    IdempotencyInProgress,
    InvalidRequest,
    MethodNotAllowedOnPrivateData,
    RateLimited,
    StateConflict,
)
from app.http.errors.problems import find_status, note_error
from app.inference import registry
from app.jobs.accuracy_targets import MOST_QUOTES
from app.jobs.schemas import JobBody
from app.jobs.submission import submit_job
from app.privacy.risk import compute_odds
from app.services import Shared

MOST_DATASETS: Final = 50
MOST_COLUMNS: Final = 500
_REFUSALS: Final = (
    BudgetExceeded,
    IdempotencyConflict,
    IdempotencyInProgress,
    InvalidRequest,
    MethodNotAllowedOnPrivateData,
    StateConflict,
)
"""Refusals that the form shows. All others are error pages."""
router = make_page_router()


@router.get("/price")
def show_form(
    request: Request,
    services: Shared,
    visitor: RunnerVisitor,
    dataset_id: Annotated[str, Query(max_length=200)] = "",
) -> Response:
    """Show the form for a dataset, or the datasets to choose from."""
    with services.database.read() as session:
        if not dataset_id:
            found = datasets.list_ready(session, access.choose_key_filter(visitor), MOST_DATASETS + 1)
            shown = views.make_views(session, services.ledger, visitor, found[:MOST_DATASETS])
            has_more = len(found) > MOST_DATASETS
            twins = ("/v1/datasets",)
            return render(request, "price_choice", visitor, twins=twins, datasets=shown, has_more=has_more)
        dataset = access.find_visible(session, visitor, dataset_id)
    return _render(request, visitor, dataset, JobForm(dataset_id), Mistakes())


@router.post("/price")
def show_quote(request: Request, services: Shared, visitor: RunnerVisitor, form: SentForm) -> Response:
    """Quote the price of a job. It changes nothing."""
    typed = JobForm.read(form)
    with services.database.read() as session:
        dataset = access.find_visible(session, visitor, typed.dataset_id)
        if form.text("change"):
            return _render(request, visitor, dataset, typed, Mistakes())
        document, mistakes = typed.make_document()
        if mistakes:
            return _refuse(request, visitor, dataset, typed, mistakes)
        try:
            shown = quote_form(session, services, visitor, typed, document)
        except (*_REFUSALS, RateLimited) as refusal:
            return _refuse(request, visitor, dataset, typed, refusal)
    return _render(request, visitor, dataset, typed, Mistakes(), shown=shown)


@router.post("/jobs")
def submit(request: Request, services: Shared, visitor: RunnerVisitor, form: SentForm) -> Response:
    """Submit the job of a quote. The form's key makes sure that it is submitted once."""
    typed = JobForm.read(form)
    with services.database.read() as session:
        dataset = access.find_visible(session, visitor, typed.dataset_id)
    document, mistakes = typed.make_document()
    if typed.is_by_widening:
        mistakes.add("widening", "Show the price first. Only a job with a cost can be submitted.")
    if mistakes:
        return _refuse(request, visitor, dataset, typed, mistakes)
    try:
        body = make_body(document)
        answer = submit_job(
            services, visitor, read_once(services, form, "jobs", json.dumps(document, sort_keys=True)), body
        )
    except _REFUSALS as refusal:
        return _refuse(request, visitor, dataset, typed, refusal)
    job_id = json.loads(bytes(answer.body))["id"]
    return RedirectResponse(f"{PREFIX}/jobs/{job_id}?submitted=1", 303)


def _refuse(
    request: Request,
    visitor: Caller,
    dataset: Dataset,
    typed: JobForm,
    refusal: CorevaultError | Mistakes,
) -> Response:
    """Show the form again, with the faults of the request or of fields."""
    if isinstance(refusal, Mistakes):
        note_refusal(InvalidRequest.code)
        return _render(request, visitor, dataset, typed, refusal, status=find_status(InvalidRequest()))
    note_error(refusal)
    page = _render(request, visitor, dataset, typed, make_mistakes(refusal, typed), status=find_status(refusal))
    page.headers.update(getattr(refusal, "headers", {}))
    return page


def _render(
    request: Request,
    visitor: Caller,
    dataset: Dataset,
    typed: JobForm,
    mistakes: Mistakes,
    *,
    status: int = 200,
    shown: ShownQuote | None = None,
) -> Response:
    origin, names = find_origin(request), [str(column["name"]) for column in dataset.columns[:MOST_COLUMNS]]
    quote = shown.quote if shown else None
    default = registry.find_method(registry.DEFAULT)
    offered = [family for family in registry.list_families() if registry.takes(default, family)]
    return render(
        request,
        "price",
        visitor,
        status=status,
        script=None if shown else "once.mjs",
        twins=(Twin("/v1/quotes", "POST", json.dumps(shown.document) if shown else "@job.json"),),
        dataset=dataset,
        typed=typed,
        mistakes=mistakes,
        families=[(family.name, family.name.replace("-", " ")) for family in offered],
        descriptions=[(family.name, family.description) for family in offered],
        targets=[("", "no target"), *((name, name) for name in names)],
        names=names,
        quote=quote,
        widest=shown.widest if shown else None,
        epsilon=_write_epsilon(shown, typed),
        once=draw_form_key(),
        odds=None if quote is None or quote.cost is None else compute_odds(quote.cost.epsilon),
        odds_after=None if quote is None or quote.epsilon_after is None else compute_odds(quote.epsilon_after),
        most_quotes=MOST_QUOTES,
        curl=_write_submission(shown.body, origin) if shown else "",
        python=write_python(shown.body, origin) if shown else "",
    )


def _write_epsilon(shown: ShownQuote | None, typed: JobForm) -> str:
    """Write the epsilon that is submitted: as it was typed, or with the three digits that were found."""
    return f"{shown.document['privacy']['epsilon']:g}" if shown and typed.is_by_widening else typed.epsilon


def _write_submission(body: JobBody, origin: str) -> str:
    """Write the command that submits the job."""
    return Twin("/v1/jobs", "POST", body.model_dump_json(exclude_none=True)).write_curl(origin)
