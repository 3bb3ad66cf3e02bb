"""What administrators and auditors read of the audit log."""

from datetime import datetime
from typing import Literal

from pydantic import BaseModel, ConfigDict

OutcomeName = Literal["succeeded", "refused", "failed"]


class AuditView(BaseModel):
    """One call, or ``count`` calls of one key that were refused alike within a minute."""

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
                    "entry_hash": "5d" * 32,
                    "previous_hash": "00" * 32,
                }
            ]
        },
    )

    id: str
    sequence: int | None
    at: datetime
    actor: str | None
    action: str
    target: str | None
    outcome: OutcomeName
    status: int
    code: str | None
    count: int
    request_id: str | None
    reason: str | None
    entry_hash: str | None
    previous_hash: str | None
