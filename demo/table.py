"""The RAND Health Insurance Experiment of ``statsmodels``: 20,190 person-years, public domain.

The target is whether the person saw a doctor in that year.

A declaration is public, so every bound below follows from the variables' definitions and the experiment's design, not
from the rows. The table has no person id, so the privacy unit is the row, one person-year. Most people have several
rows; the guarantee for a person weakens with their number.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from corevault import LogisticRegression, Schema, binary, real
from statsmodels.datasets import randhie

if TYPE_CHECKING:
    import pandas as pd

TARGET = "saw_doctor"

SCHEMA = Schema(
    real("lncoins", 0, 4.62),  # ln(coinsurance in % + 1): ln 101 at most
    binary("idp"),  # individual deductible plan
    real("lpi", 0, 8),  # ln(yearly participation incentive in $): payments stayed well below $3,000
    real("fmde", 0, 8.3),  # ln($1,000 of out-of-pocket maximum / 25 % coinsurance) at most
    real("physlm", 0, 1),  # physical limitation; a share where it was imputed
    real("disea", 0, 60),  # index of chronic diseases
    binary("hlthg"),  # self-rated health good, fair, poor; the reference is excellent
    binary("hlthf"),
    binary("hlthp"),
    binary(TARGET),
)
MODEL = LogisticRegression(features=SCHEMA.names[:-1], target=TARGET, prior_scale=1.0)

SLOTS = 16_500  # the public number of rows to which the table is padded; a little above the uploaded rows
_HELD_OUT_SHARE = 0.2


@dataclass(frozen=True, slots=True)
class Tables:
    """``train`` is uploaded. ``held_out`` stays with the owner, and no posterior uses it."""

    train: "pd.DataFrame"
    held_out: "pd.DataFrame"


def load() -> Tables:
    """Both tables with the declared columns. A random fifth of the rows is held out."""
    frame = randhie.load_pandas().data
    frame[TARGET] = (frame["mdvis"] > 0).astype(int)
    frame = frame[SCHEMA.names].astype({name: int for name in SCHEMA.names if frame[name].isin((0, 1)).all()})
    order = np.random.default_rng(1974).permutation(len(frame))  # the year in which the experiment began
    cut = round(_HELD_OUT_SHARE * len(frame))
    return Tables(train=frame.iloc[order[cut:]], held_out=frame.iloc[order[:cut]])
