"""The documentation site that ``make docs`` builds, served at ``/docs/guide/``."""
