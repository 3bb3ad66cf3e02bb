"""Fitting weighted points to a Gaussian posterior: post-processing of what is already private (or public)."""
