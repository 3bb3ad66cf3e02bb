"""What many noised information matrices say together, where a single one is mostly noise.

Two beliefs are kept. One *follows* the answers: each corrects the belief before it, and older ones fade as newer ones
come; right where the information is far from the first belief, or changes along the way. The other *averages* them:
all answers so far, carried to the present parameter, correct the first belief once; right where the first belief was
nearly right, since shrinking the average lets through a fraction of the noise that shrinking each answer does. Every
new answer tells which is nearer before either has seen it: in ``answer = averaged + share (followed - averaged)`` the
share is a regression coefficient. It is one until answers speak for the average, and it forgets: what was true far from
the mode need not be true near it.
"""

from dataclasses import dataclass, replace

import numpy as np

from app.inference.core.model import Array64
from app.inference.methods.surrogate.answer import Answer
from app.inference.methods.surrogate.denoise import level_of
from app.inference.methods.surrogate.matrices import metric, sound, symmetric

_MEMORY = 0.9
"""Of the average, a round, where it fades whatever the step."""
_MEMORY_OF_EVIDENCE = 0.8
_PRIOR_SHARE, _PRIOR_CERTAINTY = 1.0, 4.0
"""Mean and inverse variance of the share, before any answer."""
_TINY = float(np.finfo(np.float64).tiny)


@dataclass(frozen=True, slots=True)
class Memory:
    """``first``, ``followed`` and ``averaged`` ``(D, D)``, the beliefs, include the prior.

    ``total`` ``(D, D)`` is a discounted sum of answers in the parameter's own coordinates, ``weight`` that of their
    weights, ``squared_noise`` that of what noise adds in the metric of ``first``; ``agreement`` and ``certainty`` are
    the two sums of the regression.
    """

    first: Array64
    followed: Array64
    averaged: Array64
    total: Array64
    weight: float = 0.0
    squared_noise: float = 0.0
    agreement: float = _PRIOR_SHARE * _PRIOR_CERTAINTY
    certainty: float = _PRIOR_CERTAINTY

    @property
    def share(self) -> float:
        """Of the belief that follows, [0, 1]."""
        return float(np.clip(self.agreement / self.certainty, 0.0, 1.0))

    @property
    def information(self) -> Array64:
        """Both beliefs, by that share."""
        return self.share * self.followed + (1 - self.share) * self.averaged

    def with_answer(self, answer: Answer) -> "Memory":
        """The share by how well either belief foretold it, and both beliefs corrected."""
        judged = self._judged(answer)
        base = metric(self.first)
        seen = answer.seen_in(base)
        each = 1 / max(answer.noise**2, _TINY)
        total = self.total + each * base.factor @ seen.matrix @ base.factor.T
        weight = self.weight + each
        squared = self.squared_noise + (each * seen.noise) ** 2
        mean = base.whitening @ (total / weight) @ base.whitening.T
        together = replace(seen, matrix=symmetric(mean), noise=float(np.sqrt(squared)) / weight)
        return replace(
            judged,
            followed=answer.corrects(self.followed),
            averaged=together.corrects(self.first),
            total=total,
            weight=weight,
            squared_noise=squared,
        )

    def carried(self, change: Array64, before: Array64, after: Array64, moved: float | None = None) -> "Memory":
        """All of it by the congruence ``change`` ``(D, D)``, and the prior's part from ``before`` to ``after``.

        Information is carried along inexactly, the more so the further: ``moved`` is the root mean square change of
        the linear predictor, and adds ``moved**2 / D`` to the variance of the average's entries. Without it, answers
        fade alike: where they are mostly noise, a step cannot be told from noise either.
        """
        fades = _MEMORY if moved is None else 1 / (1 + self.weight * moved**2 / len(change))
        first, followed, averaged = (
            congruent(belief, change, before, after) for belief in (self.first, self.followed, self.averaged)
        )
        return replace(
            self,
            first=first,
            followed=followed,
            averaged=averaged,
            total=fades * symmetric(change @ self.total @ change.T),
            weight=fades * self.weight,
            squared_noise=fades**2 * self.squared_noise,
        )

    def steadied(self, information: Array64) -> "Memory":
        """Itself, if the next answer can correct it; else begun anew with ``information`` ``(D, D)``."""
        first = sound(self.first)
        finite = all(np.all(np.isfinite(each)) for each in (self.followed, self.averaged, self.total, self.share))
        return replace(self, first=first) if finite and first is not None else begun(information)

    def _judged(self, answer: Answer) -> "Memory":
        followed, averaged = (self._foretold(answer, belief) for belief in (self.followed, self.averaged))
        apart, variance = followed - averaged, max(answer.noise**2, _TINY)
        kept, prior = _MEMORY_OF_EVIDENCE, _PRIOR_CERTAINTY
        agreement = float(np.vdot(answer.matrix - averaged, apart)) / variance
        certainty = float(np.vdot(apart, apart)) / variance
        return replace(
            self,
            agreement=_PRIOR_SHARE * prior + kept * (self.agreement - _PRIOR_SHARE * prior) + agreement,
            certainty=prior + kept * (self.certainty - prior) + certainty,
        )

    def _foretold(self, answer: Answer, belief: Array64) -> Array64:
        expected = answer.expected(belief)
        return level_of(answer.matrix, expected) * expected


def begun(information: Array64) -> Memory:
    """Before any answer: ``information`` ``(D, D)`` is the first belief."""
    return Memory(information, information, information, np.zeros_like(information))


def congruent(belief: Array64, change: Array64, before: Array64, after: Array64) -> Array64:
    """``belief`` ``(D, D)`` by a congruence, at least the prior's part, which goes from ``before`` to ``after``."""
    values, vectors = np.linalg.eigh(symmetric(change @ belief @ change.T) - before)
    return np.asarray((vectors * np.maximum(values, 0)) @ vectors.T + after)
