"""After a rotation of keys, earlier boxes and signatures stay readable."""

import base64
from datetime import timedelta
from pathlib import Path

import pytest
from nacl.public import PrivateKey

from app.vault import rotation
from app.vault.envelope import generate_key, seal_new_dataset_key
from app.vault.errors import VaultError
from app.vault.escrow import create_escrow_key, restore_keys, seal_keys
from app.vault.keys import create_keys, load_api_keys, load_worker_keys, replace_key, share_api_keys
from app.vault.rotation import USES, Use, destroy_retired_opening, rotate
from app.vault.signing import Signer
from workers.enclave import OpeningKey


def opening(directory: Path) -> OpeningKey:
    keys = load_worker_keys(directory)
    return OpeningKey(keys.opening_key, keys.opening_retired, keys.fingerprint_key)


def contents(directory: Path) -> dict[str, str]:
    return {path.name: path.read_text() for path in directory.iterdir() if path.is_file()}


def test_boxes_sealed_before_a_rotation_still_open(tmp_path: Path) -> None:
    create_keys(tmp_path)
    boxes = []
    for _ in range(3):
        boxes.append(seal_new_dataset_key("ds_1", load_api_keys(tmp_path).sealing_key))
        rotate(tmp_path, "opening")
    boxes.append(seal_new_dataset_key("ds_1", load_api_keys(tmp_path).sealing_key))
    key = opening(tmp_path)
    assert len({key.dataset_key(box, "ds_1") for box in boxes}) == 4
    assert [key.opens_without_retired(box) for box in boxes] == [False, False, False, True]
    with pytest.raises(VaultError, match="24 hours"):
        destroy_retired_opening(tmp_path)
    assert destroy_retired_opening(tmp_path, timedelta()) == 3
    assert opening(tmp_path).dataset_key(boxes[-1], "ds_1")
    with pytest.raises(VaultError):
        opening(tmp_path).dataset_key(boxes[0], "ds_1")


def test_fingerprint_key_is_the_same_after_a_rotation(tmp_path: Path) -> None:
    """An identical file in another population is still refused, even without a key file."""
    create_keys(tmp_path)
    first = OpeningKey(load_worker_keys(tmp_path).opening_key).fingerprint_key("key_1")
    assert opening(tmp_path).fingerprint_key("key_1") == first
    (tmp_path / "fingerprint.key").unlink()  # as older installations have it
    assert opening(tmp_path).fingerprint_key("key_1") == first
    rotate(tmp_path, "opening")
    assert opening(tmp_path).fingerprint_key("key_1") == first
    (tmp_path / "fingerprint.key").unlink()
    with pytest.raises(VaultError):
        opening(tmp_path)


def test_signatures_from_before_a_rotation_are_still_verified(tmp_path: Path) -> None:
    create_keys(tmp_path)
    signed = Signer(load_api_keys(tmp_path).ledger_seed).sign({"n": 1})
    for _ in range(2):
        rotate(tmp_path, "ledger")
    keys = load_api_keys(tmp_path)
    signer = Signer(keys.ledger_seed, keys.ledger_retired)
    assert signer.ring.verify(signed)
    assert signer.ring.verify(signer.sign({"n": 2}))
    assert not Signer(keys.ledger_seed).ring.verify(signed)
    assert signer.public_key == keys.ledger_public
    assert len(keys.ledger_retired) == 2


@pytest.mark.parametrize("use", ["ledger", "release"])
def test_secret_of_a_retired_signing_key_is_destroyed(tmp_path: Path, use: Use) -> None:
    create_keys(tmp_path)
    seed = (tmp_path / f"{use}.key").read_text()
    rotate(tmp_path, use)
    assert seed not in contents(tmp_path).values()


@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("step", [0, 1])
def test_interrupted_rotation_is_repaired_by_the_next_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, use: Use, step: int
) -> None:
    """W10: after a crash at any step, the next start makes secret and public key match."""
    create_keys(tmp_path)
    box = seal_new_dataset_key("ds_1", load_api_keys(tmp_path).sealing_key)
    signed = Signer(load_api_keys(tmp_path).ledger_seed).sign({"n": 1})
    calls = iter(range(3))

    def dies(path: Path, key: bytes) -> None:
        if next(calls) == step:
            raise KeyboardInterrupt
        replace_key(path, key)

    with monkeypatch.context() as patch:
        patch.setattr(rotation, "replace_key", dies)
        with pytest.raises(KeyboardInterrupt):
            rotate(tmp_path, use)
    create_keys(tmp_path)
    api, worker = load_api_keys(tmp_path), load_worker_keys(tmp_path)
    assert bytes(PrivateKey(worker.opening_key).public_key) == api.sealing_key
    assert Signer(worker.release_seed).public_key == api.release_public
    assert Signer(api.ledger_seed, api.ledger_retired).ring.verify(signed)
    assert opening(tmp_path).dataset_key(box, "ds_1")


def test_api_share_is_updated_and_has_no_opening_key(tmp_path: Path) -> None:
    """W1: this holds after rotations too."""
    keys, share = tmp_path / "keys", tmp_path / "share"
    create_keys(keys)
    share_api_keys(keys, share)
    for use in USES:
        rotate(keys, use)
    share_api_keys(keys, share)
    assert load_api_keys(share) == load_api_keys(keys)
    worker = load_worker_keys(keys)
    secrets = {worker.opening_key, worker.release_seed, worker.fingerprint_key, *worker.opening_retired}
    assert not {base64.b64decode(text) for text in contents(share).values()} & secrets


def test_escrow_restores_all_keys(tmp_path: Path) -> None:
    keys, restored = tmp_path / "keys", tmp_path / "restored"
    create_keys(keys)
    for use in USES:
        rotate(keys, use)
    public = create_escrow_key(tmp_path / "escrow.key")
    sealed = seal_keys(keys, public)
    assert not any(text.strip().encode() in sealed for text in contents(keys).values())
    assert restore_keys(sealed, tmp_path / "escrow.key", restored) == len(contents(keys))
    assert contents(restored) == contents(keys)
    assert load_worker_keys(restored) == load_worker_keys(keys)
    assert restore_keys(sealed, tmp_path / "escrow.key", restored) == 0


def test_escrow_never_overwrites_a_key(tmp_path: Path) -> None:
    create_keys(tmp_path / "keys")
    create_keys(tmp_path / "others")
    before = contents(tmp_path / "others")
    sealed = seal_keys(tmp_path / "keys", create_escrow_key(tmp_path / "escrow.key"))
    with pytest.raises(VaultError, match="differs"):
        restore_keys(sealed, tmp_path / "escrow.key", tmp_path / "others")
    assert contents(tmp_path / "others") == before
    with pytest.raises(VaultError):
        create_escrow_key(tmp_path / "escrow.key")


def test_escrow_opens_only_with_its_key(tmp_path: Path) -> None:
    create_keys(tmp_path / "keys")
    sealed = seal_keys(tmp_path / "keys", create_escrow_key(tmp_path / "escrow.key"))
    create_escrow_key(tmp_path / "another.key")
    for data, key in ((sealed, "another.key"), (sealed[:-1], "escrow.key"), (generate_key(), "escrow.key")):
        with pytest.raises(VaultError):
            restore_keys(data, tmp_path / key, tmp_path / "restored")
    assert not (tmp_path / "restored").exists()
