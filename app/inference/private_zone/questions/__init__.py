"""The kinds of questions that an oracle answers: a new one is a class in a file here, and a line in ``_ALL``."""

from app.inference.core.question import Question
from app.inference.private_zone.questions.information import InformationSum
from app.inference.private_zone.questions.lengths import LengthHistogram
from app.inference.private_zone.questions.moments import InformationMomentSum, MeanSum, MomentSum
from app.inference.private_zone.questions.potentials import PotentialSum
from app.inference.private_zone.questions.scores import BoundedScoreSum, ClippedScoreSum
from app.inference.private_zone.questions.tails import TailSum

__all__ = [
    "BoundedScoreSum",
    "ClippedScoreSum",
    "InformationMomentSum",
    "InformationSum",
    "LengthHistogram",
    "MeanSum",
    "MomentSum",
    "PotentialSum",
    "TailSum",
    "kind",
]

_ALL: tuple[type[Question], ...] = (
    BoundedScoreSum,
    ClippedScoreSum,
    InformationMomentSum,
    InformationSum,
    LengthHistogram,
    MeanSum,
    MomentSum,
    PotentialSum,
    TailSum,
)
_KINDS: dict[str, type[Question]] = {each.kind: each for each in _ALL}


def kind(name: str) -> type[Question] | None:
    """The class of that :attr:`~app.inference.core.question.Question.kind`, or None."""
    return _KINDS.get(name)
