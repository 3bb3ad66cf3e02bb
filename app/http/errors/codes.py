"""The closed list of error codes, with their status and title."""

from collections.abc import Mapping
from typing import Final

MEDIA_TYPE: Final = "application/problem+json"
PROBLEMS: Final[Mapping[str, tuple[int, str]]] = {
    "unauthenticated": (401, "No valid API key"),
    "forbidden": (403, "Not allowed for this role"),
    "not_found": (404, "Not found"),
    "method_not_allowed": (405, "Method not allowed"),
    "not_acceptable": (406, "Not acceptable"),
    "idempotency_conflict": (409, "Idempotency key used with another body"),
    "idempotency_in_progress": (409, "The first request is still running"),
    "state_conflict": (409, "State does not allow this"),
    "offset_mismatch": (409, "Upload offset mismatch"),
    "budget_exceeded": (409, "Budget exceeded"),
    "privacy_alarm": (409, "Privacy alarm"),
    "precondition_failed": (412, "Precondition failed"),
    "content_too_large": (413, "Content too large"),
    "unsupported_media_type": (415, "Unsupported media type"),
    "range_not_satisfiable": (416, "Range not satisfiable"),
    "invalid_request": (422, "Invalid request"),
    "method_not_allowed_on_private_data": (422, "Method is not private"),
    "digest_mismatch": (422, "Digest mismatch"),
    "rate_limited": (429, "Too many requests"),
    "internal": (500, "Internal error"),
    "dependency_unavailable": (503, "Dependency unavailable"),
}
