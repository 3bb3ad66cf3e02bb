"""Variational inference for conjugate-exponential models, by noised statistics."""
