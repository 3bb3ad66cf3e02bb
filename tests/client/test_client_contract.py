"""The client agrees with the server, from which it imports nothing."""

import dataclasses
import json
from collections.abc import Iterator
from typing import Any

import pytest
from corevault import LogisticRegression, Mechanism, Points, Schema, binary, categorical, integer, real, verification
from corevault.errors import BY_CODE
from corevault.replies import catalogue as client_catalogue
from corevault.replies import dataset as client_dataset
from corevault.replies import job as client_job
from corevault.replies import key as client_key
from corevault.replies import outlook as client_outlook
from corevault.replies import population as client_population
from corevault.replies import release as client_release
from corevault.replies import worker as client_worker
from corevault.replies._decode import Reply
from corevault.replies.release import StoredBelief, StoredGroups
from corevault.resources.jobs import job_request
from pydantic import BaseModel

from app.auth import schemas as auth
from app.budgets import population_schemas as populations
from app.budgets import schemas as budgets
from app.budgets import what_if_schemas as what_if
from app.catalogue import schemas as catalogue
from app.datasets import schemas as datasets
from app.datasets.uploads import schemas as uploads
from app.health import workers as health
from app.http.errors.codes import PROBLEMS
from app.jobs import schemas as jobs
from app.releases import schemas as releases
from app.releases.http.formats import STORED_NAMES, Part
from tests.client.fake import DATASET, Script, ok

PAIRS: list[tuple[type[Reply], type[BaseModel]]] = [
    (client_key.Me, auth.Me),
    (client_key.ApiKey, auth.ListedKey),
    (client_key.ApiKey, auth.CreatedKey),
    (client_key.SigningKey, releases.KeyView),
    (client_dataset.Dataset, datasets.DatasetDetail),
    (client_dataset.Dataset, datasets.DatasetDetail),
    (client_dataset.Content, datasets.ContentView),
    (client_dataset.Rejection, datasets.RejectionView),
    (client_dataset.OpenUpload, uploads.UploadView),
    (client_dataset.Budget, budgets.BudgetView),
    (client_dataset.Allocation, budgets.AllocationView),
    (client_dataset.LedgerEntry, budgets.EntryView),
    (client_dataset.RefusedJobs, budgets.RefusalView),
    (client_population.Population, populations.PopulationView),
    (client_population.PopulationDataset, populations.PopulationDataset),
    (client_worker.Worker, health.WorkerView),
    (client_outlook.JobOutlook, what_if.JobOutlookView),
    (client_outlook.Comparison, what_if.ComparisonView),
    (client_outlook.Outlook, what_if.OutlookView),
    (client_outlook.Risk, what_if.RiskView),
    (client_outlook.Recomputation, what_if.VerificationView),
    (client_job.Quote, jobs.QuoteView),
    (client_job.ExpectedAccuracy, jobs.ExpectedAccuracyView),
    (client_job.Job, jobs.JobView),
    (client_release.Release, releases.ReleaseView),
    (client_release.Reliability, releases.ReliabilityView),
    (client_release.Reason, releases.ReasonView),
    (client_release.Certificate, releases.CertificateView),
    (client_catalogue.Catalogue, catalogue.Catalogue),
    (client_catalogue.Method, catalogue.MethodView),
    (client_catalogue.Model, catalogue.ModelView),
]


def _examples() -> Iterator[Any]:
    for reply, view in PAIRS:
        extra = view.model_config.get("json_schema_extra")
        for example in extra.get("examples", []) if isinstance(extra, dict) else []:  # type: ignore[union-attr]
            yield pytest.param(reply, view, example, id=view.__name__)


def test_client_and_server_have_the_same_codes() -> None:
    assert set(BY_CODE) == set(PROBLEMS)


@pytest.mark.parametrize(("reply", "view"), PAIRS)
def test_required_members_of_a_reply_are_in_the_servers_view(reply: type[Reply], view: type[BaseModel]) -> None:
    needed = {
        field.name
        for field in dataclasses.fields(reply)
        if field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING
    }
    assert needed <= set(view.model_fields)


@pytest.mark.parametrize(("reply", "view"), PAIRS)
def test_members_of_a_reply_are_in_the_servers_view(reply: type[Reply], view: type[BaseModel]) -> None:
    optional_elsewhere = {"raw", "key", "revoked_at", "shared_with", "expires_at", "created_at"}
    assert {field.name for field in dataclasses.fields(reply)} - optional_elsewhere <= set(view.model_fields)


@pytest.mark.parametrize(("reply", "view", "example"), list(_examples()))
def test_the_servers_examples_can_be_decoded(reply: type[Reply], view: type[BaseModel], example: Any) -> None:
    reply.from_json(view.model_validate(example).model_dump(mode="json"))


@pytest.mark.parametrize(
    "privacy", [{"epsilon": 0.5}, {"mechanism": Mechanism(noise_multiplier=5.0, sampling_rate=0.1, iterations=9)}, {}]
)
def test_the_server_accepts_the_clients_jobs(privacy: dict[str, Any]) -> None:
    model = LogisticRegression(features=["age"], target="seen")
    given: dict[str, Any] = {"method": "dp-psvi", "size": 9, "parameters": None, "epsilon": None, "mechanism": None}
    body = job_request("ds_1", model, **(given | privacy))
    assert jobs.JobBody.model_validate(body).wish().epsilon == privacy.get("epsilon")


def test_client_and_server_have_the_same_default_method() -> None:
    script = Script([ok(jobs.JobView.model_validate(jobs.EXAMPLE_JOB).model_dump(mode="json"), 202)])
    with script.client() as client:
        client.jobs.submit("ds_1", LogisticRegression(features=["age"], target="seen"), size=9, epsilon=0.5)
    sent = json.loads(script.bodies[0])
    assert sent.pop("method") == jobs.JobBody.model_validate(sent).method


def test_client_and_server_have_the_same_names_of_representations() -> None:
    stored = [StoredBelief(name, b"", "", None, None).name for name in verification.BELIEF_FORMATS]
    groups = [StoredGroups(name, b"", "", None, None).name for name in verification.BELIEF_FORMATS]
    points = [Points(name, b"", "", None, None).name for name in verification.FORMATS]
    assert (points, stored, groups) == tuple(list(STORED_NAMES[part].values()) for part in Part)


def test_the_server_accepts_the_clients_unfreeze() -> None:
    budget = budgets.BudgetView.model_config["json_schema_extra"]["examples"][0]  # type: ignore[index]
    script = Script([ok(budget)])
    with script.client() as client:
        client.datasets.unfreeze("ds_1", reason="A fault of the service.")
    assert budgets.UnfreezeBody.model_validate_json(script.bodies[0]).reason == "A fault of the service."


def test_the_server_accepts_the_clients_datasets() -> None:
    schema = Schema(
        integer("age", 17, 90, impute=38), real("hours", 1, 99), categorical("sex", ["F", "M"]), binary("rich")
    )
    script = Script([ok(DATASET, 201)])
    with script.client() as client:
        client.datasets.create("adult", schema, slots=10_000, epsilon=2.0, delta=1e-6, shared_with=["key_1"])
        client.datasets.update("ds_1", description="d", shared_with=["key_1"], releases_public=False)
    assert datasets.DatasetBody.model_validate_json(script.bodies[0]).name == "adult"
    assert datasets.DatasetPatch.model_validate_json(script.bodies[1]).shared_with == ["key_1"]
