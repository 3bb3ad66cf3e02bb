"""Orthogonal matching pursuit on Hilbert vectors (method id ``omp``); see :mod:`app.inference.hilbert.omp`."""

from app.inference.hilbert.omp import omp
from app.inference.methods.hilbert import HilbertMethod

OMP = HilbertMethod("omp", "Hilbert coreset by non-negative orthogonal matching pursuit. Not private.", omp)
