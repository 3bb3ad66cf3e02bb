"""``corevaultd keys``: making, rotating, keeping and bringing back the keys of an installation."""

import os
import subprocess
from datetime import timedelta
from pathlib import Path
from typing import Annotated

import typer

from app.cli import installation
from app.cli.failures import explain_failures, fail, load_settings
from app.cli.up import child_environment, script
from app.vault import escrow, rotation

DataDir = Annotated[Path | None, typer.Option(help="Folder of the installation; ./corevault-data if none is named.")]
ApiShare = Annotated[Path | None, typer.Option(help="Folder of the API's share; api/ among the keys if none is named.")]

keys_cli = typer.Typer(
    help="Create the key files that are missing; with a command, rotate, escrow or restore them.",
    invoke_without_command=True,
    pretty_exceptions_enable=False,
)


@keys_cli.callback()
def create(context: typer.Context, data_dir: DataDir = None, api_share: ApiShare = None) -> None:
    """Create the key files that are missing; the API's share lies in a folder of its own."""
    if context.invoked_subcommand is not None:
        return
    settings = load_settings(data_dir=data_dir)
    installation.check_folder(data_dir)
    with explain_failures():
        share = installation.create_keys(settings, api_share)
    typer.echo(f"worker: COREVAULT_KEYS_DIR={settings.keys_dir}\napi:    COREVAULT_KEYS_DIR={share}")


@keys_cli.command()
def rotate(
    use: Annotated[str, typer.Argument(help="opening, ledger or release.")],
    data_dir: DataDir = None,
    api_share: ApiShare = None,
) -> None:
    """Put a new key in the place of one in use. Restart the workers, then the API; after `opening`, `keys rewrap`.

    For `ledger`, stop them first: whatever the old key signs after this is not believed.
    """
    found = [known for known in rotation.USES if known == use]
    if not found:
        fail("rotate one of: opening, ledger, release", 2)
    settings = load_settings(data_dir=data_dir)
    installation.check_keys(settings)
    with explain_failures():
        if found[0] == "ledger":
            installation.check_exists(settings)
        ledger = found[0] == "ledger"
        retired = installation.rotate_ledger_key(settings) if ledger else rotation.rotate(settings.keys_dir, found[0])
        installation.create_keys(settings, api_share)
    typer.echo(f"{use} key {retired} retired; restart the workers, then the API")


@keys_cli.command()
def rewrap(
    data_dir: DataDir = None,
    destroy_retired: Annotated[
        bool, typer.Option("--destroy-retired", help="Destroy the retired opening keys once nothing needs them.")
    ] = False,
    yes: Annotated[
        bool, typer.Option("--yes", help="Also those that retired in the last 24 hours: every API was restarted.")
    ] = False,
) -> None:
    """Seal the keys of all datasets anew, to the opening key that is in use (runs as the worker)."""
    settings = load_settings(data_dir=data_dir)
    installation.check_keys(settings)
    with explain_failures():
        installation.check_exists(settings)
        done = subprocess.run((script("corevault-worker"), "rewrap"), env=child_environment(settings), check=False)
        if done.returncode != 0:
            raise typer.Exit(1)
        if destroy_retired:
            destroyed = rotation.destroy_retired_opening(settings.keys_dir, timedelta() if yes else rotation.GRACE)
            typer.echo(f"{destroyed} retired opening keys destroyed")


@keys_cli.command()
def escrow_key(file: Path) -> None:
    """Make an escrow key: its secret in FILE, to be kept away from the service; the public key beside it (.pub)."""
    with explain_failures():
        typer.echo(f"give the service {escrow.new_escrow_key(file)} only")


@keys_cli.command(name="escrow")
def seal(
    out: Path,
    recipient: Annotated[Path, typer.Option(help="File with the escrow key's public half.")],
    data_dir: DataDir = None,
) -> None:
    """Write all keys, sealed to the escrow key, to OUT, which must not exist."""
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
    sealed: Path,
    escrow_secret: Annotated[Path, typer.Option("--escrow-key", help="File with the escrow key's secret.")],
    data_dir: DataDir = None,
    api_share: ApiShare = None,
) -> None:
    """Bring back keys from an escrow; what is there already must be the same."""
    settings = load_settings(data_dir=data_dir)
    with explain_failures():
        restored = escrow.restore_keys(sealed.read_bytes(), escrow_secret, settings.keys_dir)
        installation.create_keys(settings, api_share)
    typer.echo(f"{restored} keys restored")
