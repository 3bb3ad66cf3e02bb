"""What keeps a surrogate a surrogate, whatever the answers are: bounds that no honest run ever meets.

Answers are clipped to what a table and noise could say at all, and what follows from them is a state that the next
query can be asked in: parameters within a public range, an information matrix that is one. What cannot be mended
is left as it was, and shows as an infinite surprise.
"""

from dataclasses import replace

import numpy as np

from app.inference.core.model import Array64
from app.inference.core.query import Oracle, Query
from app.inference.methods.surrogate.matrices import sound
from app.inference.methods.surrogate.schedule import Schedule
from app.inference.methods.surrogate.state import State

LARGEST_PARAMETER = 1e9
_MOST_DEVIATIONS = 50.0


def asked(oracle: Oracle, query: Query, schedule: Schedule, share: float, most: float) -> Array64:
    """The answer for all slots: divided by q. A unit adds at most ``most``, and noise beyond 50 deviations is none."""
    bound = most * (schedule.slots + _MOST_DEVIATIONS * schedule.multiplier(share))
    answer = np.nan_to_num(oracle.ask(query), nan=0.0, posinf=bound, neginf=-bound)
    return np.asarray(np.clip(answer, -bound, bound) / schedule.rate)


def steadied(moved: State, before: State) -> State:
    """``moved``, if the next query can be asked there; else as much of it as can be mended or kept."""
    information = sound(moved.information)
    if information is None or not np.all(np.isfinite(moved.theta)):
        back = replace(moved, theta=before.theta, step=before.step)
        stays = replace(back, information=before.information, memory=before.memory)
        return replace(stays, surprise=np.inf)
    theta = np.clip(moved.theta, -LARGEST_PARAMETER, LARGEST_PARAMETER)
    memory = None if moved.memory is None else moved.memory.steadied(information)
    return replace(moved, theta=theta, information=information, memory=memory)
