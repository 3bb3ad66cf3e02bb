"""``/v1/api-keys`` and ``/v1/me``."""

from fastapi.responses import JSONResponse, Response

from app.audit.journal import record
from app.auth import repository, service
from app.auth.caller import Admin, AnyCaller
from app.auth.models import ApiKey
from app.auth.schemas import CreatedKey, ListedKey, Me, NewKey
from app.auth.service import Keys
from app.http.errors.openapi import make_problem_responses
from app.http.requests.idempotency import Answer, Idempotent, answer_once
from app.http.requests.pagination import Page, Paging, make_page
from app.http.requests.routing import make_router
from app.services import Shared

_SECRET = frozenset({"key"})
router = make_router("/v1", "keys", "unauthenticated", "dependency_unavailable")
_IDEMPOTENT = make_problem_responses("forbidden", "state_conflict", "idempotency_conflict", "idempotency_in_progress")


@router.post("/api-keys", status_code=201, response_model=CreatedKey, responses=_IDEMPOTENT)
def create_api_key(services: Shared, caller: Admin, request: Idempotent, body: NewKey) -> JSONResponse:
    """Create an API key. This response is the only one that contains its secret."""
    with services.database.write() as tx:

        def create() -> Answer:
            service.check_room(tx, caller.id, services.limits.keys)
            key, secret = Keys(services.identity_key).create(tx, body.name, body.role, body.expires_at)
            record(tx, key.id)
            return _answer_with_secret(201, key, secret)

        return answer_once(tx, caller.id, request, create, omit=_SECRET)


@router.get("/api-keys", responses=make_problem_responses("forbidden"))
def list_api_keys(services: Shared, _: Admin, paging: Paging) -> Page[ListedKey]:
    """List the keys that were not revoked, newest first."""
    with services.database.read() as session:
        rows = repository.list_newest(session, paging.limit + 1, paging.after_id("key"))
        return make_page(rows, paging, lambda key: key.id, ListedKey.of)


@router.post(
    "/api-keys/{key_id}/rotate",
    response_model=CreatedKey,
    responses=make_problem_responses(
        "forbidden", "not_found", "state_conflict", "idempotency_conflict", "idempotency_in_progress"
    ),
)
def rotate_api_key(services: Shared, caller: Admin, request: Idempotent, key_id: str) -> JSONResponse:
    """Give a key a new secret. The old secret is refused from now on."""
    with services.database.write() as tx:

        def rotate() -> Answer:
            key, secret = Keys(services.identity_key).rotate(tx, key_id)
            record(tx, key.id)
            return _answer_with_secret(200, key, secret)

        return answer_once(tx, caller.id, request, rotate, omit=_SECRET)


@router.delete(
    "/api-keys/{key_id}", status_code=204, responses=make_problem_responses("forbidden", "not_found", "state_conflict")
)
def revoke_api_key(services: Shared, _: Admin, key_id: str) -> Response:
    """Revoke a key permanently. Its datasets, jobs and releases stay."""
    with services.database.write() as tx:
        Keys(services.identity_key).revoke(tx, key_id)
        record(tx)
    return Response(status_code=204)


@router.get("/me")
def read_own_key(caller: AnyCaller) -> Me:
    """Show the id, role and name of the key that makes this call."""
    return Me(id=caller.id, role=caller.role, name=caller.name)


def _answer_with_secret(status: int, key: ApiKey, secret: str) -> Answer:
    return Answer.of(
        status, CreatedKey(id=key.id, name=key.name, role=key.role, key=secret), {"Cache-Control": "no-store"}
    )
