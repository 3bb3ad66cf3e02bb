"""Mutants of access: releases, entries, events, recorded answers, keys and metrics."""

from typing import Final

from tools.mutants.mutant import Mutant

_WALK: Final = "tests/access/test_access_walk.py::test_objects_of_another_tenant_are_not_found"
_IDEMPOTENCY: Final = "tests/http/test_idempotency.py::"

ACCESS: Final = (
    Mutant(
        "the API's share has the opening key",
        "W1",
        "app/vault/keys.py",
        (("API_FILES = (SEALING,", "API_FILES = (OPENING, SEALING,"),),
        "tests/vault/test_rotation.py::test_api_share_is_updated_and_has_no_opening_key",
    ),
    Mutant(
        "metrics have the raw path of a request",
        "W3",
        "app/http/middleware/outer_middleware.py",
        (
            (
                "    if request.route == context.UNMATCHED and isinstance(route, APIRoute):\n        request.route = route.path_format\n",
                '    request.route = scope["path"]\n',
            ),
        ),
        "tests/health/test_health.py::test_metrics_count_by_path_template",
    ),
    Mutant(
        "every release that was read is cached as public",
        "W3",
        "app/releases/http/cache.py",
        (("        if release.public:\n", "        if release:\n"),),
        "tests/releases/test_public_reads.py::test_a_private_release_is_never_cached",
    ),
    Mutant(
        "every key reads every release",
        "W3",
        "app/releases/service.py",
        (("        access.find_visible(session, caller, release.dataset_id)\n", "        pass\n"),),
        "tests/releases/test_releases_http.py::test_a_private_release_is_visible_only_with_its_dataset",
    ),
    Mutant(
        "anybody lists the private releases of a named dataset",
        "W3",
        "app/releases/repository.py",
        (("    if not sees_all:\n", "    if not sees_all and (key_id is not None or dataset_id is None):\n"),),
        _WALK + "[GET /v1/releases query:dataset_id]",
    ),
    Mutant(
        "every caller who may use a dataset reads its entries",
        "W3",
        "app/budgets/service.py",
        (("        raise Forbidden(_NOT_OWN)\n", "        pass\n"),),
        "tests/budgets/test_budget_endpoints.py::test_an_owner_with_a_shared_dataset_may_not_read_its_ledger",
    ),
    Mutant(
        "every role may ask for quotes and run jobs",
        "W3",
        "app/jobs/service.py",
        (
            (
                'RUNNERS = frozenset({"owner", "analyst"})',
                'RUNNERS = frozenset({"owner", "analyst", "auditor", "admin"})',
            ),
        ),
        _WALK + "[POST /v1/quotes body:dataset_id]",
    ),
    Mutant(
        "an idempotency key serves every caller",
        "W3",
        "app/http/requests/repository.py",
        (
            (
                "return tx.get(IdempotentAnswer, (caller_id, route, key))",
                "return tx.query(IdempotentAnswer).filter_by(route=route, key=key).first()",
            ),
        ),
        _IDEMPOTENCY + "test_two_callers_may_use_the_same_key",
    ),
    Mutant(
        "an idempotency key serves every route",
        "W8",
        "app/http/requests/repository.py",
        (
            (
                "return tx.get(IdempotentAnswer, (caller_id, route, key))",
                "return tx.query(IdempotentAnswer).filter_by(caller_id=caller_id, key=key).first()",
            ),
        ),
        _IDEMPOTENCY + "test_a_key_is_of_one_route",
    ),
    Mutant(
        "every key follows every job",
        "W3",
        "app/jobs/endpoints.py",
        (
            (
                "        job = service.find_visible(session, caller, job_id)\n        return job,",
                "        job = session.get_one(Job, job_id)\n        return job,",
            ),
        ),
        _WALK + "[GET /v1/jobs/{job_id}/events path:job_id]",
    ),
    Mutant(
        "an analyst's refusal states how the upload ended",
        "W3",
        "app/datasets/access.py",
        (("    if not may_oversee(caller, dataset):\n        return _NOT_READY\n", ""),),
        "tests/jobs/test_jobs_http.py::test_analyst_sees_the_same_refusal_for_every_upload_outcome",
    ),
    Mutant(
        "analysts see the newest content, ready or not",
        "W3",
        "app/datasets/views.py",
        (("DatasetView(**_facts(dataset, each, each.ready))", "DatasetView(**_facts(dataset, each, each.last))"),),
        "tests/datasets/test_visibility.py::test_outcome_of_an_upload_is_hidden_from_analysts",
    ),
    Mutant(
        "a revoked key works for another hour",
        "W3",
        "app/auth/service.py",
        (
            (
                "return key.revoked_at is None and",
                "return (key.revoked_at is None or at - key.revoked_at < timedelta(hours=1)) and",
            ),
            (
                "if hmac.compare_digest(stored, keyed + compute_seal(self.identity_key, key)):",
                "if hmac.compare_digest(key.secret_hash, keyed):",
            ),
        ),
        "tests/auth/test_keys.py::test_an_ended_key_is_answered_like_an_unknown_one",
    ),
    Mutant(
        "every caller who may use a dataset reads its refused jobs",
        "W3",
        "app/budgets/service.py",
        (
            (
                "    dataset = _find_overseen(session, caller, dataset_id)\n    of_account",
                "    dataset = access.find_visible(session, caller, dataset_id)\n    of_account",
            ),
        ),
        "tests/audit/test_audit_log.py::test_an_owner_reads_the_refused_jobs_of_an_account",
    ),
)
