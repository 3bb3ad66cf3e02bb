"""An open-loop load generator: waiting for a late server counts as latency.

``python -m benchmarks.open_loop PORT PATH RATE SECONDS CONNECTIONS [HEADER: VALUE]…`` prints one JSON object. It is one
process with one thread over non-blocking sockets. Request ``i`` is due ``i / RATE`` seconds after the start, on
connection ``i mod CONNECTIONS``. It waits while that connection waits for an answer. Its latency starts when it is due,
as in wrk2; a closed loop would hide the pauses that clients see.
"""

import json
import selectors
import socket
import sys
import time
from collections import Counter, deque
from dataclasses import dataclass, field

HOST = "127.0.0.1"
GRACE_SECONDS = 10.0


@dataclass
class Connection:
    """One keep-alive connection, with its due requests and the bytes of an incomplete answer."""

    socket: socket.socket
    due: deque[float] = field(default_factory=deque)
    waiting: bool = False
    received: bytes = b""


@dataclass
class Tally:
    """Latencies in seconds from when each request was due, and statuses."""

    latencies: list[float] = field(default_factory=list)
    statuses: Counter[str] = field(default_factory=Counter)


class Generator:
    """Sends ``request`` at a fixed rate."""

    def __init__(self, port: int, request: bytes, connections: int) -> None:
        self._request = request
        self._selector = selectors.DefaultSelector()
        self._connections = [_connect(port) for _ in range(connections)]
        for connection in self._connections:
            self._selector.register(connection.socket, selectors.EVENT_READ, connection)
        self.tally = Tally()

    def run(self, rate: float, seconds: float) -> Tally:
        """Sends ``rate * seconds`` requests, and waits for the last answers."""
        planned, sent, start = round(rate * seconds), 0, time.perf_counter() + 0.05
        end = start + seconds + GRACE_SECONDS
        while len(self.tally.latencies) < planned and (now := time.perf_counter()) < end:
            while sent < planned and start + sent / rate <= now:
                self._issue(self._connections[sent % len(self._connections)], start + sent / rate)
                sent += 1
            pause = start + sent / rate - time.perf_counter() if sent < planned else 0.1
            for key, _ in self._selector.select(max(0.0, pause)):
                self._receive(key.data)
        return self.tally

    def _issue(self, connection: Connection, due: float) -> None:
        connection.due.append(due)
        if not connection.waiting:
            self._send(connection)

    def _send(self, connection: Connection) -> None:
        connection.socket.send(self._request)
        connection.waiting = True

    def _receive(self, connection: Connection) -> None:
        data = connection.socket.recv(2**18)
        if not data:
            raise ConnectionError("the server closed a connection")
        connection.received += data
        head, separator, body = connection.received.partition(b"\r\n\r\n")
        if not separator or len(body) < _length(head):
            return
        self.tally.latencies.append(time.perf_counter() - connection.due.popleft())
        self.tally.statuses[head[9:12].decode()] += 1
        connection.received, connection.waiting = b"", False
        if connection.due:
            self._send(connection)


def _connect(port: int) -> Connection:
    connection = socket.create_connection((HOST, port))
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return Connection(connection)


def _length(head: bytes) -> int:
    _, separator, rest = head.lower().partition(b"content-length:")
    status = head[9:12]
    return int(rest.split(b"\r\n", 1)[0]) if separator and status != b"304" else 0


def summarise(tally: Tally, rate: float, seconds: float) -> dict[str, object]:
    """Quantiles in milliseconds, and the numbers of due and answered requests."""
    ordered = sorted(tally.latencies)

    def quantile(share: float) -> float:
        return round(1000 * ordered[min(len(ordered) - 1, int(share * len(ordered)))], 2)

    return {
        "due": round(rate * seconds),
        "answered": len(ordered),
        "statuses": dict(tally.statuses),
        "p50_ms": quantile(0.5),
        "p99_ms": quantile(0.99),
        "largest_ms": quantile(1.0),
        "generator_cpu_seconds": round(time.process_time(), 2),
    }


def main(arguments: list[str]) -> None:
    port, path, rate, seconds, connections, *headers = arguments
    lines = [f"GET {path} HTTP/1.1", f"Host: {HOST}:{port}", *headers, "", ""]
    generator = Generator(int(port), "\r\n".join(lines).encode(), int(connections))
    tally = generator.run(float(rate), float(seconds))
    print(json.dumps(summarise(tally, float(rate), float(seconds))))


if __name__ == "__main__":
    main(sys.argv[1:])
