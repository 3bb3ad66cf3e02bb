"""Prices of TensorFlow Privacy: runs in its environment, without Corevault.

The package loads TensorFlow unless ``sys.skip_tf_privacy_import`` is set, which its scripts use. Its accounting
does not need TensorFlow.
"""

import sys
from importlib.metadata import version
from typing import Any

from protocol import serve

sys.skip_tf_privacy_import = True  # type: ignore[attr-defined]

from tensorflow_privacy.privacy.analysis import compute_dp_sgd_privacy_lib as library  # noqa: E402


def price(request: dict[str, Any]) -> dict[str, Any]:
    """Price each point by both accountants; ``points`` are ``[rate, noise, count, delta]``."""
    kinds = {"tensorflow_privacy": library.AccountantType.RDP, "tensorflow_privacy_losses": library.AccountantType.PLD}
    prices = {name: [_price(point, kind) for point in request["points"]] for name, kind in kinds.items()}
    return {"prices": prices, "versions": {name: version(name) for name in ("tensorflow-privacy", "dp-accounting")}}


def _price(point: list[float], kind: Any) -> float:
    """Price one point; the library counts epochs, which are steps times the rate."""
    rate, noise, count, delta = point
    if rate == 1:
        return float(library._compute_dp_sgd_example_privacy(count, noise, delta, False, None, kind))  # noqa: FBT003, SLF001
    epochs = (count - 0.5) * rate  # the library rounds up to whole steps
    return float(library._compute_dp_sgd_example_privacy(epochs, noise, delta, False, rate, kind))  # noqa: FBT003, SLF001


serve(price)
