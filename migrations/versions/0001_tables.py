"""Every table of the service.

Revises:
"""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "api_keys",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("role", sa.String(), nullable=False),
        sa.Column("secret_hash", sa.String(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("expires_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("revoked_at", sa.DateTime(timezone=True), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_api_keys")),
        sa.UniqueConstraint("secret_hash", name=op.f("uq_api_keys_secret_hash")),
    )
    op.create_table(
        "idempotent_answers",
        sa.Column("caller_id", sa.String(), nullable=False),
        sa.Column("route", sa.String(), nullable=False),
        sa.Column("key", sa.String(), nullable=False),
        sa.Column("body_hash", sa.String(), nullable=False),
        sa.Column("status", sa.Integer(), nullable=False),
        sa.Column("headers", sa.JSON(), nullable=False),
        sa.Column("body", sa.JSON(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("expires_at", sa.DateTime(timezone=True), nullable=True),
        sa.PrimaryKeyConstraint("caller_id", "route", "key", name=op.f("pk_idempotent_answers")),
    )
    op.create_table(
        "ledger_accounts",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("owner_id", sa.String(), nullable=False),
        sa.Column("population", sa.String(), nullable=False),
        sa.Column("sequence", sa.Integer(), nullable=False),
        sa.Column("head_hash", sa.String(), nullable=False),
        sa.Column("balance", sa.JSON(), nullable=False),
        sa.Column("snapshot", sa.JSON(), nullable=False),
        sa.Column("frozen_at", sa.DateTime(timezone=True), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_ledger_accounts")),
        sa.UniqueConstraint("owner_id", "population", name=op.f("uq_ledger_accounts_owner_id")),
    )
    op.create_table(
        "ledger_checkpoints",
        sa.Column("sequence", sa.Integer(), nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("account_id", sa.String(), nullable=False),
        sa.Column("account_sequence", sa.Integer(), nullable=False),
        sa.Column("account_head", sa.String(), nullable=False),
        sa.Column("balance_hash", sa.String(), nullable=False),
        sa.Column("previous_hash", sa.String(), nullable=False),
        sa.Column("checkpoint_hash", sa.String(), nullable=False),
        sa.Column("signature", sa.String(), nullable=False),
        sa.Column("key_id", sa.String(), nullable=False),
        sa.PrimaryKeyConstraint("sequence", name=op.f("pk_ledger_checkpoints")),
    )
    op.create_index(op.f("ix_ledger_checkpoints_account_id"), "ledger_checkpoints", ["account_id"], unique=False)
    op.create_table(
        "ledger_datasets",
        sa.Column("dataset_id", sa.String(), nullable=False),
        sa.Column("account_id", sa.String(), nullable=False),
        sa.Column("refused", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("dataset_id", name=op.f("pk_ledger_datasets")),
    )
    op.create_index(op.f("ix_ledger_datasets_account_id"), "ledger_datasets", ["account_id"], unique=False)
    op.create_table(
        "ledger_entries",
        sa.Column("account_id", sa.String(), nullable=False),
        sa.Column("sequence", sa.Integer(), nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("kind", sa.String(), nullable=False),
        sa.Column("dataset_id", sa.String(), nullable=False),
        sa.Column("job_id", sa.String(), nullable=True),
        sa.Column("body", sa.JSON(), nullable=False),
        sa.Column("epsilon_after", sa.Double(), nullable=False),
        sa.Column("entry_hash", sa.String(), nullable=False),
        sa.Column("previous_hash", sa.String(), nullable=False),
        sa.PrimaryKeyConstraint("account_id", "sequence", name=op.f("pk_ledger_entries")),
    )
    op.create_table(
        "ledger_fingerprints",
        sa.Column("owner_id", sa.String(), nullable=False),
        sa.Column("fingerprint", sa.String(), nullable=False),
        sa.Column("account_id", sa.String(), nullable=False),
        sa.PrimaryKeyConstraint("owner_id", "fingerprint", name=op.f("pk_ledger_fingerprints")),
    )
    op.create_table(
        "ledger_reservations",
        sa.Column("job_id", sa.String(), nullable=False),
        sa.Column("account_id", sa.String(), nullable=False),
        sa.Column("dataset_id", sa.String(), nullable=False),
        sa.Column("state", sa.String(), nullable=False),
        sa.Column("sequence", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("job_id", name=op.f("pk_ledger_reservations")),
    )
    op.create_index(op.f("ix_ledger_reservations_account_id"), "ledger_reservations", ["account_id"], unique=False)
    op.create_table(
        "worker_leases",
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("holder", sa.String(), nullable=False),
        sa.Column("until", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_worker_leases")),
    )
    op.create_table(
        "datasets",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("owner_id", sa.String(), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("description", sa.String(), nullable=False),
        sa.Column("sensitivity", sa.String(), nullable=False),
        sa.Column("population", sa.String(), nullable=False),
        sa.Column("columns", sa.JSON(), nullable=False),
        sa.Column("privacy_unit", sa.JSON(), nullable=False),
        sa.Column("slots", sa.Integer(), nullable=False),
        sa.Column("releases_public", sa.Boolean(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("updated_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("deleted_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("deletion_receipt", sa.JSON(), nullable=True),
        sa.ForeignKeyConstraint(["owner_id"], ["api_keys.id"], name=op.f("fk_datasets_owner_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_datasets")),
    )
    op.create_index(op.f("ix_datasets_owner_id"), "datasets", ["owner_id"], unique=False)
    op.create_table(
        "contents",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("dataset_id", sa.String(), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("status", sa.String(), nullable=False),
        sa.Column("rejection", sa.String(), nullable=True),
        sa.Column("media_type", sa.String(), nullable=False),
        sa.Column("upload_object", sa.String(), nullable=True),
        sa.Column("table_object", sa.String(), nullable=True),
        sa.Column("wrapped_key", sa.LargeBinary(), nullable=True),
        sa.Column("received_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("ended_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("lease_until", sa.DateTime(timezone=True), nullable=True),
        sa.Column("fencing_token", sa.Integer(), nullable=False),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("queued_at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(["dataset_id"], ["datasets.id"], name=op.f("fk_contents_dataset_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_contents")),
        sa.UniqueConstraint("dataset_id", "version", name=op.f("uq_contents_dataset_id")),
    )
    op.create_index(op.f("ix_contents_dataset_id"), "contents", ["dataset_id"], unique=False)
    op.create_table(
        "dataset_keys",
        sa.Column("dataset_id", sa.String(), nullable=False),
        sa.Column("sealed_key", sa.LargeBinary(), nullable=False),
        sa.ForeignKeyConstraint(["dataset_id"], ["datasets.id"], name=op.f("fk_dataset_keys_dataset_id")),
        sa.PrimaryKeyConstraint("dataset_id", name=op.f("pk_dataset_keys")),
    )
    op.create_table(
        "dataset_shares",
        sa.Column("dataset_id", sa.String(), nullable=False),
        sa.Column("key_id", sa.String(), nullable=False),
        sa.ForeignKeyConstraint(["dataset_id"], ["datasets.id"], name=op.f("fk_dataset_shares_dataset_id")),
        sa.ForeignKeyConstraint(["key_id"], ["api_keys.id"], name=op.f("fk_dataset_shares_key_id")),
        sa.PrimaryKeyConstraint("dataset_id", "key_id", name=op.f("pk_dataset_shares")),
    )
    op.create_index(op.f("ix_dataset_shares_key_id"), "dataset_shares", ["key_id"], unique=False)
    op.create_table(
        "jobs",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("dataset_id", sa.String(), nullable=False),
        sa.Column("caller_id", sa.String(), nullable=False),
        sa.Column("request", sa.JSON(), nullable=False),
        sa.Column("plan", sa.JSON(), nullable=False),
        sa.Column("status", sa.String(), nullable=False),
        sa.Column("stage", sa.String(), nullable=False),
        sa.Column("steps_planned", sa.Integer(), nullable=False),
        sa.Column("steps_done", sa.Integer(), nullable=False),
        sa.Column("cost_epsilon", sa.Double(), nullable=True),
        sa.Column("cost_delta", sa.Double(), nullable=True),
        sa.Column("error_code", sa.String(), nullable=True),
        sa.Column("release_id", sa.String(), nullable=True),
        sa.Column("content_id", sa.String(), nullable=True),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("fencing_token", sa.Integer(), nullable=False),
        sa.Column("lease_until", sa.DateTime(timezone=True), nullable=True),
        sa.Column("cancel_requested", sa.Boolean(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("queued_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("started_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("ended_at", sa.DateTime(timezone=True), nullable=True),
        sa.ForeignKeyConstraint(["caller_id"], ["api_keys.id"], name=op.f("fk_jobs_caller_id")),
        sa.ForeignKeyConstraint(["content_id"], ["contents.id"], name=op.f("fk_jobs_content_id")),
        sa.ForeignKeyConstraint(["dataset_id"], ["datasets.id"], name=op.f("fk_jobs_dataset_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_jobs")),
    )
    op.create_index(op.f("ix_jobs_caller_id"), "jobs", ["caller_id"], unique=False)
    op.create_index(op.f("ix_jobs_dataset_id"), "jobs", ["dataset_id"], unique=False)
    op.create_index(op.f("ix_jobs_status"), "jobs", ["status"], unique=False)
    op.create_table(
        "releases",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("dataset_id", sa.String(), nullable=False),
        sa.Column("job_id", sa.String(), nullable=False),
        sa.Column("public", sa.Boolean(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("body", sa.JSON(), nullable=False),
        sa.Column("certificate", sa.JSON(), nullable=False),
        sa.Column("representations", sa.JSON(), nullable=False),
        sa.ForeignKeyConstraint(["dataset_id"], ["datasets.id"], name=op.f("fk_releases_dataset_id")),
        sa.ForeignKeyConstraint(["job_id"], ["jobs.id"], name=op.f("fk_releases_job_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_releases")),
        sa.UniqueConstraint("job_id", name=op.f("uq_releases_job_id")),
    )
    op.create_index(op.f("ix_releases_dataset_id"), "releases", ["dataset_id"], unique=False)


def downgrade() -> None:
    op.drop_index(op.f("ix_releases_dataset_id"), table_name="releases")
    op.drop_table("releases")
    op.drop_index(op.f("ix_jobs_status"), table_name="jobs")
    op.drop_index(op.f("ix_jobs_dataset_id"), table_name="jobs")
    op.drop_index(op.f("ix_jobs_caller_id"), table_name="jobs")
    op.drop_table("jobs")
    op.drop_index(op.f("ix_dataset_shares_key_id"), table_name="dataset_shares")
    op.drop_table("dataset_shares")
    op.drop_table("dataset_keys")
    op.drop_index(op.f("ix_contents_dataset_id"), table_name="contents")
    op.drop_table("contents")
    op.drop_index(op.f("ix_datasets_owner_id"), table_name="datasets")
    op.drop_table("datasets")
    op.drop_table("worker_leases")
    op.drop_index(op.f("ix_ledger_reservations_account_id"), table_name="ledger_reservations")
    op.drop_table("ledger_reservations")
    op.drop_table("ledger_fingerprints")
    op.drop_table("ledger_entries")
    op.drop_index(op.f("ix_ledger_datasets_account_id"), table_name="ledger_datasets")
    op.drop_table("ledger_datasets")
    op.drop_index(op.f("ix_ledger_checkpoints_account_id"), table_name="ledger_checkpoints")
    op.drop_table("ledger_checkpoints")
    op.drop_table("ledger_accounts")
    op.drop_table("idempotent_answers")
    op.drop_table("api_keys")
