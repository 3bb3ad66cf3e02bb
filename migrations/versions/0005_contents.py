"""Contents consist of sealed parts, uploads have records, and keys of datasets leave the database.

Revises: 0004
"""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    _move_keys()
    op.create_table(
        "uploads",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("dataset_id", sa.String(), nullable=False),
        sa.Column("owner_id", sa.String(), nullable=False),
        sa.Column("content_id", sa.String(), nullable=False),
        sa.Column("media_type", sa.String(), nullable=False),
        sa.Column("length", sa.BigInteger(), nullable=True),
        sa.Column("sealed_digest", sa.LargeBinary(), nullable=True),
        sa.Column("status", sa.String(), nullable=False),
        sa.Column("received", sa.BigInteger(), nullable=False),
        sa.Column("parts", sa.Integer(), nullable=False),
        sa.Column("fencing_token", sa.Integer(), nullable=False),
        sa.Column("lease_until", sa.DateTime(timezone=True), nullable=True),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("expires_at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(["dataset_id"], ["datasets.id"], name=op.f("fk_uploads_dataset_id")),
        sa.ForeignKeyConstraint(["owner_id"], ["api_keys.id"], name=op.f("fk_uploads_owner_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_uploads")),
        sa.UniqueConstraint("content_id", name=op.f("uq_uploads_content_id")),
    )
    op.create_index(op.f("ix_uploads_dataset_id"), "uploads", ["dataset_id"], unique=False)
    op.create_index(op.f("ix_uploads_owner_id"), "uploads", ["owner_id"], unique=False)
    op.create_table(
        "upload_parts",
        sa.Column("object_name", sa.String(), nullable=False),
        sa.Column("content_id", sa.String(), nullable=False),
        sa.Column("number", sa.Integer(), nullable=True),
        sa.Column("size", sa.BigInteger(), nullable=True),
        sa.PrimaryKeyConstraint("object_name", name=op.f("pk_upload_parts")),
        sa.UniqueConstraint("content_id", "number", name=op.f("uq_upload_parts_content_id")),
    )
    op.execute(
        "INSERT INTO upload_parts (object_name, content_id, number) "
        "SELECT upload_object, id, 0 FROM contents WHERE upload_object IS NOT NULL"
    )
    op.add_column("contents", sa.Column("parts", sa.Integer(), nullable=False, server_default="1"))
    op.add_column("contents", sa.Column("sealed_digest", sa.LargeBinary(), nullable=True))
    op.drop_column("contents", "upload_object")


def _move_keys() -> None:
    """Passes each key to ``keep_key`` of the caller, then drops the table.

    ``corevaultd migrate`` stores the keys in their area. A backup of the database must not restore the key of a deleted
    dataset.
    """
    keep_key = op.get_context().config.attributes.get("keep_key")
    boxes = op.get_bind().execute(sa.text("SELECT dataset_id, sealed_key FROM dataset_keys")).all()
    if boxes and keep_key is None:
        raise RuntimeError("This database holds keys that must be moved: run 'corevaultd migrate'.")
    for dataset_id, box in boxes:
        keep_key(dataset_id, bytes(box))
    op.drop_table("dataset_keys")


def downgrade() -> None:
    op.create_table(
        "dataset_keys",
        sa.Column("dataset_id", sa.String(), nullable=False),
        sa.Column("sealed_key", sa.LargeBinary(), nullable=False),
        sa.ForeignKeyConstraint(["dataset_id"], ["datasets.id"], name=op.f("fk_dataset_keys_dataset_id")),
        sa.PrimaryKeyConstraint("dataset_id", name=op.f("pk_dataset_keys")),
    )
    op.add_column("contents", sa.Column("upload_object", sa.String(), nullable=True))
    op.execute(
        "UPDATE contents SET upload_object = (SELECT object_name FROM upload_parts "
        "WHERE upload_parts.content_id = contents.id AND upload_parts.number = 0) WHERE parts = 1"
    )
    op.drop_column("contents", "sealed_digest")
    op.drop_column("contents", "parts")
    op.drop_table("upload_parts")
    op.drop_index(op.f("ix_uploads_owner_id"), table_name="uploads")
    op.drop_index(op.f("ix_uploads_dataset_id"), table_name="uploads")
    op.drop_table("uploads")
