"""The commands of ``corevaultd``."""

import socket
from collections.abc import Callable
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Annotated

import typer

from app.cli import installation, verification
from app.cli.failures import explain_failures, fail, load_settings
from app.cli.keys import keys_cli
from app.cli.several import serve_by_several
from app.cli.sockets import check_bind, check_certificate, listen
from app.cli.up import run
from app.config import Settings

Host = Annotated[str, typer.Option(envvar="COREVAULT_HOST", help="Address to listen on.")]
Port = Annotated[
    int, typer.Option(envvar="COREVAULT_PORT", min=0, max=65535, help="Port to listen on; 0 takes a free one.")
]
DataDir = Annotated[Path | None, typer.Option(help="Folder of the installation; ./corevault-data if none is named.")]

cli = typer.Typer(
    name="corevaultd",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


cli.add_typer(keys_cli, name="keys")


def _say_version(asked: bool) -> None:
    if asked:
        typer.echo(f"corevaultd {version('corevault-server')}")
        raise typer.Exit


@cli.callback()
def options(
    _: Annotated[
        bool, typer.Option("--version", callback=_say_version, is_eager=True, help="Print the version and end.")
    ] = False,
) -> None:
    """Corevault: differentially private Bayesian pseudocoresets as a service.

    Settings come from environment variables with the prefix COREVAULT_.
    """


@cli.command()
def up(
    host: Host = "127.0.0.1",
    port: Port = 8000,
    data_dir: DataDir = None,
    bootstrap_key: Annotated[
        Path | None, typer.Option(help="Where this file is absent, create an admin key and write it there.")
    ] = None,
) -> None:
    """Run everything from one folder: migrate, then API and worker until a signal."""
    settings = load_settings(data_dir=data_dir)
    check_bind(host, settings)
    check_certificate(settings)
    with explain_failures():
        run(settings, host, port, bootstrap_key)


@cli.command()
def api(
    host: Host = "127.0.0.1",
    port: Port = 8000,
    data_dir: DataDir = None,
    processes: Annotated[int, typer.Option(min=1, max=64, help="How many processes answer on the port.")] = 1,
    fd: Annotated[int | None, typer.Option(hidden=True, help="A listening socket that is open already.")] = None,
) -> None:
    """Run the API alone, on a database that is migrated."""
    settings = load_settings(data_dir=data_dir)
    check_bind(host, settings)
    check_certificate(settings)
    serve: Callable[[Settings, socket.socket], None] = partial(serve_by_several, data_dir=data_dir, processes=processes)
    if processes == 1:
        from app.cli.serving import serve  # noqa: PLC0415  (the whole API: loaded here alone, and before it listens)

    with explain_failures():
        serve(settings, listen(host, port) if fd is None else socket.socket(fileno=fd))


@cli.command()
def migrate(
    data_dir: DataDir = None,
    service_role: Annotated[
        str | None, typer.Option(help="Then give this role what running the service takes, as 'grants' does.")
    ] = None,
) -> None:
    """Bring the database to the newest revision."""
    settings = load_settings(data_dir=data_dir)
    with explain_failures():
        installation.migrate(settings)
        if service_role is not None:
            installation.grant(settings, service_role)


@cli.command()
def grants(
    role: Annotated[str, typer.Option(help="The role that API and workers connect as.")], data_dir: DataDir = None
) -> None:
    """Let ROLE run the service on PostgreSQL, without any way to change or remove what the ledger has written."""
    settings = load_settings(data_dir=data_dir)
    with explain_failures():
        installation.check_exists(settings)
        installation.grant(settings, role)


@cli.command()
def verify(
    data_dir: DataDir = None,
    storage: Annotated[bool, typer.Option(help="Whether to read the stored representations too.")] = True,
    mark: Annotated[bool, typer.Option(help="Whether to compare with the ledger's high-water mark.")] = True,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Check all chains, balances, certificates and representations; exit status 1 if anything does not hold."""
    settings = load_settings(data_dir=data_dir)
    with explain_failures():
        installation.check_exists(settings)
        verification.report(settings, storage=storage, mark=mark, as_json=as_json)


@cli.command()
def reconcile(
    data_dir: DataDir = None,
    adopt: Annotated[
        bool, typer.Option("--adopt", help="There never was a mark: begin one from the database as it is.")
    ] = False,
) -> None:
    """Charge to a restored database what its high-water mark knows to be spent. Never refunds anything."""
    settings = load_settings(data_dir=data_dir)
    with explain_failures():
        installation.check_exists(settings)
        done = installation.reconcile(settings, adopt=adopt)
    typer.echo("\n".join(f"{each.account_id}: {each.outcome}" for each in done) or "nothing to do")


@cli.command()
def unfreeze(
    dataset_id: str,
    reason: Annotated[str, typer.Option(help="Why; the ledger and the audit log keep it.")],
    data_dir: DataDir = None,
) -> None:
    """End the freeze of the account of DATASET_ID, unless tampering caused it."""
    settings = load_settings(data_dir=data_dir)
    with explain_failures():
        installation.check_exists(settings)
        installation.unfreeze(settings, dataset_id, reason)
    typer.echo(f"{dataset_id}: the account goes on")


@cli.command()
def admin_key(file: Path, data_dir: DataDir = None) -> None:
    """Create an admin key and write it to FILE, which must not exist; to standard output for `-`."""
    settings = load_settings(data_dir=data_dir)
    with explain_failures():
        installation.check_exists(settings)
        if str(file) == "-":
            typer.echo(installation.new_admin_key(settings))
        elif not installation.write_admin_key(settings, file):
            fail(f"{file} exists; nothing was created")
        else:
            typer.echo(f"{file} holds an administrator's key of {settings.data_dir.resolve()}", err=True)


def main() -> None:
    cli()
