"""Mutants: small breaks of a promise, and the tests or audits that must catch them."""
