"""The commands of ``corevaultd``.

Each command imports its modules when it runs. So help, version and errors in options are printed without the database
library, which takes most of a second to load.
"""

import atexit
import math
import socket
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Annotated

import typer

from app.cli.failures import MISUSED, explain_failures, fail, load_settings
from app.cli.keys import keys_cli
from app.collector import ignore_present_objects, pause_collection

Host = Annotated[str, typer.Option(envvar="COREVAULT_HOST", help="Address to listen on.")]
Port = Annotated[
    int, typer.Option(envvar="COREVAULT_PORT", min=0, max=65535, help="Port to listen on; 0 chooses a free port.")
]
DataDir = Annotated[
    Path | None,
    typer.Option(help="Folder of the installation. Default: COREVAULT_DATA_DIR, or else ./corevault-data."),
]

cli = typer.Typer(
    name="corevaultd",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


cli.add_typer(keys_cli, name="keys")


def _print_version(is_requested: bool) -> None:
    if is_requested:
        typer.echo(f"corevaultd {version('corevault-server')}")
        raise typer.Exit


@cli.callback()
def options(
    _: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
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
        Path | None, typer.Option(help="Create an administrator's API key and write it to this file, unless it exists.")
    ] = None,
) -> None:
    """Run the whole service from one folder: migrate the database, then run API and worker until a signal."""
    from app.cli.sockets import check_bind, check_certificate

    with pause_collection():
        from app.cli.up import run
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
    processes: Annotated[int, typer.Option(min=1, max=64, help="Number of API processes that share the port.")] = 1,
    fd: Annotated[int | None, typer.Option(hidden=True, help="File descriptor of a listening socket.")] = None,
) -> None:
    """Run only the API. Run `migrate` and `keys` before the first start."""
    from app.cli.sockets import check_bind, check_certificate, listen

    settings = load_settings(data_dir=data_dir)
    check_bind(host, settings)
    check_certificate(settings)
    if processes == 1:
        with pause_collection():
            from app.cli.serving import serve  # the whole API, before it listens
    else:
        from app.cli.several import serve_by_several

        serve = partial(serve_by_several, data_dir=data_dir, processes=processes)
    with explain_failures():
        serve(settings, listen(host, port) if fd is None else socket.socket(fileno=fd))


@cli.command()
def migrate(
    data_dir: DataDir = None,
    service_role: Annotated[
        str | None, typer.Option(help="Then grant this PostgreSQL role the rights of the service, as `grants` does.")
    ] = None,
) -> None:
    """Create the database, or migrate it to the schema of this version."""
    from app.cli import installation

    settings = load_settings(data_dir=data_dir)
    with explain_failures():
        installation.migrate(settings)
        if service_role is not None:
            installation.grant(settings, service_role)


@cli.command()
def grants(
    role: Annotated[str, typer.Option(help="PostgreSQL role that API and workers connect as.")],
    data_dir: DataDir = None,
) -> None:
    """Grant a PostgreSQL role the rights of the service.

    The role can add entries to the ledger, but cannot change or remove them.
    """
    from app.cli import installation

    settings = load_settings(data_dir=data_dir)
    with explain_failures():
        installation.check_exists(settings)
        installation.grant(settings, role)


@cli.command()
def verify(
    data_dir: DataDir = None,
    storage: Annotated[bool, typer.Option(help="Also check the stored representations of releases.")] = True,
    mark: Annotated[bool, typer.Option(help="Also compare the database with the ledger's high-water mark.")] = True,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Check all hash chains, balances, certificates and stored representations.

    It changes nothing. The exit status is 1 if a check fails.
    """
    from app.cli import installation, verification

    settings = load_settings(data_dir=data_dir)
    with explain_failures():
        installation.check_exists(settings)
        verification.report(settings, storage=storage, mark=mark, as_json=as_json)


@cli.command()
def audit(
    *,
    answers: Annotated[
        int | None, typer.Option(min=2, help="Answers in each setting, half of them with the canary. Default: few.")
    ] = None,
    section: Annotated[
        list[str] | None, typer.Option(help="Section to run; repeat it for several. Default: all sections.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
    statement: Annotated[
        Path | None, typer.Option(help="Also write a signed statement of the result and of the installed code.")
    ] = None,
    commit: Annotated[
        str | None, typer.Option(help="Commit for the statement, if the installation does not record it.")
    ] = None,
    data_dir: DataDir = None,
) -> None:
    """Attack the privacy mechanism on simulated tables, and compare the result with the guarantee.

    It uses no data of the installation. The exit status is 1 if an attack exceeds the guarantee. Only a statement needs
    the folder of an installation, whose release key signs it.
    """
    with pause_collection():
        from app.cli import auditing, installation
        from app.inference.audit.report import SECTIONS, choose_size
    unknown = sorted(set(section or ()) - SECTIONS.keys())
    if unknown:
        fail(f"no section {unknown[0]}; the sections are {', '.join(SECTIONS)}", MISUSED)
    size = choose_size(answers)
    with explain_failures():
        settings = load_settings(data_dir=data_dir) if statement else None
        if settings and statement:
            installation.check_statement(settings, statement)
        found = auditing.report(size, section or list(SECTIONS), as_json=as_json)
        if settings and statement:
            installation.write_document(statement, auditing.sign_statement(settings, size, found, commit))
    if auditing.count_failures(found):
        raise typer.Exit(1)


@cli.command()
def reconcile(
    data_dir: DataDir = None,
    adopt: Annotated[
        bool, typer.Option("--adopt", help="Create the first mark from the present database, if there never was one.")
    ] = False,
) -> None:
    """Charge a restored database with the costs that its high-water mark records.

    It never refunds anything.
    """
    from app.cli import installation

    settings = load_settings(data_dir=data_dir)
    with explain_failures():
        installation.check_exists(settings)
        done = installation.reconcile(settings, adopt=adopt)
    typer.echo("\n".join(f"{each.account_id}: {each.outcome}" for each in done) or "nothing to do")


@cli.command()
def unfreeze(
    dataset_id: Annotated[str, typer.Argument(help="Id of the dataset.")],
    reason: Annotated[str, typer.Option(help="Reason, which the ledger and the audit log record.")],
    data_dir: DataDir = None,
) -> None:
    """End the freeze of a dataset's account, unless tampering caused the freeze."""
    from app.cli import installation

    settings = load_settings(data_dir=data_dir)
    with explain_failures():
        installation.check_exists(settings)
        installation.unfreeze(settings, dataset_id, reason)
    typer.echo(f"{dataset_id}: the account is not frozen any more")


@cli.command()
def reset_audit(
    reason: Annotated[str, typer.Option(help="Reason, which the audit log records.")],
    data_dir: DataDir = None,
) -> None:
    """End an alarm of the continuous privacy audit.

    Its evidence starts again at 1, and its threshold doubles.
    """
    from app.cli import installation
    from app.privacy.audit.thresholds import compute_log_threshold

    settings = load_settings(data_dir=data_dir)
    with explain_failures():
        installation.check_exists(settings)
        resets = installation.reset_audit(settings, reason)
    threshold = math.exp(compute_log_threshold(resets))
    typer.echo(f"the continuous audit starts again (reset {resets}); its threshold is now {threshold:,.0f}")


@cli.command()
def admin_key(
    file: Annotated[Path, typer.Argument(help="New file for the key, or - for standard output.")],
    data_dir: DataDir = None,
) -> None:
    """Create an administrator's API key and write it to a new file."""
    from app.cli import installation

    settings = load_settings(data_dir=data_dir)
    with explain_failures():
        installation.check_exists(settings)
        if str(file) == "-":
            typer.echo(installation.create_admin_key(settings))
        elif not installation.write_admin_key(settings, file):
            fail(f"{file} exists already, so no key was created; choose another file")
        else:
            typer.echo(f"{file} holds an administrator's key of {settings.data_dir.resolve()}", err=True)


def main() -> None:
    atexit.register(ignore_present_objects)
    cli()
