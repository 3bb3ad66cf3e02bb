"""Pseudocoresets of public tables by gradient descent (method ids ``psvi``, ``incremental-psvi``, ``sparse-vi``)."""
