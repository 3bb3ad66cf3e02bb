"""The filter: particles that follow the posterior of a stream, batch by batch.

Each batch multiplies the particles' weights by its exact likelihood and enters the memory. If fewer than half of the
particles are effective, they are resampled and moved by random-walk Metropolis steps. The moves target the prior times
the weighted likelihood of the memory. At last the memory is compressed. Only the moves depend on the memory; a memory
of all rows gives sequential Monte Carlo with exact moves.

A batch that would leave fewer effective particles enters in several powers (Neal 2001; Jasra et al. 2011). The poster
of the method has no such powers. They keep a few particles from being all that a first batch leaves.
"""

from dataclasses import dataclass, replace
from typing import Final, Protocol

import numpy as np

from app.inference.core.model import Array64
from app.inference.methods.scmc.memory import Compress, Indices, Memory
from app.inference.methods.scmc.particles import (
    compute_proposal_factor,
    count_effective,
    find_power,
    normalise,
    resample,
)

_LEAST_SHARE: Final = 0.5
_MOST_POWERS: Final = 1000
"""Powers in which one batch may enter; the last one is all that remains."""
_WHOLE: Final = 1 - 1e-9
_IMPOSSIBLE: Final = -1e30
"""Replaces log-likelihoods that are not finite, so that sums of them are."""


class Likelihood(Protocol):
    """The part of a model that the filter needs."""

    def log_likelihood(self, rows: Array64, draws: Array64) -> Array64:
        """Compute potentials ``(n, S)`` of ``rows`` at ``draws`` ``(S, D)``."""


class Density(Protocol):
    """The part of a prior that the filter needs."""

    def log_density(self, theta: Array64) -> Array64:
        """Compute the log density ``(n,)`` at parameters ``(n, D)``, up to a constant."""

    def sample(self, rng: np.random.Generator, n: int) -> Array64:
        """Draw ``(n, D)`` parameters."""


@dataclass(frozen=True, slots=True)
class Counts:
    """Work of a filter: likelihoods evaluated, times of resampling, and moves proposed and accepted."""

    evaluations: int = 0
    resamplings: int = 0
    proposed: int = 0
    accepted: int = 0


@dataclass(frozen=True, slots=True)
class State:
    """Particles ``(P, D)`` with log weights ``(P,)``, the memory, and the work so far."""

    particles: Array64
    log_weights: Array64
    memory: Memory
    counts: Counts


@dataclass(frozen=True, slots=True)
class Filter:
    """A model, its prior, the compression of the memory and the number of moves."""

    model: Likelihood
    prior: Density
    compress: Compress
    moves: int

    def init(self, rng: np.random.Generator, particles: int, row_width: int) -> State:
        """Draw the particles from the prior; the memory is empty."""
        memory = Memory(np.zeros(0, np.int64), np.zeros((0, row_width)), np.zeros(0), np.zeros((0, particles)))
        return State(self.prior.sample(rng, particles), np.zeros(particles), memory, Counts())

    def step(self, rng: np.random.Generator, state: State, indices: Indices, rows: Array64) -> State:
        """Filter the next batch: folded ``rows`` at ``indices`` of the table."""
        batch = Memory(indices, rows, np.zeros(len(indices)), self._evaluate(rows, state.particles))
        counts = replace(state.counts, evaluations=state.counts.evaluations + batch.potentials.size)
        state = replace(state, memory=state.memory.append(batch), counts=counts)
        entered, stage = 0.0, 0
        while entered < 1:
            stage += 1
            power = 1 - entered if stage == _MOST_POWERS else self._find_power(state, len(indices), 1 - entered)
            entered = entered + power if entered + power < _WHOLE else 1.0
            state = self._reweight(state, len(indices), power, entered)
            if count_effective(state.log_weights) < _LEAST_SHARE * len(state.log_weights):
                state = self._rejuvenate(rng, state)
        weights = normalise(state.log_weights)
        return replace(state, memory=self.compress(rng, state.memory, weights, len(indices)))

    def _evaluate(self, rows: Array64, particles: Array64) -> Array64:
        with np.errstate(all="ignore"):
            potentials = np.asarray(self.model.log_likelihood(rows, particles))
        return np.nan_to_num(potentials, nan=_IMPOSSIBLE, posinf=_IMPOSSIBLE, neginf=_IMPOSSIBLE)

    def _find_power(self, state: State, new: int, most: float) -> float:
        potentials = state.memory.potentials[-new:].sum(axis=0)
        return find_power(state.log_weights, potentials, most, _LEAST_SHARE * len(potentials))

    def _reweight(self, state: State, new: int, power: float, entered: float) -> State:
        """Multiply by a power of the batch's likelihood; its rows have the weight that has entered so far."""
        memory = state.memory
        log_weights = state.log_weights + power * memory.potentials[-new:].sum(axis=0)
        weights = np.append(memory.weights[:-new], np.full(new, entered))
        return replace(state, log_weights=log_weights - log_weights.max(), memory=replace(memory, weights=weights))

    def _rejuvenate(self, rng: np.random.Generator, state: State) -> State:
        """Resample, and move each particle ``moves`` times."""
        weights = normalise(state.log_weights)
        factor = compute_proposal_factor(state.particles, weights)
        parents = resample(weights, float(rng.random()))
        particles, potentials = state.particles[parents], state.memory.potentials[:, parents]
        target, accepted = self._compute_target(state.memory, particles, potentials), 0
        for _ in range(self.moves):
            proposals = particles + rng.standard_normal(particles.shape) @ factor.T
            evaluated = self._evaluate(state.memory.rows, proposals)
            proposed = self._compute_target(state.memory, proposals, evaluated)
            accepts = np.log(rng.random(len(target))) < proposed - target
            particles[accepts], potentials[:, accepts] = proposals[accepts], evaluated[:, accepts]
            target = np.where(accepts, proposed, target)
            accepted += int(accepts.sum())
        counts = Counts(
            state.counts.evaluations + self.moves * potentials.size,
            state.counts.resamplings + 1,
            state.counts.proposed + self.moves * len(particles),
            state.counts.accepted + accepted,
        )
        return State(particles, np.zeros(len(particles)), replace(state.memory, potentials=potentials), counts)

    def _compute_target(self, memory: Memory, particles: Array64, potentials: Array64) -> Array64:
        """Compute the log density of the prior times the memory's weighted likelihood, ``(P,)``."""
        return memory.weights @ potentials + self.prior.log_density(particles)
