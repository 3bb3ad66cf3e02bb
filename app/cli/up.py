"""``corevaultd up``: API and worker as two processes on one folder."""

import os
import resource
import shlex
import socket
from pathlib import Path

import typer

from app.cli import installation
from app.cli.failures import warn
from app.cli.processes import Child, find_script
from app.cli.sockets import format_address, listen
from app.cli.supervisor import supervise
from app.config import Settings


def run(settings: Settings, host: str, port: int, bootstrap_key: Path | None) -> None:
    """Prepare the folder, and then keep API and worker running until a signal."""
    os.umask(0o077)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # children inherit it, so no process writes its memory to disk
    with installation.lock_existing(settings.data_dir):  # a second start fails here, not at the port
        listener = listen(host, port)
    with listener, installation.lock_folder(settings.data_dir):
        installation.check_identity_key(settings)
        share = installation.create_keys(settings)  # before the migration, which seals rows of API keys
        installation.migrate(settings)
        if bootstrap_key is not None:
            _bootstrap(settings, bootstrap_key)
        typer.echo(
            f"Corevault is listening on {format_address(listener, settings)}; its data is in {settings.data_dir}"
        )
        if settings.oidc_issuer is None and not installation.has_keys(settings):
            typer.echo(f"there is no API key yet: {_admin_key_command(settings, Path('admin.key'))}", err=True)
        try:
            supervise((make_api_child(settings, listener, share), make_worker_child(settings)))
        finally:
            installation.tidy(settings)


def _bootstrap(settings: Settings, file: Path) -> None:
    """Create the first administrator's key, or warn if the file holds no valid one.

    The file may be from another installation.
    """
    if installation.write_admin_key(settings, file) or installation.has_admin_key(settings, file):
        typer.echo(f"{file} holds an administrator's key", err=True)
    else:
        remedy = _admin_key_command(settings, file.with_name(f"new-{file.name}"))
        warn(f"{file} exists but is not a valid admin key of this installation, so no key was created: {remedy}")


def _admin_key_command(settings: Settings, file: Path) -> str:
    """Suggest the command that creates an administrator's key of this installation in ``file``."""
    command = ("corevaultd", "admin-key", str(file), "--data-dir", str(settings.data_dir))
    return f"`{shlex.join(command)}` creates an administrator's key"


def make_api_child(settings: Settings, listener: socket.socket, keys_dir: Path) -> Child:
    """Make the API process on ``listener``, whose keys cannot open boxes."""
    handle = listener.fileno()
    host = listener.getsockname()[0]
    command = (find_script("corevaultd"), "api", "--host", host, "--fd", str(handle))
    environment = make_child_environment(settings) | {"COREVAULT_KEYS_DIR": str(keys_dir)}
    return Child("api", command, environment, (handle,))


def make_worker_child(settings: Settings) -> Child:
    """Make the worker process, the only one whose environment names the opening key."""
    return Child("worker", (find_script("corevault-worker"),), make_child_environment(settings))


def make_child_environment(settings: Settings) -> dict[str, str]:
    """Return the environment of this process, with these settings."""
    others = {name: value for name, value in os.environ.items() if not name.startswith("COREVAULT_")}
    return others | settings.environment()
