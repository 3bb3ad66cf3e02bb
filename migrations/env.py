"""Alembic's environment: migrates on the connection that :mod:`app.db.migrations` opened."""

from typing import Any, Literal

import sqlalchemy as sa
from alembic import context
from alembic.autogenerate.api import AutogenContext

import app.audit.models
import app.auth.models
import app.datasets.models
import app.http.requests.models
import app.jobs.models
import app.ledger.models
import app.releases.models  # noqa: F401  (imported for its tables, like those above)
from app.db import Base, UtcDateTime


def _render(kind: str, item: Any, _: AutogenContext) -> str | Literal[False]:
    """Writes plain types into scripts: migrations must not follow the project's classes."""
    if kind == "type" and isinstance(item, UtcDateTime):
        return "sa.DateTime(timezone=True)"
    return False


def _same_type(_: Any, __: Any, ___: Any, ____: sa.types.TypeEngine[Any], declared: sa.types.TypeEngine[Any]) -> Any:
    return False if isinstance(declared, UtcDateTime) else None


context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=Base.metadata,
    render_item=_render,
    compare_type=_same_type,
    render_as_batch=False,
)
with context.begin_transaction():
    context.run_migrations()
