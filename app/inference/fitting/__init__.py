"""Fitting weighted points to a Gaussian posterior.

Fitting is post-processing: it reads private estimates or public tables, and it costs no privacy.
"""
