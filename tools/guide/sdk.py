"""Pages about the Python client, from its docstrings."""

from collections.abc import Iterator
from typing import Final

import corevault

from tools.guide.pages import make_page, make_tree

FOLDER: Final = "reference/sdk"
PAGES: Final = {
    "connect": (
        "Connect",
        "Client connect Page Me replies.catalogue.Catalogue replies.audit.AuditEntry replies.worker.Worker",
    ),
    "datasets": ("Datasets", "Schema Column real integer binary categorical Dataset OpenUpload TableCheck"),
    "budgets": (
        "Budgets",
        """Budget Cost Allocation replies.dataset.JobCounts JobOutlook Comparison Outlook
        Risk LedgerEntry RefusedJobs Recomputation VerifiedLedger Population PopulationDataset""",
    ),
    "models": (
        "Models",
        """LogisticRegression ProbitRegression LinearRegression StudentTRegression PoissonRegression
        NegativeBinomialRegression MultinomialLogistic GaussianMean MultivariateNormal LatentDirichletAllocation
        SigmoidBeliefNetwork Mechanism interaction polynomial spline fourier network
        train_features""",
    ),
    "jobs": (
        "Quotes and jobs",
        """Quote replies.job.QuoteSize replies.job.ExpectedAccuracy Job replies.job.Progress replies.job.JobError
        replies.job.Settlement JobEvent""",
    ),
    "releases": ("Releases", "Release Reliability Reason Certificate Points SigningKey verify_release"),
    "posteriors": (
        "Pseudocoresets and posteriors",
        """Pseudocoreset Gaussian Belief Block Groups GroupErrors Particles NormalTable Topics BeliefNetwork
        DesignColumn posterior combine merge design_matrix logistic_laplace example plots.Plots
        exports.stan_program.StanProgram""",
    ),
    "keys": ("API keys", "ApiKey KeyName"),
    "risk": (
        "Risk of movements",
        """risk.report risk.RiskReport risk.read_traces risk.Traces risk.make_network risk.Network risk.group_by_shape
        risk.count_graphs risk.compare_networks risk.link risk.Linkage risk.simulate""",
    ),
    "asyncio": (
        "Asyncio",
        """AsyncClient resources.accounts.AsyncAccounts resources.datasets.AsyncDatasets resources.jobs.AsyncJobs
        resources.releases.AsyncReleases resources.keys.AsyncKeys""",
    ),
}
"""Title and public names of each page; all other names are errors."""
RESOURCES: Final = {"datasets": "Datasets", "jobs": "Jobs", "releases": "Releases", "keys": "Keys"}
"""Classes of the calls at ``client.datasets`` and so on."""


def list_errors() -> list[str]:
    """List the names that no page has: the errors and warnings."""
    placed = {name for _, names in PAGES.values() for name in names.split()}
    return [name for name in corevault.__all__ if name not in placed]


def make_sdk_pages() -> Iterator[tuple[str, str]]:
    """Make all pages. Yields their places and contents."""
    for page, (title, names) in PAGES.items():
        calls = [_describe(f"corevault.resources.{page}.{RESOURCES[page]}")] if page in RESOURCES else []
        yield (
            f"{FOLDER}/{page}.md",
            make_page(title, *calls, *(_describe(f"corevault.{name}") for name in names.split())),
        )
    yield f"{FOLDER}/errors.md", make_page("Errors", *(_describe(f"corevault.{name}") for name in list_errors()))
    words = (
        "This reference is made from the docstrings of the code. [The client's guide](../../client.md) has more "
        "examples.\n\nExamples use a few names. `client` and `admin` are clients of an owner and of an administrator. "
        "`async_client` is the first one for asyncio. `dataset` is named `clinic`, and `model` is a model of it. "
        "`job` is a job that has succeeded, and `release` is its release. `topics` are two topics over "
        "the words fever, cough, knee and fall, and `network` is a belief network of three columns. "
        "`groups` belong to the release `groups_release`, and `particles` are three draws of two parameters."
    )
    tree = make_tree([f"{page}.md" for page in (*PAGES, "errors")], is_hidden=False)
    yield f"{FOLDER}/index.md", make_page("Python client", words, tree)


def _describe(name: str) -> str:
    last = name.rpartition(".")[2]
    kind = "class" if last[0].isupper() else "function"
    shows_members = kind == "class" and not last.startswith("Async")  # another page has its members
    options = ["   :members:", "   :inherited-members: Exception, tuple"] if shows_members else []
    return "\n".join(["```{eval-rst}", f".. auto{kind}:: {name}", *options, "```"])
