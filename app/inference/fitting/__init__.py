"""Fitting weighted points to a Gaussian posterior: post-processing of what is already private (or public)."""

from app.inference.fitting.fit import Fitted, fit_points

__all__ = ["Fitted", "fit_points"]
