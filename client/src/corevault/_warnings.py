"""Warnings that name the line of the caller outside this package."""

import sys
import warnings
from pathlib import Path

_PACKAGE = str(Path(__file__).parent)


def warn_caller(message: str, category: type[Warning] = UserWarning) -> None:
    """Issues a warning at the line that called the package."""
    frame, level = sys._getframe(0), 1  # noqa: SLF001 - as the module warnings does
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)
