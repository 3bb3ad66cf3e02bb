"""Underflow of floating-point numbers in row functions."""

from collections.abc import Callable
from typing import Any

import numpy as np


def raise_underflow(method: Callable[..., Any], *args: object) -> Any:
    """Call a method, and raise at the first underflow.

    Row functions ignore such errors by a decorator, so it is removed.

    Raises:
        FloatingPointError: a result was too small for a normal number.
    """
    function = getattr(method, "__func__", method)
    owner = getattr(method, "__self__", None)
    with np.errstate(under="raise"):
        return function.__wrapped__(owner, *args) if hasattr(function, "__wrapped__") else method(*args)
