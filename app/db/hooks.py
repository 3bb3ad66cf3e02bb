"""What follows a transaction once its outcome is known: each is tried, whatever becomes of the others."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import structlog


@dataclass(frozen=True, slots=True)
class Hook:
    """What is to be done. ``vital``: who asked for the transaction has to hear of it if it cannot be."""

    action: Callable[[], None]
    vital: bool = False


def run(hooks: Sequence[Hook]) -> None:
    """Try them all, in order, and raise the first error of a vital one afterwards.

    The others are of a kind that the sweep makes up for. They are logged by kind: the transaction is kept (or is not,
    for another reason), and whoever is told otherwise would ask for the same again, or not learn that reason.
    """
    failed: list[Exception] = []
    for hook in hooks:
        try:
            hook.action()
        except Exception as error:  # noqa: BLE001  (whatever ails one must not keep the next from its turn)
            structlog.get_logger().error("hook failed", kind=type(error).__name__, vital=hook.vital)
            if hook.vital:
                failed.append(error)
    if failed:
        raise failed[0]
