"""What ends the demo with a non-zero status."""


class DemoFailed(Exception):
    """A step, a refusal, a verification or a balance that did not hold; the message is a plain sentence."""


def demand(holds: bool, sentence: str) -> None:
    """Raises ``DemoFailed`` with ``sentence`` unless ``holds``."""
    if not holds:
        raise DemoFailed(sentence)
