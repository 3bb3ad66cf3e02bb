"""Verification accepts the honest release and refuses every tampering, with a sentence that says which."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import rfc8785
from corevault import InvalidArgument, VerificationError, WrongType, verify_release
from corevault._digest import of_bytes
from nacl.signing import SigningKey as Ed25519

from tests.client.fake import Published, Script, ok


def test_an_honest_release_is_verified() -> None:
    release, certificate, points, keys = Published().parts()
    assert verify_release(release, certificate, points, published=keys)["relation"] == "zero_out"


def test_a_pinned_key_serves_without_any_published_one() -> None:
    published = Published()
    release, certificate, points, _ = published.parts()
    verify_release(release, certificate, points, pinned=[published.public_key])


def test_a_pinned_key_outweighs_what_the_server_publishes() -> None:
    release, certificate, points, keys = Published().parts()
    with pytest.raises(VerificationError, match="not among the trusted"):
        verify_release(release, certificate, points, published=keys, pinned=[Published().public_key])


def test_a_list_that_pins_nothing_is_refused_before_anything_is_fetched() -> None:
    release, certificate, points, keys = Published().parts()
    script = Script([ok({})])
    with script.client() as client:
        for trust in (client.releases.verify, client.releases.download):
            with pytest.raises(ValueError, match="pins no key"):
                trust(release, pinned_keys=[])
            with pytest.raises(TypeError, match="list"):
                trust(release, pinned_keys=Published().public_key)
    assert not script.seen
    with pytest.raises(ValueError, match="pins no key"):
        verify_release(release, certificate, points, published=keys, pinned=iter(()))


def test_the_published_keys_can_be_pinned_as_they_come() -> None:
    published = Published()
    with Script([published]).client() as client:
        keys = client.signing_keys()
        kinds: list[Any] = [
            keys,
            list(keys),
            keys.items,
            [keys.items[0], Published().public_key],
            [f" {published.public_key}\n"],
        ]
        for pins in kinds:
            assert client.releases.verify("rel_1", pinned_keys=pins)["release_id"] == "rel_1"
            assert client.releases.download("rel_1", pinned_keys=pins).release.id == "rel_1"


def test_pinned_keys_that_sign_no_release_are_refused() -> None:
    """A key of the ledger must not vouch for a release, nor leave the server's own word in its place."""
    release, certificate, points, keys = Published().parts()
    ledger = [replace(key, use="ledger") for key in keys]
    with pytest.raises(InvalidArgument, match="None of these keys signs releases"):
        verify_release(release, certificate, points, published=keys, pinned=ledger)
    stranger = [*ledger, *Published().parts()[3]]
    with pytest.raises(VerificationError, match="not among the trusted"):
        verify_release(release, certificate, points, published=keys, pinned=stranger)


@pytest.mark.parametrize(
    "pins", [[b"AAAA"], [None], [{"public_key": "AAAA"}], {"AAAA": 1}, b"AAAA", 3, Published().parts()[3][0]]
)
def test_pins_of_another_type_are_refused_by_name(pins: Any) -> None:
    release, certificate, points, _ = Published().parts()
    with pytest.raises(WrongType, match=r"signing_keys\(\) returns"):
        verify_release(release, certificate, points, pinned=pins)


def test_a_key_id_is_no_key() -> None:
    release, certificate, points, keys = Published().parts()
    with pytest.raises(VerificationError, match="give the public_key, not the key_id"):
        verify_release(release, certificate, points, pinned=[keys[0].key_id])


def test_a_statement_changed_after_signing() -> None:
    release, certificate, points, keys = Published().parts()
    forged = replace(certificate, statement={**certificate.statement, "sampler": "with replacement"})
    with pytest.raises(VerificationError, match="signature does not belong"):
        verify_release(release, forged, points, published=keys)


@pytest.mark.parametrize("signature", ["", "not base64!", "AAAA"])
def test_a_signature_that_is_none(signature: str) -> None:
    release, certificate, points, keys = Published().parts()
    with pytest.raises(VerificationError):
        verify_release(release, replace(certificate, signature=signature), points, published=keys)


def test_a_statement_without_a_canonical_form() -> None:
    release, certificate, points, keys = Published().parts()
    forged = replace(certificate, statement={**certificate.statement, "sequence": 2**60})
    with pytest.raises(VerificationError, match="malformed"):
        verify_release(release, forged, points, published=keys)


def test_another_key_signed() -> None:
    published = Published()
    _, _, _, honest_keys = published.parts()
    published.key = Ed25519.generate()
    release, certificate, points, _ = published.parts()
    with pytest.raises(VerificationError, match="not among the trusted"):
        verify_release(release, certificate, points, published=honest_keys)


def test_another_key_signed_under_the_name_of_the_honest_one() -> None:
    published = Published()
    _, honest, _, honest_keys = published.parts()
    published.key = Ed25519.generate()
    release, certificate, points, _ = published.parts()
    with pytest.raises(VerificationError, match="signature does not belong"):
        verify_release(release, replace(certificate, key_id=honest.key_id), points, published=honest_keys)


def test_a_key_under_anothers_id_is_not_taken() -> None:
    published, other = Published(), Published()
    release, certificate, points, keys = published.parts()
    mislabelled = [replace(keys[0], public_key=other.public_key)]
    with pytest.raises(VerificationError, match="not among the trusted"):
        verify_release(release, certificate, points, published=mislabelled)


def test_the_ledgers_key_does_not_sign_releases() -> None:
    release, certificate, points, keys = Published().parts()
    with pytest.raises(VerificationError, match="not among the trusted"):
        verify_release(release, certificate, points, published=[replace(keys[0], use="ledger")])


@pytest.mark.parametrize("public_key", ["***", "AAAA"])
def test_a_key_that_is_none(public_key: str) -> None:
    release, certificate, points, _ = Published().parts()
    with pytest.raises(VerificationError, match="key is not"):
        verify_release(release, certificate, points, pinned=[public_key])


@pytest.mark.parametrize("member", ["id", "dataset_id"])
def test_a_certificate_of_another_release(member: str) -> None:
    published = Published()
    published.release[member] = "rel_2"
    release, certificate, points, keys = published.parts()
    with pytest.raises(VerificationError, match="another release"):
        verify_release(release, certificate, points, published=keys)


def _prior(published: Published) -> None:
    published.release["model"] = published.release["model"] | {"prior": {"scale": 9.0}}


def _design(published: Published) -> None:
    published.release["design"] = [published.release["design"][0] | {"source": "sex"}, *published.release["design"][1:]]


def _size(published: Published) -> None:
    published.release["size"] = 5


def _cost(published: Published) -> None:
    published.release["cost"] = {"epsilon": 0.1, "delta": 1e-6}


def _no_cost(published: Published) -> None:
    published.release["cost"] = None


def _relation(published: Published) -> None:
    published.statement["relation"] = "replace_one"


def _beyond_the_limit(published: Published) -> None:
    published.statement["account"]["limit"] = {"epsilon": 0.4, "delta": 1e-6}


def _no_limit(published: Published) -> None:
    del published.statement["account"]


def _unpriced(published: Published) -> None:
    published.release["cost"] = published.statement["privacy"] = {"epsilon": 0.0, "delta": 1e-6}


@pytest.mark.parametrize(
    ("tamper", "sentence"),
    [
        (_prior, "model is not the one"),
        (_design, "design is not the one"),
        (_size, "size is not the one"),
        (_cost, "cost is not the one"),
        (_no_cost, "cost is not the one"),
        (_relation, "zero-out"),
        (_beyond_the_limit, "within the account's limit"),
        (_no_limit, "within the account's limit"),
        (_unpriced, "within the account's limit"),
    ],
)
def test_metadata_and_promise(tamper: Callable[[Published], None], sentence: str) -> None:
    published = Published()
    tamper(published)
    release, certificate, points, keys = published.parts()
    with pytest.raises(VerificationError, match=sentence):
        verify_release(release, certificate, points, published=keys)


def test_a_release_of_public_data_promises_nothing() -> None:
    published = Published()
    published.release["cost"] = published.statement["privacy"] = published.statement["relation"] = None
    release, certificate, points, keys = published.parts()
    verify_release(release, certificate, points, published=keys)


@pytest.mark.parametrize("index", range(4))
def test_bytes_that_were_changed_with_their_header(index: int) -> None:
    release, certificate, points, keys = Published().parts()
    changed = points[index].content + b"\n"
    points[index] = replace(points[index], content=changed, repr_digest=of_bytes(changed))
    with pytest.raises(VerificationError, match=f"{points[index].format} points are not those"):
        verify_release(release, certificate, points, published=keys)


@pytest.mark.parametrize("header", [None, "md5=:AAAA:", of_bytes(b"other")])
def test_a_repr_digest_that_does_not_hold(header: str | None) -> None:
    release, certificate, points, keys = Published().parts()
    points[0] = replace(points[0], repr_digest=header)
    with pytest.raises(VerificationError, match="Repr-Digest"):
        verify_release(release, certificate, points, published=keys)


POSTERIOR = {"parameters": ["age", "intercept"], "mean": [0.25, -1.0], "covariance": [[0.5, 0.1], [0.1, 1e-9]]}


def _stating(posterior: dict[str, object] | None, certified: dict[str, object] | None) -> Published:
    published = Published()
    published.release["posterior"] = posterior
    if certified is not None:
        published.statement["posterior_digest"] = of_bytes(rfc8785.dumps(dict[str, Any](certified)))
    return published


def test_a_stated_posterior_is_certified_by_its_digest() -> None:
    release, certificate, points, keys = _stating(POSTERIOR, POSTERIOR).parts()
    verify_release(release, certificate, points, published=keys)
    assert release.posterior is not None
    assert release.posterior.parameters == ("age", "intercept")


@pytest.mark.parametrize(
    ("posterior", "certified"),
    [(POSTERIOR | {"mean": [0.25, -1.5]}, POSTERIOR), (POSTERIOR, None), (None, POSTERIOR)],
)
def test_a_posterior_that_was_changed_added_or_taken_away(
    posterior: dict[str, object] | None, certified: dict[str, object] | None
) -> None:
    release, certificate, points, keys = _stating(posterior, certified).parts()
    with pytest.raises(VerificationError, match="posterior is not the one"):
        verify_release(release, certificate, points, published=keys)


def test_a_certificate_without_digests() -> None:
    published = Published()
    del published.statement["digests"]
    release, certificate, points, keys = published.parts()
    with pytest.raises(VerificationError, match="not those that were certified"):
        verify_release(release, certificate, points, published=keys)


def test_verify_over_http_reads_all_four_representations_without_a_key() -> None:
    script = Script([Published()])
    with script.client(api_key=None) as client:
        client.releases.verify("rel_1")
    formats = [request.url.params["format"] for request in script.seen if request.url.path.endswith("/points")]
    assert formats == ["json", "csv", "parquet", "npz"]


def test_download_never_returns_what_it_could_not_verify() -> None:
    published = Published()
    published.bodies["npz"] = published.npz(("sex=Male", "age", "intercept"))
    with Script([published]).client(api_key=None) as client, pytest.raises(VerificationError):
        client.releases.download("rel_1")
