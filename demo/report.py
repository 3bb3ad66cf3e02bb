"""Everything that the demo says, as tables."""

from collections.abc import Sequence

from corevault import Budget, BudgetExceeded, LedgerEntry, Quote, Release
from corevault.replies.catalogue import Method
from rich.console import Console
from rich.table import Table

from demo.posteriors import Comparison

_YES_NO = {True: "yes", False: "no", None: "does not say"}


def heading(console: Console, text: str) -> None:
    """One line a step."""
    console.print(f"\n[bold]{text}[/bold]")


def method(console: Console, usual: Method) -> None:
    """What is bought where no method is named, and when to name one."""
    heading(console, f"Method: {usual.id}, the default")
    console.print(
        "It asks the whole table a few dozen noised queries, placed where noise costs least, and fits the points to\n"
        "what they say. Choose dp-vi where a normal posterior itself should stand under the certificate, or where a\n"
        "quote warns of too many parameters for the noise; choose dp-psvi for the published algorithm."
    )


def quote(console: Console, quoted: Quote) -> None:
    """The price, before anything is bought."""
    cost = quoted.cost
    console.print(f"One job costs ε = {cost.epsilon:.3f} at δ = {cost.delta:g}" if cost else "No cost", end="; ")
    console.print(f"the budget covers {quoted.more_like_this} more like this.")
    for name, value in (quoted.mechanism or {}).items():
        console.print(f"  {name} = {value:.4g}")
    for warning in quoted.warnings:
        console.print(f"  [yellow]{warning}[/yellow]")


def refusal(console: Console, error: BudgetExceeded) -> None:
    """The expected end of the shopping."""
    console.print(f"[green]Refused, as it must be:[/green] {error.code}: {error.detail}")
    figures = {"requested": error.requested, "would make": error.epsilon_after}
    figures |= {"limit": error.limit, "largest job left": error.remaining}
    console.print("  " + "; ".join(f"{name} {_figure(value)}" for name, value in figures.items()))


def _figure(value: object) -> str:
    epsilon = getattr(value, "epsilon", value)
    return f"ε = {epsilon:.3f}" if isinstance(epsilon, int | float) else "?"


def coefficients(console: Console, found: Comparison) -> None:
    """Posterior means and standard deviations, side by side."""
    table = Table("coefficient", title="Posterior mean ± standard deviation")
    for column in ("full table", "first release", "all releases"):
        table.add_column(column, justify="right")
    beliefs = (found.full, found.single[0], found.pooled)
    for i, name in enumerate(found.full.names):
        table.add_row(name, *(f"{belief.mean[i]:+.3f} ± {belief.sd[i]:.3f}" for belief in beliefs))
    console.print(table)


def distances(console: Console, found: Comparison, releases: Sequence[Release]) -> None:
    """Reverse KL to the full posterior."""
    together = "All releases together: their log-likelihoods averaged, at no further cost."
    table = Table("belief", title="KL(belief ‖ posterior of the full table)", caption=together)
    table.add_column("nats", justify="right")
    table.add_column("trusted by itself")
    table.add_row("prior, which knows nothing", f"{found.prior_kl:.1f}", "")
    for release, kl in zip(releases, found.single_kl, strict=True):
        table.add_row(f"release {release.id}", f"{kl:.1f}", _YES_NO[release.trusted])
    table.add_row("all releases together", f"{found.pooled_kl:.1f}", "")
    console.print(table)


def accuracy(console: Console, found: Comparison, rows: int) -> None:
    """How often each posterior predicts right."""
    table = Table("prediction by", title=f"Accuracy on {rows:,} held-out person-years")
    table.add_column("right", justify="right")
    for name, share in found.accuracy.items():
        table.add_row(name, f"{share:.1%}")
    console.print(table)


def ledger(console: Console, entries: Sequence[LedgerEntry]) -> None:
    """The account's chain."""
    table = Table("#", "entry", "job", "ε after", "hash", title="Ledger")
    for entry in entries:
        after = "" if entry.epsilon_after is None else f"{entry.epsilon_after:.4f}"
        table.add_row(str(entry.sequence), entry.kind, entry.job_id or "", after, entry.entry_hash[:12])
    console.print(table)


def budget(console: Console, after: Budget) -> None:
    """What is spent and left."""
    console.print(
        f"Budget: spent ε = {after.spent.epsilon:.3f} of {after.limit.epsilon:g} at δ = {after.limit.delta:g} "
        f"({after.accountant}, {after.relation}, unit {after.unit}); {after.used_share:.0%} of the filter used; "
        f"jobs settled {after.jobs.settled}, refused {after.jobs.refused}."
    )
