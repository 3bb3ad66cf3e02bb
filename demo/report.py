"""The demo's output, as tables."""

from collections.abc import Sequence

from corevault import Budget, BudgetExceeded, LedgerEntry, Quote, Release
from corevault.replies.catalogue import Method
from rich.console import Console
from rich.table import Table

from demo.posteriors import Comparison

_YES_NO = {True: "yes", False: "no", None: "not judged"}


def print_heading(console: Console, text: str) -> None:
    """Prints the heading of a step."""
    console.print(f"\n[bold]{text}[/bold]")


def print_method(console: Console, default: Method) -> None:
    """Prints the default method, and when to choose another."""
    print_heading(console, f"Method: {default.id}, the default")
    console.print(
        "It answers a few dozen queries on the whole table with noise, and fits the points to the answers.\n"
        "Choose dp-vi if the certificate should cover a normal posterior, or if a quote warns of too many\n"
        "parameters for the noise. Choose dp-psvi for the published algorithm."
    )


def print_quote(console: Console, quoted: Quote) -> None:
    """Prints the price of a job."""
    cost = quoted.cost
    console.print(f"One job costs ε = {cost.epsilon:.3f} at δ = {cost.delta:g}" if cost else "No cost", end="; ")
    console.print(f"the budget covers {quoted.more_like_this} such jobs.")
    for name, value in (quoted.mechanism or {}).items():
        console.print(f"  {name} = {value:.4g}")
    for warning in quoted.warnings:
        console.print(f"  [yellow]{warning}[/yellow]")


def print_refusal(console: Console, error: BudgetExceeded) -> None:
    """Prints the expected refusal of the last job."""
    console.print(f"[green]Refused, as expected:[/green] {error.code}: {error.detail}")
    figures = {"requested": error.requested, "total after the job": error.epsilon_after}
    figures |= {"limit": error.limit, "largest remaining job": error.remaining}
    console.print("  " + "; ".join(f"{name} {_figure(value)}" for name, value in figures.items()))


def _figure(value: object) -> str:
    epsilon = getattr(value, "epsilon", value)
    return f"ε = {epsilon:.3f}" if isinstance(epsilon, int | float) else "?"


def print_coefficients(console: Console, comparison: Comparison) -> None:
    """Prints posterior means and standard deviations in columns."""
    table = Table("coefficient", title="Posterior mean ± standard deviation")
    for column in ("full table", "first release", "all releases"):
        table.add_column(column, justify="right")
    beliefs = (comparison.full, comparison.single[0], comparison.pooled)
    for i, name in enumerate(comparison.full.names):
        table.add_row(name, *(f"{belief.mean[i]:+.3f} ± {belief.sd[i]:.3f}" for belief in beliefs))
    console.print(table)


def print_distances(console: Console, comparison: Comparison, releases: Sequence[Release]) -> None:
    """Prints the reverse KL to the full table's posterior."""
    caption = "All releases together: the mean of their log-likelihoods, at no further cost."
    table = Table("posterior", title="KL(posterior ‖ posterior of the full table)", caption=caption)
    table.add_column("nats", justify="right")
    table.add_column("trusted")
    table.add_row("prior, without data", f"{comparison.prior_kl:.1f}", "")
    for release, kl in zip(releases, comparison.single_kl, strict=True):
        table.add_row(f"release {release.id}", f"{kl:.1f}", _YES_NO[release.trusted])
    table.add_row("all releases together", f"{comparison.pooled_kl:.1f}", "")
    console.print(table)


def print_accuracy(console: Console, comparison: Comparison, rows: int) -> None:
    """Prints the share of correct predictions of each posterior."""
    table = Table("prediction by", title=f"Accuracy on {rows:,} held-out person-years")
    table.add_column("correct", justify="right")
    for name, share in comparison.accuracy.items():
        table.add_row(name, f"{share:.1%}")
    console.print(table)


def print_ledger(console: Console, entries: Sequence[LedgerEntry]) -> None:
    """Prints the account's hash chain."""
    table = Table("#", "entry", "job", "ε after", "hash", title="Ledger")
    for entry in entries:
        after = "" if entry.epsilon_after is None else f"{entry.epsilon_after:.4f}"
        table.add_row(str(entry.sequence), entry.kind, entry.job_id or "", after, entry.entry_hash[:12])
    console.print(table)


def print_budget(console: Console, after: Budget) -> None:
    """Prints the account's balance."""
    console.print(
        f"Budget: spent ε = {after.spent.epsilon:.3f} of {after.limit.epsilon:g} at δ = {after.limit.delta:g} "
        f"({after.accountant}, {after.relation}, unit {after.unit}); {after.used_share:.0%} of the filter used; "
        f"jobs settled {after.jobs.settled}, refused {after.jobs.refused}."
    )
