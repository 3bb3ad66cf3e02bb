"""Serves an ASGI application in this process, with the service's HTTP protocol class."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import uvicorn
from starlette.types import ASGIApp

from app.cli.connections import make_protocol

Address = tuple[str, int]


@contextmanager
def served(application: ASGIApp, *, head_seconds: float = 60, unread_seconds: float = 60) -> Iterator[Address]:
    """Serve ``application`` on a free loopback port, and yield the address."""
    protocol = make_protocol(head_seconds, unread_seconds)
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
