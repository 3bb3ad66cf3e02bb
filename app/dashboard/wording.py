"""Numbers, times and codes as words for people. Every function is also a filter of the templates."""

from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from typing import Any, Final

from markupsafe import Markup

from app.inference.core.designs import feature_from_json, make_term

ENTRY_KINDS: Final = {
    "account_opened": "Account opened",
    "reserved": "Job reserved",
    "opened": "Job opened the data",
    "settled": "Job settled",
    "voided": "Reservation voided",
    "limit_changed": "Limit changed",
    "content_replaced": "Table replaced",
    "dataset_deleted": "Dataset deleted",
    "frozen": "Account frozen",
    "unfrozen": "Account unfrozen",
    "people_registered": "People registered",
}
_STATUSES: Final = {
    "queued": "Waiting",
    "running": "Running",
    "succeeded": "Succeeded",
    "failed": "Failed",
    "cancelled": "Cancelled",
    "ready": "Ready",
    "created": "No table yet",
    "received": "Being processed",
    "rejected": "Rejected",
    "deleted": "Deleted",
}
OBSTACLES: Final = {
    "limit": "the account's limit",
    "cap": "the dataset's limit",
    "allocation": "the key's allocation",
}
ROLES: Final = {"admin": "administrator", "owner": "data owner", "analyst": "analyst", "auditor": "auditor"}


def format_number(value: float, digits: int = 3) -> str:
    """Write a number with ``digits`` significant digits. From 0.001 on there is no exponent."""
    if value == 0:
        return "0"
    if 1e-3 <= abs(value) < 1e7:
        decimals = max(0, digits - len(str(int(abs(value)))) if abs(value) >= 1 else digits)
        return f"{value:,.{decimals}f}".rstrip("0").rstrip(".") if decimals else f"{value:,.0f}"
    mantissa, exponent = f"{value:.{digits - 1}e}".split("e")
    return f"{mantissa.rstrip('0').rstrip('.')}e{int(exponent)}"


def format_exact(value: float) -> str:
    """Write a declared number with all its digits."""
    return str(int(value)) if value == int(value) and abs(value) < 1e16 else repr(float(value))


def format_percent(share: float) -> str:
    """Write a share as a percentage. A share below one is never rounded to 100 %."""
    percent = share * 100
    if 99.9 < percent < 100:
        return "over 99.9 %"
    return f"{percent:.3g} %"


def format_odds(odds: float) -> str:
    """Write odds as ``x : 1``, rounded up."""
    if odds >= 1e6:
        return "more than a million : 1"
    scale = 10.0 ** max(0, 2 - len(str(int(odds))))
    return f"{format_number(-(-odds * scale // 1) / scale)} : 1"


def format_time(at: datetime | None) -> Markup:
    """Write a time in UTC, to the minute, as an HTML ``time`` element."""
    if at is None:
        return Markup("never")
    return Markup('<time datetime="{}">{}</time>').format(f"{at:%Y-%m-%dT%H:%M:%SZ}", f"{at:%Y-%m-%d %H:%M}")


def format_duration(span: timedelta) -> str:
    """Write a span of time with one unit."""
    seconds = span.total_seconds()
    for unit, size in (("year", 31_557_600), ("month", 2_629_800), ("week", 604_800), ("day", 86_400), ("hour", 3600)):
        if seconds >= 2 * size or (unit == "hour" and seconds >= size):
            return f"{seconds / size:.0f} {unit}s" if seconds >= 1.5 * size else f"1 {unit}"
    return "less than an hour"


def name_kind(kind: str) -> str:
    """Name a kind of ledger entry."""
    return ENTRY_KINDS.get(kind, kind)


def name_status(status: str) -> str:
    """Name a status of a job or a dataset."""
    return _STATUSES.get(status, status)


def name_obstacle(obstacle: str | None) -> str:
    """Name the budget that refused a job. Earlier versions did not record it."""
    return OBSTACLES.get(obstacle or "", "not recorded")


def name_role(role: str) -> str:
    """Name a role of a caller."""
    return ROLES.get(role, role)


def describe_unit(unit: Mapping[str, Any]) -> str:
    """Describe the privacy unit."""
    return "one row" if unit.get("kind") == "row" else f"all rows with one value of {unit.get('column', 'a column')}"


def name_feature(feature: str | Mapping[str, Any]) -> str:
    """Name a feature of a model: a column, or a term as in ``poly(age, 3)``."""
    return make_term(feature_from_json(feature)).name


def describe_model(model: Mapping[str, Any]) -> str:
    """Describe a model in one line: family, target and features."""
    family = str(model.get("family", "")).replace("-", " ")
    features = [name_feature(each) for each in model.get("features", ())]
    listed = ", ".join(features[:6]) + (f" and {len(features) - 6} more" if len(features) > 6 else "")
    return f"{family} of {model['target']} on {listed}" if model.get("target") else f"{family} of {listed}"


def count_noun(number: int, noun: str) -> str:
    """Write a number and its noun, in the plural where needed."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


FILTERS: Final[Mapping[str, Callable[..., object]]] = {
    "number": format_number,
    "exact": format_exact,
    "percent": format_percent,
    "odds": format_odds,
    "time": format_time,
    "duration": format_duration,
    "kind": name_kind,
    "status": name_status,
    "role": name_role,
    "obstacle": name_obstacle,
    "unit": describe_unit,
    "model": describe_model,
    "feature": name_feature,
    "count_noun": count_noun,
}
