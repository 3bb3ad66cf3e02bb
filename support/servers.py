"""Real servers for tests, each on a free loopback port in a new folder.

They can be stopped, killed and restarted on the same port, so that tests can inject failures. If a server is not
installed, an error names the package to install; no test is skipped.
"""

import contextlib
import os
import pwd
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from abc import abstractmethod
from collections.abc import Callable, Sequence
from pathlib import Path

from pyarrow.fs import S3FileSystem

from support.processes import Started, free_port

PATIENCE_SECONDS = 60.0


class Missing(Exception):
    """A program that a server needs is not installed."""


class Server(Started):
    """A process in a temporary folder; ``with`` starts it, and ends it and its folder."""

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="corevault-"))
        self.port = free_port()
        self._process: subprocess.Popen[bytes] | None = None

    @abstractmethod
    def prepare(self) -> None:
        """Prepare the folder once, before the first start."""

    @abstractmethod
    def command(self) -> Sequence[str | Path]:
        """Make the command, which runs in the foreground until it is stopped."""

    @abstractmethod
    def answers(self) -> bool:
        """Whether the server takes requests."""

    stop_signal, kill_signal = signal.SIGTERM, signal.SIGKILL
    user: str | None = None

    def start(self) -> None:
        """Start, and wait until it answers."""
        with (self.folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                self.command(), stdout=log, stderr=log, cwd=self.folder, user=self.user, start_new_session=True
            )
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not self.answers():
            assert self._process.poll() is None, self.log()[-2000:]
            assert time.monotonic() < deadline, f"{type(self).__name__} does not answer"
            time.sleep(0.05)

    def stop(self, *, immediate: bool = False) -> None:
        """Stop the server orderly, or immediately as in a crash."""
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(self.kill_signal if immediate else self.stop_signal)
        if self._process is not None:
            self._process.wait(PATIENCE_SECONDS)
            self._process = None

    def log(self) -> str:
        return (self.folder / "log").read_text(errors="replace")

    def begin(self) -> None:
        self.prepare()
        self.start()

    def end(self) -> None:
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.stop(immediate=True)
        shutil.rmtree(self.folder, ignore_errors=True)


class Postgres(Server):
    """A cluster with one superuser ``corevault``, who needs no password on loopback.

    Args:
        options: settings of the server; by default it does not wait for the disk, and a crash of the process loses no
            data.
    """

    stop_signal, kill_signal = signal.SIGINT, signal.SIGQUIT  # a fast and an immediate shutdown

    def __init__(self, options: Sequence[str] = ("fsync=off", "max_connections=200")) -> None:
        super().__init__()
        self._options = options
        self.user = "postgres" if os.geteuid() == 0 else None  # the server refuses to run as root

    @property
    def url(self) -> str:
        return f"postgresql+psycopg://corevault@127.0.0.1:{self.port}/postgres"

    def prepare(self) -> None:
        if self.user is not None:
            owner = pwd.getpwnam(self.user)
            os.chown(self.folder, owner.pw_uid, owner.pw_gid)
        arguments = ("-U", "corevault", "--auth=trust", "--encoding=UTF8", "--no-sync", "-D", str(self._data))
        command = [str(find_postgres_program("initdb")), *arguments]
        done = subprocess.run(command, capture_output=True, user=self.user, cwd=self.folder, check=False)
        assert done.returncode == 0, done.stderr.decode()

    def command(self) -> Sequence[str | Path]:
        options = (f"port={self.port}", "listen_addresses=127.0.0.1", f"unix_socket_directories={self.folder}")
        flags = [part for option in (*options, *self._options) for part in ("-c", option)]
        return [find_postgres_program("postgres"), "-D", self._data, *flags]

    def answers(self) -> bool:
        ready = [str(find_postgres_program("pg_isready")), "-q", "-h", "127.0.0.1", "-p", str(self.port)]
        return subprocess.run(ready, check=False).returncode == 0

    @property
    def _data(self) -> Path:
        return self.folder / "data"


class Redis(Server):
    """A Redis without files: a stop empties it. Each user takes a different database number."""

    def url(self, number: int = 0) -> str:
        return f"redis://127.0.0.1:{self.port}/{number}"

    def prepare(self) -> None:
        """Nothing: it has no files."""

    def command(self) -> Sequence[str | Path]:
        settings = ("--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--databases", "4096")
        return [_program("redis-server", "redis-server"), "--port", str(self.port), *settings]

    def answers(self) -> bool:
        return _listens(self.port)


class S3(Server):
    """An S3-compatible server in memory, with one bucket."""

    bucket = "corevault-tests"
    credentials = {"AWS_ACCESS_KEY_ID": "corevault", "AWS_SECRET_ACCESS_KEY": "of-no-use-elsewhere"}

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def url(self) -> str:
        return f"s3://{self.bucket}?endpoint={self.endpoint}&region=us-east-1"

    def prepare(self) -> None:
        """Nothing: it has no files."""

    def start(self) -> None:
        super().start()
        self._files().create_dir(self.bucket)

    def command(self) -> Sequence[str | Path]:
        return [Path(sys.executable).with_name("moto_server"), "-H", "127.0.0.1", "-p", str(self.port)]

    def answers(self) -> bool:
        return _listens(self.port)

    def _files(self) -> S3FileSystem:
        return S3FileSystem(
            endpoint_override=self.endpoint,
            region="us-east-1",
            access_key=self.credentials["AWS_ACCESS_KEY_ID"],
            secret_key=self.credentials["AWS_SECRET_ACCESS_KEY"],
            allow_bucket_creation=True,
        )


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def _program(name: str, package: str, list_other_places: Callable[[], Sequence[Path]] = tuple) -> Path:
    others = [path for path in list_other_places() if path.exists()]
    paths = others or [Path(path) for path in [shutil.which(name)] if path]
    if not paths:
        raise Missing(f"{name} is not installed; install the package {package} (apt-get install {package})")
    return paths[-1]


def find_postgres_program(name: str) -> Path:
    """Find a program of PostgreSQL, which Debian does not put on the path."""
    return _program(name, "postgresql", lambda: sorted(Path("/usr/lib/postgresql").glob(f"*/bin/{name}")))
