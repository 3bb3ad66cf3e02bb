"""The API's listening socket; other machines can reach it only with TLS."""

import errno
import socket
import ssl
from contextlib import ExitStack
from ipaddress import ip_address

from app.cli.failures import MISUSED, fail
from app.config import Settings

_BACKLOG = 512


def check_bind(host: str, settings: Settings) -> None:
    """End the command if it would listen to other machines without TLS.

    An incomplete TLS configuration ends it too.
    """
    if (settings.tls_cert is None) != (settings.tls_key is None):
        fail("set both COREVAULT_TLS_CERT and COREVAULT_TLS_KEY, or neither", MISUSED)
    if not (is_loopback(host) or settings.speaks_tls or settings.behind_tls):
        fail(
            f"refusing to listen on {host} without TLS: set COREVAULT_TLS_CERT and COREVAULT_TLS_KEY, "
            "or COREVAULT_BEHIND_TLS=1 if a reverse proxy terminates TLS",
            MISUSED,
        )


def check_certificate(settings: Settings) -> None:
    """End the command if the server cannot use the TLS certificate, before it starts."""
    if settings.tls_cert is None or settings.tls_key is None:
        return
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(settings.tls_cert, settings.tls_key)
    except OSError:  # errors of the TLS library are a subclass
        fail(
            "COREVAULT_TLS_CERT and COREVAULT_TLS_KEY must name readable PEM files with a certificate chain and its "
            "private key",
            MISUSED,
        )


def is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def listen(host: str, port: int) -> socket.socket:
    """Open a listening TCP socket; a failure ends the command with a message of one line."""
    with ExitStack() as undo:
        try:
            family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
            listener = undo.enter_context(socket.socket(family, kind, protocol))
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind(address)
            listener.listen(_BACKLOG)
        except OSError as error:
            if error.errno == errno.EADDRINUSE:
                fail(f"another process listens on {host} port {port} already; choose another port with --port")
            fail(f"cannot listen on {host} port {port}: {error.strerror}")
        undo.pop_all()
        return listener


def format_address(listener: socket.socket, settings: Settings) -> str:
    """Return the URL of the socket."""
    host, port = listener.getsockname()[:2]
    shown = f"[{host}]" if ":" in host else host
    return f"{'https' if settings.speaks_tls else 'http'}://{shown}:{port}"
