"""The request that is being answered: set at the edge, read wherever an entry or a log line must name it.

It knows ids, templates and codes; nothing that a caller typed.
"""

from contextvars import ContextVar, Token
from dataclasses import dataclass
from typing import Final

UNMATCHED: Final = "unmatched"
_METHODS: Final = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})


@dataclass(slots=True)
class RequestContext:
    """One request. Threads and tasks that serve it share this object."""

    request_id: str
    method: str = "other"
    route: str = UNMATCHED  # the template, as in /v1/jobs/{job_id}
    status: int = 200  # what the route answers when it succeeds
    actor: str | None = None  # the id of the key, once it is known to be valid
    target: str | None = None  # the id of what the request is about, once the actor is known to see it
    code: str | None = None  # of the problem that it was answered with
    recorded: bool = False  # its audit entry is durable

    @property
    def action(self) -> str:
        """Method and template."""
        return f"{self.method} {self.route}"


_current: ContextVar[RequestContext | None] = ContextVar("corevault_request", default=None)


def current() -> RequestContext | None:
    """The request that is being answered here, if any."""
    return _current.get()


def enter(context: RequestContext) -> Token[RequestContext | None]:
    return _current.set(context)


def leave(token: Token[RequestContext | None]) -> None:
    _current.reset(token)


def known_method(method: str) -> str:
    """The method, or ``other``: callers can make up any word."""
    return method if method in _METHODS else "other"


def acting(actor: str) -> None:
    """The caller of the current request is ``actor``."""
    context = _current.get()
    if context is not None:
        context.actor = actor


def note_target(target: str) -> None:
    """The current request is about ``target``, which its caller may see."""
    context = _current.get()
    if context is not None:
        context.target = target


def note_refusal(code: str) -> None:
    """The current request is answered with a problem of this code."""
    context = _current.get()
    if context is not None:
        context.code = code
