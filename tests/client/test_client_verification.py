"""Verification accepts a genuine release and names each change of a tampered one."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import rfc8785
from corevault import InvalidArgument, VerificationError, WrongType, verify_release
from corevault._digest import digest_bytes
from nacl.signing import SigningKey as Ed25519

from tests.client.fake import Published, Script, ok


def test_a_genuine_release_is_verified() -> None:
    release, certificate, points, keys = Published().parts()
    assert verify_release(release, certificate, points, published=keys)["relation"] == "zero_out"


def test_a_pinned_key_needs_no_published_key() -> None:
    published = Published()
    release, certificate, points, _ = published.parts()
    verify_release(release, certificate, points, pinned=[published.public_key])


def test_a_pinned_key_replaces_the_published_keys() -> None:
    release, certificate, points, keys = Published().parts()
    with pytest.raises(VerificationError, match="not among the trusted"):
        verify_release(release, certificate, points, published=keys, pinned=[Published().public_key])


def test_an_empty_list_of_pins_is_refused_without_a_request() -> None:
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


def test_published_keys_can_be_pinned_in_any_form() -> None:
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
    """A ledger key certifies no release. The published keys do not replace it."""
    release, certificate, points, keys = Published().parts()
    ledger = [replace(key, use="ledger") for key in keys]
    with pytest.raises(InvalidArgument, match="No pinned key signs releases"):
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


def test_a_key_id_as_a_pin_is_refused() -> None:
    release, certificate, points, keys = Published().parts()
    with pytest.raises(VerificationError, match="pass the public_key, not the key_id"):
        verify_release(release, certificate, points, pinned=[keys[0].key_id])


def test_a_statement_changed_after_signing_is_refused() -> None:
    release, certificate, points, keys = Published().parts()
    forged = replace(certificate, statement={**certificate.statement, "sampler": "with replacement"})
    with pytest.raises(VerificationError, match="signature does not belong"):
        verify_release(release, forged, points, published=keys)


@pytest.mark.parametrize("signature", ["", "not base64!", "AAAA"])
def test_a_malformed_signature_is_refused(signature: str) -> None:
    release, certificate, points, keys = Published().parts()
    with pytest.raises(VerificationError):
        verify_release(release, replace(certificate, signature=signature), points, published=keys)


def test_a_statement_without_a_canonical_form_is_refused() -> None:
    release, certificate, points, keys = Published().parts()
    forged = replace(certificate, statement={**certificate.statement, "sequence": 2**60})
    with pytest.raises(VerificationError, match="malformed"):
        verify_release(release, forged, points, published=keys)


def test_a_certificate_signed_by_another_key_is_refused() -> None:
    published = Published()
    _, _, _, trusted_keys = published.parts()
    published.key = Ed25519.generate()
    release, certificate, points, _ = published.parts()
    with pytest.raises(VerificationError, match="not among the trusted"):
        verify_release(release, certificate, points, published=trusted_keys)


def test_a_signature_of_another_key_with_a_trusted_id_is_refused() -> None:
    published = Published()
    _, genuine, _, trusted_keys = published.parts()
    published.key = Ed25519.generate()
    release, certificate, points, _ = published.parts()
    with pytest.raises(VerificationError, match="signature does not belong"):
        verify_release(release, replace(certificate, key_id=genuine.key_id), points, published=trusted_keys)


def test_a_published_key_with_the_id_of_another_is_refused() -> None:
    published, other = Published(), Published()
    release, certificate, points, keys = published.parts()
    mislabelled = [replace(keys[0], public_key=other.public_key)]
    with pytest.raises(VerificationError, match="not among the trusted"):
        verify_release(release, certificate, points, published=mislabelled)


def test_a_ledger_key_as_a_release_key_is_refused() -> None:
    release, certificate, points, keys = Published().parts()
    with pytest.raises(VerificationError, match="not among the trusted"):
        verify_release(release, certificate, points, published=[replace(keys[0], use="ledger")])


@pytest.mark.parametrize("public_key", ["***", "AAAA"])
def test_a_malformed_pinned_key_is_refused(public_key: str) -> None:
    release, certificate, points, _ = Published().parts()
    with pytest.raises(VerificationError, match="key is not"):
        verify_release(release, certificate, points, pinned=[public_key])


@pytest.mark.parametrize("member", ["id", "dataset_id"])
def test_a_certificate_of_another_release_is_refused(member: str) -> None:
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
        (_prior, "model differs from the certified model"),
        (_design, "design differs from the certified design"),
        (_size, "size differs from the certified size"),
        (_cost, "cost differs from the certified cost"),
        (_no_cost, "cost differs from the certified cost"),
        (_relation, "zero-out"),
        (_beyond_the_limit, "within the account's limit"),
        (_no_limit, "within the account's limit"),
        (_unpriced, "within the account's limit"),
    ],
)
def test_metadata_that_differ_from_the_certificate_are_refused(
    tamper: Callable[[Published], None], sentence: str
) -> None:
    published = Published()
    tamper(published)
    release, certificate, points, keys = published.parts()
    with pytest.raises(VerificationError, match=sentence):
        verify_release(release, certificate, points, published=keys)


def test_a_release_of_public_data_needs_no_cost() -> None:
    published = Published()
    published.release["cost"] = published.statement["privacy"] = published.statement["relation"] = None
    release, certificate, points, keys = published.parts()
    verify_release(release, certificate, points, published=keys)


@pytest.mark.parametrize("index", range(4))
def test_bytes_changed_together_with_their_header_are_refused(index: int) -> None:
    release, certificate, points, keys = Published().parts()
    changed = points[index].content + b"\n"
    points[index] = replace(points[index], content=changed, repr_digest=digest_bytes(changed))
    with pytest.raises(VerificationError, match=f"{points[index].format} points differs from the certified digest"):
        verify_release(release, certificate, points, published=keys)


@pytest.mark.parametrize("header", [None, "md5=:AAAA:", digest_bytes(b"other")])
def test_a_wrong_repr_digest_is_refused(header: str | None) -> None:
    release, certificate, points, keys = Published().parts()
    points[0] = replace(points[0], repr_digest=header)
    with pytest.raises(VerificationError, match="Repr-Digest"):
        verify_release(release, certificate, points, published=keys)


POSTERIOR = {"parameters": ["age", "intercept"], "mean": [0.25, -1.0], "covariance": [[0.5, 0.1], [0.1, 1e-9]]}


def _stating(posterior: dict[str, object] | None, certified: dict[str, object] | None) -> Published:
    published = Published()
    published.release["posterior"] = posterior
    if certified is not None:
        published.statement["posterior_digest"] = digest_bytes(rfc8785.dumps(dict[str, Any](certified)))
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
def test_a_changed_added_or_removed_posterior_is_refused(
    posterior: dict[str, object] | None, certified: dict[str, object] | None
) -> None:
    release, certificate, points, keys = _stating(posterior, certified).parts()
    with pytest.raises(VerificationError, match="posterior differs from the certified posterior"):
        verify_release(release, certificate, points, published=keys)


def test_a_certificate_without_digests_is_refused() -> None:
    published = Published()
    del published.statement["digests"]
    release, certificate, points, keys = published.parts()
    with pytest.raises(VerificationError, match="differs from the certified digest"):
        verify_release(release, certificate, points, published=keys)


def test_verify_reads_all_representations_without_a_key() -> None:
    script = Script([Published()])
    with script.client(api_key=None) as client:
        client.releases.verify("rel_1")
    formats = [request.url.params["format"] for request in script.seen if request.url.path.endswith("/points")]
    assert formats == ["json", "csv", "parquet", "npz"]


def test_a_download_that_fails_verification_is_refused() -> None:
    published = Published()
    published.bodies["npz"] = published.npz(("sex=Male", "age", "intercept"))
    with Script([published]).client(api_key=None) as client, pytest.raises(VerificationError):
        client.releases.download("rel_1")
