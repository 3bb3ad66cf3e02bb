"""The evidence at which an audit raises an alarm."""

import math
from typing import Final

ALARM: Final = 1000.0
"""Evidence at which a claim counts as refuted; a true claim reaches it with probability 0.001 at most."""


def compute_log_threshold(resets: int) -> float:
    """Compute the log-evidence of the alarm after ``resets`` fresh starts: each one doubles the threshold.

    The chances of false alarms are then at most ``1 / 1000``, ``1 / 2000``, ...: together at most ``2 / 1000``.
    """
    return math.log(ALARM) + resets * math.log(2)
