"""Privileges of the service's role on PostgreSQL. Another role owns and migrates the tables."""

from collections.abc import Mapping

import sqlalchemy as sa
from sqlalchemy import Connection, Engine

EVERYTHING = "SELECT, INSERT, UPDATE, DELETE"
VERSIONS = {"alembic_version": "SELECT"}


def grant(engine: Engine, role: str, restricted: Mapping[str, str]) -> None:
    """Grant ``role`` the privileges of the service and revoke all others, in one transaction.

    Call it after each migration.

    Args:
        engine: connects as the tables' owner.
        role: exists already. It cannot be the owner, because grants do not restrict an owner.
        restricted: the privileges on tables where the role may not read and write everything.

    Raises:
        ValueError: ``role`` does not exist, owns the tables or is a superuser, or the database has no roles.
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
    is_superuser = sa.text("SELECT rolsuper FROM pg_roles WHERE rolname = :role")
    superuser = connection.scalar(is_superuser, {"role": role})
    if superuser is None:
        raise ValueError("There is no such role; make it first (CREATE ROLE … LOGIN).")
    owns = sa.text("SELECT count(*) FROM pg_tables WHERE schemaname = current_schema() AND tableowner = :role")
    if superuser or connection.scalar(owns, {"role": role}):
        raise ValueError("Grants restrain neither a superuser nor the tables' owner; take another role.")
