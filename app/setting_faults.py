"""Faults of settings, in words for the operator: no library's message, and no value."""

import re
from typing import Final

from pydantic import AfterValidator, ValidationError
from pydantic_core import ErrorDetails, PydanticCustomError

_OWN: Final = "setting"
_TEXT: Final = "must be text in UTF-8"
_WORDS: Final = {
    "greater_than": "must be greater than {gt:g}",
    "greater_than_equal": "must be at least {ge:g}",
    "less_than_equal": "must be at most {le:g}",
    "int_parsing": "must be a whole number",
    "int_parsing_size": "must be a whole number of fewer digits",
    "float_parsing": "must be a number",
    "finite_number": "must be a finite number",
    "bool_parsing": "must be 1 or 0",
    "string_unicode": _TEXT,
    "value_error": _TEXT,
}
"""Words by the library's type of error; :mod:`app.config` declares the limits."""
_CONSEQUENCE: Final = "default_factory_not_called"
"""The type of a fault of a default that follows from another setting, which has a fault itself."""


def make_fault(words: str) -> PydanticCustomError:
    """Make the error that a validator raises; ``words`` continue the variable's name, as in ``must be a URL``."""
    return PydanticCustomError(_OWN, "{words}", {"words": words})


def require_pattern(pattern: str, words: str) -> AfterValidator:
    """Make a validator that refuses text that does not match ``pattern`` as a whole."""

    def check(text: str) -> str:
        if not re.fullmatch(pattern, text):
            raise make_fault(words)
        return text

    return AfterValidator(check)


def describe_faults(error: ValidationError) -> str:
    """Name each invalid variable and its requirement, separated by semicolons."""
    faults = [fault for fault in error.errors(include_url=False) if fault["type"] != _CONSEQUENCE]
    return "; ".join(sorted(_describe_fault(fault) for fault in faults))


def _describe_fault(fault: ErrorDetails) -> str:
    limits = fault.get("ctx", {})
    words = limits["words"] if fault["type"] == _OWN else _WORDS.get(fault["type"], "is not valid").format(**limits)
    return f"COREVAULT_{str(fault['loc'][0]).upper()} {words}"
