"""``python -m demo``: exits with 0 only if every step and every check succeeds."""

import signal
import sys
import tempfile
import time
from pathlib import Path

import httpx
from corevault import Client, CorevaultError
from rich.console import Console

from demo import analyst, balance, owner, picture, posteriors, public, report, table
from demo.failure import DemoFailed
from demo.server import Server, run_server

PICTURE = Path("demo-output") / "posteriors.png"


def main() -> int:
    """Runs the demo; returns the exit status."""
    console = Console(width=None if sys.stdout.isatty() else 110)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    started = time.monotonic()
    try:
        with tempfile.TemporaryDirectory(prefix="corevault-demo-") as folder:
            report.print_heading(console, "Starting corevaultd up in a temporary folder")
            with run_server(Path(folder)) as server:
                run(console, server)
    except (DemoFailed, CorevaultError) as error:
        console.print(f"\n[bold red]Failed:[/bold red] {error}", markup=True, highlight=False)
        return 1
    except KeyboardInterrupt:
        console.print("\nInterrupted; the server was stopped.")
        return 130
    console.print(f"\n[bold green]All checks passed[/bold green] in {time.monotonic() - started:.0f} s.")
    return 0


def run(console: Console, server: Server) -> None:
    """The steps of owner, analyst and public. Raises ``DemoFailed`` or ``CorevaultError``."""
    tables = table.load()
    with _client(server, server.admin_key) as admin:
        keys = owner.make_keys(admin)
    with (
        _client(server, keys.owner) as as_owner,
        _client(server, keys.analyst) as as_analyst,
        _client(server, None) as as_public,
    ):
        report.print_heading(console, "Owner: declares, uploads and shares")
        console.print(
            f"{len(tables.train):,} of {len(tables.train) + len(tables.held_out):,} person-years go into "
            f"{table.SLOTS:,} slots. The other rows are held out for the accuracy figure and never uploaded.\n"
            "The table has no person id, so the privacy unit is the row: one person-year.\n"
            "Bounds are declared from the variables' definitions, not computed from the rows."
        )
        dataset = owner.publish_table(as_owner, tables, keys.analyst_id)

        report.print_method(console, next(entry for entry in as_analyst.methods().methods if entry.default))
        report.print_heading(console, "Analyst: asks for the price, then buys until the budget is exhausted")
        report.print_quote(console, analyst.ask_price(as_analyst, dataset.id))
        purchases = analyst.buy_until_refused(as_analyst, dataset.id)
        report.print_refusal(console, purchases.refusal)

        report.print_heading(console, "Public, without an API key: downloads and verifies the releases")
        pairs = public.verify_releases(as_public, dataset.id)
        releases, cores = [release for release, _ in pairs], [core for _, core in pairs]
        console.print(f"{len(pairs)} releases: signatures, statements and the digests of all formats are valid.")

        report.print_heading(console, "Posteriors: that of the full table is for comparison, on the owner's side only")
        comparison = posteriors.compare(cores, tables)
        report.print_coefficients(console, comparison)
        report.print_distances(console, comparison, releases)
        report.print_accuracy(console, comparison, len(tables.held_out))

        report.print_heading(console, "Budget and ledger")
        budget, entries = owner.read_account(as_owner, dataset.id)
        report.print_ledger(console, entries)
        report.print_budget(console, budget)
        balance.check(budget, entries, purchases.jobs, releases)
        picture.draw(PICTURE, comparison, purchases.epsilon_after, analyst.read_refused_total(purchases), budget)
        console.print(f"Picture: {PICTURE}")


def _client(server: Server, key: str | None) -> Client:
    # With an explicit transport httpx ignores proxies of the environment, which cannot reach the loopback address.
    return Client(server.base_url, key, transport=httpx.HTTPTransport())


if __name__ == "__main__":
    sys.exit(main())
