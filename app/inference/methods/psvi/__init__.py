"""Pseudocoresets of public tables by gradient descent.

Method ids are ``psvi``, ``incremental-psvi`` and ``sparse-vi``.
"""
