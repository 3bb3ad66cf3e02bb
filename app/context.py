"""The context of the current request, for audit entries and log lines.

The outermost middleware sets it. It contains ids, templates and codes, and no input of the caller.
"""

from contextvars import ContextVar, Token
from dataclasses import dataclass
from typing import Final

UNMATCHED: Final = "unmatched"
_METHODS: Final = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})


@dataclass(slots=True)
class RequestContext:
    """The context of one request. All threads and tasks of the request share it."""

    request_id: str
    method: str = "other"
    route: str = UNMATCHED  # the template, as in /v1/jobs/{job_id}
    status: int = 200  # the status of success of the route
    actor: str | None = None  # the id of the key, after it was verified
    target: str | None = None  # the id of the object, after the actor was found to have access
    code: str | None = None  # of the problem in the answer
    recorded: bool = False  # whether its audit entry is durable

    @property
    def action(self) -> str:
        """Method and path template."""
        return f"{self.method} {self.route}"


_current: ContextVar[RequestContext | None] = ContextVar("corevault_request", default=None)


def current() -> RequestContext | None:
    """Return the context of the current request, or None outside of requests."""
    return _current.get()


def enter(context: RequestContext) -> Token[RequestContext | None]:
    """Make ``context`` the current one; :func:`leave` takes the token."""
    return _current.set(context)


def leave(token: Token[RequestContext | None]) -> None:
    """Restore the context from before :func:`enter`."""
    _current.reset(token)


def normalise_method(method: str) -> str:
    """Return the method, or ``other`` for a word that is no HTTP method."""
    return method if method in _METHODS else "other"


def note_actor(actor: str) -> None:
    """Note ``actor`` as the caller of the current request."""
    context = _current.get()
    if context is not None:
        context.actor = actor


def note_target(target: str) -> None:
    """Note the object of the current request. Its caller may see it."""
    context = _current.get()
    if context is not None:
        context.target = target


def note_refusal(code: str) -> None:
    """Note the code of the problem that answers the current request."""
    context = _current.get()
    if context is not None:
        context.code = code
