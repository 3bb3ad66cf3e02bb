"""Replies to what-if questions about a budget, and to the verification of its ledger."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from corevault._show import Table
from corevault.replies._decode import Reply
from corevault.replies.dataset import Allocation, Cost, LedgerEntry


@dataclass(frozen=True, kw_only=True, repr=False)
class Risk(Reply):
    """The power of an attacker who has every release.

    The attacker tests whether one unit is in the data. ``odds`` are the highest odds to one that the attacker can reach
    from even odds, up to δ. ``true_positives`` is the rate of true positives of a test with 1 % false positives; an
    upper bound, unless it is ``exact``.

    >>> client.datasets.preview_job("clinic", epsilon=0.5).risk_after.odds > 1
    True
    """

    epsilon: float
    delta: float
    odds: float
    true_positives: float
    exact: bool

    def __str__(self) -> str:
        return f"odds {self.odds:.3g} to 1, {100 * self.true_positives:.2g} % true positives"


@dataclass(frozen=True, kw_only=True, repr=False)
class JobOutlook(Reply):
    """The consequence of a job. ``reason`` is why it would be refused, as in a quote; None if it would be admitted.

    ``more_like_this`` is the number of identical jobs that would still be admitted after this one.

    >>> outlook = client.datasets.preview_job("clinic", epsilon=0.5)
    >>> outlook.affordable, outlook.epsilon_before < outlook.epsilon_after
    (True, True)
    """

    cost: Cost
    affordable: bool
    reason: str | None = None
    more_like_this: int
    epsilon_before: float
    epsilon_after: float
    risk_before: Risk
    risk_after: Risk


@dataclass(frozen=True, kw_only=True, repr=False)
class Outlook(Reply):
    """An account before or after a change. ``more_like_last`` counts further jobs like the dataset's last one.

    It is None if there was no job. ``risk`` applies if the whole of the highest limit so far is spent.

    >>> client.datasets.preview_budget("clinic", epsilon=9.0).after.limit.epsilon
    9.0
    """

    limit: Cost
    spent: Cost
    reserved: Cost
    remaining: Cost
    more_like_last: int | None = None
    allocation: Allocation | None = None
    risk: Risk


@dataclass(frozen=True, kw_only=True, repr=False)
class Comparison(Reply):
    """An account before and after a change, which was not made. It prints as a table.

    Costs are stated at the δ of their limit. At a larger δ, the same jobs have a smaller ε. So ``remaining`` may fall a
    little when a limit is raised, although no job loses its room.

    >>> print(client.datasets.preview_budget("clinic", epsilon=9.0))
    what             before...
    limit            ε=10, δ=1e-06            ε=9, δ=1e-06
    ...
    """

    before: Outlook
    after: Outlook

    def rows(self) -> list[Mapping[str, Any]]:
        """The members of both states, one row each.

        >>> [row["what"] for row in client.datasets.preview_budget("clinic", epsilon=9.0).rows()][:2]
        ['limit', 'spent']
        """
        before, after = self.before.facts(), self.after.facts()
        shown = [name for name in before if before[name] is not None or after[name] is not None]
        return [{"what": name, "before": before[name], "after": after[name]} for name in shown]

    def __str__(self) -> str:
        return str(Table(self.rows()))


@dataclass(frozen=True, kw_only=True, repr=False)
class Recomputation(Reply):
    """The server's verification of a ledger. ``verifies``: the entries form one chain and add up to the balance.

    >>> client.datasets.recompute_ledger("clinic").verifies
    True
    """

    SHOWN: ClassVar[tuple[str, ...]] = ("verifies",)

    verifies: bool
    newest: LedgerEntry | None = None
