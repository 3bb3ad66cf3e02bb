"""Topics, from the upload of documents to a verified belief; and their arithmetic."""

import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from corevault import (
    Client,
    InvalidArgument,
    InvalidRequest,
    LatentDirichletAllocation,
    Mechanism,
    NotFound,
    Release,
    Schema,
    Topics,
    WrongType,
    categorical,
    integer,
    real,
)
from scipy.special import digamma, gammaln

from tests.client.worlds import open_client

WORDS = [f"word {index}" for index in range(24)]
DOCUMENTS, LENGTH = 500, 16
MODEL = LatentDirichletAllocation(words="word", topics=3)
MECHANISM = Mechanism(noise_multiplier=1.0, sampling_rate=1.0, iterations=6)


def draw_documents(documents: int) -> list[list[str]]:
    """Three topics of eight words each; a document has mostly one of them."""
    rng = np.random.default_rng(5)
    texts = []
    for _ in range(documents):
        shares = rng.dirichlet(np.full(3, 0.2))
        topics = rng.choice(3, LENGTH, p=shares)
        texts.append([WORDS[8 * topic + rng.integers(8)] for topic in topics])
    return texts


@pytest.fixture(scope="module")
def client(migrated_file: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    with open_client(migrated_file, tmp_path_factory.mktemp("topics")) as opened:
        yield opened


@pytest.fixture(scope="module")
def release(client: Client) -> Release:
    schema = Schema(integer("document", 0, 10_000), categorical("word", WORDS), real("length", 0, 1))
    unit = {"kind": "column", "column": "document", "max_rows": LENGTH}
    with pytest.warns(UserWarning, match="guarantees little"):
        dataset = client.datasets.create(
            "letters", schema, privacy_unit=unit, slots=DOCUMENTS, epsilon=19.0, delta=1e-6
        )
    texts = draw_documents(DOCUMENTS)
    table: dict[str, Any] = {
        "document": np.repeat(np.arange(DOCUMENTS), LENGTH),
        "word": np.array(list(itertools.chain.from_iterable(texts))),
        "length": np.zeros(DOCUMENTS * LENGTH),
    }
    client.datasets.upload(dataset, table)
    job = client.jobs.wait(client.jobs.submit("letters", MODEL, method="vips", mechanism=MECHANISM))
    assert job.release_id is not None
    return client.releases.get(job.release_id)


def read_topics(client: Client, release: Release) -> Topics:
    found = client.releases.belief(release).topics
    assert found is not None
    return found


@pytest.mark.sqlite
@pytest.mark.slow
def test_a_job_over_http_leaves_topics_and_no_points(client: Client, release: Release) -> None:
    topics = read_topics(client, release)
    assert (topics.words, topics.concentration.shape) == (tuple(WORDS), (3, 24))
    assert release.size == 0
    assert release.reliability is not None
    assert release.reliability.grade == "centre-only"
    assert [reason.code for reason in release.reliability.reasons] == ["variational"]
    statement = client.releases.certificate(release.id).statement
    assert [query["kind"] for query in statement["queries"]] == ["topic_sum"]
    assert statement["model"] == {
        "family": "latent-dirichlet-allocation",
        "features": ["word"],
        "target": None,
        "topics": 3,
        "document_concentration": 0.1,
        "topic_concentration": 0.1,
    }
    assert "one document" in statement["clipping"]
    with pytest.raises(NotFound):
        client.releases.points(release.id, "npz")


@pytest.mark.sqlite
@pytest.mark.slow
def test_released_topics_describe_new_documents(client: Client, release: Release) -> None:
    """Fresh documents have three topics of eight words: perplexity is near 8 to 12, and 24 is ignorance."""
    topics, fresh = read_topics(client, release), draw_documents(DOCUMENTS + 200)[DOCUMENTS:]
    assert topics.perplexity(fresh) < 17
    alone = topics.transform([[word] * 9 for word in (WORDS[0], WORDS[9], WORDS[17])])
    assert sorted(alone.argmax(axis=1)) == [0, 1, 2]


@pytest.mark.sqlite
@pytest.mark.slow
@pytest.mark.parametrize(
    ("changes", "pointer"),
    [
        ({"topics": 1}, "/model/topics"),
        ({"topics": 201}, "/model/topics"),
        ({"document_concentration": 0.001}, "/model/document_concentration"),
        ({"topic_concentration": 1e3}, "/model/topic_concentration"),
        ({"words": "document"}, "/model/features/0"),
        ({"words": "length"}, "/model/features/0"),
        ({"words": "nothing"}, "/model/features/0"),
    ],
)
def test_a_wrong_request_is_refused_with_a_pointer(
    client: Client, release: Release, changes: dict[str, Any], pointer: str
) -> None:
    wrong = LatentDirichletAllocation(**{"words": "word"} | changes)
    with pytest.raises(InvalidRequest) as caught:
        client.quote(release.dataset_id, wrong, method="vips", mechanism=MECHANISM)
    assert [error["pointer"] for error in caught.value.errors] == [pointer]


TWO = Topics(("a", "b", "c"), np.array([[60.0, 30.0, 10.0], [5.0, 5.0, 90.0]]), np.array([0.5, 0.5]))


def test_top_words_are_in_the_order_of_their_probability() -> None:
    rows = TWO.topics(2).reset_index()
    assert rows["topic"].to_list() == [1, 1, 2, 2]
    assert rows["word"].to_list() == ["a", "b", "c", "a"]
    np.testing.assert_allclose(rows["probability"], [0.6, 0.3, 0.9, 0.05])


def test_perplexity_of_one_word_is_bounded_by_the_exact_one() -> None:
    """The exact expected probability of one word; the bound is above it, and equal for large concentrations."""
    sure = Topics(TWO.words, TWO.concentration * 1e6, np.array([1e5, 1e5]))
    for topics, tolerance in ((TWO, None), (sure, 1e-3)):
        for place, word in enumerate(topics.words):
            exact = 1 / topics.probabilities[:, place].mean()
            found = topics.perplexity([[word]])
            assert found >= exact
            if tolerance is not None:
                assert found == pytest.approx(exact, rel=tolerance)


def test_the_bound_is_that_of_the_literature() -> None:
    """Blei et al. 2003, Equation 15, written out with ``phi`` of each word, at the document's topics."""
    codes = [0, 0, 1, 2]
    gamma, bound = TWO._infer(np.array(codes))
    logs = digamma(TWO.concentration) - digamma(TWO.concentration.sum(axis=1, keepdims=True))
    expected = digamma(gamma) - digamma(gamma.sum())
    values = logs[:, codes] + expected[:, None]
    phi = np.exp(values) / np.exp(values).sum(axis=0)
    alpha = TWO.document_concentration
    total = np.sum(phi * (values - np.log(phi)))
    total += gammaln(alpha.sum()) - gammaln(alpha).sum() + (alpha - 1) @ expected
    total -= gammaln(gamma.sum()) - gammaln(gamma).sum() + (gamma - 1) @ expected
    assert bound == pytest.approx(total, rel=1e-9)


def test_words_outside_the_vocabulary_are_left_out() -> None:
    np.testing.assert_array_equal(TWO.transform([["a", "x"], ["x"]]), TWO.transform([["a"], []]))
    assert TWO.perplexity([["a", "x"]]) == TWO.perplexity([["a"]])
    with pytest.raises(InvalidArgument, match="vocabulary"):
        TWO.perplexity([["x"]])


@pytest.mark.parametrize("documents", ["a b", ["a b"]])
def test_text_that_is_not_split_is_refused(documents: Any) -> None:
    with pytest.raises(WrongType):
        TWO.transform(documents)


@pytest.mark.parametrize(("n", "kind"), [(0, InvalidArgument), (1.5, WrongType), (True, WrongType)])
def test_a_number_of_words_that_is_none_is_refused(n: Any, kind: type[Exception]) -> None:
    with pytest.raises(kind):
        TWO.topics(n)
