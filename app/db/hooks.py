"""Hooks that run once a transaction's outcome is known, each independent of the others."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import structlog


@dataclass(frozen=True, slots=True)
class Hook:
    """An action to run. If a ``vital`` hook fails, the caller of the transaction gets the error."""

    action: Callable[[], None]
    vital: bool = False


def run(hooks: Sequence[Hook]) -> None:
    """Run all hooks in order, then raise the first error of a vital one.

    The sweep repairs the effects of other failed hooks, so their errors are only logged by kind. An error here would
    hide the transaction's outcome: after a commit, the caller would repeat the request.
    """
    errors: list[Exception] = []
    for hook in hooks:
        try:
            hook.action()
        except Exception as error:  # noqa: BLE001  (a failed hook must not stop the next)
            structlog.get_logger().error("hook failed", kind=type(error).__name__, vital=hook.vital)
            if hook.vital:
                errors.append(error)
    if errors:
        raise errors[0]
