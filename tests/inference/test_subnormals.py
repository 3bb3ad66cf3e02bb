"""W14: time must not tell values; subnormal numbers take processors several times as long."""

import numpy as np
import pytest

from app.inference.models import logistic
from app.inference.models.logistic import LogisticRegression


def test_no_row_reaches_a_subnormal_number(monkeypatch: pytest.MonkeyPatch) -> None:
    """W14: every exponential of every activation is a normal number."""
    exponentials: list[np.ndarray] = []

    class Recording:
        def __getattr__(self, name: str) -> object:
            return getattr(np, name)

        def exp(self, values: np.ndarray, out: np.ndarray) -> np.ndarray:
            exponentials.append(np.exp(values, out=out).copy())
            return out

    monkeypatch.setattr(logistic, "np", Recording())
    activations = np.linspace(-400, 400, 100_001, dtype=np.float32)[:, None]
    LogisticRegression(1).log_likelihood(activations, np.ones((1, 1), dtype=np.float32))
    (found,) = exponentials
    assert found.min() >= np.finfo(np.float32).tiny
    assert np.all(np.isfinite(found))
