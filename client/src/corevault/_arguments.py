"""Checks of arguments, before any request. Each error message names a valid value."""

import importlib
import math
import numbers
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from corevault.errors import InvalidArgument, MissingDependency, WrongType


def as_json(value: Any, place: str = "") -> Any:
    """``value`` as JSON types; scalars of NumPy become numbers of Python.

    Raises ``InvalidArgument`` for a number that is not finite, and ``WrongType`` for a type that JSON does not have.
    Both messages start with the place of the value, such as ``columns[0].upper``.
    """
    plain = value.item() if getattr(value, "ndim", None) == 0 else value
    if isinstance(plain, float) and not math.isfinite(plain):
        raise InvalidArgument(f"{place} must be a finite number.")
    if isinstance(plain, str):
        return _check_encodable(plain, place)
    if plain is None or isinstance(plain, bool | int | float):
        return plain
    if isinstance(plain, Mapping):
        return {_key(key, place): as_json(each, f"{place}.{key}" if place else str(key)) for key, each in plain.items()}
    if isinstance(plain, list | tuple):
        return [as_json(each, f"{place}[{index}]") for index, each in enumerate(plain)]
    raise WrongType(f"{place} must be text, a number, true or false, or a list or mapping of them; {describe(value)}.")


def _check_encodable(text: str, place: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise InvalidArgument(f"{place} must be text that UTF-8 can encode; it holds half a surrogate pair.") from error
    return text


def _key(key: object, place: str) -> str:
    if not isinstance(key, str):
        raise WrongType(f"The names in {place} must be text; {describe(key)}.")
    return key


def require_mapping(value: object, name: str) -> dict[str, Any]:
    """``value`` as a dictionary. Raises ``WrongType`` for anything but a mapping."""
    if not isinstance(value, Mapping):
        raise WrongType(f"{name} must be a mapping of names to values; {describe(value)}.")
    return dict(value)


def is_number(value: object) -> bool:
    """Whether ``value`` is a real number and not a truth value."""
    return isinstance(value, numbers.Real) and not isinstance(value, bool)


def require_number(value: object, name: str, *, lower: float = -math.inf, upper: float = math.inf) -> None:
    """Raises ``WrongType`` or ``InvalidArgument`` unless ``value`` is a number within the bounds."""
    if not is_number(value):
        raise WrongType(f"{name} must be a number; {describe(value)}.")
    if math.isnan(float(value)):  # type: ignore[arg-type]  # a Real
        raise InvalidArgument(f"{name} must be a number, not NaN.")
    if not lower <= float(value) <= upper:  # type: ignore[arg-type]
        bounds = f"at least {lower:g}" if math.isinf(upper) else f"between {lower:g} and {upper:g}"
        raise InvalidArgument(f"{name} must be {bounds}.")


def require_whole_number(value: object, name: str, *, lower: int, upper: float = math.inf) -> None:
    """Raises ``WrongType`` or ``InvalidArgument`` unless ``value`` is a whole number within the bounds."""
    if not is_number(value) or not isinstance(value, numbers.Integral):
        raise WrongType(f"{name} must be a whole number; {describe(value)}.")
    require_number(value, name, lower=lower, upper=upper)


def require_text(value: object, name: str) -> None:
    """Raises ``WrongType`` unless ``value`` is text."""
    if not isinstance(value, str):
        raise WrongType(f"{name} must be text; {describe(value)}.")


def write_time(moment: datetime | None, name: str) -> str | None:
    """``moment`` as the server reads it. Raises ``WrongType`` unless it is None or a time with a time zone."""
    if not isinstance(moment, datetime | None) or (moment is not None and moment.tzinfo is None):
        raise WrongType(f"{name} must be a datetime with a time zone; {describe(moment)}.")
    return None if moment is None else moment.isoformat()


def describe(value: object) -> str:
    """A clause for error messages that names the type of ``value``."""
    if value is None:
        return "got None"
    return (
        f"got the class {value.__name__}" if isinstance(value, type) else f"got a value of type {type(value).__name__}"
    )


def import_extra(module: str, extra: str, purpose: str) -> Any:
    """The optional ``module``. Raises ``MissingDependency``, which names the ``extra``, if it is not installed."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        package = module.partition(".")[0]
        raise MissingDependency(f"{package} is needed {purpose}: pip install 'corevault[{extra}]'.") from error


def import_pandas() -> Any:
    """The module pandas. Raises ``MissingDependency`` if it is not installed."""
    return import_extra("pandas", "pandas", "for a DataFrame")
