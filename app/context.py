"""The context of the current request, for audit entries and log lines.

The outermost middleware sets it. It contains ids, path templates and codes, but no text that a caller sent.
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
    status: int = 200  # the status with which the route answers on success
    actor: str | None = None  # the id of the API key, once the key is verified
    target: str | None = None  # the id of the object, once the actor's access to it is checked
    code: str | None = None  # the error code of the response, if it is a problem
    obstacle: str | None = None  # which budget refused the job, if the code is of such a refusal
    recorded: bool = False  # whether the audit entry of the request is durable

    @property
    def action(self) -> str:
        """Method and path template."""
        return f"{self.method} {self.route}"


_current: ContextVar[RequestContext | None] = ContextVar("corevault_request", default=None)


def get_current() -> RequestContext | None:
    """Return the context of the current request, or None outside of requests."""
    return _current.get()


def enter(context: RequestContext) -> Token[RequestContext | None]:
    """Make ``context`` the current one; :func:`leave` takes the token."""
    return _current.set(context)


def leave(token: Token[RequestContext | None]) -> None:
    """Restore the context that was current before :func:`enter`."""
    _current.reset(token)


def normalise_method(method: str) -> str:
    """Return the method, or ``other`` if it is not a usual HTTP method."""
    return method if method in _METHODS else "other"


def note_actor(actor: str) -> None:
    """Note ``actor`` as the caller of the current request."""
    context = _current.get()
    if context is not None:
        context.actor = actor


def note_target(target: str) -> None:
    """Note the object of the current request. Call this only if the caller may see the object."""
    context = _current.get()
    if context is not None:
        context.target = target


def note_refusal(code: str, obstacle: str | None = None) -> None:
    """Note the error code of the response to the current request.

    ``obstacle``: the budget that refused a job.
    """
    context = _current.get()
    if context is not None:
        context.code, context.obstacle = code, obstacle
