"""Noise and reliability of releases: read, verified, and included in intervals and predictions."""

import io
import warnings
from typing import Any

import numpy as np
import pytest
import rfc8785
from corevault import (
    Belief,
    Gaussian,
    InvalidArgument,
    LinearRegression,
    LogisticRegression,
    MultinomialLogistic,
    NotFound,
    PoissonRegression,
    Pseudocoreset,
    Release,
    UnexpectedReply,
    UntrustedRelease,
    VerificationError,
)
from corevault._digest import digest_bytes
from corevault.belief import read_belief
from corevault.model import ModelRequest
from scipy.special import expit

from app.inference.core import reasons
from app.inference.core.problems import make_problem, name_parameters
from app.inference.core.release import Posterior
from app.inference.core.release import Pseudocoreset as Released
from app.jobs.schemas import ModelBody
from app.releases.http.belief_rendering import render_belief
from tests.client.fake import Published, Script
from tests.client.models import FACTS, make_points, make_release

NAMES = ("age", "sex=Male", "intercept")
ROOT = np.array([[0.4, 0.0, 0.0], [0.2, 0.3, 0.0], [-0.1, 0.1, 0.5]])
DOUBT = ROOT @ ROOT.T
POSTERIOR = Posterior(NAMES, np.array([0.5, -1.0, 2.0]), np.diag([0.04, 0.09, 0.01]) + 0.001)
CENTRE_ONLY = {"grade": "centre-only", "reasons": [{"code": "few-rows", "words": reasons.FEW_ROWS.words}]}
NORMAL_97_5 = 1.959963984540054


def _npz(names: tuple[str, ...] = NAMES, doubt: Any = DOUBT, posterior: Posterior | None = None) -> bytes:
    """The belief as the server renders it."""
    released = Released(np.ones((1, 1)), None, np.ones(1), (), posterior=posterior, doubt=doubt)
    return render_belief(released.make_blocks(names))["npz"]


def _download(published: Published) -> Pseudocoreset:
    with Script([published]).client(api_key=None) as client:
        return client.releases.download("rel_1")


def _state(published: Published, reliability: dict[str, Any]) -> Published:
    published.release["reliability"] = published.statement["reliability"] = reliability
    return published


def test_intervals_include_the_noise() -> None:
    """The interval is ``mean ± 1.96 sqrt(diag(covariance + doubt))``."""
    core = _download(Published(belief=_npz()))
    plain, found = core.laplace(noise=False), core.laplace()
    assert plain.noise is None
    np.testing.assert_array_equal(found.mean, plain.mean)
    np.testing.assert_allclose(found.covariance, plain.covariance + DOUBT, rtol=1e-14)
    np.testing.assert_array_equal(found.noise, DOUBT)
    half = NORMAL_97_5 * np.sqrt(np.diag(plain.covariance + DOUBT))
    rows = found.rows()
    np.testing.assert_allclose([float(row["low"]) for row in rows], plain.mean - half, rtol=1e-12)
    np.testing.assert_allclose([float(row["high"]) for row in rows], plain.mean + half, rtol=1e-12)


def test_predictions_include_the_noise() -> None:
    core = _download(Published(belief=_npz()))
    x = np.array([[0.5, 1.0, 1.0], [-1.0, 0.0, 1.0]])
    plain = core.laplace(noise=False)
    variance = np.einsum("np,pq,nq->n", x, plain.covariance + DOUBT, x)
    expected = expit(x @ plain.mean / np.sqrt(1 + np.pi * variance / 8))
    np.testing.assert_allclose(core.posterior().predict_probability(x), expected, rtol=1e-12)
    assert np.all(np.abs(core.laplace().predict_probability(x) - 0.5) < np.abs(plain.predict_probability(x) - 0.5))


def test_the_posterior_is_the_stated_one_if_there_is_one() -> None:
    points = _download(Published(belief=_npz()))
    np.testing.assert_array_equal(points.posterior().covariance, points.laplace().covariance)
    np.testing.assert_array_equal(points.posterior(noise=False).covariance, points.laplace(noise=False).covariance)
    assert points.stated_posterior() is None
    stated = _download(Published(belief=_npz(posterior=POSTERIOR)))
    np.testing.assert_array_equal(stated.posterior().mean, POSTERIOR.mean)
    np.testing.assert_allclose(stated.posterior().covariance, POSTERIOR.covariance + DOUBT)
    np.testing.assert_array_equal(stated.posterior(noise=False).covariance, POSTERIOR.covariance)
    assert stated.posterior().predict_probability(np.array([[0.0, 0.0, 1.0]])) == pytest.approx(
        expit(2 / np.sqrt(1 + np.pi * (0.011 + DOUBT[2, 2]) / 8))
    )


def test_a_posterior_in_the_metadata_gets_the_noise_too() -> None:
    published = Published(belief=_npz(posterior=POSTERIOR))
    stated = {"parameters": list(NAMES), "mean": [1.0, 2.0, 3.0], "variance": [0.1, 0.2, 0.3]}
    published.release["posterior"] = stated
    published.statement["posterior_digest"] = digest_bytes(rfc8785.dumps(dict[str, Any](stated)))
    core = _download(published)
    found, plain = core.stated_posterior(), core.stated_posterior(noise=False)
    assert found is not None
    assert plain is not None
    np.testing.assert_array_equal(found.mean, [1.0, 2.0, 3.0])
    np.testing.assert_allclose(found.covariance, np.diag([0.1, 0.2, 0.3]) + DOUBT)
    np.testing.assert_array_equal(plain.sd, np.sqrt([0.1, 0.2, 0.3]))


def test_a_release_of_an_earlier_version_adds_no_noise() -> None:
    core = _download(Published())
    assert core.belief is None
    assert core.release.reliability is None
    np.testing.assert_array_equal(core.laplace().covariance, core.laplace(noise=False).covariance)
    assert core.posterior().noise is None
    with Script([Published()]).client(api_key=None) as client, pytest.raises(NotFound):
        client.releases.belief("rel_1")


@pytest.mark.parametrize(
    "model",
    [
        LogisticRegression(features=["age", "colour"], target="ill"),
        PoissonRegression(features=["age"], target="visits"),
        LinearRegression(features=["age"], target="hours"),
        MultinomialLogistic(features=["age", "hours"], target="colour"),
    ],
    ids=lambda model: model.family,
)
def test_noise_has_the_parameters_of_the_model(model: ModelRequest) -> None:
    """Server and client name them in the same order."""
    names = name_parameters(make_problem(ModelBody.model_validate(model.to_json()).spec(), FACTS))
    x, y, weight = make_points(model)
    doubt = np.diag(np.arange(1.0, len(names) + 1))
    core = Pseudocoreset(make_release(model), x, y, weight, read_belief(_npz(names, doubt)))
    difference = np.diag(core.laplace().covariance) - np.diag(core.laplace(noise=False).covariance)
    np.testing.assert_allclose(difference, np.arange(1.0, len(names) + 1))


def test_noise_of_other_parameters_is_refused() -> None:
    core = _download(Published(belief=_npz(("age", "intercept"), np.eye(2))))
    with pytest.raises(UnexpectedReply, match="other parameters"):
        core.laplace()
    one, other = Gaussian(("a",), np.zeros(1), np.eye(1)), Gaussian(("b",), np.zeros(1), np.eye(1))
    with pytest.raises(InvalidArgument, match="other coefficients"):
        one.with_noise(other)


def test_the_belief_is_downloaded_and_verified_alone() -> None:
    published = Published(belief=_npz(posterior=POSTERIOR))
    with Script([published]).client(api_key=None) as client:
        belief = client.releases.belief("rel_1")
    assert isinstance(belief, Belief)
    assert belief.noise is not None
    assert belief.posterior is not None
    assert belief.noise.names == belief.posterior.names == NAMES
    np.testing.assert_array_equal(belief.noise.covariance, DOUBT)
    np.testing.assert_array_equal(belief.noise.mean, np.zeros(3))
    assert [(block.name, block.family) for block in belief.blocks] == [("posterior", "normal"), ("noise", "normal")]


@pytest.mark.parametrize("call", ["download", "belief", "verify"])
def test_a_changed_belief_is_refused(call: str) -> None:
    published = Published(belief=_npz())
    published.belief = _npz(doubt=0.01 * DOUBT)
    with Script([published]).client(api_key=None) as client, pytest.raises(VerificationError, match="npz belief"):
        getattr(client.releases, call)("rel_1")


@pytest.mark.parametrize("call", ["download", "verify"])
def test_a_belief_that_the_server_withholds_is_missed(call: str) -> None:
    """Narrow intervals without the certified noise would look better than they are."""
    published = Published(belief=_npz())
    published.belief = None
    with Script([published]).client(api_key=None) as client, pytest.raises(NotFound):
        getattr(client.releases, call)("rel_1")


def test_verify_reads_the_certified_formats_of_the_belief() -> None:
    script = Script([Published(belief=_npz())])
    with script.client(api_key=None) as client:
        client.releases.verify("rel_1")
    formats = [request.url.params["format"] for request in script.seen if request.url.path.endswith("/belief")]
    assert formats == ["npz"]


@pytest.mark.parametrize(
    ("stated", "certified"),
    [
        ({"grade": "calibrated", "reasons": []}, CENTRE_ONLY),
        (CENTRE_ONLY, None),
        (None, CENTRE_ONLY),
        ({**CENTRE_ONLY, "reasons": []}, CENTRE_ONLY),
    ],
)
def test_a_changed_added_or_removed_reliability_is_refused(stated: Any, certified: Any) -> None:
    published = Published()
    published.release["reliability"] = stated
    if certified is not None:
        published.statement["reliability"] = certified
    with Script([published]).client(api_key=None) as client, pytest.raises(VerificationError, match="reliability"):
        client.releases.download("rel_1")


def test_download_warns_once_with_the_reasons() -> None:
    published = _state(Published(belief=_npz()), CENTRE_ONLY)
    with pytest.warns(UntrustedRelease) as caught:
        core = _download(published)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        core.laplace()
        core.posterior()
    (warning,) = caught
    text = str(warning.message)
    assert text.startswith("The release is centre-only: its centre may be used")
    assert reasons.FEW_ROWS.words in text
    assert "(few-rows)" in text
    assert core.release.trusted is False


@pytest.mark.parametrize("remarks", [[], CENTRE_ONLY["reasons"]])
def test_a_calibrated_release_does_not_warn(remarks: Any) -> None:
    published = _state(Published(belief=_npz()), {"grade": "calibrated", "reasons": remarks})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        release = _download(published).release
    assert release.trusted is True
    assert release.reliability is not None
    assert [reason.code for reason in release.reliability.reasons] == [reason["code"] for reason in remarks]


def test_the_grade_takes_precedence_over_the_diagnostics() -> None:
    """The certificate covers the grade, and not the diagnostics."""
    release = Release.from_json(Published().release | {"reliability": CENTRE_ONLY, "diagnostics": {"trusted": True}})
    assert release.trusted is False


def _archive(**arrays: Any) -> bytes:
    file = io.BytesIO()
    np.savez(file, **arrays)
    return file.getvalue()


NOISE = {"noise.names": np.array(["a", "b"]), "noise.mean": np.zeros(2), "noise.covariance": np.eye(2)}


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"nonsense",
        _archive(blocks=np.array(["noise"])),
        _archive(blocks=np.array(["noise"]), families=np.array(["normal", "normal"]), **NOISE),
        _archive(blocks=np.array(["noise"]), families=np.array(["normal"]), **(NOISE | {"noise.mean": np.zeros(3)})),
        _archive(
            blocks=np.array(["noise"]), families=np.array(["normal"]), **(NOISE | {"noise.covariance": np.eye(3)})
        ),
        _archive(blocks=np.array(["noise"]), families=np.array(["normal"]), **(NOISE | {"noise.variance": np.ones(2)})),
        _archive(
            blocks=np.array(["noise"]), families=np.array(["normal"]), **(NOISE | {"noise.mean": np.array([0, np.nan])})
        ),
        _archive(
            blocks=np.array(["noise"]), families=np.array(["normal"]), **(NOISE | {"noise.mean": np.array(["0", "1"])})
        ),
        _archive(blocks=np.array(["other"]), families=np.array(["normal"]), **NOISE),
    ],
)
def test_a_belief_of_another_shape_is_refused(content: bytes) -> None:
    with pytest.raises(UnexpectedReply, match="belief"):
        read_belief(content)


def test_blocks_of_other_families_are_passed_on() -> None:
    """A later version may release them."""
    counts = {"topics.concentration": np.ones((2, 5))}
    belief = read_belief(_archive(blocks=np.array(["topics"]), families=np.array(["dirichlet"]), **counts))
    assert belief.posterior is belief.noise is None
    np.testing.assert_array_equal(belief.blocks[0].arrays["concentration"], np.ones((2, 5)))
