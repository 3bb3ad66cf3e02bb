"""The audit log in responses to administrators and auditors."""

from datetime import datetime
from typing import Literal

from pydantic import ConfigDict

from app.errors import LackingBudget
from app.http.requests.bodies import ResponseBody

OutcomeName = Literal["succeeded", "refused", "failed"]


class AuditView(ResponseBody):
    """One call, or ``count`` equal refusals of one key within a minute."""

    model_config = ConfigDict(
        from_attributes=True,
        json_schema_extra={
            "examples": [
                {
                    "id": "aud_01jd0000000000000000000000",
                    "sequence": 41,
                    "at": "2029-01-31T12:00:00Z",
                    "actor": "key_01jd0000000000000000000000",
                    "action": "POST /v1/jobs",
                    "target": "job_01jd0000000000000000000000",
                    "outcome": "succeeded",
                    "status": 202,
                    "code": None,
                    "count": 1,
                    "request_id": "req_01jd0000000000000000000000",
                    "reason": None,
                    "obstacle": None,
                    "entry_hash": "5d" * 32,
                    "previous_hash": "00" * 32,
                }
            ]
        },
    )

    id: str
    """Id of the entry."""
    sequence: int | None
    """Position in the hash chain; null until the entry is chained."""
    at: datetime
    """Time of the call, or of the first of several."""
    actor: str | None
    """Id of the key that made the call; null if there was no valid key."""
    action: str
    """Method and path template, as in `POST /v1/jobs`, or a command of the operator."""
    target: str | None
    """Id of the object of the call, if the actor may see it."""
    outcome: OutcomeName
    """`refused`: a status from 400 to 499. `failed`: 500 or more. Else `succeeded`."""
    status: int
    """HTTP status of the answer."""
    code: str | None
    """Error code of the answer; null if the call succeeded."""
    count: int
    """Number of calls that the entry records."""
    request_id: str | None
    """Id of the call, or of the first of several."""
    reason: str | None
    """Reason that the actor gave, for calls that require one."""
    obstacle: LackingBudget | None
    """Which budget refused the jobs, for the code `budget_exceeded`: as `reason` of a quote. Null otherwise."""
    entry_hash: str | None
    """Hash of the entry, in hexadecimal; null until the entry is chained."""
    previous_hash: str | None
    """Hash of the entry before it in the chain, in hexadecimal; null until the entry is chained."""
