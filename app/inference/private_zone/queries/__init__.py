"""The kinds of queries that an oracle answers.

To add one, write a class in a module of this package, and add it to ``_ALL``.
"""

from app.inference.core.query import Query
from app.inference.private_zone.queries.groups import GroupPotentialSum
from app.inference.private_zone.queries.information import InformationSum
from app.inference.private_zone.queries.lengths import LengthHistogram
from app.inference.private_zone.queries.moments import MeanSum, MomentSum
from app.inference.private_zone.queries.potentials import PotentialSum
from app.inference.private_zone.queries.residuals import ExcessSum, ResidualHistogram
from app.inference.private_zone.queries.robust import RobustInformationSum, RobustPotentialSum, RobustScoreSum
from app.inference.private_zone.queries.scores import BoundedScoreSum, ClippedScoreSum, CutScoreSum
from app.inference.private_zone.queries.statistics import StatisticSum
from app.inference.private_zone.queries.tails import TailSum
from app.inference.private_zone.queries.topics import TopicSum

__all__ = [
    "BoundedScoreSum",
    "ClippedScoreSum",
    "CutScoreSum",
    "ExcessSum",
    "GroupPotentialSum",
    "InformationSum",
    "LengthHistogram",
    "MeanSum",
    "MomentSum",
    "PotentialSum",
    "ResidualHistogram",
    "RobustInformationSum",
    "RobustPotentialSum",
    "RobustScoreSum",
    "StatisticSum",
    "TailSum",
    "TopicSum",
    "find_kind",
]

_ALL: tuple[type[Query], ...] = (
    BoundedScoreSum,
    ClippedScoreSum,
    CutScoreSum,
    ExcessSum,
    GroupPotentialSum,
    InformationSum,
    LengthHistogram,
    MeanSum,
    MomentSum,
    PotentialSum,
    ResidualHistogram,
    RobustInformationSum,
    RobustPotentialSum,
    RobustScoreSum,
    StatisticSum,
    TailSum,
    TopicSum,
)
_KINDS: dict[str, type[Query]] = {each.kind: each for each in _ALL}


def find_kind(name: str) -> type[Query] | None:
    """Find the class whose :attr:`~app.inference.core.query.Query.kind` is ``name``, or None."""
    return _KINDS.get(name)
