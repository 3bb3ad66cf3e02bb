"""Response bodies of releases, certificates and verification keys."""

from dataclasses import asdict
from datetime import datetime
from typing import Any, Literal

from pydantic import ConfigDict

from app.http.requests.bodies import ResponseBody
from app.inference.core.reasons import HIDDEN_ROWS

Format = Literal["json", "csv", "parquet", "npz"]
BeliefFormat = Literal["json", "npz", "parquet"]

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
        {
            "name": "age",
            "source": "age",
            "transform": {"kind": "affine", "type": "integer", "center": 53.5, "scale": 36.5},
        },
        {"name": "intercept", "transform": {"kind": "constant", "value": 1}},
    ],
    "reliability": {"grade": "calibrated", "reasons": []},
    "diagnostics": {"trusted": True, "fit_kl": 0.0004, "noise_kl": 1.21, "mean_square_residual": 0.94, "rounds": 12},
    "cost": {"epsilon": 0.5, "delta": 1e-6},
    "created_at": "2030-01-31T12:00:00Z",
    "certificate": EXAMPLE_CERTIFICATE,
    "links": {
        "self": f"/v1/releases/{_ID}",
        "points": f"/v1/releases/{_ID}/points",
        "belief": f"/v1/releases/{_ID}/belief",
        "certificate": f"/v1/releases/{_ID}/certificate",
    },
}


class CertificateView(ResponseBody):
    """A signed statement of how a release was made and of its cost."""

    model_config = ConfigDict(json_schema_extra={"examples": [EXAMPLE_CERTIFICATE]})

    statement: dict[str, Any]
    """The signed statement: method, model, mechanism, privacy events, cost, account and digests."""
    signature: str
    """Ed25519 signature over the RFC 8785 form of `statement`, in base64."""
    key_id: str
    """Id of the signing key; `GET /v1/keys` publishes it."""


class ReasonView(ResponseBody):
    """A reason for the grade of a release."""

    model_config = ConfigDict(json_schema_extra={"examples": [asdict(HIDDEN_ROWS)]})

    code: str
    """Stable code, for programs."""
    words: str
    """Meaning of the reason, and a remedy."""


class ReliabilityView(ResponseBody):
    """The use that a release allows. The certificate contains this member."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"grade": "centre-only", "reasons": [asdict(HIDDEN_ROWS)]}]}
    )

    grade: Literal["calibrated", "centre-only", "not-usable"]
    """`calibrated`: no check failed, and intervals of the posterior with the stated noise may be used. `centre-only`:
    its centre may be used, but not its intervals. `not-usable`: neither may be used. A grade is not a guarantee."""
    reasons: list[ReasonView]
    """Reasons for the grade. A calibrated release may have remarks, and its stated noise covers their effect."""


class ReleaseView(ResponseBody):
    """A release without its points, its belief and its groups. A release never changes."""

    model_config = ConfigDict(json_schema_extra={"examples": [EXAMPLE_RELEASE]})

    id: str
    """Id of the release."""
    dataset_id: str
    """Id of the dataset that the release was made from."""
    job_id: str
    """Id of the job that made the release."""
    method: str
    """Id of the method that made it."""
    model: dict[str, Any]
    """The model: family, features, target and prior. `target_transform` describes how the model scales the target."""
    size: int
    """Number of pseudopoints; 0 for a release without points."""
    design: list[dict[str, Any]]
    """How each design column follows from the declared columns."""
    reliability: ReliabilityView | None = None
    """The use that the release allows; null for releases of earlier versions, which do not state it."""
    diagnostics: dict[str, Any]
    """Measures of quality that the method computed; their names depend on the method.

    `trusted` is true if and only if the grade is `calibrated`."""
    posterior: dict[str, Any] | None = None
    """Normal posterior of the parameters, if the method computes one: `parameters` (names), `mean`, and a spread.

    The spread is `covariance`, a list of rows, or `variance` if there are no correlations. The certificate contains
    the digest of this member. A covariance of more than 100 parameters is only in the belief.
    """
    cost: dict[str, float] | None
    """Privacy cost of the job alone, as `epsilon` and `delta`; null on public data."""
    created_at: datetime
    """Time of publication."""
    certificate: CertificateView
    """The signed certificate of the release."""
    links: dict[str, str]
    """Addresses of the release, its certificate, and its points, belief or groups if it has them."""


class KeyView(ResponseBody):
    """A public key that verifies signatures of the service."""

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
    """Id of the key, as in `key_id` of signed documents."""
    algorithm: Literal["ed25519"]
    """Signature algorithm."""
    use: Literal["release", "ledger"]
    """`release`: signs certificates. `ledger`: signs checkpoints and deletion receipts."""
    public_key: str
    """The public key: 32 bytes in base64."""
