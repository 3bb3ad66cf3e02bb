"""The numbers of the method that do not follow from its mathematics."""

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Tuning:
    """The numbers, each with its unit and its effect. Constants of one module are in that module.

    All were chosen on development tables: small seeds of :mod:`benchmarks.tables`, and a few real ones. Nats are units
    of KL divergence from the full posterior. A share is a query's part of the precision of one Gaussian mechanism that
    spends the whole budget (:mod:`app.inference.methods.surrogate.schedule`). D is the number of parameters, n the
    number of rows.
    """

    # Budget.
    lengths_share: float = 0.005  # share; least for a histogram of lengths
    most_lengths_share: float = 0.02  # share; most for a histogram of lengths
    lengths_noise: float = 0.05  # part of the slots; noise in a bin, if that costs a share between the two
    means_share: float = 0.01  # share; the sum of means
    tails_share: float = 0.01  # share; the sum of tails
    moments_share: float = 0.05  # share; the sum of means and squares
    information_share: float = 0.14  # share; all information matrices together
    residuals_share: float = 0.05  # share; the histogram of residuals
    excess_share: float = 0.05  # share; each sum of the excess beyond a cut

    # Regimes and rounds.
    crowded: float = 0.3  # sigma D^2 / (q slots); above it, single matrices are mostly noise
    columns: float = 3.0  # the same; above it, no matrices are asked for
    fewest_rounds: int = 8  # rounds; with much noise
    most_rounds: int = 13  # rounds; with little noise
    growth: float = 1.3  # ratio; share of a score over the share of the score before

    # Belief about rows.
    signal: float = 3.0  # deviations of noise; only counts above it are signal
    draws: int = 2048  # rows; draws that represent all rows, or 4 times the design's width if that is more
    targets: int = 4  # targets; drawn for each row where a bound depends on the target
    furthest_start: float = 3.0  # absolute value; furthest coefficient of the first parameter
    least_count: tuple[float, float] = (2.0, 0.01)  # deviations of noise, part of all places; least number of rows

    # Information matrices.
    correlations: float = 0.06  # relative variance; the belief's information before any matrix
    powers: tuple[float, ...] = (2.0, 3.0, 5.0, 12.0)  # orders of Lewis weights; candidates for metrics, also of scores
    matrix_bounds: tuple[float, float, int] = (1.5, 20.0, 8)  # R n / D: least, most (or more), number; candidates
    spectral_floor: tuple[float, float] = (0.1, 0.5)  # eigenvalue of a correction; least, with little and much noise
    most_change: tuple[float, float] = (0.1, 4.0)  # eigenvalue; least and largest change of information by a step

    # Scores.
    score_bounds: tuple[float, float, float] = (1.6, 40.0, 1.43)  # C^2 n / D: least, most (or more), ratio; candidates
    uniform_bounds: float = 0.4  # ratio; factor of these bounds if rows are uniform: all have about the same length
    usual_bound: float = 2.0  # C^2 n / D over the squared cut; the bound that is assumed where a cut is chosen
    first_cut: float = 3.0  # deviations; the cut of residuals before their histogram
    widening: float = 6.0  # deviations of the predictor's doubt; up to there, scores that redescend grow
    misfit: float = 5e-3  # variance of a row's smooth misfit over its score's; along all axes together
    secant_shares: tuple[float, ...] = (0.003, 0.02, 0.1, 0.4, 1.2)  # error over squared distance; candidates
    usual_secant_share: float = 0.02  # the same; the likeliest one before answers
    own_error: float = 0.3  # the same, over the squared change of predictors too; error of one secant alone
    signals: int = 8  # powers of 4; laws of the parameter have 4^-8 to 4^7 times the prior's variance
    unlikely_signals: float = 0.3  # odds; of a law over the next one that is nearer to the prior's
    sweeps: int = 2  # sweeps; regression and secants alternate
    step: float = 1.0  # root mean square change of linear predictors; longest step
    step_of_predictors: float = 0.5  # part of the linear predictors; longest step, if that is more
    furthest_step: float = 2.5  # change of linear predictors; most for the row in 500 that changes most

    # Release.
    doubt: float = 4.0  # ratio; the stated covariance over the regression's: 95 % intervals then hold 95 %
    vagueness: tuple[float, float] = (1.5, 0.05)  # deviations of information below the belief's; its least part
    most_surprise: float = 2.0  # ratio of variances to the expected ones, of answers or columns; above it, they misfit
    most_moved: float = 0.2  # part of the stated nats; a larger last step means that the search has not converged
    most_noise: float = 1.0  # part of the nats learned; above it, the release is not usable
    far: tuple[float, float, float] = (1.4, 30.0, 100.0)  # deviations; most nats there; most times the noise, if more
    most_leverage: float = 1.0  # part of the belief's information; most that one possible row of terms may have
    least_pull: float = 1e-3  # ratio; least precision of the prior at the mode, over that at its mean
    most_excess: float = 0.2  # part of the rows; more squares of residuals than the model's are wide
    most_fit: tuple[float, float] = (1.0, 0.1)  # belief to points: most nats; most times the noise, if more


TUNING: Final = Tuning()
