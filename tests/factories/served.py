"""An ASGI application behind the service's own HTTP protocol, on a free port of loopback, in this process."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import uvicorn
from starlette.types import ASGIApp

from app.cli.connections import prompt_protocol

Address = tuple[str, int]


@contextmanager
def served(application: ASGIApp, *, head_seconds: float = 60, unread_seconds: float = 60) -> Iterator[Address]:
    """The address at which ``application`` answers."""
    protocol = prompt_protocol(head_seconds, unread_seconds)
    config = uvicorn.Config(application, http=protocol, lifespan="off", log_config=None, ws="none")
    server = uvicorn.Server(config)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        try:
            yield listener.getsockname()
        finally:
            server.should_exit = True
            thread.join()
