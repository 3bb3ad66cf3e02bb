"""Declaring datasets and changing their editable members."""

from typing import Any

from app.auth import service as keys
from app.auth.caller import Caller
from app.datasets import access, declaration, repository, series
from app.datasets.facts import digest_facts
from app.datasets.models import Dataset
from app.datasets.schemas import AllocationBody, BudgetBody, DatasetBody, DatasetPatch
from app.db import ReadSession, WriteSession, generate_id, now
from app.errors import Fault, InvalidRequest, StateConflict
from app.ledger import Ledger
from app.services import Services
from app.vault.envelope import seal_new_dataset_key

DEFAULT_DELTA = 1e-6


def declare(tx: WriteSession, services: Services, caller: Caller, body: DatasetBody) -> Dataset:
    """Create a dataset with its sealed data key.

    A private dataset gets an account or joins its population's. If one of these steps fails, none takes effect.

    Raises:
        InvalidRequest: the declaration breaks a rule, names keys that do not exist, or does not fit its series.
        StateConflict: the population's account has another delta or unit, or the owner has too many datasets.
        DependencyUnavailable: the key area cannot be reached.
    """
    declaration.check(body, services.limits.slots)
    _check_room(tx, caller, services.limits.datasets)
    _check_keys(tx, body.shared_with)
    dataset = _build_row(caller, body)
    tx.add(dataset)
    tx.flush()
    series.join(tx, dataset)
    repository.replace_shares(tx, dataset.id, body.shared_with)
    if body.budget is not None:
        _open_account(tx, services, dataset, body.budget)
    _store_new_key(tx, services, dataset)
    return dataset


def _store_new_key(tx: WriteSession, services: Services, dataset: Dataset) -> None:
    """Store the dataset's key before the commit, and destroy it on rollback.

    A dataset without a key is useless, but a key without a dataset is harmless.
    """
    keys, dataset_id = services.areas.keys, dataset.id
    public = dataset.sensitivity == "public"

    def destroy_unused_key(after: WriteSession) -> None:
        if repository.get(after, dataset_id) is None:  # a commit may have succeeded although its reply was lost
            keys.destroy(dataset_id)

    tx.after_rollback(destroy_unused_key)
    keys.keep(dataset_id, seal_new_dataset_key(dataset_id, services.sealing_key, public=public))


def _check_room(tx: WriteSession, caller: Caller, most: int) -> None:
    keys.take_turn(tx, caller.id)
    if repository.count_datasets(tx, caller.id) >= most:
        raise StateConflict(f"You have {most} datasets, the most that this server allows. Delete one first.")


def _build_row(caller: Caller, body: DatasetBody) -> Dataset:
    identifier, moment = generate_id("ds"), now()
    return Dataset(
        id=identifier,
        owner_id=caller.id,
        name=body.name,
        description=body.description,
        sensitivity=body.sensitivity,
        population=body.population or identifier,
        series=body.series,
        columns=[column.model_dump(mode="json", exclude_none=True) for column in body.columns],
        privacy_unit=body.privacy_unit.model_dump(mode="json"),
        slots=body.slots,
        releases_public=body.releases_public,
        created_at=moment,
        updated_at=moment,
        deleted_at=None,
        deletion_receipt=None,
    )


def _open_account(tx: WriteSession, services: Services, dataset: Dataset, budget: BudgetBody) -> None:
    services.ledger.open_account(
        tx,
        owner_id=dataset.owner_id,
        population=dataset.population,
        dataset_id=dataset.id,
        unit=dict(dataset.privacy_unit),
        slots=dataset.slots,
        facts=digest_facts(dataset),
        epsilon=budget.epsilon,
        delta=compute_default_delta(dataset.slots) if budget.delta is None else budget.delta,
    )


def compute_default_delta(slots: int) -> float:
    """Return 1e-6, or 1/(10·slots) where that is smaller."""
    return min(DEFAULT_DELTA, 1 / (10 * slots))


def change(tx: WriteSession, ledger: Ledger, caller: Caller, dataset_id: str, patch: DatasetPatch) -> Dataset:
    """Set the members that ``patch`` contains; existing releases keep their visibility.

    Raises:
        Forbidden, NotFound, StateConflict: as :func:`app.datasets.access.lock_changeable`.
        InvalidRequest: the description has control characters, a key does not exist, or an epsilon is not valid.
    """
    dataset = access.lock_changeable(tx, caller, dataset_id)
    changes: dict[str, Any] = patch.model_dump(exclude_unset=True)
    if faults := tuple(declaration.find_plain_text_faults("/description", changes.get("description", ""), lines=True)):
        raise InvalidRequest(faults=faults)
    shared_with = changes.pop("shared_with", None)
    if shared_with is not None:
        _check_keys(tx, shared_with)
        repository.replace_shares(tx, dataset.id, shared_with)
    if changes.pop("allocations", None) is not None:
        _allocate(tx, ledger, dataset, patch.allocations)
    for member, value in changes.items():
        setattr(dataset, member, value)
    dataset.updated_at = now()
    return dataset


def _allocate(tx: WriteSession, ledger: Ledger, dataset: Dataset, wanted: list[AllocationBody]) -> None:
    if dataset.sensitivity == "public":
        raise StateConflict("A public dataset has no budget, so it has no allocations.")
    key_ids = [each.key_id for each in wanted]
    _check_keys(tx, key_ids, "/allocations/{}/key_id")
    if len(set(key_ids)) != len(key_ids):
        raise InvalidRequest.at("/allocations", "A key is listed twice. List each key once.")
    ledger.allocate(tx, dataset.id, {each.key_id: each.epsilon for each in wanted})


def _check_keys(session: ReadSession, key_ids: list[str], pointer: str = "/shared_with/{}") -> None:
    unknown = keys.describe_unknown(session, key_ids)
    faults = tuple(
        Fault(pointer.format(index), "There is no API key with this id.")
        for index, key_id in enumerate(key_ids)
        if key_id in unknown
    )
    if faults:
        raise InvalidRequest(faults=faults)
