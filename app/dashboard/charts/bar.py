"""A bar of the spent, reserved and unspent part of a limit."""

from typing import Final

from markupsafe import Markup

LEAST_PERCENT: Final = 0.6
_BAR: Final = Markup(
    '<svg class="bar" role="img" aria-label="{label}"><rect class="bar-limit" width="100%" height="100%"/>'
    '<rect class="bar-spent" width="{spent:.4g}%" height="100%"/>'
    '<rect class="bar-edge" fill="url(#hatch)" x="{spent:.4g}%" width="{reserved:.4g}%" height="100%"/></svg>'
)
HATCH: Final = Markup(
    '<svg class="patterns" aria-hidden="true"><defs>'
    '<pattern id="hatch" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">'
    '<line class="chart-hatch" x1="0" y1="0" x2="0" y2="6"/></pattern></defs></svg>'
)
"""The pattern of reserved amounts. A page with charts contains it once."""


def draw_bar(spent: float, reserved: float, limit: float, label: str) -> Markup:
    """Draw ``spent`` and ``reserved`` as parts of ``limit``. Any amount above zero is visible."""
    first = _scale(spent, limit)
    return _BAR.format(spent=first, reserved=min(_scale(reserved, limit), 100 - first), label=label)


def _scale(amount: float, limit: float) -> float:
    if amount <= 0 or limit <= 0:
        return 0.0
    return min(100.0, max(LEAST_PERCENT, 100 * amount / limit))
