"""Census income ("Adult", 1994) with all its columns, declared from its public description.

Bounds and categories follow the published description of the data set, in its order. ``?`` marks a missing answer, and
is a separate category.
"""

from pathlib import Path
from typing import TYPE_CHECKING, Final

from corevault import LogisticRegression, Schema, binary, categorical, integer

from benchmarks.adult import TEST, TRAIN
from demo.table import Tables

if TYPE_CHECKING:
    import pandas as pd

FILES: Final = (TRAIN, TEST)
TARGET: Final = "income_gt_50k"
SLOTS: Final = 33_000

_CATEGORIES: Final = {
    "workclass": "Private, Self-emp-not-inc, Self-emp-inc, Federal-gov, Local-gov, State-gov, Without-pay, "
    "Never-worked, ?",
    "education": "Bachelors, Some-college, 11th, HS-grad, Prof-school, Assoc-acdm, Assoc-voc, 9th, 7th-8th, 12th, "
    "Masters, 1st-4th, 10th, Doctorate, 5th-6th, Preschool",
    "marital_status": "Married-civ-spouse, Divorced, Never-married, Separated, Widowed, Married-spouse-absent, "
    "Married-AF-spouse",
    "occupation": "Tech-support, Craft-repair, Other-service, Sales, Exec-managerial, Prof-specialty, "
    "Handlers-cleaners, Machine-op-inspct, Adm-clerical, Farming-fishing, Transport-moving, Priv-house-serv, "
    "Protective-serv, Armed-Forces, ?",
    "relationship": "Wife, Own-child, Husband, Not-in-family, Other-relative, Unmarried",
    "race": "White, Asian-Pac-Islander, Amer-Indian-Eskimo, Other, Black",
    "sex": "Female, Male",
    "native_country": "United-States, Cambodia, England, Puerto-Rico, Canada, Germany, Outlying-US(Guam-USVI-etc), "
    "India, Japan, Greece, South, China, Cuba, Iran, Honduras, Philippines, Italy, Poland, Jamaica, Vietnam, Mexico, "
    "Portugal, Ireland, France, Dominican-Republic, Laos, Ecuador, Taiwan, Haiti, Columbia, Hungary, Guatemala, "
    "Nicaragua, Scotland, Thailand, Yugoslavia, El-Salvador, Trinadad&Tobago, Peru, Hong, Holand-Netherlands, ?",
}


def _name(name: str) -> tuple[str, list[str]]:
    return name, _CATEGORIES[name].split(", ")


SCHEMA: Final = Schema(
    integer("age", 17, 90),
    categorical(*_name("workclass")),
    integer("fnlwgt", 10_000, 1_500_000),
    categorical(*_name("education")),
    integer("education_num", 1, 16),
    categorical(*_name("marital_status")),
    categorical(*_name("occupation")),
    categorical(*_name("relationship")),
    categorical(*_name("race")),
    categorical(*_name("sex")),
    integer("capital_gain", 0, 100_000),
    integer("capital_loss", 0, 5_000),
    integer("hours_per_week", 1, 99),
    categorical(*_name("native_country")),
    binary(TARGET),
)
MODEL: Final = LogisticRegression(features=SCHEMA.names[:-1], target=TARGET, prior_scale=1.0)


def list_missing() -> list[Path]:
    """The data files that do not exist. They are not part of the repository."""
    return [path for path in FILES if not path.exists()]


def load() -> Tables:
    """Training and test rows in the declared columns."""
    train, test = (_read(path) for path in FILES)
    return Tables(train=train, held_out=test)


def _read(path: Path) -> "pd.DataFrame":
    import pandas as pd  # noqa: PLC0415 - slow to import, and not needed if a file is missing

    frame = pd.read_csv(path, header=None, names=SCHEMA.names, skipinitialspace=True, keep_default_na=False)
    frame[TARGET] = frame[TARGET].str.startswith(">50K").astype(int)
    return frame
