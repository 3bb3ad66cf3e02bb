"""Families that have statistics but no likelihood with a parameter in R^D.

:mod:`app.inference.conjugate` makes their models, and the method ``vips`` takes them.
"""

from typing import Final

from app.inference.core.knobs import Parameter
from app.inference.models.definition import Family

GAUSSIAN = Family(
    name="gaussian",
    description=(
        "The mean and the covariance of real and integer columns. Each column is scaled by its bounds to -1 and 1. "
        "The prior is normal-inverse-Wishart and counts as one row; scale is its standard deviation in these units. "
        "There is no target and no intercept."
    ),
    bind=None,
    targets=(),
    features=("real", "integer"),
    intercept=False,
    terms=False,
)

MOST_TOPICS: Final = 200
MOST_UNITS: Final = 200

LATENT_DIRICHLET = Family(
    name="latent-dirichlet-allocation",
    description=(
        "Topics of documents. Each row is one word, and the privacy unit is the document. The feature is the column of "
        "words, whose categories are the vocabulary. There is no target."
    ),
    bind=None,
    targets=(),
    features=("categorical",),
    intercept=False,
    normal_prior=False,
    settings=(
        Parameter("topics", "integer", 2, MOST_TOPICS, "Number of topics.", 20),
        Parameter(
            "document_concentration",
            "number",
            0.01,
            100,
            "Concentration of the Dirichlet prior of a document's topics. Below 1, documents have few topics.",
            0.1,
        ),
        Parameter(
            "topic_concentration",
            "number",
            0.01,
            100,
            "Concentration of the Dirichlet prior of a topic's words. Below 1, topics have few words.",
            0.1,
        ),
    ),
)

SIGMOID_BELIEF = Family(
    name="sigmoid-belief-network",
    description=(
        "The joint distribution of binary columns: hidden bits, and logistic regressions of the columns on them. "
        "Biases have normal priors of the stated scale; weights have a prior that shrinks most of them. There is no "
        "target."
    ),
    bind=None,
    targets=(),
    features=("binary",),
    intercept=False,
    settings=(Parameter("hidden_units", "integer", 1, MOST_UNITS, "Number of hidden units.", 10),),
)
