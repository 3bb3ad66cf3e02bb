"""Publication of releases.

First the representations are stored. Then the transaction that settles the job adds the release and its certificate.

The name of an object is a hash of the job, the attempt and the representation. So the objects of an abandoned attempt
can be found and destroyed, and no attempt can overwrite an object that another attempt has published.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from app.db import WriteSession, generate_id, now
from app.http.requests.digests import digest_header
from app.inference.core.problems import make_problem, name_parameters
from app.inference.core.release import GroupWeights, Pseudocoreset, Released
from app.releases.http.belief_rendering import render_belief
from app.releases.http.formats import STORED_MEDIA_TYPES, STORED_NAMES, Part
from app.releases.http.rendering import render
from app.releases.models import Release
from app.releases.statement import Run, Standing, make_release_body, make_statement
from app.vault.signing import Signer
from app.vault.store import ObjectStore

Representations = Mapping[str, Mapping[str, Any]]
"""Name of a representation -> {object, length, sha256 (hex), media_type}."""


@dataclass(frozen=True, slots=True)
class Draft:
    """A finished run whose representations are stored but not published yet."""

    run: Run
    released: Released
    representations: Representations


def discard(store: ObjectStore, job_id: str, token: int) -> None:
    """Destroy the objects that attempt ``token`` of the job stored, if there are any."""
    for name in STORED_MEDIA_TYPES:
        store.delete(_object_name(job_id, token, name))


class Publisher:
    """Stores releases and signs them. Only the worker can do this, because only it has the release key."""

    def __init__(self, store: ObjectStore, signer: Signer) -> None:
        self._store = store
        self._signer = signer

    def store(self, run: Run, token: int, released: Released) -> Draft:
        """Render points, belief and groups, if there are any, and make all representations durable."""
        rendered = _render(run, released)
        return Draft(
            run, released, {name: self._write(run.job_id, token, name, each) for name, each in rendered.items()}
        )

    def discard(self, job_id: str, token: int) -> None:
        """See :func:`discard`."""
        discard(self._store, job_id, token)

    def owns(self, release: Release, token: int) -> bool:
        """Return whether attempt ``token`` has published ``release``."""
        return any(
            stored["object"] == _object_name(release.job_id, token, name)
            for name, stored in release.representations.items()
        )

    def publish(self, tx: WriteSession, draft: Draft, standing: Standing | None, *, public: bool) -> Release:
        """Add the release and its signed certificate to ``tx``; ``standing`` is None on public data."""
        run, released, representations = draft.run, draft.released, draft.representations
        release_id = generate_id("rel")
        digests = {name: digest_header(bytes.fromhex(each["sha256"])) for name, each in representations.items()}
        stated = make_statement(release_id, run, released, digests, standing)
        release = Release(
            id=release_id,
            dataset_id=run.dataset_id,
            job_id=run.job_id,
            public=public,
            created_at=now(),
            body=make_release_body(run, released),
            certificate=self._signer.sign(stated),
            representations={name: dict(each) for name, each in representations.items()},
        )
        tx.add(release)
        tx.flush()
        return release

    def _write(self, job_id: str, token: int, name: str, content: bytes) -> dict[str, Any]:
        with self._store.create(_object_name(job_id, token, name)) as writer:
            writer.write(content)
            stored = writer.publish()
        return {
            "object": stored,
            "length": len(content),
            "sha256": hashlib.sha256(content).hexdigest(),
            "media_type": STORED_MEDIA_TYPES[name],
        }


def _render(run: Run, released: Released) -> dict[str, bytes]:
    """Render every representation, by its name."""
    if isinstance(released, Pseudocoreset):
        discrete = any(column.is_discrete for column in run.facts.columns if column.name == run.plan.model.target)
        blocks = released.make_blocks(name_parameters(make_problem(run.plan.model, run.facts)))
        parts = {Part.POINTS: render(released, discrete_target=discrete), Part.BELIEF: render_belief(blocks)}
    elif isinstance(released, GroupWeights):
        parts = {Part.GROUPS: render_belief((released.make_block(),))}
    else:
        parts = {Part.BELIEF: render_belief(released.blocks)}
    return {
        STORED_NAMES[part][of_format]: content
        for part, rendered in parts.items()
        for of_format, content in rendered.items()
    }


def _object_name(job_id: str, token: int, name: str) -> str:
    return hashlib.sha256(f"release|{job_id}|{token}|{name}".encode()).hexdigest()[:32]
