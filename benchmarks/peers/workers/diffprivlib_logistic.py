"""diffprivlib's LogisticRegression: objective perturbation with pure epsilon (Chaudhuri et al. 2011).

The intercept is a column of the design, so that its coefficient has the prior too.
"""

from typing import Any

from diffprivlib.models import LogisticRegression

from benchmarks.peers.workers.protocol import Arrays, serve


def answer(arrays: Arrays, request: Any) -> Arrays:
    """Fit once, with ``C`` and ``data_norm`` from the settings."""
    settings = request["settings"]
    model = LogisticRegression(
        epsilon=request["epsilon"],
        data_norm=settings["norm"] * float(arrays["norm"]),
        C=settings["looseness"] / float(arrays["precision"]),
        fit_intercept=False,
        max_iter=1000,
        random_state=request["seed"],
    ).fit(arrays["x"], arrays["y"])
    return {"mean": model.coef_[0]}


if __name__ == "__main__":
    serve(answer)
