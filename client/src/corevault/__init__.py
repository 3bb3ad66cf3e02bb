"""The client of Corevault: buy differentially private pseudocoresets, verify them, fit models to them.

>>> from corevault import Client, LogisticRegression
>>> from corevault import LogisticRegression
>>> model = LogisticRegression(features=["age", "sex"], target="sick")
>>> core = client.buy("clinic", model, epsilon=0.5, progress=False)  # client = connect("https://…", api_key)
>>> core.posterior().names
('age', 'sex=male', 'intercept')

Examples of this package use a few names. ``client`` and ``admin`` are clients of an owner and of an administrator.
``async_client`` is the first one for asyncio. ``dataset`` is named ``clinic``, and ``model`` is a model of it. ``job``
is a job that has succeeded, and ``release`` is its release.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from corevault._check import TableCheck
    from corevault.belief import Belief, Block
    from corevault.belief_network import BeliefNetwork
    from corevault.client import AsyncClient, Client
    from corevault.combination import combine
    from corevault.connection import connect
    from corevault.design import DesignColumn, design_matrix
    from corevault.errors import (
        ApiError,
        BudgetExceeded,
        ClientClosed,
        ConnectionFailed,
        ContentRejected,
        ContentTooLarge,
        CorevaultError,
        DependencyUnavailable,
        DigestMismatch,
        Forbidden,
        IdempotencyConflict,
        IdempotencyInProgress,
        Internal,
        InvalidArgument,
        InvalidRequest,
        JobFailed,
        MethodNotAllowed,
        MethodNotAllowedOnPrivateData,
        MissingColumn,
        MissingDependency,
        NotAcceptable,
        NotConverged,
        NotFound,
        OffsetMismatch,
        PreconditionFailed,
        PrivacyAlarm,
        RangeNotSatisfiable,
        RateLimited,
        StateConflict,
        TooManyNullRows,
        Unauthenticated,
        UnexpectedReply,
        UnreadableSource,
        UnsupportedMediaType,
        UploadInterrupted,
        VerificationError,
        WaitTimeout,
        WrongType,
    )
    from corevault.examples import example
    from corevault.feature_training import train_features
    from corevault.fitting import posterior
    from corevault.gaussian import Gaussian
    from corevault.groups import GroupErrors, Groups
    from corevault.laplace import logistic_laplace
    from corevault.ledger_chain import VerifiedLedger
    from corevault.merging import merge
    from corevault.model import (
        GaussianMean,
        LatentDirichletAllocation,
        LinearRegression,
        LogisticRegression,
        Mechanism,
        MultinomialLogistic,
        MultivariateNormal,
        NegativeBinomialRegression,
        PoissonRegression,
        ProbitRegression,
        SigmoidBeliefNetwork,
        StudentTRegression,
    )
    from corevault.normal_table import NormalTable
    from corevault.pages import Page
    from corevault.particles import Particles
    from corevault.pseudocoreset import Pseudocoreset, UntrustedRelease
    from corevault.replies.dataset import Allocation, Budget, Cost, Dataset, LedgerEntry, OpenUpload, RefusedJobs
    from corevault.replies.job import Job, JobEvent, Quote
    from corevault.replies.key import ApiKey, KeyName, Me, SigningKey
    from corevault.replies.outlook import Comparison, JobOutlook, Outlook, Recomputation, Risk
    from corevault.replies.population import Population, PopulationDataset
    from corevault.replies.release import Certificate, Points, Reason, Release, Reliability
    from corevault.schema import Column, Schema, binary, categorical, integer, real
    from corevault.terms import fourier, interaction, network, polynomial, spline
    from corevault.topics import Topics
    from corevault.verification import verify_release

__all__ = [
    "Allocation",
    "ApiError",
    "ApiKey",
    "AsyncClient",
    "Belief",
    "BeliefNetwork",
    "Block",
    "Budget",
    "BudgetExceeded",
    "Certificate",
    "Client",
    "ClientClosed",
    "Column",
    "Comparison",
    "ConnectionFailed",
    "ContentRejected",
    "ContentTooLarge",
    "CorevaultError",
    "Cost",
    "Dataset",
    "DependencyUnavailable",
    "DesignColumn",
    "DigestMismatch",
    "Forbidden",
    "Gaussian",
    "GaussianMean",
    "GroupErrors",
    "Groups",
    "IdempotencyConflict",
    "IdempotencyInProgress",
    "Internal",
    "InvalidArgument",
    "InvalidRequest",
    "Job",
    "JobEvent",
    "JobFailed",
    "JobOutlook",
    "KeyName",
    "LatentDirichletAllocation",
    "LedgerEntry",
    "LinearRegression",
    "LogisticRegression",
    "Me",
    "Mechanism",
    "MethodNotAllowed",
    "MethodNotAllowedOnPrivateData",
    "MissingColumn",
    "MissingDependency",
    "MultinomialLogistic",
    "MultivariateNormal",
    "NegativeBinomialRegression",
    "NormalTable",
    "NotAcceptable",
    "NotConverged",
    "NotFound",
    "OffsetMismatch",
    "OpenUpload",
    "Outlook",
    "Page",
    "Particles",
    "Points",
    "PoissonRegression",
    "Population",
    "PopulationDataset",
    "PreconditionFailed",
    "PrivacyAlarm",
    "ProbitRegression",
    "Pseudocoreset",
    "Quote",
    "RangeNotSatisfiable",
    "RateLimited",
    "Reason",
    "Recomputation",
    "RefusedJobs",
    "Release",
    "Reliability",
    "Risk",
    "Schema",
    "SigmoidBeliefNetwork",
    "SigningKey",
    "StateConflict",
    "StudentTRegression",
    "TableCheck",
    "TooManyNullRows",
    "Topics",
    "Unauthenticated",
    "UnexpectedReply",
    "UnreadableSource",
    "UnsupportedMediaType",
    "UntrustedRelease",
    "UploadInterrupted",
    "VerificationError",
    "VerifiedLedger",
    "WaitTimeout",
    "WrongType",
    "binary",
    "categorical",
    "combine",
    "connect",
    "design_matrix",
    "example",
    "fourier",
    "integer",
    "interaction",
    "logistic_laplace",
    "merge",
    "network",
    "polynomial",
    "posterior",
    "real",
    "spline",
    "train_features",
    "verify_release",
]

_NAMES = {
    "_check": "TableCheck",
    "belief": "Belief Block",
    "belief_network": "BeliefNetwork",
    "client": "AsyncClient Client",
    "combination": "combine",
    "connection": "connect",
    "design": "DesignColumn design_matrix",
    "examples": "example",
    "feature_training": "train_features",
    "fitting": "posterior",
    "gaussian": "Gaussian",
    "groups": "GroupErrors Groups",
    "laplace": "logistic_laplace",
    "ledger_chain": "VerifiedLedger",
    "merging": "merge",
    "model": (
        "GaussianMean LatentDirichletAllocation LinearRegression LogisticRegression Mechanism MultinomialLogistic "
        "MultivariateNormal SigmoidBeliefNetwork "
        "NegativeBinomialRegression PoissonRegression ProbitRegression StudentTRegression "
    ),
    "normal_table": "NormalTable",
    "pages": "Page",
    "particles": "Particles",
    "pseudocoreset": "Pseudocoreset UntrustedRelease",
    "replies.dataset": "Allocation Budget Cost Dataset LedgerEntry OpenUpload RefusedJobs",
    "replies.job": "Job JobEvent Quote",
    "replies.key": "ApiKey KeyName Me SigningKey",
    "replies.outlook": "Comparison JobOutlook Outlook Recomputation Risk",
    "replies.population": "Population PopulationDataset",
    "replies.release": "Certificate Points Reason Release Reliability",
    "schema": "Column Schema binary categorical integer real",
    "terms": "fourier interaction network polynomial spline",
    "topics": "Topics",
    "verification": "verify_release",
}
"""Public names by module; all other ones are errors."""
_HOMES = dict.fromkeys(__all__, "errors") | {name: home for home, names in _NAMES.items() for name in names.split()}
"""The module of each name, which is imported at its first use. So ``import corevault`` takes no time."""


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"corevault.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
