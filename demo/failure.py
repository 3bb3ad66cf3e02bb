"""Failures that end the demo with a non-zero status."""


class DemoFailed(Exception):
    """A step or a check failed; the message names it."""


def demand(condition: bool, message: str) -> None:
    """Raises ``DemoFailed`` with ``message`` unless ``condition``."""
    if not condition:
        raise DemoFailed(message)
