"""The client of Corevault: buy differentially private pseudocoresets, verify them, fit models to them.

>>> from corevault import Client, LogisticRegression
>>> with Client("https://corevault.example", api_key="cv_…") as client:  # doctest: +SKIP
...     model = LogisticRegression(features=["age", "hours"], target="income_gt_50k")
...     job = client.jobs.submit("ds_…", model, size=50, epsilon=0.5)
...     release_id = client.jobs.wait(job, progress=True).release_id
...     posterior = client.releases.download(release_id).posterior()
"""

from corevault._check import TableCheck
from corevault.belief import Belief, Block
from corevault.client import Client
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
from corevault.gaussian import Gaussian
from corevault.laplace import logistic_laplace
from corevault.model import (
    GaussianMean,
    LinearRegression,
    LogisticRegression,
    Mechanism,
    MultinomialLogistic,
    NegativeBinomialRegression,
    PoissonRegression,
    ProbitRegression,
    StudentTRegression,
)
from corevault.pages import Page
from corevault.posterior import posterior
from corevault.pseudocoreset import Pseudocoreset, UntrustedRelease
from corevault.replies.dataset import Budget, Cost, Dataset, LedgerEntry, OpenUpload
from corevault.replies.job import Job, JobEvent, Quote
from corevault.replies.key import ApiKey, Me, SigningKey
from corevault.replies.release import Certificate, Points, Reason, Release, Reliability
from corevault.schema import Column, Schema, binary, categorical, integer, real
from corevault.verification import verify_release

__all__ = [
    "ApiError",
    "ApiKey",
    "Belief",
    "Block",
    "Budget",
    "BudgetExceeded",
    "Certificate",
    "Client",
    "ClientClosed",
    "Column",
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
    "IdempotencyConflict",
    "IdempotencyInProgress",
    "Internal",
    "InvalidArgument",
    "InvalidRequest",
    "Job",
    "JobEvent",
    "JobFailed",
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
    "NegativeBinomialRegression",
    "NotAcceptable",
    "NotConverged",
    "NotFound",
    "OffsetMismatch",
    "OpenUpload",
    "Page",
    "Points",
    "PoissonRegression",
    "PreconditionFailed",
    "ProbitRegression",
    "Pseudocoreset",
    "Quote",
    "RangeNotSatisfiable",
    "RateLimited",
    "Reason",
    "Release",
    "Reliability",
    "Schema",
    "SigningKey",
    "StateConflict",
    "StudentTRegression",
    "TableCheck",
    "TooManyNullRows",
    "Unauthenticated",
    "UnexpectedReply",
    "UnreadableSource",
    "UnsupportedMediaType",
    "UntrustedRelease",
    "UploadInterrupted",
    "VerificationError",
    "WaitTimeout",
    "WrongType",
    "binary",
    "categorical",
    "design_matrix",
    "integer",
    "logistic_laplace",
    "posterior",
    "real",
    "verify_release",
]
