"""Statistics of audits by JAX Privacy: runs in its environment, without Corevault."""

from importlib.metadata import version
from typing import Any

import numpy as np
from jax_privacy import auditing
from protocol import serve


def audit(request: dict[str, Any]) -> dict[str, Any]:
    """Compute bounds from each case's scores with and without the canary."""
    found = []
    for case in request["cases"]:
        auditor = auditing.CanaryScoreAuditor(np.array(case["present"]), np.array(case["absent"]))
        threshold = auditing.Explicit(case["threshold"])
        error, delta = case["error"], case["delta"]
        found.append(
            {
                "by_one_point": auditor.epsilon_clopper_pearson(
                    error, delta, one_sided=False, threshold_strategy=threshold
                ),
                "area": auditor.attack_auroc(),
                "power": float(auditor.tpr_at_given_fpr(case["false_positives"])),
                "by_guesses": auditor.epsilon_one_run(error, delta, threshold_strategy=threshold),
            }
        )
    return {"cases": found, "versions": {name: version(name) for name in ("jax_privacy", "dp-accounting", "jax")}}


serve(audit)
