"""Quotes for the form of a job: of a stated cost, or of the cost that a wanted accuracy needs."""

from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from app.auth.caller import Caller
from app.dashboard.job_forms import JobForm, make_body
from app.db import ReadSession
from app.errors import RateLimited
from app.jobs import quotes
from app.jobs.accuracy_targets import MOST_QUOTES, find_epsilon, find_widest
from app.jobs.quote_schemas import REQUESTS_OF_AN_ESTIMATE
from app.jobs.schemas import JobBody, QuoteView
from app.services import Services


@dataclass(frozen=True, slots=True)
class ShownQuote:
    """A quote, its job, and the API's request of it.

    ``widest`` is the parameter whose interval widens most; None without an estimate.
    """

    body: JobBody
    document: dict[str, Any]
    quote: QuoteView
    widest: str | None


def quote_form(
    session: ReadSession, services: Services, caller: Caller, typed: JobForm, document: dict[str, Any]
) -> ShownQuote:
    """Quote the job of a form, with its expected accuracy.

    Without a wanted widening, a quote that cannot be estimated now has no estimate.

    Raises:
        RateLimited: a widening is wanted, and there are too many requests or another estimate is being made.
        InvalidRequest: as :func:`app.jobs.accuracy_targets.find_epsilon`.
        CorevaultError: as :func:`app.jobs.quotes.quote_job`.
    """

    def quote(epsilon: float) -> QuoteView:
        return quotes.quote_job(session, services.ledger, caller, _set_epsilon(document, epsilon), estimated=True)

    epsilon = document["privacy"]["epsilon"]
    if typed.is_by_widening:
        _count(services, caller, MOST_QUOTES)
        epsilon, found = find_epsilon(quote, float(typed.widening), services.ledger.max_epsilon)
        return _show(document, epsilon, found)
    with suppress(RateLimited):
        _count(services, caller, 1)
        return _show(document, epsilon, quote(epsilon))
    return _show(document, epsilon, quotes.quote_job(session, services.ledger, caller, make_body(document)))


def _count(services: Services, caller: Caller, estimates: int) -> None:
    """Count the requests of estimates before the first is made, as the API does. The form itself was one of them."""
    if services.rates is not None:
        services.rates.request(caller.id, estimates * REQUESTS_OF_AN_ESTIMATE - 1)


def _set_epsilon(document: dict[str, Any], epsilon: float) -> JobBody:
    return make_body(document | {"privacy": {"epsilon": epsilon}})


def _show(document: dict[str, Any], epsilon: float, found: QuoteView) -> ShownQuote:
    accuracy = found.expected_accuracy
    sent = document | {"privacy": {"epsilon": epsilon}} | ({"expected_accuracy": True} if accuracy else {})
    return ShownQuote(_set_epsilon(document, epsilon), sent, found, find_widest(accuracy) if accuracy else None)
