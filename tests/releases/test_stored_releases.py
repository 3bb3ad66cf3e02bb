"""Releases of an earlier version still verify, and their plans can be read.

``stored_releases.json`` holds the releases of two methods as that version served them: metadata with certificate, the
four representations and the published keys; and the plan that was stored with each job.
"""

import base64
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from corevault import VerificationError, verify_release
from corevault.replies.key import SigningKey
from corevault.replies.release import Certificate, Points, Release

from app.inference.core import plan_json
from app.inference.registry import find_private_method

STORED: dict[str, Any] = json.loads(Path(__file__).with_name("stored_releases.json").read_text())
RELEASES = pytest.mark.parametrize("stored", STORED["releases"], ids=lambda stored: stored["release"]["method"])


def read(stored: dict[str, Any]) -> tuple[Release, Certificate, list[Points], list[SigningKey]]:
    points = [
        Points(
            format=name,
            content=base64.b64decode(served["content"]),
            media_type=served["headers"]["content-type"],
            repr_digest=served["headers"]["repr-digest"],
            etag=served["headers"]["etag"],
        )
        for name, served in stored["pseudocoreset"].items()
    ]
    certificate = Certificate.from_json(stored["release"]["certificate"])
    keys = [SigningKey.from_json(key) for key in STORED["keys"]["items"]]
    return Release.from_json(stored["release"]), certificate, points, keys


@RELEASES
def test_a_stored_release_verifies(stored: dict[str, Any]) -> None:
    release, certificate, points, keys = read(stored)
    assert len(points) == 4
    statement = verify_release(release, certificate, points, published=keys)
    assert statement == stored["release"]["certificate"]["statement"]


@RELEASES
def test_a_stored_release_states_no_reliability(stored: dict[str, Any]) -> None:
    """It has ``trusted`` in its diagnostics, and no grade is computed from it."""
    release = read(stored)[0]
    assert release.reliability is None
    assert release.trusted is stored["release"]["diagnostics"]["trusted"]


@RELEASES
def test_a_reliability_that_is_added_later_is_refused(stored: dict[str, Any]) -> None:
    _, certificate, points, keys = read(stored)
    release = Release.from_json(stored["release"] | {"reliability": {"grade": "calibrated", "reasons": []}})
    with pytest.raises(VerificationError, match="reliability"):
        verify_release(release, certificate, points, published=keys)


@RELEASES
def test_an_altered_copy_of_a_stored_release_is_refused(stored: dict[str, Any]) -> None:
    release, certificate, points, keys = read(stored)
    points[0] = replace(points[0], content=points[0].content + b" ")
    with pytest.raises(VerificationError):
        verify_release(release, certificate, points, published=keys)


@RELEASES
def test_a_stored_plan_is_read_and_written_unchanged(stored: dict[str, Any]) -> None:
    plan = plan_json.from_json(stored["plan"])
    assert json.loads(json.dumps(plan_json.to_json(plan))) == stored["plan"]
    assert plan.method == find_private_method(plan.method).id
