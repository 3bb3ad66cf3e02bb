"""What-if questions on a budget, and the changes that they lead to: another limit, other allocations.

A change is shown with its consequence first. It is confirmed by a second form.
"""

import json
import re
from dataclasses import dataclass
from typing import Any, Final

from fastapi import Request
from starlette.responses import RedirectResponse, Response

from app.audit.journal import record
from app.auth import repository as auth
from app.auth.caller import Caller
from app.budgets import service as budgets
from app.budgets import what_if
from app.budgets.risks import bound_cost, bound_limit
from app.budgets.schemas import LimitBody
from app.context import note_refusal
from app.dashboard.forms import Form, Mistakes, SentForm
from app.dashboard.job_forms import ENTER_NUMBER
from app.dashboard.once_forms import draw_form_key, read_once
from app.dashboard.rendering import PREFIX, Twin, render
from app.dashboard.routing import make_page_router
from app.dashboard.visitors import OwnerVisitor, Visitor
from app.datasets import access, views
from app.datasets import service as datasets
from app.datasets.models import Dataset
from app.datasets.schemas import DatasetPatch
from app.db import WriteSession
from app.errors import CorevaultError, IdempotencyConflict, IdempotencyInProgress, InvalidRequest, StateConflict
from app.http.errors.problems import find_status
from app.http.requests.bodies import validate
from app.http.requests.idempotency import Answer, answer_once
from app.ledger import Allocation
from app.ledger.account.locked_account import FROZEN_DETAIL
from app.services import Services, Shared

router = make_page_router()
Change = LimitBody | DatasetPatch
FIELDS: Final = ("job_epsilon", "limit_epsilon", "limit_delta", "allocation_key", "allocation_epsilon")
_REFUSALS: Final = (IdempotencyConflict, IdempotencyInProgress, InvalidRequest, StateConflict)
_NUMBER: Final = re.compile(r"[0-9]{1,12}(\.[0-9]{0,12})?([eE]-?[0-9]{1,3})?|\.[0-9]{1,12}", re.ASCII)
_CHANGED: Final = "The account has changed since this page was made. Look at the consequence again."
_PLACES: Final = {
    "job": {"/privacy": "job_epsilon"},
    "limit": {"/epsilon": "limit_epsilon", "/delta": "limit_delta"},
    "allocation": {"/allocations": "allocation_epsilon"},
}


@dataclass(frozen=True, slots=True)
class Question:
    """A question of a form: its kind, and the fields as they were typed."""

    kind: str
    dataset: Dataset
    typed: dict[str, str]

    @classmethod
    def read(cls, kind: str, dataset: Dataset, form: Form) -> "Question":
        return cls(kind, dataset, {name: form.text(name) for name in FIELDS})

    def read_number(self, name: str, mistakes: Mistakes, *, is_optional: bool = False) -> float | None:
        """Read a number; any other text is a mistake."""
        text = self.typed[name]
        if not text and is_optional:
            return None
        if _NUMBER.fullmatch(text) is None:
            mistakes.add(name, ENTER_NUMBER)
            return None
        return float(text)


@router.post("/populations/{dataset_id}/what-if/job")
def ask_about_job(request: Request, services: Shared, visitor: Visitor, dataset_id: str, form: SentForm) -> Response:
    """Show the consequence of a job that costs a stated epsilon. It reads no row and changes nothing."""
    with services.database.read() as session:
        question = Question.read("job", access.find_visible(session, visitor, dataset_id), form)
        mistakes = Mistakes()
        epsilon = question.read_number("job_epsilon", mistakes)
        if epsilon is None:
            return _refuse(request, services, visitor, question, mistakes)
        try:
            budget, preview = what_if.preview_job(session, services.ledger, visitor, dataset_id, epsilon)
        except InvalidRequest as refusal:
            return _refuse(request, services, visitor, question, refusal)
    now = budget.spent.epsilon + budget.reserved.epsilon
    shown = {
        "budget": budget,
        "preview": preview,
        "now": now,
        "risks": (bound_cost(now, budget.spent.delta), bound_cost(preview.epsilon_after, preview.cost_delta)),
    }
    return _render(request, services, visitor, question, shown=shown)


@router.post("/populations/{dataset_id}/what-if/limit")
def ask_about_limit(
    request: Request, services: Shared, visitor: OwnerVisitor, dataset_id: str, form: SentForm
) -> Response:
    """Show the consequence of another limit. It changes nothing."""
    return _ask_about_change(request, services, visitor, _find(services, visitor, "limit", dataset_id, form))


@router.post("/populations/{dataset_id}/what-if/allocation")
def ask_about_allocation(
    request: Request, services: Shared, visitor: OwnerVisitor, dataset_id: str, form: SentForm
) -> Response:
    """Show the consequence of an allocation. It changes nothing."""
    return _ask_about_change(request, services, visitor, _find(services, visitor, "allocation", dataset_id, form))


@router.post("/populations/{dataset_id}/limit")
def change_limit(
    request: Request, services: Shared, visitor: OwnerVisitor, dataset_id: str, form: SentForm
) -> Response:
    """Change the limit as the confirmed form states."""
    return _confirm(request, services, visitor, _find(services, visitor, "limit", dataset_id, form), form)


@router.post("/populations/{dataset_id}/allocation")
def change_allocation(
    request: Request, services: Shared, visitor: OwnerVisitor, dataset_id: str, form: SentForm
) -> Response:
    """Change one allocation as the confirmed form states."""
    return _confirm(request, services, visitor, _find(services, visitor, "allocation", dataset_id, form), form)


def _find(services: Services, visitor: Caller, kind: str, dataset_id: str, form: Form) -> Question:
    """Read the question about a dataset that the visitor owns."""
    with services.database.read() as session:
        return Question.read(kind, access.find_owned(session, visitor, dataset_id), form)


def _ask_about_change(request: Request, services: Services, visitor: Caller, question: Question) -> Response:
    body, mistakes = _make_body(services, visitor, question)
    if body is None:
        return _refuse(request, services, visitor, question, mistakes)
    try:
        compared = _preview(services, visitor, question, body)
    except _REFUSALS as refusal:
        return _refuse(request, services, visitor, question, refusal)
    shown = {
        "before": compared.before,
        "after": compared.after,
        "risks": (bound_limit(compared.before.guarantee), bound_limit(compared.after.guarantee)),
        "allocations": [_find_allocation(each, question) for each in (compared.before, compared.after)],
        "once": draw_form_key(),
    }
    return _render(request, services, visitor, question, shown=shown)


def _find_allocation(outlook: what_if.Outlook, question: Question) -> Allocation | None:
    listed = outlook.budget.allocations or ()
    return next((each for each in listed if each.key_id == question.typed["allocation_key"]), None)


def _confirm(request: Request, services: Services, visitor: Caller, question: Question, form: Form) -> Response:
    """Carry out the change once, if the account is as the page showed it."""
    body, mistakes = _make_body(services, visitor, question)
    if body is None:
        return _refuse(request, services, visitor, question, mistakes)
    dataset_id, place = question.dataset.id, f"populations/{question.kind}"
    sent = read_once(services, form, place, f"{dataset_id} {body.model_dump_json()}")
    try:
        with services.database.write() as tx:

            def change() -> Answer:
                if str(budgets.read_budget(tx, services.ledger, visitor, dataset_id).version) != form.text("version"):
                    raise StateConflict(_CHANGED)
                _change(tx, services, visitor, question, body)
                record(tx, dataset_id)
                return Answer(200, {"id": dataset_id})

            answer_once(tx, visitor.id, sent, change)
    except _REFUSALS as refusal:
        return _refuse(request, services, visitor, question, refusal)
    return RedirectResponse(f"{PREFIX}/populations/{dataset_id}?changed={question.kind}", 303)


def _make_body(services: Services, visitor: Caller, question: Question) -> tuple[Change | None, Mistakes]:
    """Make the API's body of the change."""
    mistakes = Mistakes()
    if question.kind == "limit":
        epsilon = question.read_number("limit_epsilon", mistakes)
        delta = question.read_number("limit_delta", mistakes, is_optional=True)
        document: dict[str, Any] = {"epsilon": epsilon, "delta": delta}
        return _validate(LimitBody, document, question, mistakes)
    key_id = question.typed["allocation_key"]
    epsilon = question.read_number("allocation_epsilon", mistakes, is_optional=True)
    if not key_id:
        mistakes.add("allocation_key", "Choose a key.")
    with services.database.read() as session:
        budget = budgets.read_budget(session, services.ledger, visitor, question.dataset.id)
    kept = {each.key_id: each.limit.epsilon for each in budget.allocations or () if each.key_id != key_id}
    wanted = kept if epsilon is None else {**kept, key_id: epsilon}
    listed = [{"key_id": name, "epsilon": amount} for name, amount in wanted.items()]
    return _validate(DatasetPatch, {"allocations": listed}, question, mistakes)


def _validate(
    model: type[LimitBody] | type[DatasetPatch], document: dict[str, Any], question: Question, mistakes: Mistakes
) -> tuple[Change | None, Mistakes]:
    if mistakes:
        return None, mistakes
    try:
        body = validate(model, json.dumps(document).encode())
    except InvalidRequest as refusal:
        return None, _make_mistakes(question, refusal)
    assert isinstance(body, LimitBody | DatasetPatch)
    return body, mistakes


def _preview(services: Services, visitor: Caller, question: Question, body: Change) -> what_if.Comparison:
    dataset_id, ledger = question.dataset.id, services.ledger
    if isinstance(body, LimitBody):
        return what_if.preview_limit(services.database, ledger, visitor, dataset_id, body)
    key_id = question.typed["allocation_key"]
    return what_if.preview_allocations(services.database, ledger, visitor, dataset_id, body, key_id=key_id)


def _change(tx: WriteSession, services: Services, visitor: Caller, question: Question, body: Change) -> None:
    if isinstance(body, LimitBody):
        budgets.change_limit(tx, services.ledger, visitor, question.dataset.id, body)
    else:
        datasets.change(tx, services.ledger, visitor, question.dataset.id, body)


def _make_mistakes(question: Question, refusal: CorevaultError) -> Mistakes:
    """Assign faults to the fields of the question; others are about the whole form."""
    mistakes = Mistakes()
    places = _PLACES[question.kind].items()
    for fault in refusal.faults if isinstance(refusal, InvalidRequest) else ():
        mistakes.add(next((name for start, name in places if fault.pointer.startswith(start)), ""), fault.message)
    if not mistakes:
        mistakes.add(f"{question.kind}_epsilon" if _is_too_low(question, refusal) else "", refusal.detail)
    return mistakes


def _is_too_low(question: Question, refusal: CorevaultError) -> bool:
    """Whether the account refused an amount below the spent part, and not any change."""
    has_account = question.dataset.deleted_at is None and question.dataset.sensitivity == "private"
    return has_account and isinstance(refusal, StateConflict) and refusal.detail not in (_CHANGED, FROZEN_DETAIL)


def _refuse(
    request: Request, services: Services, visitor: Caller, question: Question, refusal: CorevaultError | Mistakes
) -> Response:
    """Show the form again, with the faults."""
    found = InvalidRequest() if isinstance(refusal, Mistakes) else refusal
    mistakes = refusal if isinstance(refusal, Mistakes) else _make_mistakes(question, refusal)
    note_refusal(found.code)
    return _render(request, services, visitor, question, mistakes=mistakes, status=find_status(found))


def _render(
    request: Request,
    services: Services,
    visitor: Caller,
    question: Question,
    *,
    mistakes: Mistakes | None = None,
    shown: dict[str, Any] | None = None,
    status: int = 200,
) -> Response:
    return render(
        request,
        "what_if",
        visitor,
        status=status,
        twins=(_find_twin(question),),
        dataset=question.dataset,
        kind=question.kind,
        typed=question.typed,
        mistakes=mistakes or Mistakes(),
        keys=list_keys(services, visitor, question.dataset),
        shown=shown,
    )


def _find_twin(question: Question) -> Twin:
    """Find the call of the API that asks the same."""
    names = {
        "job": {"epsilon": "job_epsilon"},
        "limit": {"epsilon": "limit_epsilon", "delta": "limit_delta"},
        "allocation": {"key_id": "allocation_key", "epsilon": "allocation_epsilon"},
    }[question.kind]
    typed = {name: question.typed[field] for name, field in names.items() if question.typed[field]}
    body = {name: float(text) if _NUMBER.fullmatch(text) else text for name, text in typed.items()}
    return Twin(f"/v1/datasets/{question.dataset.id}/what-if/{question.kind}", "POST", json.dumps(body))


def list_keys(services: Services, visitor: Caller, dataset: Dataset) -> list[tuple[str, str]]:
    """List the keys that may have an allocation, as options of a form."""
    if dataset.owner_id != visitor.id:
        return []
    with services.database.read() as session:
        shared = views.make_detail(session, services.ledger, dataset).shared_with
        allocations = services.ledger.budget(session, dataset.id).allocations or ()
        listed = list(dict.fromkeys([*shared, *(each.key_id for each in allocations)]))
        names = auth.read_names(session, listed)
    return [(key_id, f"{names[key_id]} ({key_id})" if key_id in names else key_id) for key_id in listed]
