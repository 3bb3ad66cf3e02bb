"""Greedy iterative geodesic ascent on Hilbert vectors (method id ``giga``); see :mod:`app.inference.hilbert.giga`."""

from app.inference.hilbert.giga import giga
from app.inference.methods.hilbert import HilbertMethod

GIGA = HilbertMethod("giga", "Hilbert coreset by greedy iterative geodesic ascent (GIGA, 2018). Not private.", giga)
