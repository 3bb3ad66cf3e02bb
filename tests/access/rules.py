"""The expected answers to callers who send an id of another tenant.

There is one rule for each position of an id.

Refusals have an order: 401 for an unknown caller, 403 for a role without the right, and 404 for an object that the
caller may not see. Successful answers show no object of the other tenant, except to administrators and auditors.
"""

import base64
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from tests.access.world import IDEMPOTENCY_KEY, World
from tests.factories.datasets import declaration
from tests.factories.worker import job_body

Expected = dict[str, int]
Options = Callable[[World, Mapping[str, str]], dict[str, Any]]
CALLERS = ("nobody", "revoked", "expired", "admin", "auditor", "owner", "analyst")
UNKNOWN: Expected = {"nobody": 401, "revoked": 401, "expired": 401}
READ: Expected = UNKNOWN | {"admin": 200, "auditor": 200, "owner": 404, "analyst": 404}
READ_LEDGER: Expected = READ | {"analyst": 403}
OWN: Expected = UNKNOWN | {"admin": 403, "auditor": 403, "owner": 404, "analyst": 403}
RUN: Expected = OWN | {"analyst": 404}
COMMAND: Expected = RUN
KEYS: Expected = UNKNOWN | {"auditor": 403, "owner": 403, "analyst": 403}
PRIVATE_RELEASE: Expected = READ | {"nobody": 404}
LISTED: Expected = UNKNOWN | {"admin": 200, "auditor": 200, "owner": 200, "analyst": 200}
LISTED_PUBLICLY: Expected = LISTED | {"nobody": 200}
OPEN: Expected = dict.fromkeys(CALLERS, 200)
OVERSEE: Expected = UNKNOWN | {"admin": 200, "auditor": 200, "owner": 403, "analyst": 403}


def _nothing(_: World, __: Mapping[str, str]) -> dict[str, Any]:
    return {}


@dataclass(frozen=True)
class Rule:
    """A rule; ``options`` makes query, headers and body of a request from ids.

    The ids are the other tenant's or invented ones.
    """

    expected: Expected
    options: Options = _nothing
    adds: str | None = None
    """The caller whose call succeeds and adds an object."""
    instead: Mapping[str, str] = field(default_factory=dict)
    """Path parameter -> kind of id that is sent instead of the parameter's kind."""


def _json(body: Callable[[World, Mapping[str, str]], dict[str, Any]]) -> Options:
    return lambda world, ids: {"json": body(world, ids)}


def _query(**parameters: str) -> Options:
    """Make query parameters, each with the kind of its id."""
    return lambda _, ids: {"params": {name: ids[kind] for name, kind in parameters.items()}}


def _cursor(position: str) -> Options:
    """Make a page request that starts above all objects of the other tenant."""
    encoded = base64.urlsafe_b64encode(position.encode()).decode().rstrip("=")
    return lambda _, __: {"params": {"cursor": encoded}}


def _above(prefix: str) -> Options:
    return _cursor(f"{prefix}_7{'z' * 25}")


def _repeated(options: Options = _nothing) -> Options:
    """Add the Idempotency-Key that the other tenant used for the same call."""
    return lambda world, ids: {"headers": {"Idempotency-Key": IDEMPOTENCY_KEY}, **options(world, ids)}


_JOB = _json(lambda _, ids: job_body(ids["dataset_id"]))
_NEW_KEY = _json(lambda _, __: {"name": "ward 7", "role": "analyst"})
_ALLOCATED = _json(lambda _, ids: {"key_id": ids["key_id"], "epsilon": 0.5})
_DECLARED = _json(lambda _, __: declaration(slots=1000))


def _csv(_: World, __: Mapping[str, str]) -> dict[str, Any]:
    return {"content": b"age\n1\n", "headers": {"Content-Type": "text/csv"}}


def _part(_: World, __: Mapping[str, str]) -> dict[str, Any]:
    return {"content": b"age\n1\n", "headers": {"Upload-Offset": "0"}}


_ANNOUNCED = _json(lambda _, __: {"media_type": "text/csv"})
_OF_UPLOADS: Mapping[str, Options] = {
    "POST /v1/datasets/{dataset_id}/uploads": _ANNOUNCED,
    "GET /v1/datasets/{dataset_id}/uploads": _nothing,
    "GET /v1/datasets/{dataset_id}/uploads/{upload_id}": _nothing,
    "PATCH /v1/datasets/{dataset_id}/uploads/{upload_id}": _part,
    "DELETE /v1/datasets/{dataset_id}/uploads/{upload_id}": _nothing,
    "POST /v1/datasets/{dataset_id}/uploads/{upload_id}/complete": _nothing,
}


def _everyone(world: World, _: Mapping[str, str]) -> dict[str, Any]:
    return {"shared_with": [key.id for key in world.callers.values() if key is not None]}


def _shares_for_everyone(world: World, _: Mapping[str, str]) -> dict[str, Any]:
    keys = [key.id for key in world.callers.values() if key is not None]
    return {"allocations": [{"key_id": key, "epsilon": 0.1} for key in keys]}


OF_GROUPS: Mapping[str, str] = {"release_id": "groups_release_id"}
RULES: Mapping[tuple[str, str], Rule] = {
    ("POST /v1/api-keys", "header:idempotency-key"): Rule(KEYS | {"admin": 201}, _repeated(_NEW_KEY), adds="admin"),
    ("GET /v1/api-keys", "query:cursor"): Rule(KEYS | {"admin": 200}, _above("key")),
    ("POST /v1/api-keys/{key_id}/rotate", "path:key_id"): Rule(KEYS | {"admin": 200}, adds="admin"),
    ("POST /v1/api-keys/{key_id}/rotate", "header:idempotency-key"): Rule(
        KEYS | {"admin": 200}, _repeated(), adds="admin"
    ),
    ("DELETE /v1/api-keys/{key_id}", "path:key_id"): Rule(KEYS | {"admin": 204}, adds="admin"),
    ("GET /v1/me", "none"): Rule(LISTED),
    ("POST /v1/datasets", "header:idempotency-key"): Rule(OWN | {"owner": 201}, _repeated(_DECLARED), adds="owner"),
    ("POST /v1/datasets", "body:population"): Rule(
        OWN | {"owner": 201}, _json(lambda _, __: declaration(population="canary-population")), adds="owner"
    ),
    ("POST /v1/datasets", "body:shared_with"): Rule(
        OWN | {"owner": 201}, _json(lambda _, ids: declaration(shared_with=[ids["key_id"]])), adds="owner"
    ),
    ("GET /v1/datasets", "query:cursor"): Rule(LISTED, _above("ds")),
    ("GET /v1/populations", "query:cursor"): Rule(LISTED, _above("ds")),
    ("GET /v1/datasets/{dataset_id}", "path:dataset_id"): Rule(READ),
    ("PATCH /v1/datasets/{dataset_id}", "path:dataset_id"): Rule(OWN, _json(lambda _, __: {"description": "mine"})),
    ("PATCH /v1/datasets/{dataset_id}", "body:shared_with"): Rule(OWN, _json(_everyone)),
    **{
        ("PATCH /v1/datasets/{dataset_id}", f"body:{member}"): Rule(OWN, _json(_shares_for_everyone))
        for member in ("allocations", "key_id")
    },
    ("DELETE /v1/datasets/{dataset_id}", "path:dataset_id"): Rule(OWN),
    ("PUT /v1/datasets/{dataset_id}/content", "path:dataset_id"): Rule(OWN, _csv),
    **{
        (operation, f"path:{name}"): Rule(OWN, options)
        for operation, options in _OF_UPLOADS.items()
        for name in ("dataset_id", "upload_id")
        if f"{{{name}}}" in operation
    },
    ("GET /v1/datasets/{dataset_id}/uploads", "query:cursor"): Rule(OWN, _above("up")),
    ("POST /v1/datasets/{dataset_id}/uploads", "header:idempotency-key"): Rule(OWN, _repeated(_ANNOUNCED)),
    ("POST /v1/datasets/{dataset_id}/uploads/{upload_id}/complete", "header:idempotency-key"): Rule(OWN, _repeated()),
    ("GET /v1/datasets/{dataset_id}/budget", "path:dataset_id"): Rule(READ),
    ("PUT /v1/datasets/{dataset_id}/budget", "path:dataset_id"): Rule(OWN, _json(lambda _, __: {"epsilon": 1.0})),
    ("POST /v1/datasets/{dataset_id}/unfreeze", "path:dataset_id"): Rule(
        KEYS | {"admin": 409}, _json(lambda _, __: {"reason": "mended"})
    ),
    ("GET /v1/datasets/{dataset_id}/ledger", "path:dataset_id"): Rule(READ_LEDGER),
    ("GET /v1/datasets/{dataset_id}/ledger", "query:cursor"): Rule(READ_LEDGER, _cursor("99")),
    ("GET /v1/datasets/{dataset_id}/refusals", "path:dataset_id"): Rule(READ_LEDGER),
    ("GET /v1/datasets/{dataset_id}/refusals", "query:cursor"): Rule(READ_LEDGER, _above("aud")),
    ("GET /v1/datasets/{dataset_id}/ledger/verification", "path:dataset_id"): Rule(READ_LEDGER),
    ("GET /v1/datasets/{dataset_id}/ledger/chain", "path:dataset_id"): Rule(READ_LEDGER),
    ("POST /v1/datasets/{dataset_id}/what-if/job", "path:dataset_id"): Rule(
        READ, _json(lambda _, __: {"epsilon": 0.5})
    ),
    ("POST /v1/datasets/{dataset_id}/what-if/limit", "path:dataset_id"): Rule(
        OWN, _json(lambda _, __: {"epsilon": 1.0})
    ),
    ("POST /v1/datasets/{dataset_id}/what-if/allocation", "path:dataset_id"): Rule(OWN, _ALLOCATED),
    ("POST /v1/datasets/{dataset_id}/what-if/allocation", "body:key_id"): Rule(OWN, _ALLOCATED),
    ("GET /v1/methods", "none"): Rule(LISTED),
    ("POST /v1/quotes", "body:dataset_id"): Rule(RUN, _JOB),
    ("POST /v1/quotes", "header:idempotency-key"): Rule(RUN, _repeated(_JOB)),
    ("POST /v1/jobs", "body:dataset_id"): Rule(RUN, _JOB),
    ("POST /v1/jobs", "header:idempotency-key"): Rule(RUN, _repeated(_JOB)),
    ("GET /v1/jobs", "query:dataset_id"): Rule(LISTED, _query(dataset_id="dataset_id")),
    ("GET /v1/jobs", "query:cursor"): Rule(LISTED, _above("job")),
    ("GET /v1/jobs/{job_id}", "path:job_id"): Rule(READ),
    ("POST /v1/jobs/{job_id}/cancel", "path:job_id"): Rule(COMMAND),
    ("POST /v1/jobs/{job_id}/cancel", "header:idempotency-key"): Rule(COMMAND, _repeated()),
    ("GET /v1/jobs/{job_id}/events", "path:job_id"): Rule(READ, instead={"job_id": "ended_job_id"}),
    ("GET /v1/releases", "query:dataset_id"): Rule(LISTED_PUBLICLY, _query(dataset_id="dataset_id")),
    ("GET /v1/releases", "query:cursor"): Rule(LISTED_PUBLICLY, _above("rel")),
    ("GET /v1/releases/{release_id}", "path:release_id"): Rule(PRIVATE_RELEASE),
    ("GET /v1/releases/{release_id}/certificate", "path:release_id"): Rule(PRIVATE_RELEASE),
    ("GET /v1/releases/{release_id}/points", "path:release_id"): Rule(PRIVATE_RELEASE),
    ("HEAD /v1/releases/{release_id}/points", "path:release_id"): Rule(PRIVATE_RELEASE),
    ("GET /v1/releases/{release_id}/belief", "path:release_id"): Rule(PRIVATE_RELEASE),
    ("HEAD /v1/releases/{release_id}/belief", "path:release_id"): Rule(PRIVATE_RELEASE),
    ("GET /v1/releases/{release_id}/groups", "path:release_id"): Rule(PRIVATE_RELEASE, instead=OF_GROUPS),
    ("HEAD /v1/releases/{release_id}/groups", "path:release_id"): Rule(PRIVATE_RELEASE, instead=OF_GROUPS),
    ("GET /v1/keys", "none"): Rule(OPEN),
    ("GET /v1/workers", "query:cursor"): Rule(OVERSEE, _above("wrk")),
    ("GET /v1/audit-log", "query:actor"): Rule(OVERSEE, _query(actor="key_id")),
    ("GET /v1/audit-log", "query:target"): Rule(OVERSEE, _query(target="dataset_id")),
    ("GET /v1/audit-log", "query:cursor"): Rule(OVERSEE, _above("aud")),
    ("GET /", "none"): Rule(OPEN),
    ("GET /docs", "none"): Rule(OPEN),
    ("GET /health/live", "none"): Rule(OPEN),
    ("GET /health/ready", "none"): Rule(OPEN),
    ("GET /metrics", "none"): Rule(OVERSEE | {"auditor": 403}),
}
