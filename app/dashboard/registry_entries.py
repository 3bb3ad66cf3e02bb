"""The entry of a release for a registry of private releases."""

import json
from collections.abc import Mapping
from typing import Any

from app.dashboard.wording import describe_model, describe_unit
from app.releases.models import Release


def write_entry(release: Release, origin: str) -> str:
    """Write the entry for a registry of private releases, as JSON; empty for a release of public data.

    The certificate and the metadata have the same facts. Nothing is sent to a registry. A statement of an earlier
    version may lack members, which are left out.
    """
    statement = release.certificate.get("statement", {})
    if statement.get("privacy") is None:
        return ""
    document = {
        "title": describe_model(release.body["model"]),
        "data_product": "weighted synthetic points (Bayesian pseudocoreset)",
        "released_on": f"{release.created_at:%Y-%m-%d}",
        "trust_model": "central",
        "definition": "approximate differential privacy (epsilon, delta)",
        "privacy_unit": describe_unit(statement.get("unit") or {}),
        "neighbours": statement.get("relation_in_words"),
        "cost_of_this_release": _read_cost(statement["privacy"]),
        "limit_of_all_releases": _read_cost((statement.get("account") or {}).get("limit")),
        "accountant": statement.get("accountant"),
        "mechanism": "discrete Gaussian noise on clipped sums",
        "method": release.body["method"],
        "slots": statement.get("slots"),
        "versions": statement.get("versions"),
        "certificate": f"{origin}/v1/releases/{release.id}/certificate",
        "verification_keys": f"{origin}/v1/keys",
    }
    stated = {name: value for name, value in document.items() if value is not None}
    return json.dumps(stated, indent=2, ensure_ascii=False)


def _read_cost(cost: Mapping[str, Any] | None) -> dict[str, float] | None:
    return None if cost is None else {name: float(cost[name]) for name in ("epsilon", "delta")}
