"""Audits of the private mechanisms on simulated tables, through the code of real runs."""
