"""Every number of the method that is not mathematics, with its unit and what chose it."""

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Tuning:
    """The numbers; see the comments for units. "nats" are of KL from the full posterior."""

    # Budget: shares of the precision of one Gaussian of the whole budget.
    lengths_share: float = 0.0005
    most_lengths_share: float = 0.02
    lengths_noise: float = 0.05  # of the slots, in a bin; more noise than this buys a larger share
    means_share: float = 0.01
    tails_share: float = 0.01
    moments_share: float = 0.02
    searching_moments_share: float = 0.05
    information_share: float = 0.14  # of all matrices together
    quiet_information_share: float = 0.17
    residuals_share: float = 0.05  # of the histogram of residuals
    excess_share: float = 0.05  # of each sum of what cuts took

    # Regimes, by sigma D^2 / (q slots) (matrices) and (sigma D / q)^2 / (2 slots) nats (scores).
    crowded: float = 0.3
    columns: float = 3.0
    quiet: float = 0.4
    fewest_rounds: int = 8
    most_rounds: int = 13
    growth: float = 1.4  # of a score's share from round to round
    crowded_growth: float = 1.25
    direct_growth: float = 1.6

    # Belief of rows.
    draws: int = 2048
    targets: int = 4  # drawn for each row where a bound depends on the target
    least_count: float = 0.01  # of the places

    # Matrices.
    matrix_powers: tuple[float, ...] = (2.0, 2.6, 3.2)  # of Lewis weights
    matrix_bounds: tuple[float, float, int] = (1.5, 20.0, 8)  # kappa: R = kappa D / n
    spectral_floor: tuple[float, float] = (0.1, 0.5)  # of a correction's eigenvalues, by noise
    most_change: tuple[float, float] = (0.1, 4.0)  # of the information in one direction, by one step

    # Scores.
    score_powers: tuple[float, ...] = (2.0, 2.6, 3.2)
    along: tuple[float, ...] = (0.0, 4.0)  # room along the parameter
    score_bounds: tuple[float, float, int] = (1.6, 40.0, 10)  # kappa: C^2 = kappa D / n
    usual_bound: float = 2.0  # kappa, where a cut is chosen
    first_cut: float = 3.0  # deviations, before residuals are known
    wrong_labels: float = 0.01  # share of targets that follow no model
    misfits: tuple[float, ...] = (1e-5, 1e-4, 3e-4, 1e-3, 3e-3)  # variance of a row's smooth misfit, of its own
    usual_misfit: float = 1e-5
    shares: tuple[float, ...] = (0.003, 0.02, 0.1, 0.4, 1.2)  # of secants' errors, of the squared distance
    own_error: float = 0.3
    vagueness: float = 1.5  # deviations by which the information may be less than believed
    sweeps: int = 2
    first_step: float = 2.0  # root mean square change of linear predictors
    step: float = 1.0
    step_of_predictors: float = 0.25  # of their root mean square
    furthest_step: float = 2.5  # of the row in 500 that changes most

    # Release.
    most_surprise: float = 2.0  # mean square of standardised innovations
    most_noise: float = 0.5  # of the nats that were learned
    most_step: float = 4.0  # times the other doubt, in nats
    fewest_counted: float = 3.0  # times the noise in the count of rows
    most_fit: float = 1.0  # nats between the belief and the points


TUNING: Final = Tuning()
