"""The private zone: the oracle, its queries, mechanisms and sampling. Only this package sees private rows."""
