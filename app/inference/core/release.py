"""The release of a method: points, a belief or group weights, with their design, reliability and diagnostics."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from app.inference.core.belief import GROUP_WEIGHTS, Block, make_block, make_normal
from app.inference.core.model import Array64
from app.inference.core.reasons import CATALOGUE, Reason


class Grade(StrEnum):
    """The use that a release allows, from best to worst."""

    CALIBRATED = "calibrated"
    """No check of the method failed. Intervals of the posterior with the stated noise may be used."""
    CENTRE_ONLY = "centre-only"
    """The centre may be used, as for predictions, but intervals may not."""
    NOT_USABLE = "not-usable"
    """Neither the centre nor intervals may be used."""


@dataclass(frozen=True, slots=True)
class Reliability:
    """The grade of a release, and the reasons for it.

    A calibrated release may have reasons too. They are then remarks, and its stated noise covers their effect.

    Raises:
        ValueError: a reason is not in the catalogue, or a grade below calibrated has no reason.
    """

    grade: Grade
    reasons: tuple[Reason, ...] = ()

    def __post_init__(self) -> None:
        """Check the reasons, whose words are published."""
        if any(CATALOGUE.get(reason.code) != reason for reason in self.reasons):
            raise ValueError("a reason of a release must be in the catalogue")
        if self.grade is not Grade.CALIBRATED and not self.reasons:
            raise ValueError("a grade below calibrated needs a reason")

    @property
    def is_calibrated(self) -> bool:
        """Whether no check failed, so that intervals with the stated noise may be used."""
        return self.grade is Grade.CALIBRATED


CALIBRATED: Final = Reliability(Grade.CALIBRATED)


def judge(findings: Iterable[tuple[Reason, Grade]]) -> Reliability:
    """Make the reliability from reasons, each with the best grade that it allows.

    The grade is the worst of them. Without a reason, the release is calibrated.
    """
    found = list(findings)
    grade = max((grade for _, grade in found), key=list(Grade).index, default=Grade.CALIBRATED)
    return Reliability(grade, tuple(dict.fromkeys(reason for reason, _ in found)))


@dataclass(frozen=True, slots=True)
class DesignColumn:
    """The source and transform of one design column (the public ``design`` of a release).

    A column of a term has the term's name in ``term``. If the term reads several declared columns, they are
    ``sources``, and ``source`` is None.
    """

    name: str
    source: str | None
    transform: Mapping[str, Any]  # {"kind": "affine"|"indicator"|"constant"|"product"|"legendre"|..., ...}
    term: str | None = None
    sources: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Posterior:
    """A normal posterior of the D parameters ``names``, in the design's coordinates.

    ``covariance`` is ``(D, D)``, or ``(D,)`` if it is diagonal.
    """

    names: tuple[str, ...]
    mean: Array64  # (D,)
    covariance: Array64


@dataclass(frozen=True, slots=True)
class Pseudocoreset:
    """Weighted pseudopoints, with targets in the table's units.

    ``posterior`` is None for methods that release points only.

    ``doubt`` ``(D, D)`` is the joint covariance of the error in the posterior's mean, in the design's coordinates. It
    covers noise, bounds on contributions and a search that ended early. It is zero if the mean has no error, and None
    if the method cannot state it. Such a release is never calibrated. Intervals with the noise come from the
    posterior's covariance plus ``doubt``.

    ``reliability`` is None only if a method makes no statement. If ``diagnostics`` have ``trusted``, it is true if and
    only if the grade is calibrated.

    Raises:
        ValueError: the release calls itself calibrated, but states no doubt.
    """

    u: Array64  # (M, p), intercept included, columns as in ``design``
    y: Array64 | None  # (M,)
    weight: Array64  # (M,), non-negative
    design: tuple[DesignColumn, ...]
    diagnostics: Mapping[str, Any] = field(default_factory=dict)
    posterior: Posterior | None = None
    doubt: Array64 | None = None  # (D, D)
    reliability: Reliability | None = None
    further: tuple[Block, ...] = ()  # other distributions

    def __post_init__(self) -> None:
        """Check that a calibrated release states its doubt."""
        if self.reliability is not None and self.reliability.is_calibrated and self.doubt is None:
            raise ValueError("a calibrated release must state its doubt")

    def make_blocks(self, names: Sequence[str]) -> tuple[Block, ...]:
        """Make the belief of the D parameters ``names``; empty if the release states none."""
        blocks = list(self.further)
        if self.posterior is not None:
            posterior = self.posterior
            blocks.insert(0, make_normal("posterior", posterior.names, posterior.mean, posterior.covariance))
        if self.doubt is not None:
            blocks.append(make_normal("noise", names, np.zeros(len(names)), self.doubt))
        return tuple(blocks)


@dataclass(frozen=True, slots=True)
class BeliefRelease:
    """A belief without points: the distributions of a model's parameters, as ``blocks``.

    ``design`` states how each column is made. ``reliability`` and ``diagnostics`` are as in a :class:`Pseudocoreset`.
    """

    design: tuple[DesignColumn, ...]
    blocks: tuple[Block, ...]
    reliability: Reliability
    diagnostics: Mapping[str, Any] = field(default_factory=dict)


def name_group(columns: Iterable[str], label: Iterable[str]) -> str:
    """Name a group by its columns and their values."""
    return ", ".join(map("=".join, zip(columns, label, strict=True)))


@dataclass(frozen=True, slots=True)
class GroupWeights:
    """Weights of G declared groups of rows, without rows and points.

    The weighted sum of the groups' log-likelihoods approximates the sum over all of them. ``columns`` ``(k,)`` make the
    groups, and ``labels`` ``(G, k)`` are their values. ``answers`` ``(G, S)`` are the noised sums of centred
    log-likelihoods at ``draws`` ``(S, D)`` of ``parameters`` ``(D,)``, and ``noise`` is the standard deviation of each.

    ``strength`` ``(G,)`` is the root mean square of a group's sum over the draws, without noise, in nats.
    ``agreement`` ``(G,)`` is its correlation with the sum over the other groups. At a wide belief, it is negative
    if the group prefers other parameters than the others. At the posterior, slopes cancel, so it is low for all.
    ``above_noise`` ``(G,)`` is 1 if noise alone would hardly give as long an answer, and 0 otherwise.
    """

    columns: tuple[str, ...]
    labels: tuple[tuple[str, ...], ...]
    weight: Array64
    strength: Array64
    agreement: Array64
    above_noise: Array64
    noise: float
    parameters: tuple[str, ...]
    draws: Array64
    answers: Array64
    design: tuple[DesignColumn, ...]
    reliability: Reliability
    diagnostics: Mapping[str, Any] = field(default_factory=dict)

    def make_block(self) -> Block:
        """Make the block that is rendered, named ``groups``."""
        names = [name_group(self.columns, label) for label in self.labels]
        arrays: dict[str, NDArray[Any]] = {
            "values": np.array(self.columns, dtype=np.str_),
            "labels": np.array(self.labels, dtype=np.str_),
            "weight": self.weight,
            "strength": self.strength,
            "agreement": self.agreement,
            "above_noise": self.above_noise,
            "noise": np.array([self.noise]),
            "parameters": np.array(self.parameters, dtype=np.str_),
            "draws": self.draws,
            "answers": self.answers,
        }
        return make_block("groups", GROUP_WEIGHTS, names, arrays)


Released = Pseudocoreset | BeliefRelease | GroupWeights
"""The release of a run."""
