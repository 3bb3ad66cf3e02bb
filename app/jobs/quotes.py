"""Quotes: the price of a job, from declared facts and the account."""

from dataclasses import replace
from typing import Final

from app.auth.caller import Caller
from app.db import ReadSession
from app.errors import Fault, InvalidRequest
from app.inference import registry
from app.inference.expected_accuracy import ASSUMES
from app.jobs import service
from app.jobs.estimates import Estimates
from app.jobs.planning import make_charge
from app.jobs.quote_schemas import QuoteBody, QuoteList
from app.jobs.schemas import Cost, ExpectedAccuracyView, JobBody, QuoteSize, QuoteView
from app.jobs.service import Priced
from app.jobs.views import make_mechanism_view
from app.ledger import Ledger

_TARGET: Final = "/privacy/epsilon"
_ESTIMATES = Estimates()


def quote(session: ReadSession, ledger: Ledger, caller: Caller, body: QuoteBody) -> QuoteView | QuoteList:
    """Quote a job, or one job at several targets.

    Raises:
        InvalidRequest: as :func:`quote_job`, for all targets together. A fault of one target points at it.
        Forbidden, NotFound, StateConflict, MethodNotAllowedOnPrivateData: as :func:`quote_job`.
    """
    jobs = body.split()
    if not body.is_list:
        return quote_job(session, ledger, caller, jobs[0], estimated=body.expected_accuracy)
    quotes, faults = list[QuoteView](), list[Fault]()
    for index, job in enumerate(jobs):
        try:
            quotes.append(quote_job(session, ledger, caller, job, estimated=body.expected_accuracy))
        except InvalidRequest as refusal:
            faults += [_point_at_target(fault, index) for fault in refusal.faults]
    if faults:
        raise InvalidRequest(faults=tuple(dict.fromkeys(faults)))
    return QuoteList(quotes=quotes)


def _point_at_target(fault: Fault, index: int) -> Fault:
    return replace(fault, pointer=f"{_TARGET}/{index}") if fault.pointer == _TARGET else fault


def quote_job(
    session: ReadSession, ledger: Ledger, caller: Caller, body: JobBody, *, estimated: bool = False
) -> QuoteView:
    """Quote the job's present price from declared facts and the account; nothing is changed.

    ``estimated``: whether the quote has the expected accuracy of the release.

    Raises:
        RateLimited: accuracies of other quotes are being estimated.
        Forbidden, NotFound, StateConflict, InvalidRequest, MethodNotAllowedOnPrivateData.
    """
    priced = service.price(session, ledger, caller, body)
    plan = priced.plan
    least = registry.count_needed_points(plan, priced.facts)
    size = QuoteSize(requested=plan.size, smallest_exact=least)
    accuracy, reason = _estimate(priced, caller) if estimated else (None, ())
    shared = {
        "mechanism": make_mechanism_view(plan.mechanism),
        "size": size,
        "warnings": [*plan.warnings, *reason],
        "expected_accuracy": accuracy,
    }
    if priced.dataset.sensitivity == "public":
        return QuoteView(cost=None, affordable=True, reason=None, epsilon_after=None, more_like_this=None, **shared)
    preview = ledger.preview(session, priced.dataset.id, make_charge(plan), caller_id=caller.id)
    return QuoteView(
        cost=Cost(epsilon=preview.cost_epsilon, delta=preview.cost_delta),
        affordable=preview.affordable,
        reason=None if preview.obstacle is None else preview.obstacle.value,
        epsilon_after=preview.epsilon_after,
        more_like_this=preview.more_like_this,
        **shared,
    )


def _estimate(priced: Priced, caller: Caller) -> tuple[ExpectedAccuracyView | None, tuple[str, ...]]:
    """Estimate the accuracy from the plan and the declaration; or state why not."""
    found = _ESTIMATES.find(priced.plan, priced.facts, caller.id)
    if isinstance(found, str):
        return None, (found,)
    view = ExpectedAccuracyView(
        interval_widening=dict(found.widening),
        interval_widening_range=found.widening_range,
        noise_in_posterior_sds=dict(found.noise),
        assumes=ASSUMES,
    )
    return view, ()
