"""Declaration of a dataset by a form, which works without scripts."""

import json
import re

from fastapi import Request
from starlette.responses import RedirectResponse, Response

from app.audit.journal import record
from app.auth.caller import Caller
from app.dashboard.declaration_form import (
    COLUMN_TYPES,
    MOST_COLUMNS,
    ColumnFields,
    DeclarationForm,
    add_faults,
    make_body,
    parse_declaration_form,
    shorten,
)
from app.dashboard.forms import Mistakes, SentForm
from app.dashboard.once_forms import draw_form_key, read_once
from app.dashboard.rendering import PREFIX, Twin, render
from app.dashboard.routing import make_page_router
from app.dashboard.visitors import OwnerVisitor
from app.datasets import service
from app.datasets.schemas import DatasetBody
from app.errors import IdempotencyConflict, InvalidRequest, StateConflict
from app.http.requests.idempotency import Answer, IdempotentRequest, answer_once
from app.services import Services, Shared

router = make_page_router()
_CHANGED = (
    "This form declared a dataset already, with other entries. It is in the list of budgets. Send the form again to "
    "declare another one."
)
_REMOVAL = re.compile(r"remove-([0-9]{1,4})")


@router.get("/declare")
def show_form(request: Request, visitor: OwnerVisitor) -> Response:
    """Show the empty form."""
    return _render(request, visitor, DeclarationForm())


@router.post("/declare")
def declare(request: Request, services: Shared, visitor: OwnerVisitor, sent: SentForm) -> Response:
    """Declare the dataset, or add or remove a column of the form."""
    form, action = parse_declaration_form(sent), sent.text("action")
    if action == "add":
        return _render(request, visitor, form.add_column(), chosen=len(form.columns))
    if (removal := _REMOVAL.fullmatch(action)) is not None:
        index = int(removal[1])
        return _render(request, visitor, form.remove_column(index), chosen=max(0, index - 1))
    body, mistakes = make_body(form)
    if body is not None:
        try:
            dataset_id = _declare(services, visitor, read_once(services, sent, "declare", body.model_dump_json()), body)
        except (InvalidRequest, StateConflict, IdempotencyConflict) as refusal:
            mistakes = _explain(refusal, form)
        else:
            return RedirectResponse(f"{PREFIX}/datasets/{dataset_id}/upload?declared=1", 303)
    return _render(request, visitor, form, mistakes=mistakes, status=422)


def _declare(services: Services, caller: Caller, request: IdempotentRequest, body: DatasetBody) -> str:
    """Declare the dataset once, and return its id."""
    with services.database.write() as tx:

        def declare_once() -> Answer:
            dataset = service.declare(tx, services, caller, body)
            record(tx, dataset.id)
            return Answer(201, {"id": dataset.id})

        answer = answer_once(tx, caller.id, request, declare_once)
    return str(json.loads(bytes(answer.body))["id"])


def _explain(refusal: InvalidRequest | StateConflict | IdempotencyConflict, form: DeclarationForm) -> Mistakes:
    """Return the fields that a refusal is about."""
    mistakes = Mistakes()
    if isinstance(refusal, InvalidRequest) and refusal.faults:
        add_faults(mistakes, form, refusal.faults)
    elif isinstance(refusal, IdempotencyConflict):
        mistakes.add("", _CHANGED)
    else:
        mistakes.add("population" if isinstance(refusal, StateConflict) and form.population else "", refusal.detail)
    return mistakes


def _render(
    request: Request,
    visitor: Caller,
    form: DeclarationForm,
    *,
    mistakes: Mistakes | None = None,
    chosen: int | None = None,
    status: int = 200,
) -> Response:
    """Render the form. ``chosen`` is the column that has the focus."""
    mistakes = mistakes or Mistakes()
    return render(
        request,
        "declare",
        visitor,
        status=status,
        twins=(Twin("/v1/datasets", "POST", "@declaration.json"),),
        script="declare.mjs",
        once=draw_form_key(),
        form=form,
        blank=ColumnFields(),
        mistakes=shorten(mistakes),
        all_mistakes=mistakes,
        chosen=chosen,
        types=COLUMN_TYPES,
        most_columns=MOST_COLUMNS,
    )
