"""Populations with their accounts, for lists. A caller sees the populations of the datasets that it may see."""

from dataclasses import dataclass

from app.auth.caller import Caller
from app.datasets import access
from app.datasets.populations import Population, list_populations
from app.db import ReadSession
from app.ledger import AccountDatasets, AccountOverview, Ledger


@dataclass(frozen=True, slots=True)
class PopulationAccount:
    """The datasets of a population that the caller may see, and their account; public data has none."""

    population: Population
    account: AccountOverview | None


def list_accounts(
    session: ReadSession, ledger: Ledger, caller: Caller, *, before: str | None, limit: int
) -> list[PopulationAccount]:
    """List populations with a fixed number of database queries, newest datasets first.

    Nothing here depends on datasets that the caller may not see, except the account's balance and pace. Every budget
    of a dataset states them.
    """
    populations = list_populations(session, access.choose_key_filter(caller), before, limit)
    wanted = [
        AccountDatasets(tuple(each.id for each in population.members), tuple(each.id for each in population.active))
        for population in populations
        if not population.is_public
    ]
    accounts = ledger.accounts(session, wanted, caller.id)
    return [PopulationAccount(each, accounts.get(each.members[0].id)) for each in populations]
