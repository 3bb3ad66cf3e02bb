"""``corevaultd keys``: commands that create, rotate, escrow and restore keys.

Each command imports its modules when it runs, as in :mod:`app.cli.commands`.
"""

import os
import subprocess
from datetime import timedelta
from pathlib import Path
from typing import Annotated

import typer

from app.cli.failures import MISUSED, explain_failures, fail, load_settings

DataDir = Annotated[
    Path | None,
    typer.Option(help="Folder of the installation. Default: COREVAULT_DATA_DIR, or else ./corevault-data."),
]
ApiShare = Annotated[
    Path | None, typer.Option(help="Folder for the keys that the API may read. Default: api/ in the key directory.")
]

keys_cli = typer.Typer(
    help="Create missing key files. The subcommands rotate, escrow and restore keys.",
    invoke_without_command=True,
    pretty_exceptions_enable=False,
)


@keys_cli.callback()
def create(context: typer.Context, data_dir: DataDir = None, api_share: ApiShare = None) -> None:
    """Create the missing key files, and copy the API's keys to a separate folder."""
    from app.cli import installation

    if context.invoked_subcommand is not None:
        return
    settings = load_settings(data_dir=data_dir)
    installation.check_folder(data_dir)
    with explain_failures():
        share = installation.create_keys(settings, api_share)
    typer.echo(f"worker: COREVAULT_KEYS_DIR={settings.keys_dir}\napi:    COREVAULT_KEYS_DIR={share}")


@keys_cli.command()
def rotate(
    use: Annotated[str, typer.Argument(help="Key to rotate: opening, ledger or release.")],
    data_dir: DataDir = None,
    api_share: ApiShare = None,
) -> None:
    """Replace a key in use by a new one.

    Restart the workers afterwards, and then the API. After `opening`, also run `keys rewrap`. Before `ledger`, stop all
    workers and APIs, because signatures that the old key makes later are not accepted.
    """
    from app.cli import installation
    from app.vault import rotation

    matching = [each for each in rotation.USES if each == use]
    if not matching:
        fail("there is no such key; choose opening, ledger or release", MISUSED)
    settings = load_settings(data_dir=data_dir)
    installation.check_keys(settings)
    with explain_failures():
        if matching[0] == "ledger":
            installation.check_exists(settings)
            retired = installation.rotate_ledger_key(settings)
        else:
            retired = rotation.rotate(settings.keys_dir, matching[0])
        installation.create_keys(settings, api_share)
    typer.echo(f"{use} key {retired} retired; restart the workers, then the API")


@keys_cli.command()
def rewrap(
    data_dir: DataDir = None,
    destroy_retired: Annotated[
        bool, typer.Option("--destroy-retired", help="Then destroy the retired opening keys, if no upload needs one.")
    ] = False,
    yes: Annotated[
        bool,
        typer.Option(
            "--yes",
            help="Confirm that every API was restarted after the rotation, and also destroy keys that were retired in "
            "the last 24 hours.",
        ),
    ] = False,
) -> None:
    """Seal the keys of all datasets again, to the current opening key.

    It needs the worker's keys and storage.
    """
    from app.cli import installation
    from app.cli.processes import find_script
    from app.cli.up import make_child_environment
    from app.vault import rotation

    settings = load_settings(data_dir=data_dir)
    installation.check_keys(settings)
    with explain_failures():
        installation.check_exists(settings)
        done = subprocess.run(
            (find_script("corevault-worker"), "rewrap"), env=make_child_environment(settings), check=False
        )
        if done.returncode != 0:
            raise typer.Exit(1)
        if destroy_retired:
            destroyed = rotation.destroy_retired_opening(settings.keys_dir, timedelta() if yes else rotation.GRACE)
            typer.echo(f"{destroyed} retired opening keys destroyed")


@keys_cli.command()
def escrow_key(file: Annotated[Path, typer.Argument(help="New file for the secret of the escrow key.")]) -> None:
    """Create an escrow key pair. Run this on a separate machine.

    The public key is written to the same file name with the suffix .pub. Never copy the secret to the service.
    """
    from app.vault import escrow

    with explain_failures():
        typer.echo(f"copy only {escrow.create_escrow_key(file)} to the service")


@keys_cli.command(name="escrow")
def seal(
    out: Annotated[Path, typer.Argument(help="New file for the sealed keys.")],
    recipient: Annotated[Path, typer.Option(help="File with the public key of the escrow key (.pub).")],
    data_dir: DataDir = None,
) -> None:
    """Write all keys, sealed to the escrow key, to a new file."""
    from app.cli import installation
    from app.vault import escrow

    settings = load_settings(data_dir=data_dir)
    installation.check_keys(settings)
    with explain_failures():
        sealed = escrow.seal_keys(settings.keys_dir, recipient)
        with out.open("xb") as file:
            file.write(sealed)
            file.flush()
            os.fsync(file.fileno())


@keys_cli.command()
def restore(
    sealed: Annotated[Path, typer.Argument(help="File that `keys escrow` has written.")],
    escrow_secret: Annotated[Path, typer.Option("--escrow-key", help="File with the secret of the escrow key.")],
    data_dir: DataDir = None,
    api_share: ApiShare = None,
) -> None:
    """Restore keys from an escrow file.

    Missing keys are added. Nothing is overwritten; keys that exist already must be the same.
    """
    from app.cli import installation
    from app.vault import escrow

    settings = load_settings(data_dir=data_dir)
    with explain_failures():
        restored = escrow.restore_keys(sealed.read_bytes(), escrow_secret, settings.keys_dir)
        installation.create_keys(settings, api_share)
    typer.echo(f"{restored} keys restored")
