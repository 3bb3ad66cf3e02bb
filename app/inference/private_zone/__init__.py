"""The private zone: oracle, queries, mechanisms and sampling. Only this package sees private rows."""
