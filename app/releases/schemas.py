"""Bodies of the releases' endpoints."""

from datetime import datetime
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

Format = Literal["json", "csv", "parquet", "npz"]

_ID = "rel_01jd0000000000000000000000"
EXAMPLE_CERTIFICATE: dict[str, Any] = {
    "statement": {"release_id": _ID, "relation": "zero_out", "privacy": {"epsilon": 0.5, "delta": 1e-6}},
    "signature": "MEUCIQDs…",
    "key_id": "ed25519:0123456789abcdef",
}
EXAMPLE_RELEASE: dict[str, Any] = {
    "id": _ID,
    "dataset_id": "ds_01jd0000000000000000000000",
    "job_id": "job_01jd0000000000000000000000",
    "method": "dp-psvi-surrogate",
    "model": {"family": "logistic-regression", "features": ["age"], "target": "income_gt_50k", "prior": {"scale": 1.0}},
    "size": 50,
    "design": [
        {"name": "age", "source": "age", "transform": {"kind": "affine", "center": 53.5, "scale": 36.5}},
        {"name": "intercept", "transform": {"kind": "constant", "value": 1}},
    ],
    "diagnostics": {"trusted": True, "fit_kl": 0.0004, "noise_kl": 1.21, "last_move": 0.94, "rounds": 12},
    "cost": {"epsilon": 0.5, "delta": 1e-6},
    "created_at": "2030-01-31T12:00:00Z",
    "certificate": EXAMPLE_CERTIFICATE,
    "links": {"self": f"/v1/releases/{_ID}", "points": f"/v1/releases/{_ID}/points"},
}


class CertificateView(BaseModel):
    """Ed25519 (base64) over the RFC 8785 form of ``statement``."""

    model_config = ConfigDict(json_schema_extra={"examples": [EXAMPLE_CERTIFICATE]})

    statement: dict[str, Any]
    signature: str
    key_id: str


class ReleaseView(BaseModel):
    """A release without its points. It never changes.

    ``posterior`` is there where the method finds one beside the points: ``parameters`` by name, ``mean``, and
    ``covariance`` (a list of rows) or, without correlations, ``variance``. The certificate holds its digest.
    """

    model_config = ConfigDict(json_schema_extra={"examples": [EXAMPLE_RELEASE]})

    id: str
    dataset_id: str
    job_id: str
    method: str
    model: dict[str, Any]
    size: int
    design: list[dict[str, Any]]
    diagnostics: dict[str, Any]
    posterior: dict[str, Any] | None = None
    cost: dict[str, float] | None
    created_at: datetime
    certificate: CertificateView
    links: dict[str, str]


class KeyView(BaseModel):
    """A verification key."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "key_id": "ed25519:0123456789abcdef",
                    "algorithm": "ed25519",
                    "use": "release",
                    "public_key": "O77l9F/FtXidNy/mSpt9lMRpWq+MCCQrrwIwXIhc6CE=",
                }
            ]
        }
    )

    key_id: str
    algorithm: Literal["ed25519"]
    use: Literal["release", "ledger"]
    public_key: str
