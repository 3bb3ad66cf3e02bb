"""Differentially private variational inference (method id ``dp-vi``)."""
