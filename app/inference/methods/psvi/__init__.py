"""Pseudocoresets of public tables by gradient descent.

Method ids are ``psvi``, ``incremental-psvi``, ``sparse-vi`` and ``beta-cores``.
"""
