"""A mutant: exact replacements in one file, the promise that they break, and the expected catcher."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Mutant:
    """A small break of ``promise`` in ``file``.

    Each of ``edits`` replaces a text that occurs exactly once. The ``catcher`` is a test, as pytest names it, or a
    command. It must succeed on the unchanged tree, and fail on the mutant with a message that names the promise.
    """

    name: str
    promise: str
    file: str
    edits: tuple[tuple[str, str], ...]
    catcher: str

    @property
    def catcher_file(self) -> str | None:
        """The file of the catcher; None for a command of the service."""
        return self.catcher.partition("::")[0] if self.catcher.startswith(("tests/", "tools/")) else None

    def apply(self, source: str) -> str:
        """Apply the edits to the text of the file.

        Raises:
            ValueError: a text does not occur exactly once, or an edit changes nothing.
        """
        for old, new in self.edits:
            if source.count(old) != 1 or old == new:
                raise ValueError(f"{self.name}: the text to replace must occur exactly once in {self.file}")
            source = source.replace(old, new)
        return source
