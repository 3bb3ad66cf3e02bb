"""What the service's role may do on PostgreSQL, where another role owns the tables and migrates them."""

from collections.abc import Mapping

import sqlalchemy as sa
from sqlalchemy import Connection, Engine

EVERYTHING = "SELECT, INSERT, UPDATE, DELETE"
VERSIONS = {"alembic_version": "SELECT"}


def grant(engine: Engine, role: str, restricted: Mapping[str, str]) -> None:
    """Give ``role`` what running takes and take everything else away, in one transaction; say it after each migration.

    Args:
        engine: connects as the tables' owner.
        role: exists already; it cannot be the owner, whom no grant restrains.
        restricted: tables on which less than reading and writing is due, and what.

    Raises:
        ValueError: ``role`` does not exist, owns the tables or is a superuser, or the database knows no roles.
    """
    if engine.dialect.name != "postgresql":
        raise ValueError("Only PostgreSQL has roles.")
    with engine.begin() as connection:
        _check(connection, role)
        quoted = connection.dialect.identifier_preparer.quote(role)
        schema = connection.dialect.identifier_preparer.quote(str(connection.scalar(sa.func.current_schema())))
        due = dict.fromkeys(sa.inspect(connection).get_table_names(), EVERYTHING) | VERSIONS | dict(restricted)
        connection.execute(sa.text(f"GRANT USAGE ON SCHEMA {schema} TO {quoted}"))
        for table, privileges in sorted(due.items()):
            name = connection.dialect.identifier_preparer.quote(table)
            connection.execute(sa.text(f"REVOKE ALL ON TABLE {name} FROM {quoted}"))
            connection.execute(sa.text(f"GRANT {privileges} ON TABLE {name} TO {quoted}"))


def _check(connection: Connection, role: str) -> None:
    found = sa.text("SELECT rolsuper FROM pg_roles WHERE rolname = :role")
    superuser = connection.scalar(found, {"role": role})
    if superuser is None:
        raise ValueError("There is no such role; make it first (CREATE ROLE … LOGIN).")
    owns = sa.text("SELECT count(*) FROM pg_tables WHERE schemaname = current_schema() AND tableowner = :role")
    if superuser or connection.scalar(owns, {"role": role}):
        raise ValueError("Grants restrain neither a superuser nor the tables' owner; take another role.")
